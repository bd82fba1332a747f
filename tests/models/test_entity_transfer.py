"""T1: the model of a transfer holds at every state, and each planted mistake loses or repeats a message."""

from __future__ import annotations

import pytest

from tests.models.entity_transfer import (
    BEGIN,
    FIRST,
    GIVE_UP,
    REMOVE,
    RETURN,
    SECOND,
    STORE,
    EntityTransfer,
    in_tail,
)
from tests.models.verdicts import finds, holds

# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "an offer is repeated behind a crash, and was stored before": lambda before, action, after: (
        action[0] == "arrive" and action[3] == "stored before" and before.faults > 0
    ),
    "an offer is repeated while the first is in flight": lambda before, action, after: (
        action[0] == "arrive" and action[3] == "in flight"
    ),
    "the destination is asked while the message is in flight": lambda before, action, after: (
        action[0] == "arrive" and action[3] == "in flight" and before.entities[action[1]].offers[action[2]].asks
    ),
    "an offer is overtaken by a later one": lambda before, action, after: (
        action[0] == "arrive" and action[3] == "overtaken"
    ),
    "a word about an earlier attempt is not believed": lambda before, action, after: (
        action[0] == "answered" and action[3] == "too late" and before.entities[action[1]].moving
    ),
    "a message is consumed before its source has removed it": lambda before, action, after: (
        action[:2] == ("consume", SECOND) and before.entities[FIRST].messages
    ),
    "a power cut takes a message that the destination had not answered": lambda before, action, after: (
        action == ("power_cut", SECOND, 0) and in_tail(before, SECOND, STORE)
    ),
    "a power cut takes the begin of a transfer": lambda before, action, after: (
        action == ("power_cut", FIRST, 0) and in_tail(before, FIRST, BEGIN)
    ),
    "a power cut takes a removal": lambda before, action, after: (
        action == ("power_cut", FIRST, 0) and in_tail(before, FIRST, REMOVE)
    ),
    "a sync fails under an offer": lambda before, action, after: (
        action == ("sync_fails", SECOND) and in_tail(before, SECOND, STORE)
    ),
    "a sync fails under a removal": lambda before, action, after: (
        action == ("sync_fails", FIRST) and in_tail(before, FIRST, REMOVE)
    ),
    "a refused message is dead-lettered at its source": lambda before, action, after: (
        action[:2] == ("sync", FIRST) and before.entities[FIRST].tail[0].kind == GIVE_UP
    ),
    "a refused message stays at its source": lambda before, action, after: (
        action[:2] == ("sync", FIRST) and before.entities[FIRST].tail[0].kind == RETURN
    ),
    "the forward ends while a message is in transfer": lambda before, action, after: (
        action == ("end_forward",) and before.entities[FIRST].offers
    ),
}

# In a ring nobody receives at the second entity.
OF_A_CHAIN = ("a message is consumed before its source has removed it",)


def test_a_message_in_a_chain_is_neither_lost_nor_repeated() -> None:
    holds(EntityTransfer(refusals=2), SITUATIONS, at_least=8_000)


def test_a_message_in_a_ring_ends_when_its_hops_are_used_up() -> None:
    holds(EntityTransfer(is_ring=True, faults=1), SITUATIONS, at_least=1_600, without=OF_A_CHAIN)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_message_in_a_ring_ends_behind_two_hops() -> None:
    holds(EntityTransfer(is_ring=True, hop_limit=2, faults=1), SITUATIONS, at_least=55_000, without=OF_A_CHAIN)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_messages_in_a_chain_are_neither_lost_nor_repeated() -> None:
    holds(EntityTransfer(messages=2, faults=1), SITUATIONS, at_least=47_000)


@pytest.mark.parametrize(
    ("mistake", "bounds", "promise"),
    [
        ("answer_before_durable", {}, "P1, P13: a message is lost"),
        ("offer_unsynced", {"messages": 2}, "P13: a message is there twice"),
        ("number_in_memory", {"messages": 2, "faults": 1, "refusals": 0}, "P1, P13: a message is lost"),
        ("received_in_memory", {}, "P13: a message is there twice"),
        ("old_offers_arrive", {}, "P13: a message is there twice"),
        ("old_answers_count", {}, "P13: a message is there twice"),
        ("ask_beside_store", {}, "P13: a message is there twice"),
        ("give_up_unknown", {}, "P13: a message is there twice"),
        ("forward_by_setting", {}, "P13: a message is there twice"),
        ("unlimited_hops", {"is_ring": True}, "P13: a message made too many hops"),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, bounds: dict[str, int], promise: str) -> None:
    finds(EntityTransfer(**bounds, **{mistake: True}), promise)
