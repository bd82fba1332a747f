"""The idempotent producers of a partition as its log, the log's notes and its snapshots have them.

A snapshot: one byte of version, then a row for each producer. A *fence* is the note of a producer (its key: `p`, then
the id, 8 bytes): epoch and round, as in a row, and one byte, 1 when nothing of the round was stored and nothing is on
its way. Such a fence says all that there is to know, whatever stands before it in the log; any other one raises the
epoch of what stands there. The empty note says that the producer was expired: what stands before it holds no more. It
is kept until both snapshots were made behind it.

| row field | bytes | meaning |
|-----------|------:|---------|
| id        |     8 | signed |
| epoch     |     4 | of its last batch or fence |
| last      |     8 | number of its last event in this round; 0 for none |
| time      |     8 | signed, ms since 1970: enqueued time of its last batch or fence |
| round     |     8 | version 2: one more than its sink says; 0 for a producer without rounds |
| digest    |     8 | version 2: as it came with the last event |

Version 1, without the last two fields, is written while no producer has a round: older versions read it.

A log that has no snapshot never had a producer: the first one is answered only when an empty snapshot is durable. So a
start replays nothing for the other logs. Replay applies batches and notes by their index, unjudged: what is in the log
was judged when it was appended. Notes of an index below the snapshot's are in the snapshot: it holds a fence from the
moment that it is written, and nobody who was expired.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import Kept
from hubweir.kernels.stored_batch import KIND_EVENTS
from hubweir.messaging_store.log import Note, Run
from hubweir.messaging_store.record import headers_of, producer_of

VERSION = 2
_ROWS = {1: struct.Struct(">qIQq"), 2: struct.Struct(">qIQqQQ")}
_FENCE = struct.Struct(">IQ?")
_KEY = struct.Struct(">cq")
_KEY_MARK = b"p"
EXPIRED = b""  # the body of a producer's note


def encode_snapshot(sequences: ProducerSequences) -> bytes:
    """The state as of the visible end of the log. Not inside a callback of an append: others may not be called yet."""
    all_kept = sequences.kept()
    if any(kept.round for kept in all_kept):
        version, rows = 2, [
            _ROWS[2].pack(kept.producer_id, kept.epoch, kept.last, kept.time_ms, kept.round, kept.digest)
            for kept in all_kept
        ]  # fmt: skip
    else:
        version, rows = 1, [
            _ROWS[1].pack(kept.producer_id, kept.epoch, kept.last, kept.time_ms) for kept in all_kept
        ]  # fmt: skip
    return bytes((version,)) + b"".join(rows)


def restore_snapshot(sequences: ProducerSequences, state: bytes) -> None:
    """Raises NewerFormat, or CorruptStore when it is no such snapshot."""
    row_of = _ROWS.get(state[0]) if state else None
    if row_of is None:
        raise NewerFormat(f"the snapshot of producers has format {state[:1].hex()}; this version reads up to {VERSION}")
    if (len(state) - 1) % row_of.size:
        raise CorruptStore(f"the snapshot of producers has {len(state)} bytes, which are no whole rows")
    for row in row_of.iter_unpack(state[1:]):
        sequences.restore(Kept(*row))


class ProducerReplay:
    """Applies what a log and its notes say from an index on: visit for each run in order, then end."""

    def __init__(self, sequences: ProducerSequences, notes: Iterable[Note], from_index: int) -> None:
        """notes: all of the log's."""
        self._sequences = sequences
        self._from_index = from_index
        self._left = sorted(
            (note for note in producer_notes(notes) if note.index >= from_index), key=_index, reverse=True
        )

    def visit(self, run: Run) -> None:
        """A run of the log, and the notes before it. CorruptStore for a fence that is none."""
        for header in headers_of(run.data):
            while self._left and self._left[-1].index <= header.first_index:
                _apply(self._sequences, self._left.pop())
            if header.kind == KIND_EVENTS and header.first_index >= self._from_index:
                producer = producer_of(run.data, header)
                if producer is not None:
                    last = producer.first_number + header.count - 1
                    self._sequences.restore(
                        Kept(
                            producer.producer_id,
                            producer.epoch,
                            last,
                            header.enqueued_time_ms,
                            producer.round,
                            producer.digest,
                        )  # fmt: skip
                    )

    def end(self) -> None:
        """The notes that are left, behind all runs. CorruptStore for a fence that is none, when all were applied."""
        damage: CorruptStore | None = None
        while self._left:
            try:
                _apply(self._sequences, self._left.pop())
            except CorruptStore as error:
                damage = error
        if damage is not None:
            raise damage


def _apply(sequences: ProducerSequences, note: Note) -> None:
    _, producer_id = _KEY.unpack(note.key)
    if note.body == EXPIRED:
        sequences.drop((producer_id,))
        return
    if len(note.body) != _FENCE.size:
        raise CorruptStore(f"a fence of a producer has {len(note.body)} bytes, not {_FENCE.size}")
    epoch, number, begins = _FENCE.unpack(note.body)
    sequences.restore_fence(producer_id, number, epoch, note.time_ms, begins=begins)


def producer_notes(notes: Iterable[Note]) -> list[Note]:
    """Those that are of producers."""
    return [note for note in notes if note.key[:1] == _KEY_MARK and len(note.key) == _KEY.size]


def note_key(producer_id: int) -> bytes:
    """The key of a producer's note."""
    return _KEY.pack(_KEY_MARK, producer_id)


def fence_body(epoch: int, round: int, *, begins: bool) -> bytes:
    """The fence of a producer that was opened. begins: nothing of this round was stored, or is on its way."""
    return _FENCE.pack(epoch, round, begins)


def _index(note: Note) -> int:
    return note.index
