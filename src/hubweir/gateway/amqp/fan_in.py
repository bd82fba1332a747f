"""Chooses which part of a receiver's link is asked for messages: there is one for each fragment of the entity.

One at a time looks for what is there. As long as it finds some it may look again, for STAY_MS; then they go on in turn
from behind it. Those that found nothing wait, while the others look. A part that waits asks for its share of what is
wanted, so that all of them together bring little more. At a drain nobody waits: when all parts have looked and found
nothing, there is nothing. Nobody waits for a part whose broker is slow, either. A part that is alone is one_part.py's.
"""

from __future__ import annotations

from collections.abc import Iterator

from hubweir.env import Clock
from hubweir.gateway.amqp.receiver_part import PartState, ReceiverPart

# A receiver that is fast gets hundreds of messages in that time. What it settles meanwhile is for one log, and one sync
# serves many settlements; what was read ahead in that log is used. A receiver that takes longer for a message gets the
# next one from another fragment.
STAY_MS = 10


class FanIn:
    """The parts of one link, at least two, in the order in which they are asked; none, once the link is over."""

    def __init__(self, parts: list[ReceiverPart], clock: Clock) -> None:
        self._parts = parts
        self._clock = clock
        self._turn = 0  # the place of the next one that looks
        self._last: ReceiverPart | None = None  # the one that looked last, which may look again until then
        self._stays_until_ms = 0

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[ReceiverPart]:
        """Each of them, also where some are closed meanwhile."""
        return iter(tuple(self._parts))

    @property
    def are_away(self) -> bool:
        """Whether none of them has a receiver, or may get one soon."""
        return all(part.state is PartState.AWAY for part in self._parts)

    @property
    def kept(self) -> ReceiverPart | None:
        """One that keeps messages: ready ones, or else some that may be taken away; None: there is none."""
        keeping = [part for part in self._parts if part.kept.count]
        for part in keeping:
            if part.is_ready:
                return part
        return next((part for part in keeping if not part.kept.is_taking), None)

    @property
    def reserved(self) -> int:
        """How much of the link's credit is for messages that they take away first."""
        return sum(part.reserved for part in self._parts) if self._parts[0].takes_first else 0

    @property
    def is_asked(self) -> bool:
        """Whether an answer is to come, of brokers that are not slow."""
        return any((part.is_asked or part.kept.is_taking) and not part.is_slow for part in self._parts)

    @property
    def are_idle(self) -> bool:
        """Whether they are asked for nothing, and keep nothing."""
        return not any(part.kept.count or part.is_asked for part in self._parts)

    @property
    def is_due(self) -> bool:
        """Whether some answer is to come at once."""
        return any(part.is_due and not part.is_slow for part in self._parts)

    def note_slow(self, limit_ms: int) -> None:
        """Find those that are slow, and have others go on; see ReceiverPart."""
        for part in self._parts:
            part.note_slow(limit_ms)

    def ask(self, wanted: int, *, is_drain: bool) -> bool:
        """Ask a part for so many messages; False: none can be asked now."""
        if any(part.state is PartState.LOOKING and not part.is_slow for part in self._parts):
            return False
        part = self._next(is_drain=is_drain)
        if part is None:
            return False
        if part.found_nothing:
            part.wait(-(-wanted // len(self._parts)))
        else:
            part.look(wanted)
        return True

    def _next(self, *, is_drain: bool) -> ReceiverPart | None:
        """The one that looked last where it may stay, or the next one in turn that is asked for nothing.

        At a drain one that has not found nothing yet.
        """
        parts, last, now_ms = self._parts, self._last, self._clock.monotonic_ms()
        if last is not None and last.may_look and not last.found_nothing and now_ms < self._stays_until_ms:
            return last
        slow = [part.place.broker for part in parts if part.is_slow]
        for place in range(self._turn, self._turn + len(parts)):
            part = parts[place % len(parts)]
            if slow and part.place.broker in slow:
                continue  # one of its parts is enough to find out that it is well again
            if part.may_look and not (is_drain and part.found_nothing):
                self._turn = (place + 1) % len(parts)
                self._last, self._stays_until_ms = part, now_ms + STAY_MS
                return part
        return None

    def waits_within(self, credit: int) -> bool:
        """See OnePart. False: of several parts one may always be asked for more."""
        return False

    def ask_for_less(self, credit: int, *, is_drain: bool) -> None:
        """Give up what is asked for beyond this credit; at a drain, whatever waits. What comes all the same is kept.

        Several parts together ask for little more than the credit, until there is none.
        """
        for part in self._parts:
            if is_drain and part.state is PartState.WAITING:
                part.ask_for_less(0)
            elif not credit:
                part.ask_for_less(credit)

    def drained(self) -> None:
        """The drain is over: whoever found nothing may look again."""
        for part in self._parts:
            part.found_nothing = False

    def release(self) -> None:
        """Let others have all that is kept and locked."""
        for part in self._parts:
            part.release()
