"""The messages of one view as rows of numbers, in pages by their counts: no object and no Python call a message.

A row is M_… of kernels/queue_contract.py. The count of a message is its place, from 1 on; pages whose messages are all
gone are dropped. Of a page is known besides: from which row on one may be ready (by sub-queue), when something in it
comes due, and how it is packed for a snapshot since it last changed. Which page is next stands in heaps, whose stale
entries are passed over.

Long because everything that happens to rows happens here, page by page.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter

from hubweir.kernels import (
    activate_messages,
    add_messages,
    copy_messages,
    count_deliveries,
    drop_messages,
    due_messages,
    give_messages,
    least_index,
    mark_messages,
    select_messages,
    unlock_messages,
    unpack_rows,
)
from hubweir.kernels.queue_contract import (
    ACTIVE,
    DEFERRED,
    DELIVERIES_MOST,
    DELIVERIES_SHIFT,
    LOCKED,
    M_EXPIRES,
    M_FIRST,
    M_INDEX,
    M_LOCK,
    M_SESSION,
    M_STATE,
    PAGE_ROWS,
    QUEUE_WIDTH,
    SCHEDULED,
    SETTLING,
    STATE_BITS,
    SUB_QUEUE_BITS,
    SUB_QUEUE_SHIFT,
    T_ACTIVE,
    T_DEFERRED,
    T_MESSAGES,
    T_SCHEDULED,
    T_SIZE,
    TALLY_WIDTH,
    WANT_ANY,
    WANT_READY,
)
from hubweir.queue.message_page import NEVER, SUB_QUEUES, Page, kind_of, packed

_EMPTY_ROW = bytes(8 * QUEUE_WIDTH)
_BEFORE_ALL_MS, _ALL_BYTES = -1, 2**62

# Messages, none of them twice: the count of a first one, and how many from it on, for each range.
Ranges = Sequence[tuple[int, int]]


class HeldBytes:
    """What several tables hold together: bytes of the records of messages that are not gone."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0


