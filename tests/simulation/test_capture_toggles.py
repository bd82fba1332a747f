"""Capture switched on and off at random, with kills, power cuts and failing calls: promise P20 over all of it.

No event is in two files and no finished file changes, whatever happens; and from the answer to the newest enable on,
over all ends of the process, every accepted event is in one file. Half of the worlds interleave offloaded calls.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from hubweir.broker.capture.tests.capture_world import CAPTURED, CaptureWorld, Violation
from hubweir.broker.commands.process import Done
from hubweir.errors import HubweirError
from hubweir.kernels import which
from hubweir.testing.memory_faults import Ended, Fault, Killed, Plan, PowerCut
from tests.simulation.histories import first_found, named
from tests.simulation.planted_defects import forget_the_intent, move_the_mark_before_the_file_is_there

FAULTS = [
    (Fault.POWER_CUT, 160), (Fault.POWER_CUT, 160), (Fault.KILL, 160), (Fault.KILL, 160), (Fault.SYNC_EIO, 40),
    (Fault.EIO, 160), (Fault.EMFILE, 100), (Fault.ENOSPC, 80),
]  # fmt: skip
# Between the steps of making a file.
POINTS = (
    "capture.before_intent", "capture.after_intent", "capture.before_commit", "capture.after_commit",
    "capture.after_mark",
)  # fmt: skip
CONTROL_SEEDS = 200


class Toggles:
    """One history. captured_from: the first event that must be in a file; None while capture is off, or may be."""

    def __init__(self, seed: int, world: CaptureWorld) -> None:
        self.random = Random(f"toggles {seed}")
        self.world = world
        self.captured_from: int | None = 0
        self.toggles = 0

    def play(self) -> None:
        world, random = self.world, self.random
        world.open()
        for _ in range(random.randrange(1, 4)):
            chance = random.random()
            if chance < 0.5:
                fault, within = random.choice(FAULTS)
                world.files.plan(fault, random.randrange(1, within))
            elif chance < 0.75:
                self.end_at(random.choice(POINTS), random.randrange(1, 4))
            try:
                for _ in range(random.randrange(3, 14)):
                    self.step()
                world.restart(power_cut=random.random() < 0.5)
            except Ended as end:
                world.restart(power_cut=isinstance(end, PowerCut))
            except (OSError, HubweirError):
                world.restart(power_cut=random.random() < 0.5)
            world.open()
        self.finish()

    def end_at(self, point: str, count: int) -> None:
        """Let this process be killed when it comes to a fault point for the count-th time."""
        left = count

        def fault(reached: str) -> None:
            nonlocal left
            left -= reached == point
            if not left:
                raise Killed

        self.world.env.fault = fault  # type: ignore[method-assign]

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.45:
            self.world.send(self.random.randrange(1, 12), self.random.choice([20, 60]))
        elif chance < 0.6:
            self.toggle()
        self.world.run_s(self.random.choice([0.05, 1, 20, 61]))

    def toggle(self) -> None:
        self.toggles += 1
        if self.world.description is not None:
            self.captured_from = None
            self.world.change(None)
        elif self.world.change(CAPTURED) == [Done()]:
            # What was accepted while the change was under way may have come before it.
            self.captured_from = max(self.world.stored, default=-1) + 1

    def finish(self) -> None:
        """The disk is sound from now on, and capture is on: hold the files against what was accepted."""
        world = self.world
        world.files.heal()
        world.send(3)
        world.run_s(1)
        if world.description is None:
            self.toggle()
            world.send(2)
        world.run_s(200)
        world.look_at_files()
        records = [record for file in world.records() for record in file]
        numbers = [record["SequenceNumber"] for record in records]
        if len(set(numbers)) != len(numbers):
            raise Violation(f"events are in two files: {sorted(n for n in set(numbers) if numbers.count(n) > 1)}")
        if self.captured_from is not None:
            missing = {number for number in world.stored if number >= self.captured_from} - set(numbers)
            if missing:
                raise Violation(f"captured from {self.captured_from} on, and in no file: {sorted(missing)}")
        for record in records:
            body = world.stored.get(record["SequenceNumber"])
            if body is None and record["Body"] not in world.unknown or body not in (None, record["Body"]):
                raise Violation(f"event {record['SequenceNumber']} is {record['Body']!r}, sent was {body!r}")


def play(seed: int) -> tuple[int, list[Plan]]:
    """Play a history; how often capture was switched, and the faults that were planned."""
    with CaptureWorld(seed, interleaved=0.3 * (seed % 2)) as world:
        toggles = Toggles(seed, world)
        with named(seed):
            toggles.play()
        return toggles.toggles, world.files.plans


@pytest.mark.timeout(1200)
def test_no_switching_loses_or_doubles_an_event_in_files(first_seed: int, measure: Callable[[int], int]) -> None:
    count = measure(2_000) // (10 if which() == "pure" else 1)
    toggles, met, planned = 0, 0, 0
    for seed in range(first_seed, first_seed + count):
        switched, plans = play(seed)
        toggles += switched
        planned += len(plans)
        met += sum(plan.fired > 0 for plan in plans)
    # There are 2.4 in a history, give or take 1.9.
    assert toggles >= count and met > planned / 2, f"{toggles} switches, {met} of {planned} faults were met"


# The control arm: what would be wrong is found.


def test_control_a_mark_that_moves_before_the_file_is_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    move_the_mark_before_the_file_is_there(monkeypatch)
    assert "in no file" in first_found(play, range(CONTROL_SEEDS), Violation)


def test_control_an_intent_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_the_intent(monkeypatch)
    assert "in two files" in first_found(play, range(CONTROL_SEEDS), Violation)
