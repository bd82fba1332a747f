"""Many small worlds, each by its seed; and defects that are planted in a fragment, which the worlds must find."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.kernels.queue_contract import LOCKED, SETTLING
from hubweir.queue import fragment_snapshot
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.lock_table import LockTable
from hubweir.queue.message_table import MessageTable
from hubweir.queue.operation import MOVED, SETTLED, Operation
from hubweir.queue.tests.worlds import World

# Seeds that found a defect once.
KEPT = [110, 745, 2249, 3056, 3536]


@pytest.mark.parametrize("part", range(10))
def test_what_clients_are_told_holds_in_every_world(measure: Callable[[int], int], part: int) -> None:
    for seed in [*KEPT[part : part + 1], *range(part, measure(3_000), 10)]:
        try:
            World(seed).run()
        except Exception as fault:
            raise AssertionError(f"seed {seed}: {fault}") from fault


def finds(most: int = 400, *, fails: bool = False) -> str:
    """What the first world that finds a defect says; fails when none of them does. fails: files fail there, too."""
    for seed in range(most):
        try:
            World(seed, fails=fails).run()
        except Exception as fault:
            return str(fault)
    pytest.fail(f"{most} worlds found nothing")


def test_a_settlement_that_is_answered_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = FragmentCore.gather_joined

    def early(self: FragmentCore, code: int, counts: array[int], on_done: Any = None) -> None:
        if code == SETTLED and on_done is not None:
            gather(self, code, counts)
            on_done(None)
        else:
            gather(self, code, counts, on_done)

    monkeypatch.setattr(FragmentCore, "gather_joined", early)
    finds()


def test_a_lock_that_settles_after_its_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    find = LockTable.find
    monkeypatch.setattr(LockTable, "find", lambda self, tokens, now_ms: find(self, tokens, now_ms - 10_000))
    finds()


def test_a_locked_message_that_is_given_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    give = MessageTable.give

    def unmarked(self: MessageTable, counts: Any, last: int, *, marks: int, **named: Any) -> None:
        give(self, counts, last, marks=0 if counts[0] % 5 == 0 and marks == LOCKED else marks, **named)

    monkeypatch.setattr(MessageTable, "give", unmarked)
    finds()


def test_deliveries_that_a_snapshot_counts_twice_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_snapshot, "_early_deliveries", lambda messages, under_way: {})
    apply = FragmentState.apply
    monkeypatch.setattr(
        FragmentState, "apply", lambda self, operation, *, is_replay: apply(self, operation, is_replay=True)
    )
    finds()


def test_a_settled_message_that_a_replay_brings_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = FragmentState.apply

    def forgetful(self: FragmentState, operation: Operation, *, is_replay: bool) -> Any:
        if is_replay and operation.code == SETTLED and len(operation.ranges) == 2 and operation.ranges[0] % 3 == 0:
            return array("q")
        return apply(self, operation, is_replay=is_replay)

    monkeypatch.setattr(FragmentState, "apply", forgetful)
    finds()


def test_a_refused_settlement_that_loses_the_mark_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    unlock = MessageTable.unlock

    def too_much(self: MessageTable, counts: Any, last: int, *, marks: int, **named: Any) -> Any:
        return unlock(self, counts, last, marks=LOCKED | SETTLING if marks == SETTLING else marks, **named)

    monkeypatch.setattr(MessageTable, "unlock", too_much)
    finds(fails=True)


def test_a_moved_message_that_is_counted_anew_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = FragmentState.apply

    def deaf(self: FragmentState, operation: Operation, *, is_replay: bool) -> Any:
        return array("q") if operation.code == MOVED else apply(self, operation, is_replay=is_replay)

    monkeypatch.setattr(FragmentState, "apply", deaf)
    finds()
