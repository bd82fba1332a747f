"""Duplicate detection: which ids of messages were there within the window, so that a second message is dropped.

It is decided when a batch is visible, by the log's own enqueued times and in its order: so a message is dropped only
when the first one is durable, and a replay decides the same. A second message does not begin the window anew. It takes
a sequence number, of which no message is: who schedules it is answered with a number as for any other.

In an entity of several fragments a message is another one under another key, as such messages may lie in different
fragments, which know nothing of each other.

An id is kept as 64 bits of BLAKE2b (of a million ids, one in 10^13 messages would be taken for another) with its time:
the newest in a dict, older ones in *generations*, sorted arrays that never change and go as a whole. At most `limit`
ids are kept; a send that would bring more is refused before anything is stored, as over a quota. After a crash: the
snapshot holds them all, and the log those behind it.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from hashlib import blake2b

from msgspec import Struct

from hubweir.kernels.messages.sections import BINARY, STRING
from hubweir.kernels.queue_contract import I_ID, I_ID_LENGTH, INCOMING_WIDTH
from hubweir.queue.message_key import content_of_id, sent_key

# 16 bytes an id, and more for the newest: 20 MB.
IDS_LIMIT = 1_000_000
# To sort so many takes 8 ms.
GENERATION_IDS = 32_768
_COUNT = struct.Struct(">I")
_KEY = struct.Struct(">cI")
_LONGS = (0x44, 0x53, 0x80)

Data = bytes | bytearray | memoryview


class _Generation(Struct, frozen=True):
    """Ids that were seen one after the other. hashes: sorted; times: of them; newest_ms: the last of these."""

    hashes: array[int]
    times: array[int]
    newest_ms: int


class DuplicateWindow:
    """The ids of one fragment. Times are enqueued times, ms since 1970; kept without what they skipped before."""

    def __init__(self) -> None:
        self.limit = IDS_LIMIT
        self._skipped_ms = 0
        self._newest: dict[int, int] = {}
        self._generations: list[_Generation] = []  # the oldest first

    def __len__(self) -> int:
        return len(self._newest) + sum(len(each.hashes) for each in self._generations)

    @property
    def newest_ms(self) -> int | None:
        """When the newest id came, by enqueued times as they are now; None where there is none.

        What the log got since says nothing of the window: its stamps may have jumped, and no SKIPPED tells of that.
        """
        if self._newest:
            return next(reversed(self._newest.values())) + self._skipped_ms
        return self._generations[-1].newest_ms + self._skipped_ms if self._generations else None

    def skip(self, skipped_ms: int) -> None:
        """So much of the time up to the next ids did not pass. (window_clock.py)"""
        self._skipped_ms += skipped_ms

    def due(self, before_ms: int) -> int:
        """How many ids `forget` would let go. Who looks for room in advance forgets none: the log may refuse him."""
        before_ms -= self._skipped_ms
        many = 0
        for each in self._generations:
            if each.newest_ms > before_ms:
                return many
            many += len(each.hashes)
        if self._newest and next(reversed(self._newest.values())) <= before_ms:
            many += len(self._newest)
        return many

    def forget(self, before_ms: int) -> None:
        """Let generations go whose ids all came before this time or at it. What the log says decides when: so a replay
        forgets the same."""
        before_ms -= self._skipped_ms
        while self._generations and self._generations[0].newest_ms <= before_ms:
            del self._generations[0]
        if self._newest and next(reversed(self._newest.values())) <= before_ms:
            self._newest.clear()

    def duplicates_in(
        self, data: Data, fields: array[int], *, enqueued_ms: int, window_ms: int, with_keys: bool = False
    ) -> list[int]:
        """The places of incoming rows whose ids were there within the window; the ids of the others are from now on.

        with_keys: an id is another one under another session id or partition key.
        """
        self.forget(enqueued_ms - window_ms)
        enqueued_ms -= self._skipped_ms
        duplicates = []
        for at in range(0, len(fields), INCOMING_WIDTH):
            start = fields[at + I_ID]
            if start < 0:
                continue
            key = sent_key(data, fields, at) if with_keys else None
            found = hash_of(data, start, start + fields[at + I_ID_LENGTH], key)
            time_ms = self._time_of(found)
            if time_ms is not None and enqueued_ms - time_ms < window_ms:
                duplicates.append(at // INCOMING_WIDTH)
            else:
                self._newest.pop(found, None)  # the newest stand last
                self._newest[found] = enqueued_ms
        if len(self._newest) >= GENERATION_IDS:
            self._seal()
        return duplicates

    def _time_of(self, found: int) -> int | None:
        """When an id was seen last."""
        time_ms = self._newest.get(found)
        if time_ms is not None:
            return time_ms
        for each in reversed(self._generations):
            at = bisect_left(each.hashes, found)
            if at < len(each.hashes) and each.hashes[at] == found:
                return each.times[at]
        return None

    def _seal(self) -> None:
        hashes = array("q", sorted(self._newest))
        times = array("q", [self._newest[each] for each in hashes])
        self._generations.append(_Generation(hashes, times, max(times)))
        self._newest = {}

    # Snapshots: how many parts 4; for each how many ids 4, their hashes 8 each and their times 8 each, little-endian

    def encode(self) -> bytes:
        """All ids; the newest are the last part, in the order in which they came."""
        newest = (array("q", self._newest.keys()), array("q", self._newest.values()))
        parts = [*((each.hashes, each.times) for each in self._generations), newest]
        out = bytearray(_COUNT.pack(len(parts)))
        for hashes, times in parts:
            if self._skipped_ms:  # none of it is left for who restores them
                times = array("q", map(self._skipped_ms.__add__, times))
            out += _COUNT.pack(len(hashes)) + _little(hashes) + _little(times)
        return bytes(out)

    def restore(self, data: memoryview, at: int) -> int:
        """Have the ids that were encoded; where they end. Raises struct.error or ValueError for what is none."""
        (parts,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        for place in range(parts):
            (many,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size
            if at + 16 * many > len(data):
                raise ValueError("it ends early")
            hashes, times = _numbers(data[at : at + 8 * many]), _numbers(data[at + 8 * many : at + 16 * many])
            at += 16 * many
            if place == parts - 1:
                self._newest = dict(zip(hashes, times, strict=True))
            elif many:
                self._generations.append(_Generation(hashes, times, max(times)))
        return at


def hash_of(data: Data, start: int, end: int, key: bytes | None = None) -> int:
    """64 bits of an encoded message id: the same for every way to encode one string, binary, uuid or number.

    key: together with which it is one; None: alone.
    """
    code = data[start]
    kind = b"s" if code in STRING else b"b" if code in BINARY else b"n" if code in _LONGS else bytes((code,))
    under = b"" if key is None else _KEY.pack(b"k", len(key)) + key
    hashed = blake2b(under + kind + content_of_id(data, start, end), digest_size=8)
    return int.from_bytes(hashed.digest(), "big", signed=True)


def _little(numbers: array[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def _numbers(data: memoryview) -> array[int]:
    return array("q", struct.unpack(f"<{len(data) // 8}q", data))
