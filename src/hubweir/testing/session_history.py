"""Checks message sessions: one holder at a time, first in first out also over abandon, and a state that stays (P10).

A message is out of order when an earlier one of its session was ready before the receive was asked for: it was
accepted, or given back, and nobody had it. The order is that of the sends, which must be one sender's for each session;
what was scheduled got its place when it became active, which its number tells.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from hubweir.testing.history_values import SeenHold, SeenMessage, SeenPlace, SeenSettlement, Violation


class _Session:
    """One session. ready: a heap of positions in messages; some are ready no more. scheduled: those that were, once
    they are active. flying: what settles them. states: those that it may have; setting: those on their way, the oldest
    first."""

    __slots__ = ("flying", "hold", "messages", "ready", "scheduled", "setting", "states")

    def __init__(self) -> None:
        self.messages: list[SeenMessage] = []
        self.ready: list[int] = []
        self.scheduled: dict[SeenMessage, None] = {}
        self.flying: dict[SeenSettlement, None] = {}
        self.hold: SeenHold | None = None
        self.states: set[bytes | None] = {None}
        self.setting: list[bytes | None] = []


class SessionHistory:
    """All sessions of one history, which calls this; but for states, which are told here.

    may_be_dead: whether a message may be a dead letter, for it was delivered too often.
    """

    def __init__(self, slack_ms: int, may_be_dead: Callable[[SeenMessage], bool]) -> None:
        self._slack_ms = slack_ms
        self._may_be_dead = may_be_dead
        self._sessions: dict[str, _Session] = {}

    def _of(self, session: str) -> _Session:
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = _Session()
        return found

    # Messages

    def enter(self, sent: SeenMessage) -> None:
        """A message is sent behind all others of its session."""
        session = self._of(sent.session or "")
        sent.position = len(session.messages)
        session.messages.append(sent)

    def ready(self, sent: SeenMessage, tick: int) -> None:
        """It may be delivered from this tick on."""
        if _is_ready(sent) and not self._may_be_dead(sent):
            sent.ready_at = tick
            session = self._of(sent.session or "")
            if sent.was_scheduled:
                session.scheduled[sent] = None
            else:
                heappush(session.ready, sent.position)

    def delivered(self, sent: SeenMessage, hold: SeenHold, now_ms: int, asked: int) -> None:
        """It is delivered to a holder that asked for messages at this tick."""
        if sent.session != hold.session:
            raise Violation(f"P10: {sent.text} of session {sent.session} comes in {hold.session}")
        if hold.is_over and not self._slack_ms:
            raise Violation(f"P10: {sent.text} comes to one who holds session {hold.session} no more")
        session = self._of(hold.session)
        later: list[int] = []
        ready = session.ready
        while ready and ready[0] < sent.position:
            position = heappop(ready)
            earlier = session.messages[position]
            if not _is_ready(earlier) or self._may_be_dead(earlier):
                continue
            self._expect_not_before(sent, earlier, asked)
            later.append(position)
        for position in later:
            heappush(ready, position)
        for earlier in session.scheduled:
            if _is_ready(earlier) and not self._may_be_dead(earlier):
                self._expect_not_before(sent, earlier, asked)
        for settlement in list(session.flying):
            self._pass(settlement, sent, hold, asked)
            if settlement.lock.sent is sent:
                del session.flying[settlement]  # it was given back, and is here again

    def _expect_not_before(self, sent: SeenMessage, ready: SeenMessage, asked: int) -> None:
        if ready.ready_at < asked and _is_before(ready, sent):
            raise Violation(f"P10: {sent.text} comes before {ready.text}, which waits in {sent.session}")

    def _pass(self, settlement: SeenSettlement, sent: SeenMessage, hold: SeenHold, asked: int) -> None:
        """Note that a message comes while an earlier one is being given back, or was its last holder's."""
        earlier = settlement.lock.sent
        is_back = settlement.outcome.name in ("ABANDON", "RELEASE") or settlement.lock.hold is not hold
        if earlier is sent:
            self._expect_not_passed(settlement)
        elif is_back and settlement.tick < asked and _is_before(earlier, sent):
            settlement.passed_by = settlement.passed_by or sent.text

    def _expect_not_passed(self, settlement: SeenSettlement) -> None:
        if settlement.passed_by is not None:
            text = settlement.lock.sent.text
            raise Violation(f"P10: {text} was given back, and {settlement.passed_by} came meanwhile")

    def settling(self, settlement: SeenSettlement) -> None:
        """A message of a session is being settled."""
        self._of(settlement.lock.sent.session or "").flying[settlement] = None

    def settled(self, settlement: SeenSettlement, *, is_back: bool) -> None:
        """It was answered. is_back: the message waits again.

        Others may pass one with a time to live: nobody can tell whether that was over when they came.
        """
        sent = settlement.lock.sent
        self._of(sent.session or "").flying.pop(settlement, None)
        if is_back and not sent.may_expire:
            self._expect_not_passed(settlement)

    # Holders

    def hold(self, name: str, until_ms: int, now_ms: int) -> SeenHold:
        """Somebody holds the session."""
        session = self._of(name)
        before = session.hold
        if before is not None and not before.is_over and before.until_ms > now_ms + self._slack_ms:
            raise Violation(f"P10: session {name} is another one's for {before.until_ms - now_ms} ms")
        undecided = [each.lock.sent.text for each in session.flying if each.lock.hold is not None]
        if (undecided or session.setting) and not self._slack_ms:
            raise Violation(f"P10: session {name} is given while {undecided or session.setting} is on its way")
        if before is not None:
            before.is_over = True
        session.hold = SeenHold(name, until_ms)
        return session.hold

    def crashed(self, hit: Callable[[SeenMessage], bool]) -> None:
        """Nobody holds a session any more that has such messages: they lie all in one log."""
        for session in self._sessions.values():
            if session.messages and not hit(session.messages[0]):
                continue
            if session.hold is not None:
                session.hold.is_over = True
            session.states.update(session.setting)
            session.setting, session.flying = [], {}

    # States

    def setting(self, name: str, state: bytes | None) -> None:
        """A holder is about to set the session's state."""
        self._of(name).setting.append(state)

    def set_done(self, name: str, state: bytes | None, *, is_done: bool | None) -> None:
        """The setting of this state was answered, a refusal maybe before an earlier setting. None: nobody said."""
        session = self._of(name)
        session.setting.remove(state)
        if is_done:
            session.states = {state}
        elif is_done is None:
            session.states.add(state)

    def take_back(self, name: str, state: bytes | None) -> None:
        """The setting of this state was not done at all."""
        self._of(name).setting.remove(state)

    def state_seen(self, name: str, state: bytes | None) -> None:
        """A holder was told that this is the session's state."""
        session = self._of(name)
        if state not in session.states and state not in session.setting:
            raise Violation(f"P10: session {name} has the state {state!r}, and should have one of {session.states}")
        if not session.setting:
            session.states = {state}


def _is_before(one: SeenMessage, other: SeenMessage) -> bool:
    """Whether one comes first for certain."""
    if one.was_scheduled or other.was_scheduled:
        return one.number is not None and other.number is not None and one.number < other.number
    return one.position < other.position


def _is_ready(sent: SeenMessage) -> bool:
    is_whole = sent.accepted and not sent.may_be_gone and not sent.may_expire and not sent.is_scheduled
    return bool(is_whole) and sent.place is SeenPlace.WAITING and sent.lock is None
