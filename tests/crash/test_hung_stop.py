"""A stop while a disk hangs: the process ends in time and says so, and nothing that was accepted is lost.

The service runs as its users run it, but that syncs of some files do not end (hanging_disk.py), of a process alone and
of one of three. What is on the disk then is what the next start finds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.retry import RetryPolicy
from hubweir.errors import ServiceError
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.namespace.connection_string import ConnectionString
from hubweir.service.bounded_stop import EXIT_LEFT
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import LINUX_ALONE

PROGRAM = str(Path(__file__).with_name("hanging_disk.py"))
PARTITIONS, STORES = 6, 3
ROUNDS = 40
WAIT_S = 60.0

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


def server_on_disk(folder: Path, place: str, hangs: Path, *arguments: str, **more: str) -> ServerProcess:
    """One whose files that have place in their path hang while the file hangs is there. more: of hanging_disk.py."""
    return ServerProcess(
        folder / "data",
        arguments=arguments,
        environment={"HANGS_AT": place, "HANGS_WHILE": str(hangs), **more},
        program=[PROGRAM],
    )


class Hub:
    """Events to all partitions of a hub, which lie in three stores, and which of them were accepted."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self.accepted: list[list[bytes]] = [[] for _ in range(PARTITIONS)]

    async def create(self) -> None:
        connection = await Connection.open(ConnectionString.parse(self._server.connection_string()))
        await Management(connection).create_hub(
            "hub", partition_count=PARTITIONS, retention_ms=86_400_000, durability="durable"
        )
        await connection.close()

    def send(self, partition: int, bodies: Sequence[bytes]) -> None:
        """One after the other, until one is not accepted."""
        with self._client() as client:
            sender = client.sender(partition_id=str(partition))
            for body in bodies:
                try:
                    sender.send([body])
                except ServiceError:
                    return
                self.accepted[partition].append(body)

    def read(self, partition: int) -> list[bytes]:
        """All that was accepted, and perhaps one behind it."""
        bodies: list[bytes] = []
        with self._client() as client:
            receiver = client.receiver(str(partition))
            while len(bodies) < len(self.accepted[partition]):
                bodies += [bytes(each.body) for each in receiver.receive(max_wait_s=WAIT_S)]
        return bodies

    def _client(self) -> BlockingEventHubClient:
        return BlockingEventHubClient.from_connection_string(
            self._server.connection_string(), "hub", retry=RetryPolicy(attempts=1), timeout_s=WAIT_S
        )


@pytest.mark.parametrize(
    ("brokers", "place", "who", "waits_for", "more"),
    [
        (1, "/store-1/", "", "messaging store store-1", {}),
        (1, "/catalog/", "", "the catalogs", {}),
        pytest.param(3, "/store-1/", "process 1 ", "messaging store store-1", {}, marks=LINUX_ALONE),
        pytest.param(3, "/store-1/", "", "broker process 1", {"PATIENT": "1"}, marks=LINUX_ALONE),
        pytest.param(3, "/catalog/", "", "the catalogs", {}, marks=LINUX_ALONE),
    ],
)
def test_a_stop_ends_without_a_disk_that_hangs_and_nothing_accepted_is_lost(
    tmp_path: Path, brokers: int, place: str, who: str, waits_for: str, more: dict[str, str]
) -> None:
    hangs = tmp_path / "hangs"
    options = ["--brokers", str(brokers), "--stores", str(STORES), "--stop-grace-ms", "1000"]
    server = server_on_disk(tmp_path, place, hangs, *options, **more)
    hub = Hub(server)

    def is_held_up(partition: int) -> bool:
        return place == "/store-1/" and partition % STORES == 1

    with server, ThreadPoolExecutor(PARTITIONS) as senders:
        asyncio.run(hub.create())
        for partition in range(PARTITIONS):
            hub.send(partition, [b"first"])
        hangs.touch()
        sending = [senders.submit(hub.send, partition, _bodies(partition)) for partition in range(PARTITIONS)]
        for partition in range(PARTITIONS):
            if not is_held_up(partition):
                sending[partition].result(WAIT_S)
        began = time.monotonic()
        assert server.stop() == EXIT_LEFT, server.output
        assert time.monotonic() - began < 40, "neither a limit that is killed at, nor for ever"
        for each in sending:
            each.result(WAIT_S)
        for index in range(STORES):
            SystemFiles(tmp_path / "data").lock_folder(f"store-{index}").release()  # no process of it is left
        assert f"ERROR {who}stop-left: the stop is not over" in server.output
        assert f"it waits for: {waits_for}" in server.output
        assert " stopped: " not in server.output
        hangs.unlink()
        server.start()
        for partition, accepted in enumerate(hub.accepted):
            assert len(accepted) == (1 if is_held_up(partition) else 1 + ROUNDS)
            found = hub.read(partition)
            assert found[: len(accepted)] == accepted and len(found) <= len(accepted) + 1
        assert server.stop() == 0, server.output


def _bodies(partition: int) -> list[bytes]:
    return [b"%d of %d" % (number, partition) for number in range(ROUNDS)]
