"""Ctrl-C ends a demo with one line.

It reaches the server and Spark's JVM as well, which belong to the same terminal: what the demo still does with them on
its way out may fail, and none of that is news.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

# What shells make of it: 128 and the signal's number.
INTERRUPTED = 128 + signal.SIGINT


def unless_interrupted(main: Callable[[], int]) -> int:
    """What main returns; INTERRUPTED when Ctrl-C came before, whatever error main ended with then."""
    try:
        return main()
    except BaseException as error:
        if not _is_of_an_interrupt(error):
            raise
        print("\nstopped before the end: nothing is proved", file=sys.stderr)
        return INTERRUPTED


def _is_of_an_interrupt(error: BaseException | None) -> bool:
    """Whether it is one, or came while one was handled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
