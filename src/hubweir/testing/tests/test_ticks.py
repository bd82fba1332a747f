"""Ticks that do nothing are left out, and everything else happens when it would happen without that."""

from __future__ import annotations

from random import Random

import pytest

from hubweir.testing.simulated_env import SimulatedEnv

LOOKERS = 4


class Looker:
    """Takes at its ticks what lies there, and notes it; has a deadline now and then, and passes things on."""

    def __init__(self, env: SimulatedEnv, name: int, noted: list[str], *, is_left_out: bool) -> None:
        self.tick_ms = (1, 1, 3, 20)[name]
        self.lies = 0
        self.due_ms: int | None = None
        self.is_over = False
        self.ticks = 0
        self.others: list[Looker] = []
        self._env, self._name, self._noted, self._is_left_out = env, name, noted, is_left_out
        self._random = Random(name)
        env.keep_ticking(self)

    def tick(self) -> bool:
        self.ticks += 1
        if self.is_over:
            return False
        now_ms = self._env.monotonic_ms()
        if self.due_ms is not None and self.due_ms <= now_ms:
            self._note("is due")
            self.due_ms = None
        if self.lies:
            self._note(f"takes {self.lies}")
            self.lies = 0
            if self._random.random() < 0.6:
                self._random.choice(self.others).lies += 1
            if self._random.random() < 0.6:
                self._env.call_later(self._random.randrange(4), lambda: self._note("is called"))
        return True

    def idle_until_ms(self) -> int | None:
        if not self._is_left_out or (self.lies and not self.is_over):
            return self._env.monotonic_ms()
        return None if self.is_over else self.due_ms

    def _note(self, what: str) -> None:
        self._noted.append(f"{self._env.monotonic_ms()} {self._name} {what}")


def life(seed: int, *, is_left_out: bool = True) -> tuple[list[str], int]:
    """What lookers and timers noted, in order, and how many ticks were played."""
    random, noted, env = Random(seed), list[str](), SimulatedEnv(seed)
    lookers = [Looker(env, name, noted, is_left_out=is_left_out) for name in random.sample(range(LOOKERS), LOOKERS)]
    for each in lookers:
        each.others = lookers

    def strike(number: int) -> None:
        noted.append(f"{env.monotonic_ms()} timer {number}")
        random.choice(lookers).lies += 1

    for number in range(40):
        for _ in range(random.randrange(3)):
            env.call_later(random.randrange(60), lambda number=number: strike(number))
        env.call_later(20, lambda number=number: noted.append(f"{env.monotonic_ms()} late {number}"))
        if random.random() < 0.3:
            random.choice(lookers).lies += 1  # between two runs, as a test does it
        if random.random() < 0.2:
            random.choice(lookers).due_ms = env.monotonic_ms() + random.randrange(50)
        if random.random() < 0.02:
            random.choice(lookers).is_over = True
        env.run_for(random.randrange(1, 40))
        noted.append(f"{env.monotonic_ms()} run")
    return noted, sum(each.ticks for each in lookers)


@pytest.mark.parametrize("seed", range(40))
def test_a_life_is_the_same_as_if_no_tick_were_left_out(seed: int) -> None:
    noted, ticks = life(seed)
    all_noted, all_ticks = life(seed, is_left_out=False)
    assert noted == all_noted
    assert any("takes" in each for each in noted) and any("is due" in each for each in noted)
    assert ticks < all_ticks * 2 / 3


def test_hours_with_nothing_to_do_are_one_tick_and_the_next_thing_is_in_time() -> None:
    env, noted = SimulatedEnv(), list[str]()
    looker = Looker(env, 0, noted, is_left_out=True)
    looker.others = [Looker(env, 3, noted, is_left_out=True)]
    env.run_for(3_600_000)
    assert looker.ticks == 1 and env.monotonic_ms() == 3_600_000 and env.next_ms() == 3_600_001
    looker.lies = 1
    env.run_for(1)
    assert noted == ["3600001 0 takes 1"]


def test_when_nothing_is_left_but_idle_ticks_a_run_ends() -> None:
    env, noted = SimulatedEnv(), list[str]()
    looker = Looker(env, 2, noted, is_left_out=True)
    looker.others = [looker]
    looker.due_ms = 7
    env.call_later(30, lambda: noted.append("timer"))
    env.run()
    assert noted == ["9 2 is due", "timer"]


def test_what_ticks_no_more_and_what_is_of_a_process_that_ended_is_not_looked_at() -> None:
    env, noted = SimulatedEnv(), list[str]()
    one, other = (Looker(env, name, noted, is_left_out=False) for name in (0, 1))
    one.is_over = True
    env.run_for(5)
    assert (one.ticks, other.ticks) == (2, 6)
    env.crash()
    Looker(env, 0, noted, is_left_out=False)
    env.run_for(5)
    assert other.ticks == 6 and env.next_ms() is None


def test_of_a_timer_and_a_tick_at_one_time_that_is_first_which_was_in_line_first() -> None:
    env, noted = SimulatedEnv(), list[str]()
    looker = Looker(env, 3, noted, is_left_out=True)  # its next tick, in 20 ms, is in line
    looker.due_ms = 20
    env.call_later(20, lambda: noted.append("timer"))
    env.call_later(40, lambda: noted.append("timer"))
    env.run_for(20)
    looker.due_ms = 40
    env.run_for(20)
    assert noted == ["20 3 is due", "timer", "timer", "40 3 is due"]
