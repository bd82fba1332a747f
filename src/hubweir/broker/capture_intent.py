"""The intent of a captured file made durable, under a name that is claimed; and the end of the claim."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hubweir.broker.capture_places import CapturePlaces, CaptureWorld
from hubweir.capture.capture_mark import MARK_NAME, CaptureMark, Intent, pack_mark, save_mark
from hubweir.errors import HubweirError
from hubweir.messaging_store.layout import join
from hubweir.messaging_store.whole_file import read_sealed

# Names that others took in the same seconds, before it is taken for a fault of the destination.
TAKEN_NAMES = 1_000


def save_intent(world: CaptureWorld, folder: str, intend: Callable[[int], CaptureMark]) -> CaptureMark:
    """The mark that is durable now. Blocking; raises OSError.

    folder: of the log. intend: makes the mark under a name behind the second that it is given.
    """
    last_second = 0
    for _ in range(TAKEN_NAMES):
        mark = intend(last_second)
        its = mark.intent
        if its is None:
            return mark
        if world.places.destination(its.destination, its.container).claim(its.name):
            try:
                world.env.fault("capture.before_intent")
                save_mark(world.env.files, folder, mark)
            except OSError:
                if not _is_saved(world, folder, mark):
                    release(world.places, its)
                raise
            world.env.fault("capture.after_intent")
            return mark
        last_second = its.second
    raise FileExistsError(f"{TAKEN_NAMES} names in a row are taken in the destination")


def release(places: CapturePlaces, intent: Intent) -> None:
    """Let go of an intent's name, once no mark holds the intent any more. Blocking.

    A claim that stays because the destination is away, or lets nobody remove anything, harms nobody: it is empty.
    """
    with suppress(OSError, HubweirError):
        places.destination(intent.destination, intent.container).release(intent.name)


def _is_saved(world: CaptureWorld, folder: str, mark: CaptureMark) -> bool:
    """Whether the mark is there though saving it failed, or may be: then a start would find its intent."""
    try:
        body = read_sealed(world.env.files, join(folder, MARK_NAME))
    except OSError:
        return True
    return body == pack_mark(mark)
