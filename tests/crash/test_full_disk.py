"""A disk that is really full (T12): sends are refused with a text that says so, what was accepted stays, and it heals.

The store lies in a small ext4 image or a tmpfs. A cycle fills the disk with a foreign file, sends until sends are
refused, starts the store again on the full disk and reads everything, gives a little space back, then all, and sends on
in the same process. What was accepted in earlier cycles must be there in all later ones.
"""

import asyncio
import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from hubweir.alarms import DISK_FULL, RESERVE_USED
from hubweir.drivers.system_env import SystemEnv
from hubweir.errors import DiskFull, LogOffline
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.log import Appended, Durability, Refused, Replayed, Run
from hubweir.messaging_store.operations import operations_of, pack_operations
from hubweir.messaging_store.segment_engine.full_disk import LAST_LOOK_MS
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.service.completions import answer
from tests.crash.loop_disk import MIB, make_image, mounted, mounted_tmpfs, skip_without_disks

LOG_IDS = ["0" * 31 + "1", "0" * 31 + "2"]
CYCLES = 50  # a twentieth of it in the ordinary run
RECORD_BYTES = 20_000
# What all cycles store, 2 MiB each, and room enough at the end for a store to set its reserve aside again.
DISK_BYTES = 160 * MIB

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]


@pytest.fixture(params=["ext4", "tmpfs"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder on a small disk."""
    skip_without_disks(tmp_path, "FULL DISKS")
    with ExitStack() as stack:
        if request.param == "ext4":
            make_image(tmp_path / "disk.img", DISK_BYTES)
            yield stack.enter_context(mounted(tmp_path / "disk.img"))
        else:
            yield stack.enter_context(mounted_tmpfs(tmp_path / "disk", DISK_BYTES))


def test_a_full_disk_refuses_loses_nothing_and_heals(small_disk: Path, measure: Callable[[int], int]) -> None:
    accepted: dict[str, list[bytes]] = {log_id: [] for log_id in LOG_IDS}
    for cycle in range(measure(CYCLES)):
        asyncio.run(one_cycle(small_disk, accepted, cycle))
    assert all(len(records) > measure(CYCLES) * 5 for records in accepted.values())


async def one_cycle(folder: Path, accepted: dict[str, list[bytes]], cycle: int) -> None:
    env = SystemEnv(SystemFiles(folder))
    store = MessagingStore.open(env, "store-0")
    logs = [await opened(store, log_id) for log_id in LOG_IDS]
    for log in logs:
        assert isinstance(await send(env, log, accepted, b"free %d " % cycle), Appended)
    fill(folder / "foreign")
    for log in logs:
        await send_until_refused(env, log, accepted)
    await close(store, env)

    fill(folder / "foreign again")  # what the logs gave back when they were closed
    env = SystemEnv(SystemFiles(folder))
    store = MessagingStore.open(env, "store-0")
    logs = [await opened(store, log_id) for log_id in LOG_IDS]
    fill(folder / "foreign as ever")
    for log in logs:
        await check(log, accepted)
        await send_until_refused(env, log, accepted)
    os.truncate(folder / "foreign", (folder / "foreign").stat().st_size - 2 * MIB)
    for log in logs:  # there is little, and something for each
        await heals(env, log, accepted)
    for foreign in folder.glob("foreign*"):
        foreign.unlink()
    for log in logs:
        await heals(env, log, accepted)
        await check(log, accepted)
    limit = env.monotonic_ms() + 2 * LAST_LOOK_MS
    while any(alarm.kind is DISK_FULL for alarm in store.alarms.current()) and env.monotonic_ms() < limit:
        await asyncio.sleep(0.05)
    assert {alarm.kind for alarm in store.alarms.current()} <= {RESERVE_USED}
    await close(store, env)


async def opened(store: MessagingStore, log_id: str) -> SegmentLog:
    log = await answer(partial(store.open_log, log_id, durability=Durability.DURABLE, makes=True))
    assert isinstance(log, SegmentLog), log
    return log


def fill(path: Path) -> None:
    """Take every byte that is left, in ever smaller pieces."""
    with path.open("wb", buffering=0) as file:
        size = 4 * MIB
        while size:
            try:
                file.write(b"x" * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC
                size //= 4


async def send(env: SystemEnv, log: SegmentLog, accepted: dict[str, list[bytes]], mark: bytes) -> Appended | Refused:
    """Append one record; remember it when it is accepted."""
    record = mark + b"%d" % len(accepted[log.log_id]) + bytes(RECORD_BYTES)
    answer: asyncio.Future[Appended | Refused] = asyncio.get_running_loop().create_future()
    try:
        log.append(pack_operations([record]), now_ms=env.now_ms(), on_done=answer.set_result)
    except LogOffline as error:
        return Refused(error)
    outcome = await asyncio.wait_for(answer, 30)
    if isinstance(outcome, Appended):
        accepted[log.log_id].append(record)
    return outcome


async def send_until_refused(env: SystemEnv, log: SegmentLog, accepted: dict[str, list[bytes]]) -> None:
    """What was set aside before the disk was full is used up first."""
    for _ in range(1000):
        outcome = await send(env, log, accepted, b"full ")
        if isinstance(outcome, Refused):
            assert isinstance(outcome.error, DiskFull) and outcome.known, outcome
            assert "space" in str(outcome.error)
            return
    pytest.fail("1,000 records went onto a full disk")


async def heals(env: SystemEnv, log: SegmentLog, accepted: dict[str, list[bytes]]) -> None:
    """Without a restart, within seconds; a machine that is busy has a minute."""
    limit = time.monotonic() + 60
    while isinstance(outcome := await send(env, log, accepted, b"healed "), Refused):
        assert time.monotonic() < limit, outcome
        await asyncio.sleep(0.05)


async def check(log: SegmentLog, accepted: dict[str, list[bytes]]) -> None:
    """Everything accepted is there, in order, and nothing else."""
    runs: list[Run] = []
    assert await answer(partial(log.replay, 0, runs.append)) == Replayed()
    found = [bytes(operation) for run in runs for _, operation in operations_of(run.data)]
    assert found == accepted[log.log_id]


async def close(store: MessagingStore, env: SystemEnv) -> None:
    closed = asyncio.Event()
    store.close(closed.set)
    await asyncio.wait_for(closed.wait(), 30)
    env.close()
