"""The intent of a captured file made durable, under a name that is claimed; and the end of the claim."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hubweir.broker.capture.places import CapturePlaces, CaptureTools
from hubweir.capture.capture_mark import CaptureMark, Intent, note_mark
from hubweir.env import Lane
from hubweir.errors import HubweirError
from hubweir.messaging_store.log import Log, Refused

# Names that others took in the same seconds, before it is taken for a fault of the destination.
TAKEN_NAMES = 1_000


def claim_name(tools: CaptureTools, intend: Callable[[int], CaptureMark]) -> CaptureMark:
    """A mark whose intent names a file that nobody else has; to be made durable. Blocking; raises OSError.

    intend: makes the mark under a name behind the second that it is given.
    """
    last_second = 0
    for _ in range(TAKEN_NAMES):
        mark = intend(last_second)
        its = mark.intent
        if its is None:
            return mark
        if tools.places.destination(its.destination, its.container).claim(its.name):
            return mark
        last_second = its.second
    raise FileExistsError(f"{TAKEN_NAMES} names in a row are taken in the destination")


def note_intent(tools: CaptureTools, log: Log, mark: CaptureMark, on_done: Callable[[Refused | None], None]) -> None:
    """Make a mark durable whose name is claimed. When it is refused for certain, the claim is let go of first: a start
    may find any other one, and the name must not be anybody else's then."""
    intent = mark.intent
    if intent is None:
        on_done(None)
        return

    def noted(refused: Refused | None) -> None:
        if refused is None:
            tools.env.fault("capture.after_intent")
        if refused is None or not refused.known:
            on_done(refused)
        else:
            tools.env.offload(Lane.CAPTURE, lambda: release_name(tools.places, intent), lambda _: on_done(refused))

    tools.env.fault("capture.before_intent")
    note_mark(log, mark, now_ms=tools.clock.stamp_ms(), on_done=noted)


def release_name(places: CapturePlaces, intent: Intent) -> None:
    """Let go of an intent's name, once no mark holds the intent any more. Blocking.

    A claim that stays because the destination is away, or lets nobody remove anything, harms nobody: it is empty.
    """
    with suppress(OSError, HubweirError):
        places.destination(intent.destination, intent.container).release(intent.name)
