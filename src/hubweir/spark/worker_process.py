"""Python processes that Spark starts: what they spare us at their start, and how they end without noise."""

from __future__ import annotations

import gc
import os
import sys

_frozen: set[int] = set()


def freeze_garbage() -> None:
    """Once a process: take what is loaded out of the collector's sight. Spark's worker collects after every task, and
    looks through pyarrow's and pandas' objects each time: 40 ms before this, nothing afterwards.
    """
    if os.getpid() not in _frozen:
        _frozen.add(os.getpid())
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
