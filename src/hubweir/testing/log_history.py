"""The history of a log, as writers were told and readers saw it, and a linear check that both agree (T15).

Every event's body says who wrote it, in which batch, and which of how many in it; a checksum at its end. One writer
sends to one partition over one link at a time, with rising batch numbers, and never sends a batch twice.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

_HEAD = struct.Struct(">IIHH")
_CRC = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Seen:
    """One event as a reader got it."""

    sequence_number: int
    offset: int
    enqueued_time_ms: int
    body: bytes


def make_body(partition: int, batch: int, place: int, count: int, filler: bytes) -> bytes:
    """The body of event `place` of `count` in a batch."""
    content = _HEAD.pack(partition, batch, place, count) + filler
    return content + _CRC.pack(zlib.crc32(content))


def read_body(body: bytes) -> tuple[int, int, int, int] | None:
    """partition, batch, place, count; None when these are not the bytes that were sent."""
    if len(body) < _HEAD.size + _CRC.size or zlib.crc32(body[:-4]) != _CRC.unpack(body[-4:])[0]:
        return None
    return _HEAD.unpack_from(body)


@dataclass(slots=True)
class PartitionHistory:
    """One partition: the batches that were accepted, and every event in the order in which it was first read."""

    partition: int
    accepted: dict[int, int] = field(default_factory=dict)  # batch number → events in it
    seen: list[Seen] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)  # batches of which their sender was told that nothing is stored
    # How often numbers may be skipped: in relaxed mode once an unclean start, never in durable mode (promise P4).
    jumps_allowed: int = 0
    # Its writer goes on over another process when one was lost: what the lost one had sent to the partition's owner,
    # and nobody answered, may be stored behind what came over the next one. In one process no link overtakes another.
    may_be_late: bool = False

    def again(self, events: list[Seen]) -> list[str]:
        """Compare a later read of everything with what was seen before: nothing moved, nothing changed (promise P4)."""
        both = zip(events, self.seen, strict=False)
        wrong = [f"{self._at(now)} is not what it was" for now, before in both if now != before]
        if len(events) != len(self.seen):
            wrong.append(f"partition {self.partition}: {len(events)} events now, {len(self.seen)} before")
        return wrong

    def check(self) -> list[str]:
        """What is wrong, in words; nothing when every promise held."""
        wrong: list[str] = []
        found: set[int] = set()
        last_batch, newest, expected, count = -1, -1, 0, 0
        previous: Seen | None = None
        number, jumps = 0, 0
        for event in self.seen:
            if event.sequence_number > number and jumps < self.jumps_allowed:
                jumps += 1
                number = event.sequence_number
            if event.sequence_number != number:
                wrong.append(f"{self._at(event)}: sequence number {number} was expected")
            number += 1
            if previous is not None and event.offset <= previous.offset:
                wrong.append(f"{self._at(event)}: offset {event.offset} does not rise")
            if previous is not None and event.enqueued_time_ms < previous.enqueued_time_ms:
                wrong.append(f"{self._at(event)}: enqueued time went back")
            previous = event
            content = read_body(event.body)
            if content is None or content[0] != self.partition:
                wrong.append(f"{self._at(event)}: the bytes are not those that were sent here")
                continue
            _, batch, place, of = content
            if place == 0:
                if expected != count:
                    wrong.append(f"{self._at(event)}: batch {last_batch} before it is not whole")
                if batch in self.refused:
                    wrong.append(f"{self._at(event)}: batch {batch} was refused, and is there")
                is_late = self.may_be_late and batch not in self.accepted and batch not in found
                if batch <= newest and not is_late:
                    wrong.append(f"{self._at(event)}: batch {batch} behind {newest}: moved or stored twice")
                last_batch, newest, expected, count = batch, max(newest, batch), 0, of
                found.add(batch)
            if batch != last_batch or place != expected or of != count:
                wrong.append(f"{self._at(event)}: event {place} of batch {batch} stands in another batch")
            expected = place + 1
        if expected != count:
            wrong.append(f"partition {self.partition}: batch {last_batch} at the end is not whole")
        wrong += [
            f"partition {self.partition}: batch {batch} was accepted and is lost"
            for batch in self.accepted
            if batch not in found
        ]
        return wrong

    def _at(self, event: Seen) -> str:
        return f"partition {self.partition}, event {event.sequence_number}"
