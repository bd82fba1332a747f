"""What a power cut leaves: nothing that was accepted is lost, and every byte that is served is right (T8).

The store lies in a small ext4 image, mounted through a loop device. A cut stops the writer and copies the image as the
device holds it at that moment: what only the page cache knew is not in the copy. The copy is mounted, recovered and
compared with what the writer had been told. The next cut goes on from there, so damage would add up.

A kill of the process cannot test this: the page cache survives it. The control arm runs the same harness on a writer
whose sync lies; a harness that does not catch it proves nothing.
"""

import asyncio
import os
import runpy
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from hubweir.drivers.system_env import SystemEnv
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.log import Replayed, Run
from hubweir.messaging_store.operations import operations_of
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.service.completions import answer
from tests.crash.loop_disk import MIB, copy_of_one_moment, make_image, mounted, skip_without_disks

WRITER = Path(__file__).with_name("power_cut_writer.py")
PROGRAM = runpy.run_path(str(WRITER))
IMAGE_BYTES = 128 * MIB
CUTS, CONTROL_CUTS = 100, 20
# The image is full after about this much; a new one is made then.
FRESH_AFTER = 10

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut: how many records the writer was told are durable, how many were found, and what was wrong with them."""

    accepted: int
    found: int
    wrong: list[str]

    @property
    def lost(self) -> int:
        return max(0, self.accepted - self.found)


@pytest.fixture(scope="module")
def disk_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for images, where this user may mount them; skips loudly elsewhere."""
    folder = tmp_path_factory.mktemp("power-cut")
    skip_without_disks(folder, "POWER CUTS")
    return folder


def test_what_was_accepted_survives_a_power_cut(disk_folder: Path, measure: Callable[[int], int]) -> None:
    cuts = list(power_cuts(disk_folder, measure(CUTS), lying_sync=False))
    assert sum(cut.accepted for cut in cuts) > len(cuts) * 100, "the writer hardly wrote: nothing was tested"
    assert [cut for cut in cuts if cut.lost or cut.wrong] == []


def test_control_arm_sync_that_lies_is_caught_in_nine_cuts_of_ten(
    disk_folder: Path, measure: Callable[[int], int]
) -> None:
    cuts = list(power_cuts(disk_folder, max(5, measure(CONTROL_CUTS)), lying_sync=True))
    losing = [cut for cut in cuts if cut.lost]
    assert len(losing) >= 0.9 * len(cuts), f"only {len(losing)} of {len(cuts)} cuts lost anything"


def power_cuts(folder: Path, count: int, *, lying_sync: bool) -> Iterator[Cut]:
    """Cut the power `count` times; with an honest sync each cut goes on with what the cut before left."""
    image = folder / "disk.img"
    for number in range(count):
        if lying_sync or number % FRESH_AFTER == 0:
            make_image(image, IMAGE_BYTES)
        accepted = write_until_cut(image, folder / "cut.img", run_s=0.15 + number % 7 * 0.07, lying_sync=lying_sync)
        (folder / "cut.img").replace(image)
        with mounted(image) as mount:
            found, wrong = asyncio.run(recover(mount))
        yield Cut(accepted, found, wrong)


def write_until_cut(image: Path, copy: Path, *, run_s: float, lying_sync: bool) -> int:
    """Run the writer on the mounted image for a while, cut, and return the next index it had been told is durable."""
    with mounted(image) as mount:
        arguments = [sys.executable, str(WRITER), str(mount)] + (["--lying-sync"] if lying_sync else [])
        writer = subprocess.Popen(arguments, stdout=subprocess.PIPE, bufsize=0)
        assert writer.stdout is not None
        try:
            told = read_for(writer.stdout.fileno(), run_s)
            os.kill(writer.pid, signal.SIGSTOP)
            wait_until_stopped(writer.pid)
            copy_of_one_moment(image, copy)
            os.set_blocking(writer.stdout.fileno(), False)
            told += writer.stdout.read() or b""
        finally:
            writer.kill()
            writer.wait(60)
            writer.stdout.close()
    # The last line may be cut: it was not told.
    lines = told.rpartition(b"\n")[0].split()
    return int(lines[-1]) if lines else 0


def read_for(descriptor: int, seconds: float) -> bytes:
    """What comes within `seconds` of the first byte, which may take a minute."""
    told, limit = b"", time.monotonic() + 60
    while (left := limit - time.monotonic()) > 0 and select.select([descriptor], [], [], left)[0]:
        piece = os.read(descriptor, 65_536)
        if not piece:
            raise AssertionError("the writer ended by itself")
        if not told:
            limit = time.monotonic() + seconds
        told += piece
    return told


def wait_until_stopped(pid: int) -> None:
    """Until no thread of the process runs: a sync that is under way ends first, or the copy would be torn by it."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        states = [
            (task / "stat").read_text().rpartition(")")[2].split()[0] for task in Path(f"/proc/{pid}/task").iterdir()
        ]
        if set(states) <= {"T", "t"}:
            return
    raise AssertionError(f"the writer did not stop: {states}")


async def recover(folder: Path) -> tuple[int, list[str]]:
    """Open the store as after a crash; the next index, and everything that is not as the writer wrote it."""
    env = SystemEnv(SystemFiles(folder))
    store = MessagingStore.open(env, "store-0")
    wrong: list[str] = []
    next_index = 0
    try:
        if PROGRAM["LOG_ID"] in store.log_ids():
            log = await answer(partial(store.open_log, PROGRAM["LOG_ID"]))
            assert isinstance(log, SegmentLog), log
            runs: list[Run] = []
            outcome = await answer(partial(log.replay, 0, runs.append))
            if not isinstance(outcome, Replayed) or outcome.damage:
                wrong.append(str(outcome))
            for run in runs:
                for index, operation in operations_of(run.data):
                    if index != next_index or bytes(operation) != PROGRAM["record"](index):
                        wrong.append(f"at {next_index} stands {bytes(operation[:20])!r} as {index}")
                    next_index = index + 1
    finally:
        wrong += map(str, store.alarms.current())
        closed = asyncio.Event()
        store.close(closed.set)
        await closed.wait()
        env.close()
    return next_index, wrong
