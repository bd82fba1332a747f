"""Processes that are spawned or found: what they are told, how their end is seen."""

import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from hubweir.drivers.watched_process import WatchedProcess

Run = Callable[[Coroutine[Any, Any, Any]], Any]
WAITS = "import sys, time; time.sleep(60)"


def test_a_process_gets_its_document_and_its_exit_code_is_seen(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        out = tmp_path / "out"
        program = f"import sys; open({str(out)!r}, 'wb').write(sys.stdin.buffer.read()); sys.exit(7)"
        watched = WatchedProcess.spawn([sys.executable, "-c", program], b"keys\n")
        assert watched.exit_code is None
        await watched.ended()
        assert (watched.exit_code, out.read_bytes()) == (7, b"keys\n")

    run(scenario())


def test_a_process_stands_in_a_session_of_its_own(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        out = tmp_path / "out"
        program = f"import os; open({str(out)!r}, 'w').write(f'{{os.getsid(0)}} {{os.getpid()}}')"
        watched = WatchedProcess.spawn([sys.executable, "-c", program], b"")
        await watched.ended()
        session, pid = out.read_text().split()
        assert session == pid == str(watched.pid)

    run(scenario())


def test_kill_comes_back_when_it_is_gone(run: Run) -> None:
    async def scenario() -> None:
        watched = WatchedProcess.spawn([sys.executable, "-c", WAITS], b"")
        seen: list[str] = []
        watched.when_ended(lambda: seen.append("then"))
        await watched.kill()
        watched.when_ended(lambda: seen.append("at once"))
        assert (watched.exit_code, watched.has_ended, seen) == (-signal.SIGKILL, True, ["then", "at once"])
        watched.send(signal.SIGTERM)  # does nothing: its number may be another's by now

    run(scenario())


def test_a_process_of_somebody_else_is_watched_too_and_its_exit_code_is_not_known(run: Run) -> None:
    async def scenario() -> None:
        child = subprocess.Popen([sys.executable, "-c", WAITS])
        watched = WatchedProcess.found(child.pid)
        assert watched is not None
        assert not watched.is_child
        await watched.kill()
        assert watched.exit_code is None
        child.wait()
        assert WatchedProcess.found(child.pid) is None

    run(scenario())


def test_a_process_that_reads_nothing_and_ends_at_once_is_no_error(run: Run) -> None:
    async def scenario() -> None:
        watched = WatchedProcess.spawn([sys.executable, "-c", "import os; os.close(0)"], b"x" * 1_000_000)
        await watched.ended()
        assert watched.exit_code == 0

    run(scenario())


def test_a_program_that_is_not_there_is_an_error(run: Run) -> None:
    async def scenario() -> None:
        with pytest.raises(FileNotFoundError):
            WatchedProcess.spawn(["/nowhere/at-all"], b"")

    run(scenario())


def test_who_forgets_a_process_leaves_it_alive(run: Run) -> None:
    async def scenario() -> None:
        watched = WatchedProcess.spawn([sys.executable, "-c", WAITS], b"")
        again = WatchedProcess.found(watched.pid)
        assert again is not None
        again.forget()
        assert not watched.has_ended
        await watched.kill()
        assert not again.has_ended  # nobody told it

    run(scenario())
