"""Displaced readers until their gateways say that the links are detached, and the new readers that wait for that.

A reader with an epoch must not get its first event while the one it displaced may still be taken for the reader
(promise P6). So its OpenReader is answered when every reader that was displaced in its partition and group has been
confirmed detached, its gateway's peer is gone, or DEPARTURE_LIMIT_MS have passed: a gateway that hangs holds up nobody
longer. After a crash nobody waits: all readers are gone with their broker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.broker.commands.command import Owner
from hubweir.broker.deadlines import BrokerDeadlines, Deadline

DEPARTURE_LIMIT_MS = 2_000


@dataclass(frozen=True, slots=True)
class _Leaving:
    group: str
    owner: Owner
    deadline: Deadline


class Departures:
    """Those of one partition. group: a consumer group, in lower case."""

    def __init__(self, deadlines: BrokerDeadlines, *, longest_ms: int = DEPARTURE_LIMIT_MS) -> None:
        self._deadlines = deadlines
        self._longest_ms = longest_ms
        self._leaving: dict[int, _Leaving] = {}
        self._waiting: dict[int, tuple[str, Callable[[], None]]] = {}

    def begin(self, reader_id: int, group: str, owner: Owner) -> None:
        """This reader of owner was displaced, and its link is not detached yet."""
        deadline = self._deadlines.arm_in(self._longest_ms, self, reader_id)
        self._leaving[reader_id] = _Leaving(group, owner, deadline)

    def due(self, reader_id: int, now_ms: int) -> None:
        """Its gateway had its time."""
        self.end(reader_id)

    def end(self, reader_id: int) -> None:
        """Its link is detached. Twice, or for a reader that was not displaced, does nothing."""
        leaving = self._leaving.pop(reader_id, None)
        if leaving is not None:
            self._deadlines.cancel(leaving.deadline)
            self._go_on(leaving.group)

    def end_of(self, owner: Owner) -> None:
        """The owner's peer is gone, and its links with it."""
        for reader_id in [key for key, leaving in self._leaving.items() if owner.covers(leaving.owner)]:
            self.end(reader_id)

    def wait(self, reader_id: int, group: str, go_on: Callable[[], None]) -> None:
        """Call go_on once, when nobody leaves this group any more: now, or later unless the reader is cancelled."""
        self._waiting[reader_id] = group, go_on
        self._go_on(group)

    def cancel(self, reader_id: int) -> None:
        """This reader waits no longer; does nothing when it did not wait."""
        self._waiting.pop(reader_id, None)

    def close(self) -> None:
        """The broker stops, or the partition is gone."""
        self._waiting.clear()
        for leaving in self._leaving.values():
            self._deadlines.cancel(leaving.deadline)
        self._leaving.clear()

    def _go_on(self, group: str) -> None:
        if any(leaving.group == group for leaving in self._leaving.values()):
            return
        for reader_id, (waited, go_on) in list(self._waiting.items()):
            # What an earlier one started may have cancelled it.
            if waited == group and self._waiting.pop(reader_id, None) is not None:
                go_on()
