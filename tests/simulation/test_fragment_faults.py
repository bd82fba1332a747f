"""T10, T11 on the store of a queue: every call of the disk fails; every cut and every flipped bit of its files.

What clients were told holds whatever call fails (fragment_world.py). A damaged store opens as it was at some moment, no
earlier than it is vouched for, or says aloud that it is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from hubweir.errors import CorruptStore, StoreError
from hubweir.kernels import which
from hubweir.kernels.stored_batch import read_header
from hubweir.messaging_store.disk import segment
from hubweir.queue.fragment import ReceivedMessages
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import LOG_ID, QueueBench, opened
from hubweir.testing.answers import answered
from hubweir.testing.history_values import Violation
from hubweir.testing.memory_faults import Ended, Fault
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv
from tests.simulation.fragment_world import FragmentWorld
from tests.simulation.histories import walk_calls
from tests.simulation.planted_defects import cut_at_the_first_damage, ignore_failed_syncs, retry_failed_syncs

# Both detect duplicates and send for later: a queue without sessions, and one with them.
SCRIPTS = [3, 6]
LEAST_CALLS = 12
FOLDER = f"store-0/logs/{LOG_ID}"


class Script(FragmentWorld):
    """The same history every time, up to the fault."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.has_bad_clocks = False

    def survive(self, nth: int, fault: Fault, *, forever: bool) -> bool:
        """Two lives with a fault, then one to rest. False when fewer calls than nth fit the fault."""
        plan = self.files.plan(fault, nth, forever=forever)
        try:
            with suppress(OSError, Ended):
                self.play()
        except StoreError as error:
            if isinstance(error, CorruptStore):
                raise
        self.crash(power_cut=fault is not Fault.KILL)
        self.finish()
        return plan.fired > 0

    def play(self) -> None:
        for _ in range(12):
            self.step()
        self.bench.fragment.upkeep.snapshot_records = 1
        self.maintain()
        self.bench.run_for(500)
        self.bench.store.close(lambda: None)
        self.bench.run_for(500)
        self.crash(power_cut=False, heals=False)
        self.bench.open()
        self._opened()
        for _ in range(6):
            self.step()


