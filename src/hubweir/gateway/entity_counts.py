"""How many messages an entity holds now, asked of the broker of its fragment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import AskFragmentInfo, FragmentInfo
from hubweir.gateway.fragments import FragmentPlace


@dataclass(frozen=True, slots=True)
class EntityCounts:
    """Messages by where they are; size_bytes: of all. A deferred or locked message counts as active.

    accessed_at_ms: of the newest use; None: there was none. is_limited: a broker did not answer, so that its part is
    missing.
    """

    active: int = 0
    dead_lettered: int = 0
    scheduled: int = 0
    transfer_dead_lettered: int = 0
    size_bytes: int = 0
    accessed_at_ms: int | None = None
    is_limited: bool = False

    @property
    def all(self) -> int:
        """The messages of a queue or a subscription as descriptions count them."""
        return self.active + self.dead_lettered + self.scheduled

    def plus(self, info: FragmentInfo) -> EntityCounts:
        """With those of one fragment more."""
        return replace(
            self,
            active=self.active + info.active + info.deferred,
            dead_lettered=self.dead_lettered + info.dead_lettered,
            scheduled=self.scheduled + info.scheduled,
            transfer_dead_lettered=self.transfer_dead_lettered + info.transfer_dead_lettered,
            size_bytes=self.size_bytes + info.size_bytes,
            accessed_at_ms=max(filter(None, (self.accessed_at_ms, info.accessed_at_ms)), default=None),
        )


def ask_counts(place: FragmentPlace, on_done: Callable[[EntityCounts], None]) -> None:
    """Ask the fragment that lives there; on_done once."""

    def answered(answer: Answer) -> None:
        counts = EntityCounts()
        on_done(counts.plus(answer) if isinstance(answer, FragmentInfo) else replace(counts, is_limited=True))

    place.broker.submit(AskFragmentInfo(place.log_id), answered)
