from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.messaging_store.segment_engine import due_marks
from hubweir.messaging_store.segment_engine.due_marks import DueMarks
from hubweir.testing.simulated_env import SimulatedEnv

DELAY_MS = 100


class Noted:
    def __init__(self, env: SimulatedEnv, then: Callable[[], None] = lambda: None) -> None:
        self._env = env
        self._then = then
        self.due_at: list[int] = []

    def due(self) -> None:
        self.due_at.append(self._env.monotonic_ms())
        self._then()


@pytest.fixture
def env() -> SimulatedEnv:
    return SimulatedEnv(1)


@pytest.fixture
def marks(env: SimulatedEnv) -> DueMarks:
    return DueMarks(env, DELAY_MS)


def test_each_is_due_once_a_while_after_its_time_began(env: SimulatedEnv, marks: DueMarks) -> None:
    begun, noted = env.monotonic_ms(), [Noted(env) for _ in range(3)]
    for mark in noted:
        marks.begin(mark)
        env.run_for(30)
    env.run()
    assert [mark.due_at for mark in noted] == [[begun + DELAY_MS], [begun + 30 + DELAY_MS], [begun + 60 + DELAY_MS]]
    assert env.monotonic_ms() == begun + 60 + DELAY_MS, "nothing rings afterwards"


def test_a_time_that_begins_again_is_over_later_and_holds_up_no_other(env: SimulatedEnv, marks: DueMarks) -> None:
    begun, first, second = env.monotonic_ms(), Noted(env), Noted(env)
    marks.begin(first)
    env.run_for(10)
    marks.begin(second)
    env.run_for(50)
    marks.begin(first)
    env.run()
    assert (second.due_at, first.due_at) == ([begun + 10 + DELAY_MS], [begun + 60 + DELAY_MS])


def test_what_is_forgotten_is_not_due_and_keeps_no_timer(env: SimulatedEnv, marks: DueMarks) -> None:
    kept, forgotten = Noted(env), Noted(env)
    marks.begin(kept)
    marks.begin(forgotten)
    marks.forget(forgotten)
    marks.forget(forgotten)
    env.run()
    assert len(kept.due_at) == 1 and forgotten.due_at == []
    begun = env.monotonic_ms()
    marks.begin(forgotten)
    marks.forget(forgotten)
    env.run()
    assert env.monotonic_ms() == begun and forgotten.due_at == []
    marks.begin(kept)
    env.run()
    assert len(kept.due_at) == 2


def test_one_whose_time_begins_when_it_is_due_comes_again(env: SimulatedEnv, marks: DueMarks) -> None:
    begun, noted = env.monotonic_ms(), Noted(env, lambda: marks.begin(noted) if len(noted.due_at) < 3 else None)
    other = Noted(env)
    marks.begin(noted)
    env.run_for(1)
    marks.begin(other)
    env.run()
    assert noted.due_at == [begun + number * DELAY_MS for number in (1, 2, 3)]
    assert other.due_at == [begun + 1 + DELAY_MS]


def test_of_many_that_are_due_at_once_some_come_a_turn_in_order_and_all_in_time(
    env: SimulatedEnv, marks: DueMarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_marks, "MARKS_AT_ONCE", 2)
    order: list[int] = []
    noted = [Noted(env, lambda number=number: order.append(number)) for number in range(5)]  # type: ignore[misc]
    turns, call_later = [], env.call_later

    def counted(delay_ms: int, callback: Callable[[], None]) -> object:
        def turn() -> None:
            before = len(order)
            callback()
            turns.append(len(order) - before)

        return call_later(delay_ms, turn)

    monkeypatch.setattr(env, "call_later", counted)
    begun = env.monotonic_ms()
    for mark in noted:
        marks.begin(mark)
    env.run()
    assert turns == [2, 2, 1] and order == list(range(5))
    assert all(mark.due_at == [begun + DELAY_MS] for mark in noted)
