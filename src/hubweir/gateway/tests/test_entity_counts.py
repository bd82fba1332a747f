"""What an entity holds is the sum of its fragments; one that does not answer is missed, and it is said."""

from __future__ import annotations

import pytest

from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.fragment import AskFragmentInfo, FragmentInfo
from hubweir.broker.commands.process import Refusal
from hubweir.errors import STORE_OFFLINE
from hubweir.gateway.brokers import Brokers, OnAnswer
from hubweir.gateway.entity_counts import EntityCounts, ask_counts
from hubweir.namespace.entity import Entity, EntityStatus, Placement
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription


class OneStore:
    """A broker that answers with what it is told to, for each log."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        assert isinstance(command, AskFragmentInfo)
        on_answer(self.answers[command.log_id])


def info(log_id: str, *counts: int) -> FragmentInfo:
    return FragmentInfo(log_id, *counts)


def counted(answers: dict[str, Answer], placements: tuple[Placement, ...]) -> EntityCounts:
    brokers = Brokers([OneStore(answers), OneStore(answers)])  # type: ignore[list-item]
    found: list[EntityCounts] = []
    ask_counts(Entity("q", QueueDescription("q"), placements, EntityStatus.ACTIVE), brokers, found.append)
    (counts,) = found
    return counts


def test_counts_are_summed_and_deferred_messages_are_active() -> None:
    placements = (Placement("a", 0), Placement("b", 1))
    counts = counted({"a": info("a", 1, 2, 3, 4, 5, 600), "b": info("b", 10, 20, 30, 40, 50, 6000)}, placements)
    assert counts == EntityCounts(55, 22, 33, 55, 6600) and counts.all == 110 and not counts.is_limited


def test_the_newest_use_of_a_fragment_is_the_entity_s() -> None:
    placements = (Placement("a", 0), Placement("b", 1), Placement("c", 0))
    answers: dict[str, Answer] = {
        log_id: FragmentInfo(log_id, 0, 0, 0, 0, 0, 0, accessed_at_ms)
        for log_id, accessed_at_ms in (("a", 5), ("b", 9), ("c", None))
    }
    assert counted(answers, placements).accessed_at_ms == 9
    assert counted(answers, placements[2:]).accessed_at_ms is None


def test_a_fragment_that_does_not_answer_is_missed_and_told() -> None:
    answers: dict[str, Answer] = {"a": info("a", 1, 0, 0, 0, 0, 9), "b": Refusal(STORE_OFFLINE, "its disk is gone")}
    counts = counted(answers, (Placement("a", 0), Placement("b", 1)))
    assert (counts.active, counts.size_bytes, counts.is_limited) == (1, 9, True)


@pytest.mark.parametrize("name", ["t/Subscriptions/s"])
def test_what_has_no_fragment_of_its_own_is_answered_at_once(name: str) -> None:
    found: list[EntityCounts] = []
    entity = Entity("s", SubscriptionDescription(name), (), EntityStatus.ACTIVE)
    ask_counts(entity, Brokers([OneStore({})]), found.append)  # type: ignore[list-item]
    assert found == [EntityCounts()]
