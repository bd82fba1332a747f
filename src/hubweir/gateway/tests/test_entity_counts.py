"""What an entity holds is what its fragment says; where that does not answer, it is said."""

from __future__ import annotations

from typing import Any

from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.fragment import AskFragmentInfo, FragmentInfo
from hubweir.broker.commands.process import Refusal
from hubweir.errors import STORE_OFFLINE
from hubweir.gateway.brokers import OnAnswer
from hubweir.gateway.entity_counts import EntityCounts, ask_counts
from hubweir.gateway.fragments import FragmentPlace


class OneStore:
    """A broker with one answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Command] = []

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        self.asked.append(command)
        on_answer(self.answer)


def counted(answer: Answer) -> EntityCounts:
    broker: Any = OneStore(answer)
    found: list[EntityCounts] = []
    ask_counts(FragmentPlace("news/Subscriptions/all", "of it", broker, "of the topic", "news"), found.append)
    assert broker.asked == [AskFragmentInfo("of it")]
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
