"""The locks of one opening of a fragment: which message each has, and when it ends. In memory alone.

Locks have ordinals from 0 on in the order in which they are given, and numbers behind the fragment's number base; so
the upper 16 bits of a lock's number, with which its token begins, are the number of the fragment, as they are of the
sequence numbers of its messages. A token of an earlier opening is none of this one: the secret is another. Rows are
L_… of kernels/queue_contract.py, in pages by ordinal; a page whose locks are all over is dropped. A token is made and
checked by the kernels (kernels/queue/tokens.py).
"""

from __future__ import annotations

from array import array
from heapq import heappop, heappush

from hubweir.kernels import end_locks, ended_locks, find_locks, read_tokens
from hubweir.kernels.queue_contract import L_COUNT, L_UNTIL, LOCK_WIDTH, PAGE_ROWS, TOKEN_BYTES

NEVER = 2**62


class _LockPage:
    __slots__ = ("due_ms", "live", "rows")

    def __init__(self) -> None:
        self.rows = array("q")
        self.live = 0
        self.due_ms = NEVER


class LockTable:
    """See the module's text. Times are of the monotonic clock."""

    def __init__(self, number_base: int, secret: bytes) -> None:
        """number_base: of the fragment; 48 bits are left for its locks. secret: 16 bytes, of this opening alone."""
        self.first_number = number_base + 1  # the number 0 says that there is no lock
        self.secret = secret
        self._next = 0
        self._pages: dict[int, _LockPage] = {}
        self._due: list[tuple[int, int]] = []  # due_ms, page number; stale ones are passed over

    @property
    def next_number(self) -> int:
        """The number of the next lock that is added."""
        return self.first_number + self._next

    def lock(self, counts: array[int], last: int, until_ms: int) -> None:
        """Lock the messages counts[:last], in this order, until then."""
        taken = 0
        while taken < last:
            number = self._next >> 12
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = _LockPage()
            row = len(page.rows) // LOCK_WIDTH
            here = min(last - taken, PAGE_ROWS - row)
            page.rows.frombytes(bytes(8 * LOCK_WIDTH * here))
            page.rows[row * LOCK_WIDTH + L_COUNT :: LOCK_WIDTH] = counts[taken : taken + here]
            page.rows[row * LOCK_WIDTH + L_UNTIL :: LOCK_WIDTH] = array("q", (until_ms,)) * here
            page.live += here
            self._due_at(number, page, until_ms)
            self._next += here
            taken += here

    def find(self, tokens: bytes, now_ms: int) -> tuple[array[int], array[int]]:
        """The ordinal of each token's lock and the count of its message: 0 where the lock is none, or over."""
        many = len(tokens) // TOKEN_BYTES
        ordinals, counts = array("q", bytes(8 * many)), array("q", bytes(8 * many))
        read_tokens(tokens, self.secret, self.first_number, self.next_number, ordinals)
        at = 0
        while at < many:
            page = self._pages.get(ordinals[at] >> 12)
            if page is None:
                at += 1  # it is over
            else:
                at = find_locks(page.rows, ordinals[at] >> 12 << 12, ordinals, at, many, now_ms, counts)
        return ordinals, counts

    def renew(self, ordinal: int, until_ms: int) -> None:
        """Have a lock, which is not over, end then."""
        number = ordinal >> 12
        page = self._pages[number]
        page.rows[(ordinal - (number << 12)) * LOCK_WIDTH + L_UNTIL] = until_ms
        self._due_at(number, page, until_ms)

    def end(self, numbers: array[int]) -> None:
        """The locks of these numbers are over; those that are none do nothing."""
        first = self.first_number
        self.end_ordinals(array("q", [number - first for number in numbers]))

    def end_ordinals(self, ordinals: array[int]) -> None:
        """The same by ordinals."""
        at = 0
        while at < len(ordinals):
            number = ordinals[at] >> 12
            page = self._pages.get(number)
            if page is None:
                at += 1
                continue
            before = at
            at, ended = end_locks(page.rows, number << 12, ordinals, at, len(ordinals))
            if at == before:
                at += 1
            page.live -= ended
            if not page.live and len(page.rows) == PAGE_ROWS * LOCK_WIDTH:
                del self._pages[number]

    def ended(self, now_ms: int, most: int) -> tuple[array[int], array[int]]:
        """Ordinals and counts of locks whose time is over, at most so many; they stay until `end_ordinals`."""
        ordinals, counts = array("q"), array("q")
        while self._due and len(ordinals) < most:
            due_ms, number = self._due[0]
            page = self._pages.get(number)
            if page is None or page.due_ms != due_ms:
                heappop(self._due)
                continue
            if due_ms > now_ms:
                break
            room = array("q", bytes(8 * (most - len(ordinals))))
            many, next_ms = ended_locks(page.rows, number << 12, now_ms, room)
            ordinals += room[:many]
            counts.extend(page.rows[(ordinal - (number << 12)) * LOCK_WIDTH + L_COUNT] for ordinal in room[:many])
            heappop(self._due)
            page.due_ms = NEVER
            self._due_at(number, page, next_ms)
        return ordinals, counts

    def look_again(self, number: int) -> None:
        """The time of this lock may be over, and was passed over."""
        place = number - self.first_number >> 12
        page = self._pages.get(place)
        if page is not None:
            self._due_at(place, page, 0)

    @property
    def next_due_ms(self) -> int | None:
        """When a lock may end; None: none does."""
        while self._due:
            due_ms, number = self._due[0]
            page = self._pages.get(number)
            if page is not None and page.due_ms == due_ms:
                return due_ms
            heappop(self._due)
        return None

    def _due_at(self, number: int, page: _LockPage, due_ms: int) -> None:
        if 0 <= due_ms < page.due_ms:
            page.due_ms = due_ms
            heappush(self._due, (due_ms, number))
