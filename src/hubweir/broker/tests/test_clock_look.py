"""clock_look.py: the store's clock is looked at every two seconds, until the broker stops."""

from __future__ import annotations

from hubweir.broker.clock_look import LOOK_MS, ClockLook
from hubweir.testing.simulated_env import SimulatedEnv


class Store:
    """Counts the looks."""

    looks = 0

    def keep_clock(self) -> None:
        self.looks += 1


def test_it_looks_again_and_again_until_it_is_stopped() -> None:
    env, store = SimulatedEnv(1), Store()
    look = ClockLook(env, store)  # type: ignore[arg-type]
    look.start()
    env.run_for(LOOK_MS - 1)
    assert store.looks == 0
    env.run_for(4 * LOOK_MS)
    assert store.looks == 4
    look.stop()
    env.run_for(4 * LOOK_MS)
    assert store.looks == 4


def test_one_that_was_never_started_may_be_stopped() -> None:
    ClockLook(SimulatedEnv(1), Store()).stop()  # type: ignore[arg-type]
