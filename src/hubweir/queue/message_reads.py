"""Reads of a fragment's messages from its log, for those who receive or peek: records by their log indexes.

A read takes what the log's tail has at once, and waits for the disk otherwise. While it is under way nothing that it
needs is trimmed (`least_index`). What the tail gave stays until the end of the turn: many receivers get messages of the
same few runs. Where messages lie far apart, as those do that come due together, the disk is asked for several places at
once, and reads no more there than the batch of each.
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
ONE_BATCH = 1
# Records that are no further apart lie in what is read for the first of them, or nearly; so many places at once.
NEAR, PLACES = 512, 16


class MessageRead:
    """One read that is under way. changes: properties to put in, by place in rows.

    indexes: in the order of the log, so that what was read ahead is there for the next. order: of each its place in
    rows; None: they are in that order. found: where the records lie, as message rows. awaited: how many answers of the
    disk; cold: what it answered since it was asked last, for the message at asked_at; refused: why not.
    """

    __slots__ = (
        "asked_at", "at", "awaited", "changes", "cold", "found", "indexes", "on_done", "order", "out", "refused",
        "rows",
    )  # fmt: skip

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
        self.asked_at = -1
        self.awaited = 0
        self.cold: list[Run] = []
        self.refused: Refused | None = None


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

    def take_of_turn(self, indexes: array[int], at: int, last: int, rows: array[int], out: bytearray) -> int:
        """Append the records of indexes[at:last] to out as far as runs of this turn have them; how far that is.

        rows: as of `begin`, of all indexes. Where it ends `begin` goes on, and the runs that it reads are of this turn.
        """
        while at < last:
            run = next((run for run in self._of_turn or () if run.first_index <= indexes[at] < run.next_index), None)
            before = at
            at = at if run is None else collect_records(run.data, indexes, at, last, rows, out)
            if at == before:
                break
        return at

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
            found = self._known(read)
            if found is None and read.asked_at != read.at:
                self._ask(read)
                if read.awaited:
                    return
            elif found is None or not self._take(read, found):
                self._miss(read)
                return
        self._end(read)

    def _known(self, read: MessageRead) -> Run | None:
        """What was read, and has the index that is needed."""
        index, last = read.indexes[read.at], self._last_cold
        known = [*read.cold, *(self._of_turn or ())] if last is None else [*read.cold, *(self._of_turn or ()), last]
        return next((run for run in known if run.first_index <= index < run.next_index), None)

    def _ask(self, read: MessageRead) -> None:
        """Ask the log for the places that are needed next."""
        read.cold, read.asked_at = [], read.at
        for index, max_bytes in self._places(read):
            answer = self._log.read(index, max_bytes=max_bytes, on_done=partial(self._answered, read))
            if not isinstance(answer, Run):
                read.awaited += 1
            elif self._of_turn is not None:
                self._of_turn.append(answer)
            else:
                read.cold.append(answer)

    def _places(self, read: MessageRead) -> list[tuple[int, int]]:
        """Indexes that are needed next and lie far apart, and how many bytes to read from there on.

        Ahead is read where more is needed of what follows, or was read just before: somebody goes through messages.
        """
        wanted, last = read.indexes[read.at : read.at + PLACES], self._last_cold
        goes_on = bool(self._of_turn) or (last is not None and 0 <= wanted[0] - last.next_index < NEAR)
        firsts = [at for at, index in enumerate(wanted) if not at or index - wanted[at - 1] >= NEAR]
        ends = [*firsts[1:], len(wanted)]
        return [
            (wanted[at], READ_BYTES if goes_on or end - at > 1 else ONE_BATCH)
            for at, end in zip(firsts, ends, strict=True)
        ]

    def _answered(self, read: MessageRead, found: Run | Refused) -> None:
        read.awaited -= 1
        if isinstance(found, Refused):
            read.refused = read.refused or found
        else:
            read.cold.append(found)
            self._last_cold = found
        if read.awaited:
            return
        if read.refused is not None:
            self._finish(read, read.refused)
        else:
            self._go_on(read)

    def _take(self, read: MessageRead, run: Run) -> bool:
        """Take records out of a run; False when it has not the one that is needed."""
        before = read.at
        read.at = collect_records(run.data, read.indexes, before, len(read.indexes), read.found, read.out)
        return read.at > before

    def _miss(self, read: MessageRead) -> None:
        """What the log answered has not the record that is needed."""
        index = read.indexes[read.at]
        text = f"log {self._log.log_id}: the record of index {index} is not where it should be"
        self._finish(read, Refused(CorruptStore(text, first_index=index, resume_index=index + 1)))

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
