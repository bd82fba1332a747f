"""One fragment for messages that must lie together, in transactions by one key; and what clients are told."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import MessagesEnqueued
from hubweir.broker.commands.process import Refusal
from hubweir.counters import Latency
from hubweir.env import Env
from hubweir.errors import ENTITY_MOVED, NOT_ALLOWED, RESOURCE_LIMIT, SERVER_BUSY, STORE_OFFLINE, ServiceError
from hubweir.gateway.append_queue import AppendQueue
from hubweir.gateway.fragment_choice import FragmentChoice, KeyedPlace
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.kernels.contract import D_DELIVERY_ID, D_FORMAT, DELIVERY_WIDTH
from hubweir.queue.tests.conftest import message

ENV = cast(
    Env, SimpleNamespace(monotonic_s=float, monotonic_ms=lambda: 0, at_turn_end=lambda call: None, random_bytes=bytes)
)
UP: Any = SimpleNamespace(is_up=True)
PARTITIONED = Fragments(tuple(FragmentPlace("orders", str(at), UP, str(at), None, at) for at in range(16)))


@pytest.fixture
def choice() -> FragmentChoice:
    return choice_of()


def choice_of(*, takes_ids: bool = False) -> FragmentChoice:
    queues: Any = AppendQueue(
        ENV, lambda broker, command, pending: None, run_limit_bytes=1, latency=Latency(), names_keys=False
    )
    return FragmentChoice(ENV, PARTITIONED, queues, takes_ids=takes_ids)


def given(*messages: bytes) -> tuple[bytes, array[int], int, int]:
    rows, at = array("q"), 0
    for number, each in enumerate(messages):
        rows.extend((number, at, len(each), 0, 0))
        at += len(each)
    return b"".join(messages), rows, 0, len(messages)


def number_of(key: str) -> int:
    return PARTITIONED.of_key(key.encode()).number


SAME = [key for key in map(str, range(300)) if number_of(key) == 7][:3]


def test_messages_that_lie_together_go_where_their_keys_agree(choice: FragmentChoice) -> None:
    together = given(message("a", key=SAME[0]), message("b"), message("c", session=SAME[1]))
    assert choice.place_of(*together).number == 7
    with pytest.raises(ServiceError, match="keys of several") as refused:
        choice.place_of(*given(message("a", key="key-1"), message("b", key="key-2")))
    assert refused.value.condition is NOT_ALLOWED
    keyless = given(message("a", message_id="m"), message("b"))
    assert [choice.place_of(*keyless).number for _ in range(3)] == [0, 1, 2]
    assert choice_of(takes_ids=True).place_of(*given(message("a", message_id=SAME[0]))).number == 7


def test_a_transaction_needs_one_key_and_not_only_one_fragment(choice: FragmentChoice) -> None:
    assert choice.transaction_key(*given(message("a", key="k"), message("b", session="k"))) == b"k"
    assert choice.transaction_key(*given(message("a", session=""))) == b""
    for several in (
        [message("a", key=SAME[0]), message("b", key=SAME[1])], [message("a", key="k"), message("b")], [message("a")],
        [message("a", message_id="m")], [],
    ):  # fmt: skip
        with pytest.raises(ServiceError, match="'orders' is partitioned") as refused:
            choice.transaction_key(*given(*several))
        assert refused.value.condition is NOT_ALLOWED
    with_ids = choice_of(takes_ids=True)
    assert with_ids.transaction_key(*given(message("a", message_id="m"), message("b", key="m"))) == b"m"
    with pytest.raises(ServiceError, match="or a message id"):
        with_ids.transaction_key(*given(message("a")))


def test_deliveries_are_sorted_and_those_that_go_nowhere_are_named_by_their_rows(choice: FragmentChoice) -> None:
    apart = pack_batch([message("a", key="key-1"), message("b", key="key-2")])
    data, rows, _, _ = given(message("c", key="k"), apart, message("d"), apart, message("e", key="k"), message("f"))
    for row in (1, 3):
        rows[row * DELIVERY_WIDTH + D_FORMAT] = BATCH_FORMAT
    found = choice.sort(data, rows, 1, 6)
    assert found.scattered == [1, 3]
    shares = [list(each.rows[each.first * 5 + D_DELIVERY_ID : each.last * 5 : 5]) for each in found.shares]
    assert shares == [[4], [2, 5]], "by fragment, then what has no key"
    assert choice.sort(data, rows, 1, 2).shares == ()
    with pytest.raises(ServiceError, match="keys of several"):
        choice.queue_of(apart, array("q", [0, 0, len(apart), 0, BATCH_FORMAT]))


def test_clients_hear_of_a_fragment_that_is_away_what_they_try_again_upon() -> None:
    said: list[Answer] = []
    broker: Any = SimpleNamespace(is_up=True, submit=lambda command, on_answer: on_answer(said[-1]))
    keyed = KeyedPlace(FragmentPlace("orders", "log", broker, "log", None, 3))
    assert (keyed.entity, keyed.log_id, keyed.broker) == ("orders", "log", keyed)

    def told(answer: Answer) -> Answer:
        said.append(answer)
        heard: list[Answer] = []
        keyed.submit(keyed.store(bytearray(b"run"), 1, 3), heard.append)
        [each] = heard
        return each

    for condition in (STORE_OFFLINE, ENTITY_MOVED):
        answer = told(Refusal(condition, "the disk is gone"))
        assert isinstance(answer, Refusal) and answer.known and answer.condition is SERVER_BUSY
        assert answer.text.startswith("A fragment of 'orders' is away: the disk is gone")
    for answer in (Refusal(STORE_OFFLINE, "x", known=False), Refusal(RESOURCE_LIMIT, "full"), MessagesEnqueued(1, 2)):
        assert told(answer) is answer
