"""The history of a queue or a subscription, as its clients saw it; and what cannot be true of it (T15).

A history is told everything in the order in which clients see it, one call an observation, each in constant time but
for the logarithm of a session's size. `Violation` is raised by the first observation that breaks a promise:

- conservation (P1, P2): what was accepted is somewhere, once, until it was settled, taken, or could expire; what was
  refused is nowhere; a group of which nobody was told is there whole, or not at all; no byte of a message changes;
- exclusivity (P7): nobody gets a message while another one's lock holds, and a token settles only while it does;
- settled for good (P7): what a settlement was answered for stays so;
- counts (P8): a delivery counts once when it failed, and not otherwise; a crash may add one, or forget some;
- numbers (P4): a sequence number is one message's for ever.

Sessions are session_history.py, duplicates duplicate_history.py. Times are milliseconds of one clock that never goes
back; slack_ms is how late clients may see what happened, 0 where they see it in the call.

Long because what one observation says of a message is held against all others: one state, one place to check it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from zlib import crc32

from hubweir.testing.duplicate_history import DuplicateHistory
from hubweir.testing.history_values import SeenHold, SeenLock, SeenMessage, SeenPlace, SeenSettlement, Violation
from hubweir.testing.session_history import SessionHistory


class SeenOutcome(Enum):
    """How a receiver settles."""

    COMPLETE = 0
    ABANDON = 1
    DEFER = 2
    DEAD_LETTER = 3
    RELEASE = 4


class SeenAnswer(Enum):
    """What became of a settlement. REFUSED: nothing did, the lock is as before. UNKNOWN: nobody said."""

    DONE = 0
    LOST = 1
    REFUSED = 2
    UNKNOWN = 3


_NOT_COUNTED = (SeenOutcome.DEFER, SeenOutcome.DEAD_LETTER, SeenOutcome.RELEASE)
_AT_ONCE = (SeenOutcome.ABANDON, SeenOutcome.RELEASE)  # the message may be another one's before the answer comes


class MessageHistory:
    """See the module's text. Texts name messages: no two sends have the same.

    most_deliveries: so many failed ones make a dead letter; None: nothing is known of counts. window_ms: of duplicate
    detection; None: there is none. is_partitioned: it lies in several logs, which crash each on its own.
    """

    def __init__(
        self,
        *,
        slack_ms: int = 0,
        most_deliveries: int | None = None,
        window_ms: int | None = None,
        is_partitioned: bool = False,
    ) -> None:
        self.sent: dict[str, SeenMessage] = {}
        self.groups: dict[int, list[SeenMessage]] = {}
        self.sessions = SessionHistory(slack_ms, self.may_be_dead)
        self.allowance = 0  # so many messages may be gone, by takes that nobody answered
        self.tick = 0  # of the newest observation
        self.crashes = 0
        self._slack_ms = slack_ms
        self._is_partitioned = is_partitioned
        self._most_deliveries = most_deliveries
        self._duplicates = None if window_ms is None else DuplicateHistory(window_ms)
        self._numbers: dict[int, SeenMessage] = {}
        self._locks: dict[bytes, SeenLock] = {}
        self._locked: dict[SeenMessage, None] = {}
        self._flying: dict[SeenSettlement, None] = {}
        # Ended unknown, and the log took nothing since: a start may find them done, whatever was seen before it.
        self._unknown: dict[SeenSettlement, None] = {}

    # Senders

    def send(
        self,
        group: int,
        text: str,
        body: bytes,
        now_ms: int,
        *,
        session: str | None = None,
        message_id: str | None = None,
        is_scheduled: bool = False,
        may_expire: bool = False,
    ) -> SeenMessage:
        """A message is about to be sent, as one of a group that is stored whole or not at all."""
        self.tick += 1
        assert text not in self.sent, f"{text} is sent twice"
        sent = SeenMessage(
            len(self.sent), text, group, crc32(body), now_ms, session, message_id, is_scheduled, may_expire
        )
        self.sent[text] = sent
        self.groups.setdefault(group, []).append(sent)
        if session is not None:
            self.sessions.enter(sent)
        if self._duplicates is not None:
            self._duplicates.enter(sent)
        return sent

    def accepted(self, group: int, now_ms: int) -> None:
        """The sender was told so."""
        self.tick += 1
        self._log_took()
        for sent in self.groups[group]:
            if sent.accepted is False:
                raise Violation(f"P1: {sent.text} is accepted behind its refusal")
            sent.accepted = True
            sent.stored_by_ms = min(sent.stored_by_ms, now_ms)
            self._ready(sent)

    def refused(self, group: int) -> None:
        """The sender was told that nothing was stored."""
        self.tick += 1
        for sent in self.groups[group]:
            if sent.accepted or sent.is_seen:
                raise Violation(f"P1: {sent.text} was there, and is refused")
            sent.accepted = False

    # Receivers

    def received(
        self,
        text: str,
        number: int,
        body: bytes,
        now_ms: int,
        *,
        token: bytes,
        until_ms: int,
        deliveries: int | None = None,
        asked: int | None = None,
        hold: SeenHold | None = None,
        is_dead: bool = False,
        is_asked_by_number: bool = False,
    ) -> SeenLock:
        """A receiver has it under lock. asked: the tick of its question; None: at some time.

        hold: of the session in which it asked; with that the lock ends, and maybe before this.
        """
        sent = self._came(text, number, body, now_ms, is_dead, is_asked_by_number)
        self._expect_free(sent, now_ms, is_dead)
        if deliveries is not None:
            self._count(sent, deliveries, counts=not is_dead)
        if hold is not None and not is_asked_by_number:
            self.sessions.delivered(sent, hold, now_ms, self.tick if asked is None else asked)
        lock = SeenLock(sent, token, until_ms, hold)
        if self._locks.setdefault(token, lock) is not lock:
            raise Violation(f"P7: the token of {text} was given before")
        sent.lock = lock
        self._locked[sent] = None
        if hold is not None:
            hold.locks.append(lock)
            if hold.is_over:
                self._let_go(lock)  # it was on its way when the session was let go
        return lock

    def taken(
        self,
        text: str,
        number: int,
        body: bytes,
        now_ms: int,
        *,
        asked: int | None = None,
        hold: SeenHold | None = None,
        is_dead: bool = False,
        is_asked_by_number: bool = False,
    ) -> None:
        """A receiver has it, and it is gone."""
        sent = self._came(text, number, body, now_ms, is_dead, is_asked_by_number)
        self._expect_free(sent, now_ms, is_dead)
        if hold is not None and not is_asked_by_number:
            self.sessions.delivered(sent, hold, now_ms, self.tick if asked is None else asked)
        self._gone(sent)

    def may_be_taken(self, most: int) -> None:
        """So many messages may be gone: whoever took them was not answered."""
        self.allowance += most

    def peeked(self, text: str, number: int, body: bytes, now_ms: int, *, asked: int) -> None:
        """It was shown to who had asked at this tick."""
        sent = self._seen(text, number, body, now_ms, asked=asked)
        if sent.place is SeenPlace.GONE and sent.gone_at < asked:
            raise Violation(f"P7: {text} was gone, and is shown")

    def settling(self, token: bytes, outcome: SeenOutcome, now_ms: int) -> SeenSettlement:
        """A receiver is about to settle."""
        self.tick += 1
        lock = self._locks[token]
        sent, left_ms = lock.sent, lock.ends_ms - now_ms
        is_mine = sent.lock is lock and not lock.is_over and lock.settling is None
        is_good = is_mine and left_ms > 0
        is_near_its_end = -self._slack_ms < left_ms <= self._slack_ms
        is_sure = not is_mine or not (is_near_its_end or lock.may_be_over)
        settlement = SeenSettlement(lock, outcome, is_good, is_sure, self.tick)
        if is_good:
            lock.settling = settlement
            self._flying[settlement] = None
            if sent.session is not None:
                self.sessions.settling(settlement)
            if outcome is SeenOutcome.RELEASE and sent.place is not SeenPlace.DEAD:
                sent.least -= 1
                sent.most -= 1
        return settlement

    def settled(self, settlement: SeenSettlement, answer: SeenAnswer) -> None:
        """It was answered; behind a crash nothing is."""
        self.tick += 1
        lock, sent = settlement.lock, settlement.lock.sent
        if settlement.is_good and self._flying.pop(settlement, settlement) is settlement:
            return  # a crash came first
        if answer in (SeenAnswer.DONE, SeenAnswer.LOST) and (answer is SeenAnswer.DONE) is not settlement.is_good:
            if settlement.is_sure:
                raise Violation(f"P7: {sent.text}: {settlement.outcome.name} was answered {answer.name}")
            if answer is SeenAnswer.DONE and sent.lock is lock:
                self._effect(settlement)
            elif answer is SeenAnswer.LOST:
                self._let_go(lock)
        elif not settlement.is_good:
            return
        elif answer is SeenAnswer.DONE:
            self._effect(settlement)
            if settlement.outcome not in _AT_ONCE:
                self._log_took(sent)
        else:
            lock.settling = None
            if settlement.outcome is SeenOutcome.DEAD_LETTER and sent.place is SeenPlace.DEAD and sent.lock is lock:
                self._let_go(lock)  # there it is abandoned at once, and its answer waits for others
            if answer is not SeenAnswer.REFUSED:
                self._perhaps(settlement)
                self._unknown[settlement] = None
                lock.may_be_over |= settlement.outcome is SeenOutcome.ABANDON
            if settlement.outcome is SeenOutcome.RELEASE and sent.lock is lock:
                self._let_go(lock)
            elif lock.is_over and sent.lock is lock:
                sent.lock = None
                self._ready(sent)
        if sent.session is not None:
            self.sessions.settled(settlement, is_back=sent.lock is None and sent.place is SeenPlace.WAITING)

    def renewed(self, token: bytes, until_ms: int | None, now_ms: int) -> None:
        """A lock holds until then; None: it was lost."""
        self.tick += 1
        lock = self._locks[token]
        is_good = lock.sent.lock is lock and not lock.is_over and lock.settling is None and lock.ends_ms > now_ms
        if (until_ms is not None) is not is_good and abs(lock.ends_ms - now_ms) >= self._slack_ms:
            raise Violation(f"P7: {lock.sent.text}: a lock was renewed until {until_ms}")
        if until_ms is not None and lock.hold is None:
            lock.until_ms = until_ms

    def cancelled(self, text: str, answer: SeenAnswer) -> None:
        """A scheduled message was cancelled, or may be."""
        self.tick += 1
        if answer is SeenAnswer.DONE:
            self._gone(self.sent[text])
        elif answer is SeenAnswer.UNKNOWN:
            self.sent[text].may_be_gone = True

    # Sessions

    def hold(self, session: str, until_ms: int, now_ms: int) -> SeenHold:
        """A receiver holds the session."""
        self.tick += 1
        return self.sessions.hold(session, until_ms, now_ms)

    def let_go(self, hold: SeenHold) -> None:
        """It holds it no longer: it said so, or was told so. Twice does nothing."""
        self.tick += 1
        if not hold.is_over:
            hold.is_over = True
            for lock in hold.locks:
                if lock.sent.lock is lock:
                    self._let_go(lock)

    # Ends

    def crashed(self, hits: Callable[[SeenMessage], bool] | None = None) -> None:
        """All locks and holds are over, and what was not answered is unknown.

        hits: that is so of these messages alone, and of the sessions that they are in.
        """
        self.tick += 1
        self.crashes += 1
        hit = _any_message if hits is None else hits
        for settlement in [each for each in self._flying if hit(each.lock.sent)]:
            self._perhaps(settlement)
            settlement.lock.settling = None
            del self._flying[settlement]
        for settlement in [each for each in self._unknown if hit(each.lock.sent)]:
            self._unsure(settlement)
            del self._unknown[settlement]
        for sent in [each for each in self._locked if hit(each)]:
            if sent.lock is not None:
                self._let_go(sent.lock)
            self._locked.pop(sent, None)
        self.sessions.crashed(hit)

    @property
    def waiting(self) -> list[SeenMessage]:
        """The messages that are to be received still, for all that anybody knows."""
        return [sent for sent in self.sent.values() if sent.place is SeenPlace.WAITING and self._is_missing(sent)]

    def broker_ended(self, text: str) -> None:
        """The broker of this message ended since it was last heard of, and others did not: its lock is over, and what
        was not answered of it is unknown."""
        self.tick += 1
        sent = self.sent[text]
        for settlement in [each for each in self._flying if each.lock.sent is sent]:
            del self._flying[settlement]
            self._perhaps(settlement)
            settlement.lock.settling = None
            if sent.session is not None:
                self.sessions.settled(settlement, is_back=False)
        for settlement in [each for each in self._unknown if each.lock.sent is sent]:
            del self._unknown[settlement]
            self._unsure(settlement)
        if sent.lock is not None:
            self._let_go(sent.lock)

    def left(self, found: Iterable[tuple[str, int, bytes, bool]], now_ms: int) -> None:
        """These are all that are left in the end: text, number, body, whether it is a dead letter."""
        there: set[str] = set()
        for text, number, body, is_dead in found:
            sent = self._seen(text, number, body, now_ms)
            if text in there:
                raise Violation(f"P1: {text} is there twice")
            if sent.place is SeenPlace.GONE:
                raise Violation(f"P7: {text} was gone, and is there")
            if sent.place is SeenPlace.DEAD and not is_dead:
                raise Violation(f"P7: {text} was a dead letter, and is none")
            if is_dead:
                self._expect_dead(sent)
            there.add(text)
        missing = [sent.text for sent in self.sent.values() if sent.text not in there and self._is_missing(sent)]
        if len(missing) > self.allowance:
            raise Violation(f"P1: lost: {', '.join(missing[:5])}; {len(missing)}, and {self.allowance} may be gone")

    def is_there(self, group: int) -> bool | None:
        """Whether a group that nobody answered for is stored; None: that cannot be told."""
        some = self.groups[group]
        if any(sent.is_seen for sent in some):
            return True
        return None if self.allowance or any(sent.may_expire or sent.may_be_gone for sent in some) else False

    def _log_took(self, sent: SeenMessage | None = None) -> None:
        """The log has something new, so a start finds what it had before as it is now. sent: of which it has.

        Of several logs nobody says which has it, but for that of the message.
        """
        if not self._is_partitioned:
            self._unknown = {}
        else:
            self._unknown = {each: None for each in self._unknown if each.lock.sent is not sent}

    def _is_missing(self, sent: SeenMessage) -> bool:
        """Of one that is not there: whether it should be."""
        if sent.place is SeenPlace.GONE or sent.may_be_gone or sent.may_expire or not sent.accepted:
            return False
        return self._duplicates is None or sent.is_seen or not self._duplicates.may_be_dropped(sent)

    # Of one message

    def _seen(self, text: str, number: int, body: bytes, now_ms: int, *, asked: int | None = None) -> SeenMessage:
        """asked: the tick at which a peek was asked for. It may show a number that the message had until then."""
        self.tick += 1
        sent = self.sent.get(text)
        if sent is None or crc32(body) != sent.checksum:
            raise Violation(f"P1: the bytes of {text[:40]}, number {number}, are not those that were sent")
        if sent.accepted is False:
            raise Violation(f"P1: {text} was refused, and is there")
        if self._numbers.setdefault(number, sent) is not sent:
            raise Violation(f"P4: number {number} is of {text}, and was of {self._numbers[number].text}")
        if sent.number != number and not (asked is not None and sent.had(number, since=asked)):
            if sent.number is not None and not sent.is_scheduled:
                raise Violation(f"P4: {text} has number {number}, and had {sent.number}")
            sent.renumber(number, self.tick)
        if not sent.is_seen:
            sent.is_seen = True
            for each in self.groups[sent.group]:
                each.accepted = True  # also those that nobody sees: for one of them an id sent again is dropped
            sent.stored_by_ms = min(sent.stored_by_ms, now_ms)
            if self._duplicates is not None:
                self._duplicates.seen(sent)
        return sent

    def _came(
        self, text: str, number: int, body: bytes, now_ms: int, is_dead: bool, is_asked_by_number: bool
    ) -> SeenMessage:
        sent = self._seen(text, number, body, now_ms)
        place = sent.place
        if place is SeenPlace.GONE:
            raise Violation(f"P7: {text} was gone, and comes again")
        if place is SeenPlace.DEAD and not is_dead:
            raise Violation(f"P7: {text} is a dead letter, and comes from the queue")
        if place is SeenPlace.DEFERRED and not is_dead and not is_asked_by_number:
            raise Violation(f"P7: {text} is deferred, and comes unasked")
        if is_dead:
            self._expect_dead(sent)
        sent.may_be_gone = False
        sent.place = SeenPlace.DEAD if is_dead else SeenPlace.DEFERRED if is_asked_by_number else SeenPlace.WAITING
        if not is_dead and not is_asked_by_number:
            sent.is_scheduled = False  # its number is for good from now on
        return sent

    def _expect_dead(self, sent: SeenMessage) -> None:
        """It is a dead letter: somebody made it one, or it was delivered too often, or its time was over."""
        self._know_crashes(sent)
        is_known = self._most_deliveries is not None and not sent.may_expire
        if (
            is_known
            and sent.place in (SeenPlace.WAITING, SeenPlace.DEFERRED)
            and sent.most < (self._most_deliveries or 0)
        ):
            raise Violation(f"P8: {sent.text} is a dead letter behind {sent.most} deliveries, and by nobody's word")

    def _expect_free(self, sent: SeenMessage, now_ms: int, is_dead: bool) -> None:
        lock = sent.lock
        if lock is None:
            return
        settling = lock.settling
        if settling is not None:
            is_free = self._slack_ms or settling.outcome in _AT_ONCE or is_dead
        else:
            is_free = lock.is_over or lock.may_be_over or lock.ends_ms <= now_ms + self._slack_ms
        if not is_free:
            raise Violation(f"P7: {sent.text} is locked for another {lock.ends_ms - now_ms} ms")

    def _count(self, sent: SeenMessage, deliveries: int, *, counts: bool) -> None:
        self._know_crashes(sent)
        if not sent.least <= deliveries <= sent.most:
            raise Violation(f"P8: {sent.text} counts {deliveries} deliveries of {sent.least} to {sent.most}")
        most = self._most_deliveries
        if counts and most is not None and deliveries >= most and sent.place is SeenPlace.WAITING:
            raise Violation(f"P8: {sent.text} comes again behind {deliveries} deliveries of {most}")
        sent.least = sent.most = deliveries + counts

    def may_be_dead(self, sent: SeenMessage) -> bool:
        """Whether it may be a dead letter, for it was delivered too often."""
        self._know_crashes(sent)
        return self._most_deliveries is not None and sent.most >= self._most_deliveries

    def _know_crashes(self, sent: SeenMessage) -> None:
        """A crash may have counted a delivery that nobody saw, or forgotten those that it saw last."""
        if sent.crashes != self.crashes:
            sent.most += self.crashes - sent.crashes
            sent.least, sent.crashes = 0, self.crashes

    def _ready(self, sent: SeenMessage) -> None:
        may_be_dropped = self._duplicates is not None and not sent.is_seen and sent.message_id is not None
        if sent.session is not None and not may_be_dropped:
            self.sessions.ready(sent, self.tick)

    def _gone(self, sent: SeenMessage) -> None:
        sent.place, sent.lock, sent.gone_at = SeenPlace.GONE, None, self.tick
        self._locked.pop(sent, None)

    def _let_go(self, lock: SeenLock) -> None:
        """A lock is over; what is being settled is decided by its answer."""
        lock.is_over = True
        sent = lock.sent
        if sent.lock is lock and lock.settling is None:
            sent.lock = None
            self._locked.pop(sent, None)
            self._ready(sent)

    def _effect(self, settlement: SeenSettlement) -> None:
        lock, outcome = settlement.lock, settlement.outcome
        sent = lock.sent
        lock.settling, lock.is_over = None, True
        if outcome in (SeenOutcome.DEFER, SeenOutcome.DEAD_LETTER) and sent.place is not SeenPlace.DEAD:
            sent.least -= 1
            sent.most -= 1
        if sent.lock is not lock:
            return  # it is another one's by now
        if outcome is SeenOutcome.COMPLETE:
            self._gone(sent)
            return
        if outcome is SeenOutcome.DEFER and sent.place is not SeenPlace.DEAD:
            sent.place = SeenPlace.DEFERRED
        elif outcome is SeenOutcome.DEAD_LETTER:
            sent.place = SeenPlace.DEAD
        self._let_go(lock)

    def _perhaps(self, settlement: SeenSettlement) -> None:
        """It may be done, or not."""
        sent, outcome = settlement.lock.sent, settlement.outcome
        if outcome in _NOT_COUNTED:
            sent.least = max(0, sent.least - 1)
        if outcome is SeenOutcome.RELEASE:
            sent.most += 1
        self._unsure(settlement)

    def _unsure(self, settlement: SeenSettlement) -> None:
        """Where its message is, nobody knows."""
        sent, outcome = settlement.lock.sent, settlement.outcome
        if outcome is SeenOutcome.COMPLETE:
            sent.may_be_gone = True
        elif outcome in (SeenOutcome.DEFER, SeenOutcome.DEAD_LETTER) and sent.place is not SeenPlace.DEAD:
            sent.place = SeenPlace.UNSURE


def _any_message(sent: SeenMessage) -> bool:
    return True