def _walk(seed: int, fault: Fault, forever: bool, step: int) -> int:
    def survive(nth: int) -> bool:
        return Script(seed).survive(nth, fault, forever=forever)

    return walk_calls(survive, step, f"script {seed}, {fault}, forever={forever}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("forever", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.LYING_SYNC])
@pytest.mark.parametrize("seed", SCRIPTS)
def test_every_call_may_fail_under_a_queue(
    seed: int, fault: Fault, forever: bool, measure: Callable[[int], int]
) -> None:
    step = (1 if measure(10) == 10 else 17) * (5 if which() == "pure" else 1)
    assert _walk(seed, fault, forever, step) > LEAST_CALLS, "the script makes fewer calls than it did"


@pytest.mark.parametrize("defect", [ignore_failed_syncs, retry_failed_syncs])
def test_control_a_failed_sync_that_is_forgotten_is_found_in_a_queue(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    with pytest.raises((Violation, CorruptStore)):
        for seed in SCRIPTS:
            _walk(seed, Fault.SYNC_EIO, False, 1)


# Damaged stores

Contents = dict[tuple[int, str, bool], int]  # number, body, whether it is a dead letter → its state


@dataclass
class Sample:
    """A queue's store as a kill left it. moments: what was there, and how many batches the newest segment had then."""

    files: MemoryFiles
    moments: list[tuple[int, Contents]]
    newest: str
    batches: list[tuple[int, int, Any]]  # start, end, header


def contents(bench: QueueBench) -> Contents | None:
    """All that there is; None when a read says that something is damaged."""
    found: Contents = {}
    for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
        peek = bench.fragment.peek
        answer: Any = answered(
            bench.env,
            lambda on_done: peek(sub_queue, 1, max_count=100, max_bytes=1 << 20, on_done=on_done),  # noqa: B023
        )
        if not isinstance(answer, ReceivedMessages):
            return None
        for each in opened(answer):
            found[each.number, each.body.decode(errors="replace"), sub_queue is not SubQueue.MAIN] = each.state
    return found


@pytest.fixture(scope="module")
def sample() -> Sample:
    """An older segment, a snapshot, and a newest one with sends and every kind of settlement; about 6 KiB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "FIRST_STEP_BYTES", 512)
        patch.setattr(segment, "MARK_ROOM_BYTES", 256)
        bench = QueueBench(env=SimulatedEnv(3, files=MemoryFiles(3)))
        bench.send("older" * 10, "older" * 20, "older still")
        bench.complete(bench.receive(max_count=1))
        bench.fragment.upkeep.snapshot_records = 1
        bench.fragment.maintain(bench.times())
        bench.run_for(2_000)
        bench.restart(power_cut=False)
        moments = [(0, contents(bench) or {})]

        def newest() -> str:
            return max(path for path in bench.env.files.paths() if path.startswith(FOLDER) and path.endswith(".log"))

        def noted() -> None:
            bench.run_for(100)
            moments.append((len(_batches(bench.env.files, newest())), contents(bench) or {}))

        for number, outcome in enumerate([*SettleOutcome, SettleOutcome.COMPLETE]):
            bench.send(f"message {number} " * 8)
            noted()
            bench.settle(bench.receive(max_count=1), outcome)
            noted()
        bench.run_for(2_000)  # the mark vouches for what is before it
        bench.send("behind the mark")
        noted()
        bench.env.crash()
        files = bench.env.files
        return Sample(files, moments, newest(), _batches(files, newest()))


def _batches(files: MemoryFiles, path: str) -> list[tuple[int, int, Any]]:
    data, at, found = files.bytes_of(path), segment.SEGMENT_HEADER_SIZE, []
    while at + 8 < len(data) and any(data[at : at + 8]):
        header = read_header(data, at)
        found.append((at, header.end, header))
        at = header.end
    return found


def look(sample: Sample, path: str, data: bytes) -> None:
    """Open a copy of the store with other bytes in one file, and judge what there is."""
    files = sample.files.copy()
    files.set_bytes(path, data)
    try:
        bench = QueueBench(env=SimulatedEnv(5, files=files))
    except StoreError:
        return  # said aloud
    found, alarms = contents(bench), bench.store.alarms.current()
    if found is None:
        if not alarms:
            raise Violation("a read is refused without an alarm")
        return
    sent = {each[:2] for _, moment in sample.moments for each in moment}
    if not {each[:2] for each in found} <= sent:
        raise Violation("a message is served that nobody sent")
    if alarms:
        return
    least = 10**9
    if path == sample.newest:
        original = sample.files.bytes_of(path)
        sound = [header.durable_upto for start, end, header in sample.batches if data[start:end] == original[start:end]]
        vouched = max(sound, default=0)
        least = sum(header.number < vouched for _, _, header in sample.batches)
    wanted = max(place for place, (many, _) in enumerate(sample.moments) if many <= least)
    fits = [place for place, (_, moment) in enumerate(sample.moments) if moment == found]
    if not fits:
        raise Violation(f"the queue is as it never was: {found}")
    if max(fits) < wanted:
        raise Violation(f"moment {wanted} is vouched for, and moment {max(fits)} was dropped to silently")


def _paths(sample: Sample) -> list[str]:
    return [path for path in sample.files.paths() if path.startswith(FOLDER)]


def _step(measure: Callable[[int], int]) -> int:
    return (3 if measure(10) == 10 else 101) * (10 if which() == "pure" else 1)


def test_the_untouched_queue_is_as_it_was(sample: Sample) -> None:
    bench = QueueBench(env=SimulatedEnv(5, files=sample.files.copy()))
    assert contents(bench) == sample.moments[-1][1] and len(_paths(sample)) > 2


@pytest.mark.timeout(900)
def test_every_cut_of_a_queue_s_files(sample: Sample, measure: Callable[[int], int]) -> None:
    for path in _paths(sample):
        data = bytes(sample.files.bytes_of(path))
        for cut in range(0, len(data), _step(measure)):
            look(sample, path, data[:cut])


@pytest.mark.timeout(1800)
def test_every_flipped_bit_of_a_queue_s_files(sample: Sample, measure: Callable[[int], int]) -> None:
    for path in _paths(sample):
        data = bytearray(sample.files.bytes_of(path))
        for bit in range(0, len(data) * 8, _step(measure)):
            data[bit // 8] ^= 1 << bit % 8
            look(sample, path, bytes(data))
            data[bit // 8] ^= 1 << bit % 8


def test_control_cutting_a_queue_at_the_first_damage_is_found(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_at_the_first_damage(monkeypatch)
    data = bytearray(sample.files.bytes_of(sample.newest))
    with pytest.raises(Violation, match="dropped to silently"):
        for bit in range(0, len(data) * 8, 61):
            data[bit // 8] ^= 1 << bit % 8
            look(sample, sample.newest, bytes(data))
            data[bit // 8] ^= 1 << bit % 8
