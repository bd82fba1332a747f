"""A start that fails stops what it had started; where a disk hangs, the process ends in time and says why it failed."""

from __future__ import annotations

import logging
import socket
import threading
from pathlib import Path

import pytest

from hubweir.drivers.listening_socket import AddressTaken
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.service import bounded_stop, served_stores
from hubweir.service.bounded_stop import EXIT_LEFT, StopLimit
from hubweir.service.served_stores import NoStoreAnswers
from hubweir.service.service import Service
from hubweir.service.tests.started_service import settings
from hubweir.service.whole_start import whole_start
from hubweir.testing.event_loops import run_on

WAIT_S = 120.0


def test_a_start_that_fails_since_its_disks_hang_ends_the_process_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The disks answer once the process would be gone: so the stop that waits for them ends, too."""
    answers, codes = threading.Event(), list[int]()
    sync_folder = SystemFiles.sync_folder

    def hangs(files: SystemFiles, path: str) -> None:
        if path.startswith("store-"):
            assert answers.wait(WAIT_S)
        sync_folder(files, path)

    def end_process(code: int) -> None:
        codes.append(code)
        answers.set()

    async def start(limit: StopLimit) -> None:
        await Service.start(settings(tmp_path, stores=2, stop_grace_ms=1_000), limit=limit)

    async def once() -> None:
        await (await Service.start(settings(tmp_path, stores=2))).stop()

    run_on("asyncio", once())
    monkeypatch.setattr(SystemFiles, "sync_folder", hangs)
    monkeypatch.setattr(served_stores, "STORES_WAIT_S", 0.1)
    monkeypatch.setattr(bounded_stop, "DISK_WAIT_S", 0.3)
    with StopLimit(end_process) as limit, caplog.at_level(logging.ERROR), pytest.raises(NoStoreAnswers):
        run_on("asyncio", start(limit))
    assert codes == [EXIT_LEFT]
    failed, left = (line for line in caplog.messages if "the start failed" in line or "the stop is not over" in line)
    assert failed == f"the start failed: no messaging store of the data folder {tmp_path / 'data'} answers"
    assert left.startswith("the stop is not over after 1 s; it waits for: messaging store store-")


def test_a_start_that_fails_and_stops_in_time_is_refused_without_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def start(port: int) -> None:
        with StopLimit(lambda code: pytest.fail("it is over")) as limit:
            await Service.start(settings(tmp_path, port=(port,)), limit=limit)

    with socket.socket() as taken, caplog.at_level(logging.ERROR):
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AddressTaken):
            run_on("asyncio", start(taken.getsockname()[1]))
    assert "start failed" not in caplog.text


def test_a_start_whose_loop_hears_of_no_stop_leaves_nothing_alive_that_it_had_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[object]()

    async def start(limit: StopLimit) -> None:
        service = Service(settings(tmp_path))
        monkeypatch.setattr(service, "leave", lambda: seen.append("left"))
        async with whole_start(service, limit):
            limit.wait_for_loop(threading.Event())
        await service.stop()

    monkeypatch.setattr(bounded_stop, "DISK_WAIT_S", 0.05)
    with StopLimit(seen.append) as limit:
        run_on("asyncio", start(limit))
    assert seen == ["left", EXIT_LEFT]