class MessageTable:
    """Rows by count. tally: one tally row (kernels/queue_contract.py, T_…) of all that are not gone."""

    def __init__(self) -> None:
        self._held: HeldBytes | None = None
        self.pages: dict[int, Page] = {}  # by the first count less 1, over PAGE_ROWS; in that order
        self.next_count = 1
        self.tally = array("q", [0]) * TALLY_WIDTH
        self._ready: list[list[int]] = [[] for _ in range(SUB_QUEUES)]
        self._due: list[tuple[int, int, int]] = []  # due_ms, page number, state

    def count_into(self, held: HeldBytes | None) -> None:
        """What this table holds is a part of that from now on, and no longer of what it was; None: of nothing."""
        for whole, size in ((self._held, -self.tally[T_SIZE]), (held, self.tally[T_SIZE])):
            if whole is not None:
                whole.total += size
        self._held = held

    def _holds(self, size: int) -> None:
        """So many bytes more."""
        self.tally[T_SIZE] += size
        if self._held is not None:
            self._held.total += size

    # One message

    def find(self, count: int) -> tuple[Page, int] | None:
        """Page of a message that is not gone, and where its row begins in it."""
        page = self.pages.get(count - 1 >> 12)
        if page is None or count < 1:
            return None
        at = (count - page.first) * QUEUE_WIDTH
        if at >= len(page.rows) or not page.rows[at + M_STATE] & STATE_BITS:
            return None
        return page, at

    # Messages that come

    def add(
        self,
        fields: array[int],
        messages: int,
        *,
        first_index: int,
        enqueued_ms: int,
        default_ttl_ms: int,
        reserved: int = 0,
    ) -> int:
        """Count the incoming rows on, and keep them; the count of the first. reserved: it, where that was reserved."""
        taken, first_count = 0, reserved or self._extend(messages)
        while taken < messages:
            count = first_count + taken
            page = self._page_of(count)
            row = count - page.first
            here = min(messages - taken, PAGE_ROWS - row)
            scheduled, size, due_ms = add_messages(
                page.rows, row, fields, taken, taken + here, first_index, enqueued_ms, default_ttl_ms, count
            )
            page.live += here
            page.packed = None
            if scheduled:
                self._due_at(page, SCHEDULED, due_ms)
            if scheduled < here:
                self._due_at(page, ACTIVE, due_ms)
                self._list(page, 0, row)
            tally = self.tally
            tally[T_ACTIVE] += here - scheduled
            tally[T_SCHEDULED] += scheduled
            self._holds(size)
            tally[T_MESSAGES] += here
            taken += here
        return first_count

    def reserve(self, many: int) -> None:
        """The next counts are nobody's, until `add` names them."""
        first, last = self._extend(many), self.next_count - 1
        for number in range(first - 1 >> 12, last >> 12):  # pages that are full
            if not self.pages[number].live:
                del self.pages[number]

    def _extend(self, many: int) -> int:
        """Have rows for so many counts more; the first of them."""
        first_count, end = self.next_count, self.next_count + many
        while self.next_count < end:
            page = self._newest()
            here = min(end - self.next_count, PAGE_ROWS - len(page.rows) // QUEUE_WIDTH)
            page.rows.frombytes(_EMPTY_ROW * here)
            self.next_count += here
        return first_count

    def _page_of(self, count: int) -> Page:
        """The page of a count that was reserved. It may have been dropped since, or be in no snapshot."""
        number = count - 1 >> 12
        page = self.pages.get(number)
        if page is None:
            page = self.pages[number] = Page(number * PAGE_ROWS + 1, array("q"))
            page.rows.frombytes(_EMPTY_ROW * min(PAGE_ROWS, self.next_count - page.first))
            self.pages = dict(sorted(self.pages.items()))
        return page

    def copy(self, rows: array[int], row: int, last_row: int, *, default_ttl_ms: int) -> int:
        """Count copies on of rows of another table that are not gone, active here; the count of the first."""
        first_count = self.next_count
        while row < last_row:
            page = self._newest()
            start = len(page.rows) // QUEUE_WIDTH
            page.rows.frombytes(_EMPTY_ROW * min(last_row - row, PAGE_ROWS - start))
            row, end, size, due_ms = copy_messages(rows, row, last_row, default_ttl_ms, page.rows, start)
            del page.rows[end * QUEUE_WIDTH :]
            self._took(page, start, end, size, due_ms)
        return first_count

    def activate(self, counts: array[int]) -> None:
        """Scheduled messages get the next counts in this order, enqueued at the times they were scheduled for."""
        at = 0
        while at < len(counts):
            page, newest = self.pages.get(counts[at] - 1 >> 12), self._newest()
            if page is None:
                at += 1  # all of its messages are gone
                continue
            row, before = len(newest.rows) // QUEUE_WIDTH, at
            newest.rows.frombytes(_EMPTY_ROW * min(len(counts) - at, PAGE_ROWS - row))
            tally = array("q", [0]) * TALLY_WIDTH
            at, last_row, due_ms = activate_messages(
                page.rows, page.first, counts, at, len(counts), tally, newest.rows, row
            )
            assert at > before, f"message {counts[at]} is in no page"
            del newest.rows[last_row * QUEUE_WIDTH :]
            self._took(newest, row, last_row, tally[T_SIZE], due_ms)
            self._gave(page, tally)

    def _took(self, page: Page, row: int, last_row: int, size: int, due_ms: int) -> None:
        """Rows of the newest page are of active messages from now on."""
        many = last_row - row
        page.live += many
        page.packed = None
        self._due_at(page, ACTIVE, due_ms)
        if many:
            self._list(page, 0, row)
        self.tally[T_ACTIVE] += many
        self._holds(size)
        self.tally[T_MESSAGES] += many
        self.next_count += many

    def _gave(self, page: Page, tally: array[int]) -> None:
        """So many messages of a page are gone."""
        self._holds(-tally[T_SIZE])
        for kind in range(TALLY_WIDTH):
            if kind != T_SIZE:
                self.tally[kind] -= tally[kind]
        page.live -= tally[T_MESSAGES]
        page.packed = None
        if not page.live and len(page.rows) == PAGE_ROWS * QUEUE_WIDTH:
            del self.pages[page.first - 1 >> 12]

    def _newest(self) -> Page:
        """The page of next_count."""
        number = self.next_count - 1 >> 12
        page = self.pages.get(number)
        if page is None:
            page = self.pages[number] = Page(number * PAGE_ROWS + 1, array("q"))
            missing = self.next_count - page.first  # of a page that was dropped
            page.rows.frombytes(_EMPTY_ROW * missing)
        return page

    # Messages that are received

    def select(self, sub_queue: int, now_ms: int, picked: array[int], last: int, max_bytes: int) -> tuple[int, int]:
        """Write the counts of the first messages that are ready to picked[:last]; how many, and their bytes."""
        at = size = 0
        heap = self._ready[sub_queue]
        while heap and at < last:
            number = heap[0]
            page = self.pages.get(number)
            if page is None:
                heappop(heap)
                continue
            rows = page.rows
            begin = page.ready_from[sub_queue]
            at, row, size = select_messages(
                rows, begin, page.first, WANT_READY, sub_queue, now_ms, picked, at, last, size, max_bytes
            )
            # A message that has expired is not ready, and not passed over: its end may be refused by the log.
            page.ready_from[sub_queue] = row
            if row * QUEUE_WIDTH < len(rows):
                break
            heappop(heap)
            page.listed[sub_queue] = False
        return at, size

    def may_have_ready(self, sub_queue: int) -> bool:
        """Whether `select` has anything to look through."""
        return bool(self._ready[sub_queue])

    def peek(self, sub_queue: int, from_count: int, picked: array[int], last: int, max_bytes: int) -> tuple[int, int]:
        """Write the counts of messages of any state from a count on; how many, and their bytes."""
        at = size = 0
        for number in self._pages_from(from_count):
            page = self.pages[number]
            row = max(0, from_count - page.first)
            if row * QUEUE_WIDTH >= len(page.rows):
                continue  # it is asked for what comes behind the newest
            at, row, size = select_messages(
                page.rows, row, page.first, WANT_ANY, sub_queue, 0, picked, at, last, size, max_bytes
            )
            if at == last or row * QUEUE_WIDTH < len(page.rows):
                break
        return at, size

    def ready_in(self, sub_queue: int) -> Iterator[tuple[Page, int]]:
        """Page and row of each message that is active and carries no mark, expired or not. No page is passed over."""
        picked = array("q", [0]) * PAGE_ROWS
        for page in self.pages.values():
            many, _, _ = select_messages(
                page.rows, 0, page.first, WANT_READY, sub_queue, _BEFORE_ALL_MS, picked, 0, PAGE_ROWS, 0, _ALL_BYTES
            )
            for count in picked[:many]:
                yield page, (count - page.first) * QUEUE_WIDTH

    def _pages_from(self, count: int) -> Iterator[int]:
        first = count - 1 >> 12
        return (number for number in self.pages if number >= first)

    def give(
        self,
        counts: array[int],
        last: int,
        *,
        marks: int,
        delivered: int,
        lock_number: int,
        secret: bytes,
        until_ms: int,
        number_base: int,
        partition: int,
        indexes: array[int],
        out: array[int],
    ) -> None:
        """Fill the message rows of counts[:last], then mark them; see give_messages."""
        at = 0
        while at < last:
            page = self.pages[counts[at] - 1 >> 12]
            if marks:
                page.packed = None
            at = give_messages(
                page.rows, page.first, counts, at, last, marks, delivered, lock_number, secret, until_ms, number_base,
                partition, indexes, out,
            )  # fmt: skip

    def mark(self, counts: array[int], last: int, ordinals: array[int], first_number: int, codes: bytearray) -> None:
        """Mark those SETTLING that carry their locks; see mark_messages."""
        at = 0
        while at < last:
            page = self.pages.get(counts[at] - 1 >> 12)
            if page is None:
                counts[at], codes[at] = 0, 1
                at += 1
                continue
            at = mark_messages(page.rows, page.first, counts, at, last, ordinals, first_number, codes)

    def mark_settling(self, counts: array[int]) -> None:
        """Mark messages that are ready, and not locked."""
        for count in counts:
            page = self.pages[count - 1 >> 12]
            page.rows[(count - page.first) * QUEUE_WIDTH + M_STATE] |= SETTLING

    def unlock(self, counts: array[int], last: int, *, marks: int, change: int, most_deliveries: int) -> array[int]:
        """Take marks away, see unlock_messages; the counts of those that were delivered too often."""
        at, over = 0, array("q")
        room = array("q", [0]) * last
        while at < last:
            page = self.pages.get(counts[at] - 1 >> 12)
            if page is None or not counts[at]:
                at += 1
                continue
            before = at
            at, many, lowest, due_ms = unlock_messages(
                page.rows, page.first, counts, at, last, marks, change, most_deliveries, room
            )
            assert at > before, f"message {counts[at]} is in no page"
            over += room[:many]
            if change:
                page.packed = None
            if lowest >= 0:
                for sub_queue in range(SUB_QUEUES):
                    self._list(page, sub_queue, lowest)
            self._due_at(page, ACTIVE, due_ms)
        if self.tally[T_DEFERRED]:
            over += self._deferred_often((count for count in counts[:last] if count), most_deliveries)
        return over

    def delivered_often(self, most_deliveries: int) -> array[int]:
        """Mark those of the main sub-queue SETTLING that were delivered so often, deferred ones too; their counts."""
        # Every page is read as if it were the first: its counts need not be written down for it.
        longest = max((len(page.rows) // QUEUE_WIDTH for page in self.pages.values()), default=0)
        over, counts, room = array("q"), array("q", range(1, longest + 1)), array("q", [0]) * longest
        for page in self.pages.values():
            last = len(page.rows) // QUEUE_WIDTH
            _, many, _, _ = unlock_messages(page.rows, 1, counts, 0, last, 0, 0, most_deliveries, room)
            over.extend(page.first - 1 + count for count in room[:many])
        if self.tally[T_DEFERRED]:
            over += self._deferred_often(self._deferred(), most_deliveries)
        return over

    def _deferred(self) -> Iterator[int]:
        """The counts of all deferred messages."""
        for page in self.pages.values():
            for row, bits in enumerate(page.rows[M_STATE::QUEUE_WIDTH]):
                if bits & STATE_BITS == DEFERRED:
                    yield page.first + row

    def _deferred_often(self, counts: Iterable[int], most_deliveries: int) -> array[int]:
        """As `unlock` and `delivered_often` do of active messages, of deferred ones, which are few."""
        over = array("q")
        for count in counts:
            found = self.find(count)
            if found is None:
                continue
            page, at = found
            bits = page.rows[at + M_STATE]
            is_free = bits & (STATE_BITS | SUB_QUEUE_BITS | LOCKED | SETTLING) == DEFERRED
            if is_free and bits >> DELIVERIES_SHIFT & DELIVERIES_MOST >= most_deliveries:
                page.rows[at + M_STATE] = bits | SETTLING
                over.append(count)
        return over

    # What an operation says of messages, as a range of counts

    def parts_of(self, ranges: Ranges) -> Iterator[tuple[Page, int, int]]:
        """As `parts`, of several ranges."""
        for first, many in ranges:
            yield from self.parts(first, many)

    def parts(self, first: int, count: int) -> Iterator[tuple[Page, int, int]]:
        """Pages that hold some of a range, with the first row and the last row, exclusive."""
        end = first + count
        while first < end:
            number = first - 1 >> 12
            next_first = min(end, (number + 1) * PAGE_ROWS + 1)
            page = self.pages.get(number)
            if page is not None:
                row = first - page.first
                last_row = min(next_first - page.first, len(page.rows) // QUEUE_WIDTH)
                if row < last_row:
                    yield page, row, last_row
            first = next_first

    def drop(self, ranges: Ranges) -> array[int]:
        """Messages of these ranges are gone; the numbers of the locks on them."""
        locks = array("q")
        for page, parts in groupby(self.parts_of(ranges), key=itemgetter(0)):
            rows = [(row, last_row) for _, row, last_row in parts]
            tally, at = array("q", [0]) * TALLY_WIDTH, 0
            room = array("q", bytes(8 * sum(last_row - row for row, last_row in rows)))
            for row, last_row in rows:
                at = drop_messages(page.rows, row, last_row, tally, room, at)
            locks += room[:at]
            self._gave(page, tally)
        return locks

    def count_deliveries(self, first: int, count: int, change: int) -> None:
        """Those of the main sub-queue were delivered once more (1), or less (-1)."""
        for page, row, last_row in self.parts(first, count):
            count_deliveries(page.rows, row, last_row, change)
            page.packed = None

    def place(self, first: int, count: int, state: int, sub_queue: int | None) -> array[int]:
        """Messages have this state, and lie in this sub-queue (None: where they are); the numbers of their locks.

        Marks and locks are taken away.
        """
        locks = array("q")
        for page, row, last_row in self.parts(first, count):
            for at in range(row * QUEUE_WIDTH, last_row * QUEUE_WIDTH, QUEUE_WIDTH):
                bits = page.rows[at + M_STATE]
                if not bits & STATE_BITS:
                    continue
                if bits & LOCKED:
                    locks.append(page.rows[at + M_LOCK])
                self.tally[kind_of(bits)] -= 1
                bits = bits & ~(STATE_BITS | LOCKED | SETTLING) | state
                if sub_queue is not None:
                    bits = bits & ~SUB_QUEUE_BITS | sub_queue << SUB_QUEUE_SHIFT
                self.tally[kind_of(bits)] += 1
                page.rows[at + M_STATE], page.rows[at + M_LOCK] = bits, 0
            page.packed = None
            if sub_queue is not None:
                self._list(page, sub_queue, row)
        return locks

    def move(self, count: int, index: int) -> None:
        """The record of a message is this one from now on; nothing when the message is gone."""
        found = self.find(count)
        if found is not None:
            page, at = found
            page.rows[at + M_INDEX] = index
            page.packed = None

    def in_sessions(self, counts: Sequence[int], numbers: array[int]) -> None:
        """These messages, in order, are each of the session of its number."""
        many = len(counts)
        if many > 1 and counts[-1] - counts[0] == many - 1:
            at = 0
            for page, row, last_row in self.parts(counts[0], many):
                behind = at + last_row - row
                page.rows[row * QUEUE_WIDTH + M_SESSION : last_row * QUEUE_WIDTH : QUEUE_WIDTH] = numbers[at:behind]
                at = behind
            return
        for count, number in zip(counts, numbers, strict=True):
            page = self.pages[count - 1 >> 12]
            page.rows[(count - page.first) * QUEUE_WIDTH + M_SESSION] = number

    def arrived(self, first: int, firsts: array[int], ends_ms: array[int]) -> None:
        """Messages from this count on, just added, were these in another table (M_FIRST), and expire by then.

        -1: never; but one that expires earlier by its own time to live does.
        """
        at = 0
        for page, row, last_row in self.parts(first, len(firsts)):
            behind, end = at + last_row - row, last_row * QUEUE_WIDTH
            page.rows[row * QUEUE_WIDTH + M_FIRST : end : QUEUE_WIDTH] = firsts[at:behind]
            by_then = ends_ms[at:behind]
            if max(by_then) >= 0:
                start = row * QUEUE_WIDTH + M_EXPIRES
                its = page.rows[start:end:QUEUE_WIDTH]
                its = array("q", [min(a, b) if a >= 0 <= b else max(a, b) for a, b in zip(its, by_then, strict=True)])
                page.rows[start:end:QUEUE_WIDTH] = its
                self._due_at(page, ACTIVE, min(each for each in its if each >= 0))
            at = behind

    def came_as(self, count: int, first: int) -> None:
        """The count that a message got first, in another table, is this one."""
        found = self.find(count)
        assert found is not None
        found[0].rows[found[1] + M_FIRST] = first

    # Time

    def due(self, now_ms: int, state: int, most: int) -> array[int]:
        """Counts of messages that are to be activated (SCHEDULED) or expire (ACTIVE), at most `most`.

        The caller marks them, and says `look_again` where a mark goes without anything having become of its message.
        """
        found = array("q")
        for page in self._due_pages(now_ms, state):
            if len(found) == most:
                break
            room = array("q", [0]) * (most - len(found))
            many, next_ms = due_messages(page.rows, page.first, state, now_ms, room)
            found += room[:many]
            page.due_ms[state] = NEVER
            self._due_at(page, state, next_ms)
        return found

    def look_again(self, page: Page) -> None:
        """Something in this page may be due that was passed over."""
        for state in page.due_ms:
            self._due_at(page, state, 0)

    @property
    def next_due_ms(self) -> int | None:
        """When something comes due, on the clock of stamps; None: nothing does."""
        while self._due and not self._is_due_entry(*self._due[0]):
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def _due_pages(self, now_ms: int, state: int) -> list[Page]:
        return sorted(
            (page for page in self.pages.values() if page.due_ms[state] <= now_ms), key=lambda page: page.first
        )

    def _is_due_entry(self, due_ms: int, number: int, state: int) -> bool:
        page = self.pages.get(number)
        return page is not None and page.due_ms[state] == due_ms

    def _due_at(self, page: Page, state: int, due_ms: int) -> None:
        if 0 <= due_ms < page.due_ms[state]:
            page.due_ms[state] = due_ms
            heappush(self._due, (due_ms, page.first - 1 >> 12, state))

    def _list(self, page: Page, sub_queue: int, row: int) -> None:
        """From this row on one may be ready."""
        page.ready_from[sub_queue] = min(page.ready_from[sub_queue], row)
        if not page.listed[sub_queue]:
            page.listed[sub_queue] = True
            heappush(self._ready[sub_queue], page.first - 1 >> 12)

    # Snapshots

    def pack(self, page: Page) -> bytes:
        """A page without marks, as few bytes; kept until the page changes."""
        if page.packed is None:
            page.packed = packed(page.rows[:])
        return page.packed

    def restore(self, number: int, count: int, data: memoryview, start: int, end: int) -> bool:
        """Fill a page, which has so many rows, from what `pack` made of it; whether it could be."""
        page = self.pages[number] = Page(number * PAGE_ROWS + 1, array("q", bytes(8 * QUEUE_WIDTH * count)))
        if unpack_rows(data, start, end, QUEUE_WIDTH, page.rows) != end:
            return False
        # What dropping all of them would take away is what there is; a copy is dropped.
        tally, room = array("q", [0]) * TALLY_WIDTH, array("q", [0]) * count
        drop_messages(page.rows[:], 0, count, tally, room, 0)
        self._holds(tally[T_SIZE])
        for kind in range(TALLY_WIDTH):
            if kind != T_SIZE:
                self.tally[kind] += tally[kind]
        page.live = tally[T_MESSAGES]
        for sub_queue in range(SUB_QUEUES):
            self._list(page, sub_queue, 0)
        self.look_again(page)
        return True

    def least_index(self) -> int | None:
        """The least log index of a message that is not gone; None when all are."""
        return min((least_index(page.rows) for page in self.pages.values() if page.live), default=None)
