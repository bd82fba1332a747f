"""Values that the checkers of histories know: messages, their locks, settlements, and who holds a session."""

from __future__ import annotations

from enum import Enum
from typing import Any

from hubweir.errors import HubweirError

NEVER_MS = 2**62


class Violation(HubweirError):
    """What was observed cannot be, if the promise holds that the text begins with."""


class SeenPlace(Enum):
    """Where a message is for certain. UNSURE: nobody was told."""

    WAITING = 0
    DEFERRED = 1
    DEAD = 2
    GONE = 3
    UNSURE = 4


class SeenMessage:
    """A message. accepted: None while nobody said. least, most: deliveries that the next receiver may be told of.

    order: among all. stored_by_ms: it was stored by then, if it is. position: among the messages of its session.
    ready_at, gone_at: ticks.
    """

    __slots__ = (
        "_earlier_number", "_renumbered_at", "accepted", "began_ms", "checksum", "crashes", "gone_at",
        "group", "is_scheduled", "is_seen", "least", "lock",
        "may_be_gone", "may_expire", "message_id", "most", "number", "order", "place", "position", "ready_at",
        "session", "stored_by_ms", "text", "was_scheduled",
    )  # fmt: skip

    def __init__(
        self,
        order: int,
        text: str,
        group: int,
        checksum: int,
        began_ms: int,
        session: str | None,
        message_id: str | None,
        is_scheduled: bool,
        may_expire: bool,
    ) -> None:
        self.order = order
        self.text = text
        self.group = group
        self.checksum = checksum
        self.began_ms = began_ms
        self.session = session
        self.message_id = message_id
        self.is_scheduled = self.was_scheduled = is_scheduled
        self.may_expire = may_expire
        self.accepted: bool | None = None
        self.is_seen = self.may_be_gone = False
        self.stored_by_ms = NEVER_MS
        self.number: int | None = None
        self.place = SeenPlace.WAITING
        self.lock: SeenLock | None = None
        self.least = self.most = self.crashes = 0
        self.position = self.ready_at = self.gone_at = 0
        self._earlier_number: int | None = None
        self._renumbered_at = 0

    def renumber(self, number: int, tick: int) -> None:
        """It has this number from now on, as one that was scheduled gets another when it becomes active."""
        self._earlier_number, self._renumbered_at, self.number = self.number, tick, number

    def had(self, number: int, *, since: int) -> bool:
        """Whether it lost this number at this tick, or behind it."""
        return number == self._earlier_number and self._renumbered_at >= since


class SeenLock:
    """A receiver's word that a message is its own. hold: of the session that it was given in. may_be_over: it was given
    back, and nobody said whether that was done."""

    __slots__ = ("hold", "is_over", "may_be_over", "sent", "settling", "token", "until_ms")

    def __init__(self, sent: SeenMessage, token: bytes, until_ms: int, hold: SeenHold | None) -> None:
        self.sent = sent
        self.token = token
        self.until_ms = until_ms
        self.hold = hold
        self.is_over = self.may_be_over = False
        self.settling: SeenSettlement | None = None

    @property
    def ends_ms(self) -> int:
        """When it ends, if nobody ends it before."""
        return self.until_ms if self.hold is None else self.hold.until_ms


class SeenSettlement:
    """A request to settle. is_good: its lock held then; is_sure: that is certain."""

    __slots__ = ("is_good", "is_sure", "lock", "outcome", "passed_by", "tick")

    def __init__(self, lock: SeenLock, outcome: Any, is_good: bool, is_sure: bool, tick: int) -> None:
        self.lock = lock
        self.outcome = outcome
        self.is_good = is_good
        self.is_sure = is_sure
        self.tick = tick
        self.passed_by: str | None = None


class SeenHold:
    """A receiver's word that a session is its own. locks: of what it was given."""

    __slots__ = ("is_over", "locks", "session", "until_ms")

    def __init__(self, session: str, until_ms: int) -> None:
        self.session = session
        self.until_ms = until_ms
        self.is_over = False
        self.locks: list[SeenLock] = []
