"""Reads of a fragment's messages from its log, for those who receive or peek: records by their log indexes.

A read takes what the log's tail has at once, and waits for the disk otherwise. While it is under way nothing that it
needs is trimmed (`least_index`). What the tail gave stays until the end of the turn: many receivers get messages of the
same few runs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

from hubweir.errors import CorruptStore
from hubweir.kernels import collect_records
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_RECORD
from hubweir.messaging_store.log import Log, Refused, Run
from hubweir.queue.changed_properties import changed_record

# At most so much at once from the disk; one batch, at least. What was read ahead is kept for the next read.
READ_BYTES = 256 * 1024


class MessageRead:
    """One read that is under way. changes: properties to put in, by place in rows.

    indexes: in the order of the log, so that what was read ahead is there for the next. order: of each its place in
    rows; None: they are in that order. found: where the records lie, as message rows.
    """

    __slots__ = ("at", "changes", "found", "indexes", "on_done", "order", "out", "rows")

    def __init__(
        self,
        indexes: array[int],
        rows: array[int],
        changes: dict[int, bytes],
        on_done: Callable[[bytearray | Refused], None],
    ) -> None:
        in_order = sorted(indexes)
        self.order: list[int] | None = None
        self.indexes, self.rows, self.found = indexes, rows, rows
        if in_order != indexes.tolist():
            self.order = sorted(range(len(indexes)), key=indexes.__getitem__)
            self.indexes, self.found = array("q", in_order), array("q", bytes(8 * len(rows)))
        self.changes = changes
        self.on_done = on_done
        self.out = bytearray()
        self.at = 0


class MessageReads:
    """Those of one fragment."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._under_way: dict[MessageRead, None] = {}
        self._last_cold: Run | None = None
        self._of_turn: list[Run] | None = None  # of the tail; None: there is no turn

    @property
    def least_index(self) -> int | None:
        """The least log index that a read needs; None: none is under way."""
        return min((read.indexes[0] for read in self._under_way), default=None)

    def let_go(self) -> None:
        """Keep nothing of what was read last."""
        self._last_cold = None

    def begin_turn(self) -> None:
        """Keep what the tail gives until `end_turn`."""
        self._of_turn = []

    def end_turn(self) -> None:
        """Who reads next asks the log again."""
        self._of_turn = None

    def begin(
        self,
        indexes: array[int],
        rows: array[int],
        changes: dict[int, bytes],
        on_done: Callable[[bytearray | Refused], None],
    ) -> None:
        """Read the records of these indexes, one at least: on_done gets them back to back, maybe within this call.

        rows: a message row for each, in which Q_RECORD is filled. Refused: with the log's error.
        """
        read = MessageRead(indexes, rows, changes, on_done)
        self._under_way[read] = None
        self._go_on(read)

    def _go_on(self, read: MessageRead) -> None:
        """Read from where it is; so many that the log has in memory are no deep stack."""
        while read.at < len(read.indexes):
            index = read.indexes[read.at]
            found = self._known(index)
            if found is None:
                answer = self._log.read(index, max_bytes=READ_BYTES, on_done=partial(self._answered, read))
                if not isinstance(answer, Run):
                    return
                found = answer
                if self._of_turn is not None:
                    self._of_turn.append(found)
            if not self._take(read, found):
                return
        self._end(read)

    def _known(self, index: int) -> Run | None:
        """What was read, and has this index."""
        for run in self._of_turn or ():
            if run.first_index <= index < run.next_index:
                return run
        cold = self._last_cold
        return cold if cold is not None and cold.first_index <= index < cold.next_index else None

    def _answered(self, read: MessageRead, found: Run | Refused) -> None:
        if isinstance(found, Refused):
            self._finish(read, found)
            return
        self._last_cold = found
        if self._take(read, found):
            self._go_on(read)

    def _take(self, read: MessageRead, run: Run) -> bool:
        """Take the records out of a run; False when the one that is needed is not there, and the read is over."""
        before = read.at
        read.at = collect_records(run.data, read.indexes, before, len(read.indexes), read.found, read.out)
        if read.at > before:
            return True
        index = read.indexes[before]
        text = f"log {self._log.log_id}: the record of index {index} is not where it should be"
        self._finish(read, Refused(CorruptStore(text, first_index=index, resume_index=index + 1)))
        return False

    def _end(self, read: MessageRead) -> None:
        if read.order is not None:
            for place, at in enumerate(read.order):
                read.rows[at * MESSAGE_WIDTH + Q_RECORD] = read.found[place * MESSAGE_WIDTH + Q_RECORD]
        if read.changes:
            self._put_changes_in(read)
        self._finish(read, read.out)

    def _put_changes_in(self, read: MessageRead) -> None:
        for place, changes in read.changes.items():
            at = read.rows[place * MESSAGE_WIDTH + Q_RECORD]
            length = int.from_bytes(read.out[at : at + 4], "big")
            read.rows[place * MESSAGE_WIDTH + Q_RECORD] = len(read.out)
            read.out += changed_record(bytes(read.out[at : at + length]), changes)

    def _finish(self, read: MessageRead, answer: bytearray | Refused) -> None:
        del self._under_way[read]
        read.on_done(answer)
