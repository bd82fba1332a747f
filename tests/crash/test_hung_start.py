"""A start while a disk hangs: what does not lie on that disk is served.

The service runs as its users run it, but that some files are never read and synced to the end (hanging_disk.py).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hubweir.service.bounded_stop import EXIT_LEFT
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import LINUX_ALONE
from tests.crash.test_hung_stop import PARTITIONS, PROGRAM, SOURCE, STORES, Hub

# Which the start never reaches when it waits for the disk.
READY_S = 60.0

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


@pytest.mark.parametrize("brokers", [1, pytest.param(3, marks=LINUX_ALONE)])
def test_a_start_goes_on_without_the_logs_of_a_disk_that_hangs(tmp_path: Path, brokers: int) -> None:
    hangs = tmp_path / "hangs"
    server = ServerProcess(
        tmp_path / "data",
        arguments=["--brokers", str(brokers), "--stores", str(STORES), "--stop-grace-ms", "1000"],
        environment={
            "PYTHONPATH": f"{SOURCE}/src:{SOURCE}",
            "HANGS_AT": "/store-1/logs/",
            "HANGS_WHILE": str(hangs),
            "READS_HANG": "1",
        },
        program=[PROGRAM],
    )
    hub = Hub(server)
    with server:
        asyncio.run(hub.create())
        for partition in range(PARTITIONS):
            hub.send(partition, [b"first"])
        assert hub.accepted == [[b"first"]] * PARTITIONS, server.output
        server.kill9()
        hangs.touch()
        server.start(seconds=READY_S)
        for partition in range(PARTITIONS):
            if partition % STORES != 1:
                assert hub.read(partition) == [b"first"], server.output
        if brokers > 1:
            assert "broker process 1: logs in store-1 are still being opened" in server.output
        assert server.stop() == EXIT_LEFT, server.output
