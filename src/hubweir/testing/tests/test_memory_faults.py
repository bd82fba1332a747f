from __future__ import annotations

from collections import Counter

import pytest

from hubweir.testing.memory_faults import Fault, Killed, Plan, fail
from hubweir.testing.memory_files import MemoryFiles
from tests.planned_faults import missed_by_all


def calls_met(plan: Plan, names: list[str]) -> list[int]:
    """Which of the calls fail, counted from 1."""
    return [number for number, name in enumerate(names, 1) if not plan.is_over and plan.meets(name)]


def test_a_plan_counts_only_calls_that_its_fault_fits() -> None:
    names = ["write", "sync", "read", "write", "sync_folder", "write", "sync"]
    assert calls_met(Plan(Fault.SYNC_EIO, 2, False), names) == [5]
    assert calls_met(Plan(Fault.SHORT, 3, False), names) == [6]
    assert calls_met(Plan(Fault.EIO, 3, False), names) == [3]
    assert calls_met(Plan(Fault.SYNC_EIO, 2, True), names) == [5, 7]
    assert calls_met(Plan(Fault.SYNC_EIO, 4, True), names) == []
    assert calls_met(Plan(Fault.KILL, 2, False, "sync"), names) == [7]


def test_a_plan_says_how_often_it_was_met_and_a_disk_keeps_those_that_never_were() -> None:
    files = MemoryFiles()
    met, missed = files.plan(Fault.EIO, forever=True), files.plan(Fault.POWER_CUT, 9)
    for _ in range(3):
        with pytest.raises(OSError):
            files.list("")
    files.heal()
    files.list("")
    assert (met.fired, missed.fired) == (3, 0) and files.plans == [met, missed]


def test_a_fault_may_be_followed_by_another() -> None:
    files = MemoryFiles()
    files.plan(Fault.EIO, forever=True, then=(Fault.KILL, 2))
    for _ in range(2):
        with pytest.raises(OSError):
            files.list("")
    assert [(plan.fault, plan.nth) for plan in files.plans] == [(Fault.EIO, -1), (Fault.KILL, 1)]


def test_a_plan_of_the_past_cannot_be_made() -> None:
    files = MemoryFiles()
    with pytest.raises(AssertionError):
        files.plan(Fault.EIO, 0)
    with pytest.raises(AssertionError):
        files.plan(3, Fault.EIO)  # type: ignore[arg-type]


def test_a_kill_is_no_error_that_code_could_catch() -> None:
    with pytest.raises(Killed):
        fail(Fault.KILL, "sync")
    assert not issubclass(Killed, Exception)


def test_a_test_function_that_met_none_of_its_plans_is_told() -> None:
    met, missed = Plan(Fault.EIO, 1, False, fired=1), Plan(Fault.EIO, 5, False)
    made = {"both": [met, missed], "none": [missed], "cases": [missed, missed], "one case alone": [missed]}
    assert missed_by_all(made, Counter({"cases": 2, "one case alone": 1})) == ["none", "cases"]
