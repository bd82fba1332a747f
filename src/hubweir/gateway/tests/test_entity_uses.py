"""What is known of uses without a broker: senders that are attached, and what was asked of management nodes."""

from __future__ import annotations

from typing import Any

from hubweir.gateway.entity_uses import EntityUses
from hubweir.gateway.fragments import FragmentPlace
from hubweir.testing.simulated_env import SimulatedEnv

NOBODY: Any = None
QUEUE = FragmentPlace("orders", "q", NOBODY, "q")
SUBSCRIPTION = FragmentPlace("news/Subscriptions/all", "s", NOBODY, "t", "news")


def test_of_what_nobody_used_nothing_is_known() -> None:
    assert EntityUses(SimulatedEnv(7)).unused_ms("q") is None


def test_a_place_is_used_while_a_sender_is_attached_and_counts_from_the_end_of_the_last() -> None:
    env = SimulatedEnv(7)
    uses = EntityUses(env)
    uses.sender_came(QUEUE)
    uses.sender_came(QUEUE)
    env.run_for(1_000)
    uses.sender_left(QUEUE)
    env.run_for(1_000)
    assert uses.unused_ms("q") == 0
    uses.sender_left(QUEUE)
    env.run_for(1_000)
    assert uses.unused_ms("q") == 1_000


def test_a_use_of_a_subscription_is_one_of_its_topic_and_a_sender_to_the_topic_is_none_of_it() -> None:
    env = SimulatedEnv(7)
    uses = EntityUses(env)
    uses.note(SUBSCRIPTION)
    env.run_for(1_000)
    assert (uses.unused_ms("s"), uses.unused_ms("t")) == (1_000, 1_000)
    uses.sender_came(FragmentPlace("news", "t", NOBODY, "t"))
    assert (uses.unused_ms("s"), uses.unused_ms("t")) == (1_000, 0)


def test_what_is_not_kept_is_forgotten_but_for_senders_that_are_there() -> None:
    uses = EntityUses(SimulatedEnv(7))
    uses.note(SUBSCRIPTION)
    uses.sender_came(QUEUE)
    uses.keep({"t"})
    assert (uses.unused_ms("s"), uses.unused_ms("t"), uses.unused_ms("q")) == (None, 0, 0)
