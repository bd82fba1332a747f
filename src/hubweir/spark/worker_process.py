"""Set-up of Spark's Python workers: they skip slow imports and GC at start, and end without a traceback when killed."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import traceback
from types import SimpleNamespace, TracebackType

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
    """Called while a stream's reader ends. When the query is over Spark has closed its end of the pipe, and whatever
    this process would print from here on is about that: its stderr goes nowhere.

    Nothing happens when the reader ends by an error of its own, and in a process that Spark did not start.
    """
    if _is_sparks() and is_closed_pipe(sys.exception()):
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives


def is_closed_pipe(error: BaseException | None) -> bool:
    """Whether an error says no more than that Spark closed its end: nothing else is among what led to it.

    Spark does so with every worker whose rows it has enough of (a limit, a query that is stopped) and tells of its own
    faults itself. An error of the worker's that could not be told to Spark stands behind that of the pipe.
    """
    if error is None:
        return False
    while error is not None:
        if not isinstance(error, BrokenPipeError | ConnectionResetError | EOFError | SystemExit):
            return False
        error = error.__cause__ or error.__context__
    return True


def tell_of_faults_only() -> None:
    """From now on a process of Spark's prints no traceback when all that happened is that Spark closed its end.

    Does nothing in a process that Spark did not start.
    """
    if not _is_sparks():
        return
    hook = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not is_closed_pipe(error):
            hook(kind, error, trace)

    def print_exc() -> None:
        if not is_closed_pipe(sys.exception()):
            traceback.print_exc()

    sys.excepthook = excepthook
    # The main module of a worker that was forked is pyspark/daemon.py, which prints what ended it by this name.
    if hasattr(sys.modules["__main__"], "traceback"):
        its = SimpleNamespace(print_exc=print_exc, format_exc=traceback.format_exc)
        sys.modules["__main__"].traceback = its  # type: ignore[attr-defined]


def _is_sparks() -> bool:
    """Whether Spark started this process."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


# Here, because every worker that handles something of ours imports this module while it unpickles that, before it does
# anything else, and no method of a data source is called in all of them. Spark's look-up of data sources, which handles
# nothing of ours, imports it by the module pyspark_hubweir.
tell_of_faults_only()
