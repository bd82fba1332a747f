"""The intent of a captured file made durable, under a name that no finished file has, and none that is being made."""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.capture_places import CaptureWorld
from hubweir.capture.capture_mark import CaptureMark, save_mark

# Names that others took in the same seconds, before it is taken for a fault of the destination.
TAKEN_NAMES = 1_000


def save_intent(world: CaptureWorld, folder: str, owner: object, intend: Callable[[int], CaptureMark]) -> CaptureMark:
    """The mark that is durable now. Blocking; raises OSError.

    folder: of the log. owner: who makes the file, and has its name claimed from now on. intend: makes the mark under a
    name behind the second that it is given.
    """
    last_second = 0
    for _ in range(TAKEN_NAMES):
        mark = intend(last_second)
        its = mark.intent
        if its is None:
            return mark
        is_free = world.names.claim(owner, its.destination, its.container, its.name)
        if is_free and not world.places.destination(its.destination, its.container).exists(its.name):
            world.env.fault("capture.before_intent")
            save_mark(world.env.files, folder, mark)
            world.env.fault("capture.after_intent")
            return mark
        last_second = its.second
    raise FileExistsError(f"{TAKEN_NAMES} names in a row are taken in the destination")
