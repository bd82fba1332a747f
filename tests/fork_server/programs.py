"""Programs that tests of the fork server start, and what is to be seen of them from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HUBWEIR = ("-m", "hubweir")
PLANTED = (str(Path(__file__).parents[1] / "crash" / "lying_server.py"),)
TELLS = (str(Path(__file__).with_name("told_state.py")),)
UNBUFFERED = {**os.environ, "PYTHONUNBUFFERED": "1"}
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def is_forked(pid: int) -> bool:
    return b"tests.fork_server.server" in Path(f"/proc/{pid}/cmdline").read_bytes()


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and not status_of(pid)["State"].startswith("Z")


def status_of(pid: int) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def descriptors_of(pid: int) -> list[str]:
    """The names of what is open, in the order of the numbers."""
    return [os.readlink(each) for each in sorted(Path(f"/proc/{pid}/fd").iterdir(), key=lambda path: int(path.name))]


@contextmanager
def started(*arguments: str, program: tuple[str, ...] = HUBWEIR, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A command of hubweir; it is gone at the end."""
    given = {"env": UNBUFFERED, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen([sys.executable, *program, *arguments], **given) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def telling(program: tuple[str, ...] = TELLS, **options: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The process id of a program that tells its state, and what it has told."""
    with started(program=program, stdin=subprocess.PIPE, **options) as process:
        assert process.stdout is not None
        yield process.pid, json.loads(process.stdout.readline())
