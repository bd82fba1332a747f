"""A start while a disk hangs: what does not lie on that disk is served. A stop during a start that hangs.

The service runs as its users run it, but that some files are never read and synced to the end (hanging_disk.py).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.service.bounded_stop import EXIT_LEFT
from hubweir.testing.broker_processes import broker_pids
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import LINUX_ALONE, until
from tests.crash.test_broker_kill import LATE_FOLLOWERS
from tests.crash.test_hung_stop import PARTITIONS, STORES, Hub, server_on_disk

# Which the start never reaches when it waits for the disk.
READY_S = 60.0

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


@pytest.mark.parametrize("brokers", [1, pytest.param(3, marks=LINUX_ALONE)])
def test_a_start_goes_on_without_the_logs_of_a_disk_that_hangs(tmp_path: Path, brokers: int) -> None:
    hangs = tmp_path / "hangs"
    options = ["--brokers", str(brokers), "--stores", str(STORES), "--stop-grace-ms", "1000"]
    server = server_on_disk(tmp_path, "/store-1/logs/", hangs, *options, READS_HANG="1")
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


@LINUX_ALONE
def test_a_stop_during_a_start_that_waits_for_a_process_is_taken_at_once(tmp_path: Path) -> None:
    """The process never follows the keeper, and would be waited for a minute."""
    data = tmp_path / "data"
    server = ServerProcess(
        data,
        arguments=["--brokers", "3"],
        environment={"LATE_S": "2", "FOLLOWS_NOBODY": "1"},
        program=[LATE_FOLLOWERS],
    )
    server.begin()
    try:
        until(lambda: len(broker_pids(data)) == 3, READY_S)
        assert server.stop(seconds=20) == 0, server.output
        assert " stopping: " in server.output and " stopped: " in server.output
        assert "hubweir is ready" not in server.output and broker_pids(data) == {}
        SystemFiles(data).lock_folder("store-1").release()
    finally:
        server.kill9()


def test_a_stop_during_a_start_that_waits_for_a_disk_ends_in_the_time_of_any_stop(tmp_path: Path) -> None:
    """A Config.json is made only when every log has been tried: so the start waits for the disk."""
    hangs, config = tmp_path / "hangs", tmp_path / "Config.json"
    config.write_text(
        json.dumps(
            {
                "UserConfig": {
                    "NamespaceConfig": [
                        {
                            "Type": "EventHub",
                            "Name": "ns",
                            "Entities": [{"Name": "hub", "PartitionCount": PARTITIONS, "ConsumerGroups": []}],
                        }
                    ],
                    "LoggingConfig": {"Type": "File"},
                }
            }
        )
    )
    options = ["--stores", str(STORES), "--stop-grace-ms", "1000", "--emulator-config", str(config)]
    server = server_on_disk(tmp_path, "/store-1/logs/", hangs, *options, READS_HANG="1")
    hub = Hub(server)
    with server:
        hub.send(1, [b"first"])
        assert hub.accepted[1], server.output
        server.kill9()
        hangs.touch()
        said = len(server.output)
        server.begin()
        until(lambda: "partition-not-open" in server.output[said:], READY_S)
        assert server.stop() == EXIT_LEFT, server.output
        told = server.output[said:]
        assert "stop-left: the stop is not over" in told and "it waits for: messaging store store-1" in told
        assert " stopping: " in told and " stopped: " not in told and "start-failed" not in told


@pytest.mark.parametrize(
    ("brokers", "place"), [(1, "/catalog/"), (1, "/store-0/"), pytest.param(3, "/catalog/", marks=LINUX_ALONE)]
)
def test_a_stop_during_a_start_that_hangs_on_its_loop_ends_the_process(
    tmp_path: Path, brokers: int, place: str
) -> None:
    """The loop hears nothing meanwhile: catalogs, and the store of a service that has one, are opened on its thread."""
    hangs, met = tmp_path / "hangs", tmp_path / "hangs.met"
    server = server_on_disk(tmp_path, place, hangs, "--brokers", str(brokers))
    hangs.touch()
    server.begin()
    try:
        until(met.exists, READY_S)
        assert server.stop() == EXIT_LEFT, server.output
        assert "stop-left: the stop is not over after 6 s; it waits for: a disk, in the start" in server.output
        assert "start-failed" not in server.output and broker_pids(tmp_path / "data") == {}
        hangs.unlink()
        server.start()
        assert server.stop() == 0, server.output
    finally:
        server.kill9()
