"""What an entity holds is what its fragment says; where that does not answer, it is said."""

from __future__ import annotations

from typing import Any

from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.fragment import AskFragmentInfo, FragmentInfo
from hubweir.broker.commands.process import Refusal
from hubweir.errors import STORE_OFFLINE
from hubweir.gateway.entity_counts import ANSWER_MS, EntityCounts, ask_counts
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.testing.simulated_env import SimulatedEnv


class OneStore:
    """A broker with one answer; None: it never answers."""

    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.asked: list[Command] = []

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        self.asked.append(command)
        if self.answer is not None:
            on_answer(self.answer)


def counted(*answers: Answer | None) -> EntityCounts:
    """What is counted of an entity whose fragments answer so, when all have or time is over."""
    env, found = SimulatedEnv(7), list[EntityCounts]()
    brokers: list[Any] = [OneStore(answer) for answer in answers]
    places = [
        FragmentPlace("news/Subscriptions/all", f"of it-{number}", broker, "of the topic", "news", number)
        for number, broker in enumerate(brokers)
    ]
    ask_counts(env, Fragments(tuple(places)), found.append)
    assert [broker.asked for broker in brokers] == [[AskFragmentInfo(place.log_id)] for place in places]
    if None in answers:
        env.run_for(ANSWER_MS - 1)
        assert found == []
    env.run_for(2 * ANSWER_MS)
    (counts,) = found
    return counts


def test_deferred_messages_are_active_and_all_are_summed() -> None:
    counts = counted(FragmentInfo("a", 1, 2, 3, 4, 5, 600))
    assert counts == EntityCounts(5, 2, 3, 5, 600) and counts.all == 10 and not counts.is_limited


def test_the_newest_use_is_told() -> None:
    assert counted(FragmentInfo("a", 0, 0, 0, 0, 0, 0, 9)).accessed_at_ms == 9
    assert counted(FragmentInfo("a", 0, 0, 0, 0, 0, 0, None)).accessed_at_ms is None


def test_a_fragment_that_does_not_answer_is_missed_and_told() -> None:
    assert counted(Refusal(STORE_OFFLINE, "its disk is gone")) == EntityCounts(is_limited=True)


def test_what_all_fragments_hold_is_summed_and_the_newest_use_of_any_is_told() -> None:
    counts = counted(FragmentInfo("a", 1, 2, 3, 4, 5, 600, 7), FragmentInfo("b", 10, 20, 30, 40, 50, 6_000, 5))
    assert counts == EntityCounts(55, 22, 33, 55, 6_600, 7) and not counts.is_limited


def test_the_others_are_counted_where_one_refuses_or_says_nothing() -> None:
    one = FragmentInfo("a", 1, 2, 3, 4, 5, 600)
    for silent in (Refusal(STORE_OFFLINE, "its disk is gone"), None):
        assert counted(one, silent, one) == EntityCounts(10, 4, 6, 10, 1_200, is_limited=True)
    assert counted(None, None) == EntityCounts(is_limited=True)


def test_what_is_answered_too_late_is_left_out_for_good() -> None:
    env, found = SimulatedEnv(7), list[EntityCounts]()
    waiting: list[OnAnswer] = []

    class Slow(OneStore):
        def submit(self, command: Command, on_answer: OnAnswer) -> None:
            waiting.append(on_answer)

    slow: Any = Slow(None)
    places = [FragmentPlace("orders", name, slow, name, None, number) for number, name in enumerate("ab")]
    ask_counts(env, Fragments(tuple(places)), found.append)
    waiting[0](FragmentInfo("a", 1, 2, 3, 4, 5, 600))
    env.run_for(ANSWER_MS)
    assert found == [EntityCounts(5, 2, 3, 5, 600, is_limited=True)]
    waiting[1](FragmentInfo("b", 1, 2, 3, 4, 5, 600))
    env.run_for(ANSWER_MS)
    assert len(found) == 1
