"""A program that prints the state in which it finds itself, as JSON, and ends when its input does."""

from __future__ import annotations

import fcntl
import gc
import json
import locale
import logging
import os
import resource
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

LINES = (
    "PPid:", "Umask:", "Uid:", "Gid:", "Groups:", "Threads:", "SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:",
    "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:", "Cpus_allowed:", "Mems_allowed:",
)  # fmt: skip
STREAMS = (sys.stdin, sys.stdout, sys.stderr)


def state() -> dict[str, object]:
    """See the module's text. Two processes that are started alike tell the same but for their ids and objects."""
    itself = Path("/proc/self")
    return {
        "process": os.getpid(),
        "arguments": sys.argv,
        "modules are looked for in": sys.path,
        "is the main module": vars(sys.modules["__main__"]) is globals(),
        "flags": sys.flags,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "group": os.getpgrp(),
        "session": os.getsid(0),
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "status": [line for line in (itself / "status").read_text().splitlines() if line.startswith(LINES)],
        "files": {name: (itself / name).read_text() for name in ("comm", "cgroup", "oom_score_adj", "timerslack_ns")},
        "namespaces": {space.name: os.readlink(space) for space in (itself / "ns").iterdir()},
        "limits": [resource.getrlimit(number) for number in range(16)],
        "descriptors": sorted(each.name for each in (itself / "fd").iterdir() if each.exists()),
        "access": [fcntl.fcntl(stream, fcntl.F_GETFL) for stream in STREAMS],
        "inherited": [os.get_inheritable(stream.fileno()) for stream in STREAMS],
        "streams": [
            (each.name, each.mode, each.encoding, each.errors, each.line_buffering, each.write_through, each.isatty())
            for each in STREAMS
        ],
        "handlers": {number: repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())},
        "collector": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks)],
        "objects that a collection looks at": len(gc.get_objects()),
        "recursion": sys.getrecursionlimit(),
        "turns": sys.getswitchinterval(),
        "threads": [(each.name, each.daemon) for each in threading.enumerate()],
        "hooks": [repr(hook) for hook in (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.gettrace())],
        "warnings": [repr(each) for each in warnings.filters],
        "log": [logging.root.level, logging.root.handlers, logging.root.manager.disable],
        "language": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding()],
        "time zone": [time.tzname, time.timezone],
    }


if __name__ == "__main__":
    print(json.dumps(state()), flush=True)
    sys.stdin.read()
