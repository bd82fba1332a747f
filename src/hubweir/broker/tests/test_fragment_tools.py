"""fragment_tools.py: both clocks of a fragment, and ids of receivers that are given once."""

from __future__ import annotations

from hubweir.broker.commands.command import Push
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.broker.fragment_tools import FragmentTools
from hubweir.counters import Counters
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.queue.fragment import Times
from hubweir.testing.simulated_env import SimulatedEnv


def tools(env: SimulatedEnv) -> FragmentTools:
    def pushed(push: Push) -> None:
        raise AssertionError(f"nobody asked for {push}")

    return FragmentTools(env, BrokerDeadlines(env), TrustedClock(env), Counters(), pushed)


def test_now_is_told_on_both_clocks_and_a_jump_of_the_wall_clock_moves_one() -> None:
    env = SimulatedEnv()
    each = tools(env)
    before = each.times()
    assert before == Times(env.now_ms(), env.monotonic_ms())
    env.run_for(250)
    assert each.times() == Times(before.stamp_ms + 250, before.monotonic_ms + 250)
    env.jump(3_600_000)
    assert each.times().monotonic_ms == before.monotonic_ms + 250


def test_two_brokers_of_one_process_count_their_receivers_apart() -> None:
    env = SimulatedEnv()
    first, second = tools(env), tools(env)
    assert [next(first.receiver_ids), next(first.receiver_ids), next(second.receiver_ids)] == [1, 2, 1]
