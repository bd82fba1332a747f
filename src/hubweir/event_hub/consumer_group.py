"""The readers of one partition, by consumer group.

Consumer groups read independently: a group is a name in front of a reader's position, and costs nothing. The table
says who holds which reader, so that the end of a connection, or of a process, frees exactly its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from hubweir.namespace.resource_path import fold


@dataclass(frozen=True, slots=True)
class Reader:
    """One open reader. group: lower case. epoch: owner level, or None. name: what its client calls itself.

    peer, client: where its connection comes from, and what that calls itself.
    """

    reader_id: int
    group: str
    name: str | None
    epoch: int | None
    owner: Hashable
    peer: str = ""
    client: str = ""


class ReaderTable:
    """The readers of one partition. Reader ids are the caller's, unique among all its partitions."""

    def __init__(self) -> None:
        self._readers: dict[int, Reader] = {}

    def __len__(self) -> int:
        return len(self._readers)

    def __iter__(self) -> Iterator[Reader]:
        """All readers in the order they were added."""
        return iter(tuple(self._readers.values()))

    def add(
        self,
        reader_id: int,
        group: str,
        *,
        name: str | None,
        epoch: int | None,
        owner: Hashable,
        peer: str = "",
        client: str = "",
    ) -> Reader:
        """Enter a reader and return it."""
        reader = Reader(reader_id, fold(group), name, epoch, owner, peer, client)
        self._readers[reader_id] = reader
        return reader

    def remove(self, reader_id: int) -> Reader | None:
        """Take a reader out; None when it is not there."""
        return self._readers.pop(reader_id, None)

    def of_group(self, group: str) -> list[Reader]:
        """The readers of a consumer group, any case."""
        folded = fold(group)
        return [reader for reader in self._readers.values() if reader.group == folded]
