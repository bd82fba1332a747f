"""Python processes that Spark starts: what they spare us at their start, and how they end without noise."""

from __future__ import annotations

import gc
import os
import sys

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


def end_quietly() -> None:
    """The query is over and Spark has closed its end of the pipe: this process would print a traceback about that.

    Nothing else comes after it, so its stderr goes nowhere. Does nothing in a process that Spark did not start.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name.startswith("pyspark."):
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives
