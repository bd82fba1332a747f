"""A delivery on its way in, and deliveries that wait to be settled (part 2, sections 2.6.12 to 2.6.14).

Neither is an object per delivery where it matters: a delivery that came whole in one frame is a row of a table, and
unsettled ones are ranges of ids, one for each run that was sent or received at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby
from typing import Generic, TypeVar

from msgspec import Struct

from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.amqp.transport.serial_number import MODULUS, unwrap

Owner = TypeVar("Owner")


class PartialDelivery:
    """A delivery of which more frames are to come. Its bytes are kept up to a limit; over it they are only counted."""

    __slots__ = ("delivery_id", "message_format", "payload", "settled", "size", "transaction")

    def __init__(self, delivery_id: int, message_format: int, transaction: TransactionalState | None = None) -> None:
        self.delivery_id = delivery_id
        self.message_format = message_format
        self.transaction = transaction
        self.settled = False
        self.size = 0
        self.payload: bytearray | None = bytearray()  # None: too large, thrown away

    def append(self, part: memoryview, limit: int) -> int:
        """Take the payload of one frame; return by how many bytes the memory held grew (negative when let go)."""
        self.size += len(part)
        if self.payload is None:
            return 0
        if self.size > limit:
            return -self.let_go()
        self.payload += part
        return len(part)

    def let_go(self) -> int:
        """Drop the bytes and return how many there were."""
        held = 0 if self.payload is None else len(self.payload)
        self.payload = None
        return held


class IdRange(Struct, Generic[Owner], frozen=True):
    """Deliveries first to last of a session, both included, of one owner. Ids wrap at 2**32."""

    first: int
    last: int
    owner: Owner

    @property
    def count(self) -> int:
        """How many deliveries."""
        return (self.last - self.first) % MODULUS + 1


class SentTogether(Struct, Generic[Owner], eq=False):
    """Unsettled deliveries of a session with ids behind each other that one call sent on several links (joint_send.py).

    first_id: of the first one. links, tags: of each, in order; the tags back to back, all of one size. context: what
    the host knows of all of them.
    """

    first_id: int
    links: list[Owner]
    tags: bytes
    context: object

    @property
    def last_id(self) -> int:
        """The id of the last one."""
        return (self.first_id + len(self.links) - 1) % MODULUS

    def part(self, place: int, end: int) -> SentTogether[Owner]:
        """Those from one place on up to another, which keep nothing of the others alive."""
        size = len(self.tags) // len(self.links)
        first_id, tags = (self.first_id + place) % MODULUS, self.tags[place * size : end * size]
        return SentTogether(first_id, self.links[place:end], tags, self.context)


class UnsettledRanges(Generic[Owner]):
    """The unsettled deliveries of one direction of a session, as ranges in the order of their ids.

    Inside, ids are unwrapped to integers without end, so that ranges compare. A peer may number its deliveries as it
    likes: an id that is not higher than the newest starts a fresh count and is kept all the same.
    """

    __slots__ = ("_firsts", "_lasts", "_owners")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._owners: list[Owner] = []

    def __len__(self) -> int:
        return len(self._firsts)

    def add(self, first: int, count: int, owner: Owner) -> None:
        """Add count deliveries of owner from id first on."""
        if not self._lasts:
            start = first
        else:
            newest = self._lasts[-1]
            start = unwrap(first, newest)
            if start <= newest:
                self._insert(start, count, owner)
                return
            if start == newest + 1 and self._owners[-1] is owner:
                self._lasts[-1] = start + count - 1
                return
        self._firsts.append(start)
        self._lasts.append(start + count - 1)
        self._owners.append(owner)

    def _insert(self, start: int, count: int, owner: Owner) -> None:
        """Put a range between others; where ids are taken already, the older delivery keeps them."""
        at = bisect_left(self._lasts, start)
        while count > 0:
            if at < len(self._firsts) and self._firsts[at] <= start:
                used = min(count, self._lasts[at] - start + 1)
                start, count, at = start + used, count - used, at + 1
                continue
            room = count if at == len(self._firsts) else min(count, self._firsts[at] - start)
            self._firsts.insert(at, start)
            self._lasts.insert(at, start + room - 1)
            self._owners.insert(at, owner)
            start, count, at = start + room, count - room, at + 1

    def take_ranges(self, first: int, last: int, *, owner: Owner | None = None) -> list[IdRange[Owner]]:
        """Remove the deliveries with ids first to last (of owner only, when given) and return them as ranges."""
        if not self._firsts:
            return []
        low = unwrap(first, self._lasts[-1])
        high = low + (last - first) % MODULUS
        begin = bisect_left(self._lasts, low)
        if self._is_front(begin, low, high, owner):
            its_owner, stop = self._owners[begin], self._lasts[begin]
            if high < stop:
                self._firsts[begin], self._owners[begin] = high + 1, self._cut(its_owner, low, high + 1, stop)
                its_owner = self._cut(its_owner, low, low, high)
            else:
                del self._firsts[begin], self._lasts[begin], self._owners[begin]
            return [IdRange(first, last, its_owner)]
        end = begin
        taken: list[IdRange[Owner]] = []
        left: list[tuple[int, int, Owner]] = []
        while end < len(self._firsts) and self._firsts[end] <= high:
            start, stop, its_owner = self._firsts[end], self._lasts[end], self._owners[end]
            end += 1
            if owner is not None and its_owner is not owner:
                left.append((start, stop, its_owner))
                continue
            if low <= start and stop <= high:
                taken.append(IdRange(start % MODULUS, stop % MODULUS, its_owner))
                continue
            if start < low:
                left.append((start, low - 1, self._cut(its_owner, start, start, low - 1)))
            its_first, its_last = max(start, low), min(stop, high)
            part = self._cut(its_owner, start, its_first, its_last)
            taken.append(IdRange(its_first % MODULUS, its_last % MODULUS, part))
            if stop > high:
                left.append((high + 1, stop, self._cut(its_owner, start, high + 1, stop)))
        self._firsts[begin:end] = [entry[0] for entry in left]
        self._lasts[begin:end] = [entry[1] for entry in left]
        self._owners[begin:end] = [entry[2] for entry in left]
        return taken

    def _cut(self, owner: Owner, start: int, first: int, last: int) -> Owner:
        """The owner of a part, first to last, of a range that begins at start."""
        return owner

    def _is_front(self, at: int, low: int, high: int, owner: Owner | None) -> bool:
        """Whether ids low to high are the range at this place, or begin it: as nearly always."""
        return (
            at < len(self._firsts)
            and self._firsts[at] == low
            and high <= self._lasts[at]
            and (owner is None or self._owners[at] is owner)
        )

    def clear(self) -> None:
        """Drop every delivery."""
        self._firsts, self._lasts, self._owners = [], [], []

    def forget(self, owner: Owner) -> None:
        """Drop every delivery of an owner that is over."""
        keep = [at for at, its_owner in enumerate(self._owners) if its_owner is not owner]
        self._firsts = [self._firsts[at] for at in keep]
        self._lasts = [self._lasts[at] for at in keep]
        self._owners = [self._owners[at] for at in keep]

    def __iter__(self) -> Iterator[IdRange[Owner]]:
        for first, last, owner in zip(self._firsts, self._lasts, self._owners, strict=True):
            yield IdRange(first % MODULUS, last % MODULUS, owner)


class SentRanges(UnsettledRanges[Owner | SentTogether[Owner]]):
    """Those that we sent: of one link each, or of those that were sent together just these deliveries."""

    __slots__ = ()

    def _cut(
        self, owner: Owner | SentTogether[Owner], start: int, first: int, last: int
    ) -> Owner | SentTogether[Owner]:
        return owner.part(first - start, last + 1 - start) if isinstance(owner, SentTogether) else owner

    def forget(self, owner: Owner | SentTogether[Owner]) -> None:
        """Drop every delivery of a link that is over, and keep those that others sent together with it."""
        kept: list[tuple[int, int, Owner | SentTogether[Owner]]] = []
        for start, stop, its_owner in zip(self._firsts, self._lasts, self._owners, strict=True):
            if not isinstance(its_owner, SentTogether) or owner not in its_owner.links:
                if its_owner is not owner:
                    kept.append((start, stop, its_owner))
                continue
            place = 0
            for is_over, its in groupby(its_owner.links, key=lambda link: link is owner):
                begin, place = place, place + sum(1 for _ in its)
                if not is_over:
                    kept.append((start + begin, start + place - 1, its_owner.part(begin, place)))
        self._firsts, self._lasts, self._owners = [list(each) for each in zip(*kept, strict=True)] or ([], [], [])
