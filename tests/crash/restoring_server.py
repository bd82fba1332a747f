"""`hubweir` that ends without a word (SIGKILL) in the middle of a restore, at the moment that RESTORE_AT names.

At `held` it waits instead, when all logs are copied: it makes the file that RESTORE_HELD names, until that is removed.
`catalog first` is a planted defect, the control arm of test_restore_kill.py. With several broker processes this one
keeps the catalogs, and restores; the others are as ever.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from hubweir.cli.main import main
from hubweir.messaging_store.disk.log_copy import LogCopy
from hubweir.messaging_store.disk.moved_log import MovedLog
from hubweir.service.copied_logs import CopiedLogs
from hubweir.service.running_restores import RunningRestores


def end(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def around(owner: type, name: str, step: Callable[..., Any]) -> None:
    """Have `step` called in place of a method, with the method before what it is called with."""
    original = getattr(owner, name)
    setattr(owner, name, wraps(original)(lambda *arguments: step(original, *arguments)))


def second(owner: type, name: str, step: Callable[..., Any]) -> None:
    """As `around`, for the second call alone."""
    calls = 0

    def counted(original: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return step(original, *arguments) if calls == 2 else original(*arguments)

    around(owner, name, counted)


def behind(original: Callable[..., Any], *arguments: Any) -> None:
    original(*arguments)
    end()


def catalog_named() -> None:
    """The catalog has its name, and its store does not remember it yet."""

    def shown(original: Callable[..., Any], *arguments: Any) -> None:
        around(LogCopy, "remember", end)
        original(*arguments)

    around(CopiedLogs, "show_catalog", shown)


def held(original: Callable[..., Any], *arguments: Any) -> None:
    original(*arguments)
    flag = Path(os.environ["RESTORE_HELD"])
    flag.touch()
    while flag.exists():
        time.sleep(0.02)


def catalog_first(original: Callable[..., Any], self: RunningRestores, restore: Any) -> None:
    restore.logs.copy_catalog(lambda count: None)
    restore.logs.show_catalog()
    end()


MOMENTS: dict[str, Callable[[], None]] = {
    "a log is being copied": lambda: second(MovedLog, "copy", lambda copy, log, on_bytes: copy(log, end)),
    "logs are copied": lambda: around(RunningRestores, "_show", end),
    "a log is shown": lambda: second(MovedLog, "show", end),
    "logs are shown": lambda: around(CopiedLogs, "copy_catalog", end),
    "the catalog is copied": lambda: around(CopiedLogs, "show_catalog", end),
    "the catalog has its name": catalog_named,
    "the catalog is shown": lambda: around(CopiedLogs, "show_catalog", behind),
    "held": lambda: around(CopiedLogs, "copy", held),
    "catalog first": lambda: around(RunningRestores, "_show_all", catalog_first),
}
MOMENTS[os.environ["RESTORE_AT"]]()
main()
