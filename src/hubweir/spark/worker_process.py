"""Python processes that Spark starts: what they spare us at their start, and how they end without noise."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

# glibc's names for mallopt. The first is as large as it takes.
_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES = -3, 32 * 1024 * 1024
_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES = -1, 64 * 1024 * 1024
# How many modules were loaded when the collector was told last, and in which process.
_told: tuple[int, int] | None = None


def freeze_garbage() -> None:
    """Take what is loaded out of the collector's sight; nothing happens when nothing was loaded since the last time.

    Spark's worker collects after every task, and looks through the objects of pyarrow, pandas and all other modules
    each time: 40 ms before this, nothing afterwards. Some are loaded late, in the middle of the first task: so this is
    called before a task and after it.
    """
    global _told
    now = (os.getpid(), len(sys.modules))
    if _told != now:
        _told = now
        gc.collect()
        gc.freeze()


def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB of what is freed, in a process that Spark started; elsewhere nothing happens.

    A task makes and drops buffers of some MB again and again. Given back to the system each time, every 4 KiB of the
    next one is a page fault: about as much processor time as reading the events takes. glibc alone does so.
    """
    if _is_sparks() and sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
            mallopt(_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)


def end_quietly() -> None:
    """The query is over and Spark has closed its end of the pipe: this process would print a traceback about that.

    Nothing else comes after it, so its stderr goes nowhere. Does nothing in a process that Spark did not start.
    """
    if _is_sparks():
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives


def _is_sparks() -> bool:
    """Whether Spark started this process."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
