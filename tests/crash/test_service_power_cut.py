"""Power cuts of the whole service (T8): events, captured files and hubs that were answered are there afterwards.

The data folder lies in a small ext4 image, mounted through a loop device. Meanwhile publishers write to a durable hub
and to a captured one, and an administrator makes hubs. A cut stops the service, copies the image as the device holds
it, and kills it; the next life runs on the copy, and holds everything against what clients were told. One store goes
through several cuts, so damage adds up. The control arm is a service whose syncs lie.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.errors import HubweirError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from tests.crash.kill_load import Load
from tests.crash.loop_disk import MIB, copy_of_one_moment, make_image, mounted, skip_without_disks
from tests.crash.test_capture_kill import CaptureLoad
from tests.crash.test_power_cut import wait_until_stopped

PARTITIONS = 3
CUTS = 40  # a twentieth of it in the ordinary run
# Captured files come as long as a cut lasts, so a busy machine fills an image of 800 MiB in four cuts.
IMAGE_BYTES = 1_600 * MIB
FRESH_AFTER = 4  # cuts, before a new image is made
HUBS_A_LIFE = 6
WAIT_S = 30.0

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def disk_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for images, where this user may mount them; skips loudly elsewhere. Emptied at the end."""
    folder = tmp_path_factory.mktemp("service-power-cut")
    skip_without_disks(folder, "POWER CUTS OF THE SERVICE")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


class ServiceOnImage:
    """One service over many lives on an image, what its clients were told, and what was wrong."""

    def __init__(self, folder: Path, seed: int, program: tuple[str, ...] = ("-m", "hubweir")) -> None:
        self.image = folder / "disk.img"
        self._cut_image = folder / "cut.img"
        self._program = program
        self._random = random.Random(seed)
        self._ports: list[int] = []
        self._load: Load | None = None
        self._captured: CaptureLoad | None = None
        self._hubs: set[str] = set()
        self._lives = 0
        make_image(self.image, IMAGE_BYTES)

    def life(self) -> list[str]:
        """Start on what the cut before left, check it, work, and cut the power; what was wrong."""
        self._lives += 1
        with mounted(self.image) as mount:
            server = ServerProcess(
                mount / "data", ports=self._ports, program=self._program,
                environment={"HUBWEIR_CAPTURE_FOLDER": str(mount / "films")},
            )  # fmt: skip
            self._ports = server.ports
            try:
                server.start()
                wrong = self._begin(server, mount) if self._load is None else asyncio.run(self._check(server))
                if not wrong:
                    asyncio.run(self._work(server))
            finally:
                server.kill9()
        if not wrong:  # else nobody worked, and nothing was cut
            self._cut_image.replace(self.image)
        return wrong

    @property
    def accepted(self) -> int:
        return sum(len(history.accepted) for history in self._load.histories) if self._load else 0

    def _begin(self, server: ServerProcess, mount: Path) -> list[str]:
        self._load = Load(server.connection_string(), PARTITIONS, self._random.randrange(1 << 30))
        self._captured = CaptureLoad(server.connection_string(), mount / "films")
        asyncio.run(self._load.create_hub("durable"))
        asyncio.run(self._captured.create_hub())
        return []

    async def _check(self, server: ServerProcess) -> list[str]:
        assert self._load is not None and self._captured is not None
        connection = await Connection.open(ConnectionString.parse(server.connection_string()))
        try:
            there = {hub.name for hub in await Management(connection).list_hubs()}
        finally:
            await connection.close()
        wrong = [f"hub {name} was answered and is not there" for name in sorted(self._hubs - there)]
        if wrong:
            return wrong
        return await self._load.read_new() + await self._captured.check_all()

    async def _work(self, server: ServerProcess) -> None:
        assert self._load is not None and self._captured is not None

        def cut() -> None:
            assert server.pid is not None
            os.kill(server.pid, signal.SIGSTOP)
            wait_until_stopped(server.pid)
            copy_of_one_moment(self.image, self._cut_image)
            server.kill9()

        others = [
            asyncio.ensure_future(self._captured.write(WAIT_S, until=lambda: not server.is_running)),
            asyncio.ensure_future(self._make_hubs(server)),
        ]
        await self._load.write(self._random.uniform(0.3, 1.0), cut)
        await asyncio.wait_for(asyncio.gather(*others), WAIT_S)

    async def _make_hubs(self, server: ServerProcess) -> None:
        connection = await Connection.open(ConnectionString.parse(server.connection_string()))
        with suppress(HubweirError, OSError):
            for number in range(HUBS_A_LIFE):
                name = f"life{self._lives}-{number}"
                await Management(connection).create_hub(
                    name, partition_count=1, retention_ms=86_400_000, durability="durable"
                )
                self._hubs.add(name)
        with suppress(HubweirError, OSError, asyncio.TimeoutError):
            await asyncio.wait_for(connection.close(), 2)


def test_what_clients_were_told_survives_power_cuts_of_the_service(
    disk_folder: Path, measure: Callable[[int], int], first_seed: int
) -> None:
    seed, cuts, accepted = first_seed, measure(CUTS), 0
    for first in range(0, cuts, FRESH_AFTER):
        service = ServiceOnImage(disk_folder, seed + first)
        for _ in range(min(FRESH_AFTER, cuts - first) + 1):  # the last life checks what the last cut left
            wrong = service.life()
            assert not wrong, f"seed {seed}, cut {first} and later: {wrong[:5]}"
        accepted += service.accepted
    assert accepted >= cuts, "publishers hardly wrote: nothing was tested"


def test_what_a_life_finds_wrong_is_told_though_it_ends_without_a_cut(
    disk_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = ServiceOnImage(disk_folder, 0)
    monkeypatch.setattr(service, "_begin", lambda server, mount: ["planted"])
    assert service.life() == ["planted"]


def test_control_arm_a_service_whose_syncs_lie_is_caught(disk_folder: Path) -> None:
    caught = 0
    for seed in range(2):
        service = ServiceOnImage(disk_folder, seed, (str(Path(__file__).with_name("lying_server.py")),))
        try:
            caught += bool(service.life() or service.life())
        except (AssertionError, HubweirError, OSError):  # the hubs are lost, or the store does not even open
            caught += 1
    assert caught == 2
