"""A change is answered when every process that follows has applied it, or is dead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.env import Timer
from hubweir.namespace.catalog_followers import APPLY_LIMIT_MS, LOOK_MS, STOPPED_MS, CatalogFollowers
from hubweir.testing.simulated_env import SimulatedEnv

ONE, TWO, THREE = 11, 22, 33


class Watched:
    """Followers of a catalog, what each was told, who died, and which versions were answered."""

    def __init__(self) -> None:
        self.env = SimulatedEnv()
        self.followers = CatalogFollowers(self.env)
        self.told: dict[int, list[tuple[int, bytes]]] = {}
        self.dead: list[int] = []
        self.answered: list[int] = []
        self.version = 0

    def came(self, *processes: int, applies: bool = True) -> None:
        for process in processes:
            told = self.told[process] = []
            self.followers.came(
                process, self.version, lambda *one, told=told: told.append(one), lambda p=process: self.dead.append(p)
            )
            if applies:
                self.followers.applied(process, self.version)

    def change(self) -> int:
        self.version += 1
        version = self.version
        self.followers.tell(version, b"operation %d" % version)
        self.followers.when_applied(version, lambda: self.answered.append(version))
        return version


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_where_nobody_follows_a_change_is_answered_at_once(watched: Watched) -> None:
    watched.change()
    assert watched.answered == [1] and watched.followers.is_empty


def test_a_change_waits_for_the_last_of_those_that_follow(watched: Watched) -> None:
    watched.came(ONE, TWO)
    watched.change()
    assert watched.told == {ONE: [(1, b"operation 1")], TWO: [(1, b"operation 1")]}
    watched.followers.applied(ONE, 1)
    assert watched.answered == []
    watched.followers.applied(TWO, 1)
    assert watched.answered == [1]


def test_to_apply_a_version_is_to_apply_all_before_it_and_none_behind_it(watched: Watched) -> None:
    watched.came(ONE, TWO)
    for _ in range(3):
        watched.change()
    watched.followers.applied(ONE, 3)
    watched.followers.applied(TWO, 2)
    assert watched.answered == [1, 2]
    watched.followers.applied(TWO, 1)  # nothing is taken back
    watched.followers.applied(TWO, 3)
    assert watched.answered == [1, 2, 3]


def test_an_answer_that_brings_the_next_change_keeps_the_order(watched: Watched) -> None:
    order: list[str] = []
    watched.came(ONE)
    followers = watched.followers
    followers.tell(1, b"")
    followers.when_applied(1, lambda: (order.append("1"), followers.when_applied(1, lambda: order.append("3"))))  # type: ignore[func-returns-value]
    followers.when_applied(1, lambda: order.append("2"))
    followers.applied(ONE, 1)
    assert order == ["1", "2", "3"]


def test_a_follower_that_is_late_is_dead_and_nobody_waits_for_it_any_more(watched: Watched) -> None:
    watched.came(ONE, TWO)
    watched.change()
    watched.followers.applied(ONE, 1)
    watched.env.run_for(APPLY_LIMIT_MS - 1)
    assert (watched.dead, watched.answered) == ([], [])
    watched.env.run_for(1)
    assert (watched.dead, watched.answered) == ([TWO], [1])
    assert watched.followers.processes == (ONE,)
    watched.change()
    assert len(watched.told[TWO]) == 1
    watched.followers.applied(TWO, 2)  # it is heard of no more
    assert watched.answered == [1]
    watched.followers.applied(ONE, 2)
    assert watched.answered == [1, 2]


def test_each_operation_has_its_own_time_and_one_that_goes_on_lives(watched: Watched) -> None:
    watched.came(ONE)
    for version in range(1, 8):
        watched.change()
        watched.env.run_for(APPLY_LIMIT_MS - 100)
        watched.followers.applied(ONE, version)
    assert watched.dead == [] and watched.answered == list(range(1, 8))
    watched.change()
    watched.env.run_for(APPLY_LIMIT_MS // 2)
    watched.change()
    watched.env.run_for(APPLY_LIMIT_MS // 2)
    assert watched.dead == [ONE]


def test_one_that_applied_a_part_in_time_is_dead_for_the_rest(watched: Watched) -> None:
    watched.came(ONE)
    watched.change()
    watched.change()
    watched.followers.applied(ONE, 1)
    watched.env.run_for(APPLY_LIMIT_MS)
    assert watched.dead == [ONE] and watched.answered == [1, 2]


def test_one_that_has_all_is_never_dead(watched: Watched) -> None:
    watched.came(ONE)
    watched.env.run_for(100 * APPLY_LIMIT_MS)
    assert watched.dead == [] and watched.followers.processes == (ONE,)


def test_a_snapshot_is_to_be_applied_in_time_too(watched: Watched) -> None:
    watched.version = 7
    watched.came(ONE, applies=False)
    watched.followers.when_applied(7, lambda: watched.answered.append(7))
    assert watched.answered == []
    watched.env.run_for(APPLY_LIMIT_MS)
    assert (watched.dead, watched.answered) == ([ONE], [7])


def test_a_change_waits_for_one_that_came_before_it_was_answered(watched: Watched) -> None:
    """A process whose copy is of before the change may serve clients by it."""
    watched.came(ONE)
    watched.change()
    watched.came(TWO, applies=False)
    watched.followers.applied(ONE, 1)
    assert watched.answered == []
    watched.followers.applied(TWO, 1)
    assert watched.answered == [1]


def test_a_process_whose_stream_ended_is_waited_for_until_it_is_back_or_dead(watched: Watched) -> None:
    watched.came(ONE, TWO)
    watched.followers.left(TWO)
    watched.env.run_for(500)
    watched.change()
    assert watched.told[TWO] == []
    watched.followers.applied(ONE, 1)
    watched.followers.applied(TWO, 1)  # over a stream that is gone
    assert watched.answered == []
    watched.came(TWO, applies=False)
    assert watched.answered == []
    watched.followers.applied(TWO, 1)
    assert watched.answered == [1]
    watched.followers.left(TWO)
    watched.change()
    watched.followers.applied(ONE, 2)
    watched.env.run_for(APPLY_LIMIT_MS - 1)
    assert watched.answered == [1]
    watched.env.run_for(1)
    assert watched.answered == [1, 2] and watched.followers.processes == (ONE,)


def test_nobody_waits_for_a_process_that_ended(watched: Watched) -> None:
    watched.came(ONE, TWO)
    watched.change()
    watched.followers.applied(ONE, 1)
    watched.followers.left(TWO)
    assert watched.answered == []
    watched.followers.gone(TWO)
    assert watched.answered == [1]
    watched.followers.gone(TWO)
    watched.env.run_for(2 * APPLY_LIMIT_MS)
    assert watched.dead == []


def test_a_new_keeper_waits_for_processes_that_are_about_to_come(watched: Watched) -> None:
    watched.came(ONE)
    watched.followers.expect([ONE, TWO])
    assert watched.followers.processes == (ONE,)
    watched.change()
    watched.followers.applied(ONE, 1)
    assert watched.answered == []
    watched.came(TWO, applies=False)
    watched.followers.applied(TWO, 1)
    assert watched.answered == [1]
    watched.followers.expect([33])
    watched.change()
    for process in (ONE, TWO):
        watched.followers.applied(process, 2)
    watched.env.run_for(APPLY_LIMIT_MS)
    assert watched.answered == [1, 2] and watched.dead == []


def test_of_several_each_dies_at_its_own_time(watched: Watched) -> None:
    watched.came(ONE)
    watched.change()
    watched.env.run_for(700)
    watched.came(TWO, applies=False)
    watched.env.run_for(APPLY_LIMIT_MS - 700)
    assert watched.dead == [ONE]
    watched.env.run_for(699)
    assert watched.dead == [ONE]
    watched.env.run_for(1)
    assert watched.dead == [ONE, TWO]


def test_one_that_left_is_dead_in_time_though_nothing_else_rings(watched: Watched) -> None:
    """It has all, so that no time of another kind ran for it."""
    watched.came(ONE, TWO)
    watched.env.run_for(3 * APPLY_LIMIT_MS)
    watched.followers.left(TWO)
    watched.env.run_for(APPLY_LIMIT_MS - 1)
    assert watched.dead == []
    watched.env.run_for(1)
    assert watched.dead == [TWO]
    watched.change()
    watched.followers.applied(ONE, 1)
    assert watched.answered == [1], "nobody waits for it"


@pytest.mark.parametrize("late_ms", [STOPPED_MS, 10_000])
def test_a_keeper_that_was_stopped_itself_gives_each_process_its_time_anew(watched: Watched, late_ms: int) -> None:
    watched.came(ONE, TWO, THREE)
    watched.followers.left(TWO)
    watched.change()
    watched.env.pass_over(watched.env.monotonic_ms() + APPLY_LIMIT_MS + late_ms)
    watched.env.run_for(0)  # its timers ring before it reads what came meanwhile
    assert (watched.dead, watched.answered) == ([], [])
    watched.env.run_for(APPLY_LIMIT_MS - 1)
    watched.followers.applied(ONE, 1)
    assert (watched.dead, watched.answered) == ([], [])
    watched.env.run_for(1)
    assert (watched.dead, watched.answered) == ([TWO, THREE], [1])


def test_a_keeper_whose_timer_is_a_little_late_waits_no_longer(watched: Watched) -> None:
    watched.came(ONE)
    watched.change()
    watched.env.run_for(APPLY_LIMIT_MS - 1)
    watched.env.pass_over(watched.env.monotonic_ms() + STOPPED_MS)
    watched.env.run_for(0)
    assert (watched.dead, watched.answered) == ([ONE], [1])


@pytest.mark.parametrize("begun_ms", [0, LOOK_MS - 1, LOOK_MS, APPLY_LIMIT_MS // 2, APPLY_LIMIT_MS - 1])
def test_a_stop_is_known_wherever_it_lies_in_the_time_of_a_process(watched: Watched, begun_ms: int) -> None:
    """Also one whose end is hardly behind that time: what came meanwhile is not read yet."""
    watched.came(ONE, TWO)
    watched.change()
    watched.followers.left(TWO)
    watched.env.run_for(begun_ms)
    behind_ms = APPLY_LIMIT_MS - begun_ms + 1
    watched.env.pass_over(watched.env.monotonic_ms() + max(behind_ms, STOPPED_MS + LOOK_MS))
    watched.env.run_for(0)
    assert (watched.dead, watched.answered) == ([], [])
    watched.env.run_for(APPLY_LIMIT_MS - 1)
    assert (watched.dead, watched.answered) == ([], [])
    watched.env.run_for(1)
    assert (watched.dead, watched.answered) == ([ONE, TWO], [1])


def test_one_timer_serves_all_who_are_waited_for(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    delays_ms: list[int] = []
    call_later = watched.env.call_later

    def noted(delay_ms: int, callback: Callable[[], None]) -> Timer:
        delays_ms.append(delay_ms)
        return call_later(delay_ms, callback)

    monkeypatch.setattr(watched.env, "call_later", noted)
    watched.came(ONE, TWO)
    watched.change()
    watched.change()
    watched.env.run_for(LOOK_MS)
    assert delays_ms == [LOOK_MS, LOOK_MS]


def test_nobody_is_looked_at_when_nobody_is_waited_for(watched: Watched) -> None:
    watched.came(ONE)
    watched.env.run_for(LOOK_MS)
    assert watched.env.next_ms() is None


class SetForward(SimulatedEnv):
    """A service whose clock a test sets forward, by playing it: the machine's time is another one."""

    def __init__(self) -> None:
        super().__init__()
        self.own_machine = SimulatedEnv()

    @property
    def machine(self) -> SimulatedEnv:
        return self.own_machine


def test_a_process_is_waited_for_by_the_machines_time_however_far_a_test_sets_the_clock(watched: Watched) -> None:
    env = watched.env = SetForward()
    watched.followers = CatalogFollowers(env)
    watched.came(ONE)
    version = watched.change()
    env.run_for(3_600_000)
    env.machine.run_for(APPLY_LIMIT_MS - 1)
    assert (watched.dead, watched.answered) == ([], [])
    env.machine.run_for(1)
    assert (watched.dead, watched.answered) == ([ONE], [version])
