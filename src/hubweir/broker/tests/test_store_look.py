"""store_look.py: a store is looked at every two seconds, until its owner stops."""

from __future__ import annotations

from hubweir.broker.store_look import LOOK_MS, StoreLook
from hubweir.testing.simulated_env import SimulatedEnv


def test_it_looks_again_and_again_until_it_is_stopped() -> None:
    env, looks = SimulatedEnv(1), []
    look = StoreLook(env, lambda: looks.append("clock"), lambda: looks.append("syncs"))
    look.start()
    env.run_for(LOOK_MS - 1)
    assert looks == []
    env.run_for(4 * LOOK_MS)
    assert looks == 4 * ["clock", "syncs"]
    look.stop()
    env.run_for(4 * LOOK_MS)
    assert len(looks) == 8


def test_one_that_was_never_started_may_be_stopped() -> None:
    StoreLook(SimulatedEnv(1)).stop()
