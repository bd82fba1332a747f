"""A service that may not write, or not open enough files (p23): it says so, loses nothing and heals.

Both are real: a file system that is mounted to be read only, and a limit of descriptors that a running service gets.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.client.sender import Sender
from hubweir.errors import HubweirError
from hubweir.event_hub.event_position import EARLIEST
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerFailed, ServerProcess
from tests.crash.loop_disk import MIB, mounted_tmpfs, skip_without_disks

HUB = "hub"
PARTITIONS = 32
FEW_FILES = 45  # what a service at rest has open, and some
WAIT_S = 60.0

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


async def connect(server: ServerProcess) -> Connection:
    return await Connection.open(ConnectionString.parse(server.connection_string()))


async def create(server: ServerProcess, partitions: int) -> None:
    connection = await connect(server)
    await Management(connection).create_hub(
        HUB, partition_count=partitions, retention_ms=86_400_000, durability="durable"
    )
    await connection.close()


async def send_one(connection: Connection, partition: int, body: bytes) -> None:
    """Raises HubweirError when the event is refused or the link is."""
    sender = await asyncio.wait_for(Sender.open(connection, f"{HUB}/Partitions/{partition}"), WAIT_S)
    try:
        batch = sender.batch()
        assert batch.try_add(body)
        await asyncio.wait_for(sender.submit(batch), WAIT_S)
    finally:
        await asyncio.wait_for(sender.close(), WAIT_S)


async def send_everywhere(server: ServerProcess, body: bytes) -> tuple[set[int], dict[int, str]]:
    """One event to each partition: which accepted it, and what the others said."""
    accepted, refused = set(), {}
    connection = await connect(server)
    for partition in range(PARTITIONS):
        try:
            await send_one(connection, partition, body)
            accepted.add(partition)
        except HubweirError as error:
            refused[partition] = str(error)
    await connection.close()
    return accepted, refused


async def read(connection: Connection, partition: int) -> list[bytes]:
    state = await Management(connection).partition(HUB, str(partition))
    found: list[bytes] = []
    if state.last_sequence_number < 0:
        return found
    receiver = await Receiver.open(
        connection, address_of(HUB, "$Default", str(partition)), ReceiverOptions(position=EARLIEST)
    )
    while len(found) <= state.last_sequence_number:
        run = await receiver.receive(max_wait_s=WAIT_S)
        assert run is not None, f"partition {partition} ends at {state.last_sequence_number}, {len(found)} events came"
        found += [event.body or b"" for event in run]
    await receiver.close()
    return found


async def read_everything(server: ServerProcess, partitions: int) -> list[list[bytes]]:
    connection = await connect(server)
    try:
        return [await read(connection, partition) for partition in range(partitions)]
    finally:
        await connection.close()


def test_a_service_that_is_short_of_descriptors_refuses_and_heals_when_it_has_more(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    try:
        server.start()
        asyncio.run(create(server, PARTITIONS))
        server.stop()
        server.start()
        assert server.pid is not None
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (FEW_FILES, before[1]))
        accepted, refused = asyncio.run(send_everywhere(server, b"short"))
        assert refused, "nothing was tested: every partition had its files"
        assert all("file" in text for text in refused.values()), refused
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        until = time.monotonic() + WAIT_S
        while (healed := asyncio.run(send_everywhere(server, b"enough")))[1]:
            assert time.monotonic() < until, healed[1]
        server.restart()
        found = asyncio.run(read_everything(server, PARTITIONS))
    finally:
        server.kill9()
    assert {partition for partition, bodies in enumerate(found) if b"short" in bodies} == accepted
    assert all(b"enough" in bodies for bodies in found)


def test_a_read_only_folder_is_told_at_the_start_can_be_verified_and_is_served_when_it_is_writable(
    tmp_path: Path,
) -> None:
    skip_without_disks(tmp_path, "READ-ONLY FOLDERS")
    with mounted_tmpfs(tmp_path / "disk", 256 * MIB) as disk:
        server = ServerProcess(disk / "data")
        try:
            server.start()
            asyncio.run(create(server, 1))
            asyncio.run(_send(server, b"kept"))
            server.stop()
            remount(disk, "ro")
            with pytest.raises(ServerFailed, match="(?i)read-only"):
                server.start()
            assert "Traceback" not in server.output
            verify = [sys.executable, "-m", "hubweir", "store", "verify", "--data", str(disk / "data")]
            subprocess.run(verify, check=True, capture_output=True, timeout=60)
            remount(disk, "rw")
            server.start()
            assert asyncio.run(read_everything(server, 1)) == [[b"kept"]]
        finally:
            server.kill9()


async def _send(server: ServerProcess, body: bytes) -> None:
    connection = await connect(server)
    await send_one(connection, 0, body)
    await connection.close()


def remount(mount: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(mount)], check=True, capture_output=True, timeout=60)
