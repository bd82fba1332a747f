"""A stop ends in time, whatever hangs: in processes of their own, which end as a service does."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from hubweir.service import bounded_stop
from hubweir.service.bounded_stop import DISK_WAIT_S, EXIT_LEFT, StopLimit, StoppingProcess, StopWaits

PROGRAM = """
import asyncio, logging, os, sys, threading, time
from hubweir.service.bounded_stop import StopLimit, StoppingProcess
from hubweir.service.log_output import begin_log

class Stops(StoppingProcess):
    stop_limit_s = 0.3

    def leave(self) -> None:
        print("left", flush=True)

begin_log("info", "text")
stops, hangs = Stops(), threading.Event()

async def life(limit: StopLimit) -> None:
    limit.begin(stops)
{steps}

with StopLimit() as limit, asyncio.Runner() as runner:
    runner.run(life(limit))
{behind}
"""


def program(steps: str, behind: str = "") -> list[str]:
    return [sys.executable, "-c", PROGRAM.format(steps=textwrap.indent(steps, "    "), behind=behind)]


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        (
            "with stops.stop_waits.on('messaging store store-1'): await asyncio.Event().wait()",
            "messaging store store-1",
        ),
        ("with stops.stop_waits.on('one'), stops.stop_waits.on('two'): hangs.wait()", "one, two"),
        (
            "asyncio.ensure_future(asyncio.to_thread(hangs.wait)); await asyncio.sleep(0.05)",
            "threads that have not ended",
        ),
    ],
    ids=["a store", "the loop itself", "a thread of the interpreter's own pool"],
)
def test_a_process_ends_without_what_hangs_and_says_so(steps: str, what: str) -> None:
    ended = subprocess.run(program(steps), capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (EXIT_LEFT, "left\n")
    assert f" ERROR stop-left: the stop is not over after 0 s; it waits for: {what}. The process ends" in ended.stderr


def test_a_log_that_nobody_takes_does_not_hold_it_up() -> None:
    """As one that lies on the disk that hangs: the loop and the log wait for it."""
    steps = "while True: os.write(2, b'x' * 65_536)"
    with subprocess.Popen(program(steps), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.wait(60) == EXIT_LEFT
        finally:
            process.kill()


def test_a_stop_that_is_over_in_time_has_its_own_exit_code_and_no_line() -> None:
    ended = subprocess.run(program("pass", "time.sleep(0.6); sys.exit(7)"), capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "", "")


class Stops(StoppingProcess):
    stop_limit_s = 0.2

    def leave(self) -> None:
        raise OSError("no such process")


def test_it_has_all_of_its_time_and_ends_also_where_leaving_fails(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    codes, ended = list[int](), threading.Event()

    def end_process(code: int) -> None:
        codes.append(code)
        ended.set()

    with StopLimit(end_process) as limit, caplog.at_level(logging.ERROR):
        began = time.monotonic()
        limit.begin(Stops())
        assert ended.wait(30) and time.monotonic() - began >= 0.2
    assert codes == [EXIT_LEFT]


def test_what_is_waited_for_is_named_until_it_is_over_well_or_not() -> None:
    waits = StopWaits()
    with waits.on("one"):
        with pytest.raises(OSError, match="away"), waits.on("two"):
            assert waits.names == ("one", "two")
            raise OSError("away")
        assert waits.names == ("one",)
    assert waits.names == ()
    one, two = waits.on("one"), waits.on("two")
    for each in (one, two):
        each.__enter__()
    one.__exit__(None, None, None)
    assert waits.names == ("two",)


def test_its_limit_is_the_time_of_clients_of_a_disk_and_of_its_processes() -> None:
    assert StoppingProcess().stop_limit_s == DISK_WAIT_S
    assert StoppingProcess(clients_s=5.0, processes_s=7.0).stop_limit_s == 5.0 + DISK_WAIT_S + 7.0


def test_a_start_whose_loop_hears_of_no_stop_ends_in_the_time_of_a_disk(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bounded_stop, "DISK_WAIT_S", 0.05)
    codes, heard = list[int](), threading.Event()
    with StopLimit(codes.append) as limit:
        limit.wait_for_loop(heard)
        assert codes == [EXIT_LEFT]
        assert "it waits for: a disk, in the start" in caplog.messages[0] and len(caplog.messages) == 1
        heard.set()
        limit.wait_for_loop(heard)
    limit.wait_for_loop(threading.Event())  # it has ended by itself meanwhile
    assert codes == [EXIT_LEFT]


def test_a_start_whose_loop_hears_of_no_stop_ends_what_it_had_started(monkeypatch: pytest.MonkeyPatch) -> None:
    class Starts(StoppingProcess):
        def leave(self) -> None:
            seen.append("left")

    monkeypatch.setattr(bounded_stop, "DISK_WAIT_S", 0.05)
    seen = list[object]()
    with StopLimit(seen.append) as limit:
        limit.starts(Starts())
        assert not limit.has_begun
        limit.wait_for_loop(threading.Event())
    assert seen == ["left", EXIT_LEFT]
