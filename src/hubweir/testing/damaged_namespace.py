"""A live namespace whose first partition of a hub holds damage: one event of several has a flipped bit on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hubweir.client.event_hub_client import EventHubClient
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

HUB = "damaged"


@contextmanager
def damaged_namespace(folder: Path, *, events: int, damaged: int, **settings: Any) -> Iterator[RunningNamespace]:
    """A namespace with the hub HUB: partition 0 holds events "event 0" on, one a batch, and one of them is damaged.

    folder: for its data; empty. settings: of the namespace that runs in the end.
    """
    with running_namespace(data=str(folder)) as namespace:
        namespace.create_event_hub(HUB)
        asyncio.run(_fill(namespace.connection_string(), events))
    flip_a_bit(folder, b"event %d." % damaged)
    with running_namespace(data=str(folder), **settings) as namespace:
        yield namespace


async def _fill(text: str, count: int) -> None:
    async with EventHubClient.from_connection_string(text, HUB) as client:
        sender = client.sender(partition_id="0")
        for number in range(count):
            await sender.send([b"event %d." % number])


def flip_a_bit(folder: Path, content: bytes) -> None:
    """Change one bit of these bytes wherever they stand in a segment; they must stand in one."""
    found = 0
    for path in sorted(folder.glob("store-*/logs/*/*.log")):
        data = bytearray(path.read_bytes())
        at = data.find(content)
        if at >= 0:
            found += 1
            data[at] ^= 1
            path.write_bytes(data)
    assert found, f"no segment in {folder} holds {content!r}"
