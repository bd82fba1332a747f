"""Capture over crashes: with every file call failing in every way, and an end at every fault point.

One script with several windows and restarts; whatever fails, afterwards every event that was stored is in one finished
file, once, in order, and no finished file ever has other bytes than it had.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from hubweir.broker.capture.tests.capture_world import CAPTURED, CaptureWorld, Violation
from hubweir.capture import capture
from hubweir.capture.capture_mark import CaptureMark
from hubweir.errors import HubweirError
from hubweir.kernels import which
from hubweir.messaging_store.log import Durability
from hubweir.testing.memory_faults import Ended, Fault
from hubweir.testing.memory_files import MemoryFiles
from tests.simulation.planted_defects import forget_the_intent, move_the_mark_before_the_file_is_there

POINTS = (
    "capture.before_intent", "capture.after_intent", "capture.before_commit", "capture.after_commit",
    "capture.after_mark",
)  # fmt: skip


class EndHere(BaseException):
    """The process ends at a fault point. Not an Exception: no code under test may catch it."""


def play(world: CaptureWorld) -> None:
    """Windows that end by time and by size, an empty one, and a restart between."""
    world.open()
    for number in range(4):
        world.send(5 + number)
        world.run_s(20)
    world.send(60, size=30)
    world.run_s(70)
    world.run_s(60)
    world.restart(faults=True)
    world.open()
    for _ in range(3):
        world.send(4)
        world.run_s(25)


def recover_and_check(world: CaptureWorld, *, power_cut: bool) -> None:
    """The disk is sound from now on: all that was stored comes into files."""
    world.restart(power_cut=power_cut)
    world.open()
    world.send(3)
    world.run_s(130)
    world.check()
    world.restart(power_cut=True)
    world.check()


def survive(nth: int, fault: Fault, *, forever: bool, durability: Durability = Durability.DURABLE) -> bool:
    """Play with the n-th file call that the fault fits failing. False when there are fewer."""
    with CaptureWorld(nth, durability=durability) as world:
        plan = world.files.plan(fault, nth, forever=forever)
        with suppress(OSError, HubweirError, Ended):
            play(world)
        recover_and_check(world, power_cut=fault not in (Fault.LYING_SYNC, Fault.KILL))
        return plan.fired > 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("forever", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("fault", [Fault.POWER_CUT, Fault.KILL, Fault.EIO, Fault.ENOSPC, Fault.SYNC_EIO, Fault.SHORT])
def test_every_file_call_may_fail(fault: Fault, forever: bool, measure: Callable[[int], int]) -> None:
    step = 1 if measure(10) == 10 and which() == "compiled" else 7
    nth = 1
    while survive(nth, fault, forever=forever):
        nth += step
    least = {Fault.SHORT: 40, Fault.SYNC_EIO: 60}
    assert nth > least.get(fault, 150), "the script makes fewer calls than it did"


def test_relaxed_partition_over_power_cuts_has_nothing_twice() -> None:
    """What a power cut takes from a relaxed log may be in a file; what is stored stays there once."""
    for nth in range(1, 280, 4):
        survive(nth, Fault.POWER_CUT, forever=False, durability=Durability.RELAXED)


def end_at(point: str, count: int, *, power_cut: bool, world: CaptureWorld) -> bool:
    """Play; the process ends when it comes to point for the count-th time. False when it does not."""
    left = count

    def fault(reached: str) -> None:
        nonlocal left
        if reached == point:
            left -= 1
            if not left:
                raise EndHere

    world.open()
    world.env.fault = fault  # type: ignore[method-assign]
    try:
        for number in range(5):
            world.send(5 + 10 * number)
            world.run_s(45)
    except EndHere:
        recover_and_check(world, power_cut=power_cut)
        return True
    return False


@pytest.mark.parametrize("power_cut", [False, True], ids=["process", "machine"])
@pytest.mark.parametrize("point", POINTS)
def test_an_end_at_every_fault_point_loses_and_doubles_nothing(point: str, power_cut: bool) -> None:
    ended = 0
    for seed in range(6):
        for count in (1, 2, 3):
            with CaptureWorld(seed) as world:
                ended += end_at(point, count, power_cut=power_cut, world=world)
    assert ended > 10, f"{point} was hardly reached"


# The control arm: what would be wrong is found.


def find_a_violation(monkeypatch: pytest.MonkeyPatch) -> str:
    for point in POINTS:
        for seed in range(4):
            for count in (1, 2):
                try:
                    with CaptureWorld(seed) as world:
                        end_at(point, count, power_cut=False, world=world)
                except Violation as violation:
                    return str(violation)
    return ""


def test_control_a_mark_that_moves_before_the_file_is_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    move_the_mark_before_the_file_is_there(monkeypatch)
    assert "in no file" in find_a_violation(monkeypatch)


def test_control_a_name_that_does_not_advance_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two windows that end by size in one second have one name: the second file takes the place of the first."""
    monkeypatch.setattr(capture, "name_second", lambda now_ms, last_second: now_ms // 1000)
    monkeypatch.setattr("hubweir.capture.destination.LocalFolder.exists", lambda self, name: False)
    with CaptureWorld() as world:
        world.open()
        world.send(100, size=30)
        world.run_s(130)
        with pytest.raises(Violation):
            world.check()


def test_control_an_intent_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_the_intent(monkeypatch)
    assert "twice" in find_a_violation(monkeypatch)


def test_control_another_sync_marker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is made again must have equal bytes; one with a marker drawn anew has not."""
    drawn = iter(range(10**6))
    monkeypatch.setattr(CaptureMark, "sync_marker", lambda self, first: next(drawn).to_bytes(16, "big"))
    assert "other bytes" in find_a_violation(monkeypatch)


def test_many_windows_in_one_second_have_names_of_their_own() -> None:
    with CaptureWorld(description=replace(CAPTURED, size_limit_bytes=500)) as world:
        world.open()
        for _ in range(4):
            world.send(50)
            world.run_s(1)
        world.run_s(130)
        world.check()
        assert len(world.archives()) > 10


def test_the_script_makes_files_of_several_windows_and_blocks() -> None:
    with CaptureWorld() as world:
        play(world)
        world.run_s(70)
        world.check()
        files = world.records()
        assert len(files) > 6
        assert [] in files, "no window was empty"
        assert max(data.count(data[-16:]) for data in world.archives().values() if data) > 3, "files have one block"


def test_capture_of_one_seed_is_the_same_every_time() -> None:
    traces = set()
    for _ in range(2):
        with CaptureWorld(3, files=MemoryFiles) as world:
            play(world)
            traces.add(world.env.trace.hexdigest())
    assert len(traces) == 1
