"""The parts of a receiver's link that are one: of an entity with one fragment, or of a session, which is one part's.

It answers what fan_in.py answers of several, and has nothing to choose: it is asked to wait until there is a message,
at a drain to look. Most links have one part, and each of their messages comes by here.
"""

from __future__ import annotations

from collections.abc import Iterator

from hubweir.gateway.amqp.receiver_part import ASKED, PartState, ReceiverPart


class OnePart:
    """See the module's text, and FanIn for what each says.

    reserved: it takes nothing away first. is_due: nobody waits for another part's answer.
    """

    reserved = 0
    is_due = False

    def __init__(self, part: ReceiverPart) -> None:
        self._part = part

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[ReceiverPart]:
        return iter((self._part,))

    @property
    def are_away(self) -> bool:
        """Whether it has no receiver, nor may get one soon."""
        return self._part.state is PartState.AWAY

    @property
    def kept(self) -> ReceiverPart | None:
        """It, while it keeps messages."""
        return self._part if self._part.kept.count else None

    @property
    def is_asked(self) -> bool:
        """Whether an answer is to come."""
        return self._part.is_asked

    @property
    def are_idle(self) -> bool:
        """Whether it is asked for nothing, and keeps nothing."""
        return not self._part.kept.count and self._part.state not in ASKED

    def note_slow(self, limit_ms: int) -> None:
        """It is waited for, however slow it is."""

    def ask(self, wanted: int, *, is_drain: bool) -> bool:
        """Ask for so many messages; False: it cannot be asked now, or the answer is to come."""
        part = self._part
        if not part.may_look or (is_drain and part.found_nothing):
            return False
        if is_drain:
            part.look(wanted)
        else:
            part.wait(wanted)
        return part.state not in ASKED

    def waits_within(self, credit: int) -> bool:
        """Whether it waits for no more messages than that, and nothing else is to be done until one comes."""
        return self._part.waits_within(credit)

    def ask_for_less(self, credit: int, *, is_drain: bool) -> None:
        """Give up what is asked for beyond this credit; at a drain, whatever waits. What comes all the same is kept."""
        part = self._part
        if part.state in ASKED:
            part.ask_for_less(0 if is_drain and part.state is PartState.WAITING else credit)

    def drained(self) -> None:
        """The drain is over: it may look again."""
        self._part.found_nothing = False

    def release(self) -> None:
        """Let others have all that is kept and locked."""
        self._part.release()
