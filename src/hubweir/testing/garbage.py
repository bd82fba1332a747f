"""Measures the work of garbage collections: what only they free, and what they look at."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable


def left_for_collections(step: Callable[[], object]) -> Counter[str]:
    """How many objects of each type a step has made, and lost without freeing them. What it returns counts as lost.

    Other threads must rest meanwhile: their garbage would be counted, too.
    """
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    flags = gc.get_debug()
    try:
        step()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage)
        gc.garbage.clear()
        return found
    finally:
        gc.set_debug(flags)
        gc.collect()
        if was_enabled:
            gc.enable()


def come_and_stay(step: Callable[[], object]) -> Counter[str]:
    """How many objects of each type a step has made that live on and that collections look at.

    Other threads must rest meanwhile, as above.
    """
    gc.collect()
    was_enabled, has_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.disable()
    gc.freeze()
    try:
        step()
        return Counter(type(each).__qualname__ for each in gc.get_objects())
    finally:
        if not has_frozen:  # or others' would be thawed, too
            gc.unfreeze()
        if was_enabled:
            gc.enable()
