"""Requests to the management node of a queue of 16 fragments at three brokers: each goes to those that it is about.

Long because a group for each request shares the helpers that ask it.
"""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.message import DataBody, Properties, decode_message
from hubweir.amqp.messaging.outcome import Accepted, Modified, TransactionalState
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Symbol, Timestamp, UInt
from hubweir.broker.commands.fragment import (
    EnqueueMessages,
    ListSessions,
    PeekMessages,
    RenewLocks,
    RenewSession,
    SettleMessages,
)
from hubweir.broker.commands.process import Refusal
from hubweir.errors import NOT_FOUND, STORE_OFFLINE
from hubweir.gateway.amqp import transactions
from hubweir.gateway.amqp.tests.controller import Controller
from hubweir.gateway.amqp.tests.partitioned_world import FRAGMENTS, KEY, PARTITIONED, fragment_of, partitioned_world
from hubweir.gateway.amqp.tests.queue_world import PEEK_LOCK, ask, body_of, code_of, create_queue, send, settle
from hubweir.gateway.amqp.tests.test_fan_in import KEYS, active, numbers, send_to, sent
from hubweir.gateway.amqp.tests.test_message_management import tokens_of, uuids
from hubweir.gateway.amqp.tests.test_queue_receiver_node import accept_session
from hubweir.gateway.amqp.tests.test_receiver_part import store_of
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription

NUMBER, PARTITION = Symbol("x-opt-sequence-number"), Symbol("x-opt-partition-id")
SCHEDULED = Symbol("x-opt-scheduled-enqueue-time")
EVER_MS = 253_402_300_800_000
AWAY = Refusal(STORE_OFFLINE, "its broker is away")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return partitioned_world(monkeypatch)


def longs(*values: int) -> Array:
    return Array(AmqpType.LONG, tuple(Long(each) for each in values))


def peek(peer: Peer, start: int, count: int, **more: Any) -> list[tuple[int, int, bytes]]:
    """Of each message that is peeked at: the partition that it names, its number, its body."""
    node = more.pop("node", "orders/$management")
    asked = {"from-sequence-number": Long(start), "message-count": Int(count), **more}
    answer = ask(peer, "peek-message", asked, node=node)
    if code_of(answer) == 204:
        return []
    found = []
    for each in body_of(answer)["messages"]:
        message = decode_message(each["message"])
        said, body = message.message_annotations or {}, message.body
        assert isinstance(body, DataBody)
        partition, number = said[PARTITION], said[NUMBER]
        assert isinstance(partition, int) and isinstance(number, int)
        found.append((partition, number, b"".join(bytes(part) for part in body.parts)))
    return found


def deferred(peer: Peer, *fragments: int) -> list[int]:
    """Defer a message of each of these, as the first that the peer receives; their numbers, in order."""
    send_to(peer, *fragments)
    link = peer.receiver("orders", credit=len(fragments), **PEEK_LOCK)
    settle(peer, link, 0, len(fragments) - 1, Modified(undeliverable_here=True))
    found = [(message.message_annotations or {})[NUMBER] for message in peer.received(link)]
    link.detach()
    return sorted(number for number in found if isinstance(number, int))


def scheduled(peer: Peer, *keys: str | None, body: bytes = b"x") -> Any:
    """The answer to a request that schedules a message for each of these keys."""
    later = Timestamp(peer.env.now_ms() + 60_000)
    annotations = [{SCHEDULED: later} if key is None else {SCHEDULED: later, KEY: key} for key in keys]
    messages = [{"message": event(body, message_annotations=each)} for each in annotations]
    return ask(peer, "schedule-message", {"messages": messages})


# Peek


def test_a_peek_goes_through_the_fragments_by_number_until_it_has_enough(world: World, peer: Peer) -> None:
    for _ in range(2):
        send_to(peer, *range(FRAGMENTS))
    found = peek(peer, 1, 100)
    assert [(partition, number) for partition, number, _ in found] == [
        (fragment, (fragment << 48) + count) for fragment in range(FRAGMENTS) for count in (1, 2)
    ]
    assert all(int(body) == partition for partition, _, body in found)
    begun = len(sent(world, PeekMessages))
    assert [number for _, number, _ in peek(peer, 0, 5)] == [number for _, number, _ in found[:5]]
    assert len(sent(world, PeekMessages)) - begun == 5  # fragments 0 and 1 to their ends, then one message of 2


def test_a_loop_of_peeks_sees_every_message_once_and_ends(world: World, peer: Peer) -> None:
    send_to(peer, 2, 2, 2, 9, 15, 15)
    seen: list[int] = []
    for _ in range(20):
        page = peek(peer, seen[-1] + 1 if seen else 1, 2)
        seen += [number for _, number, _ in page]
        if not page:
            break
    assert seen == [(2 << 48) + 1, (2 << 48) + 2, (2 << 48) + 3, (9 << 48) + 1, (15 << 48) + 1, (15 << 48) + 2]
    assert peek(peer, (16 << 48) + 1, 5) == peek(peer, 2**63 - 1, 5) == []


def test_a_peek_has_at_most_256_kib_over_all_fragments_and_one_message_at_least(world: World, peer: Peer) -> None:
    for fragment in range(4):
        send_to(peer, fragment, body="0" * 100_000)
    assert [partition for partition, _, _ in peek(peer, 1, 100)] == [0, 1]
    assert [partition for partition, _, _ in peek(peer, (1 << 48) + 2, 100)] == [2, 3]
    create_queue(world, "large", storage=PARTITIONED)
    send(peer, b"y" * 200_000, queue="large", message_annotations={KEY: KEYS[3]})
    send(peer, b"z" * 200_000, queue="large", message_annotations={KEY: KEYS[4]})
    assert [partition for partition, _, _ in peek(peer, 1, 5, node="large/$management")] == [3]


def test_a_peek_goes_to_no_further_fragment_while_a_message_of_this_one_did_not_fit(world: World, peer: Peer) -> None:
    send_to(peer, 0, 0, 0, body="0" * 100_000)
    send_to(peer, 1)
    assert [partition for partition, _, _ in peek(peer, 1, 100)] == [0, 0]
    assert [partition for partition, _, _ in peek(peer, 3, 100)] == [0, 1]


def test_a_peek_in_a_session_asks_its_fragment_alone(world: World, peer: Peer) -> None:
    create_queue(world, "sessions", storage=PARTITIONED, delivery=DeliverySettings(requires_session=True))
    send(peer, b"a", b"b", queue="sessions", properties=Properties(group_id="one"))
    send(peer, b"c", queue="sessions", properties=Properties(group_id="two"))
    found = peek(peer, 1, 10, node="sessions/$management", **{"session-id": "one"})
    assert [(partition, body) for partition, _, body in found] == [(fragment_of("one"), each) for each in (b"a", b"b")]
    assert {asked.log_id for asked in sent(world, PeekMessages)} == {sent(world, PeekMessages)[0].log_id}


def test_a_peek_passes_over_fragments_that_are_away_unless_all_are(world: World, peer: Peer) -> None:
    send_to(peer, *range(FRAGMENTS))
    world.gates[0].refuse[PeekMessages] = AWAY
    there = [partition for partition, _, _ in peek(peer, 1, 100)]
    assert 0 < len(there) < FRAGMENTS
    world.gates[1].refuse[PeekMessages] = Refusal(NOT_FOUND, "it was deleted")
    assert code_of(ask(peer, "peek-message", {"from-sequence-number": Long(1), "message-count": Int(100)})) == 404
    for gate in world.gates:
        gate.refuse[PeekMessages] = AWAY
    assert code_of(ask(peer, "peek-message", {"from-sequence-number": Long(1), "message-count": Int(100)})) == 503


def test_a_peek_that_takes_too_long_is_told_so_once(world: World, peer: Peer) -> None:
    send_to(peer, 0, 5)
    for gate in world.gates:
        gate.hold[PeekMessages] = []
    asked = {"from-sequence-number": Long(1), "message-count": Int(10)}
    answer = ask(peer, "peek-message", asked, **{"com.microsoft:server-timeout": UInt(100)})
    assert code_of(answer) == 408
    for gate in world.gates:
        gate.release(PeekMessages)
    peer.run(200)
    assert len(peek(peer, 1, 10)) == 2


# By number


def test_deferred_messages_of_one_fragment_are_received_and_those_of_two_are_not(world: World, peer: Peer) -> None:
    first, second, other = deferred(peer, 4, 4, 11)
    refused = ask(
        peer, "receive-by-sequence-number", {"sequence-numbers": longs(first, other), "receiver-settle-mode": UInt(1)}
    )
    assert code_of(refused) == 400
    wanted = {"sequence-numbers": longs(first, second), "receiver-settle-mode": UInt(1)}
    answer = ask(peer, "receive-by-sequence-number", wanted)
    found = [decode_message(each["message"]).message_annotations or {} for each in body_of(answer)["messages"]]
    assert [(each[NUMBER], each[PARTITION]) for each in found] == [(first, 4), (second, 4)]
    tokens = uuids(*(each["lock-token"] for each in body_of(answer)["messages"]))
    done = ask(peer, "update-disposition", {"disposition-status": "completed", "lock-tokens": tokens})
    assert (code_of(done), active(world)) == (200, 1)


@pytest.mark.parametrize("number", [(16 << 48) + 1, (4 << 48) + 77, 5])
def test_a_number_that_no_fragment_has_is_no_message(peer: Peer, number: int) -> None:
    deferred(peer, 4)
    wanted = {"sequence-numbers": longs(number), "receiver-settle-mode": UInt(0)}
    assert code_of(ask(peer, "receive-by-sequence-number", wanted)) == 404
    assert code_of(ask(peer, "cancel-scheduled-message", {"sequence-numbers": longs(number)})) == 404


# Locks


def test_locks_of_several_fragments_are_renewed_and_told_in_the_order_of_the_request(world: World, peer: Peer) -> None:
    send_to(peer, *range(FRAGMENTS))
    link = peer.receiver("orders", credit=FRAGMENTS, **PEEK_LOCK)
    tokens = tokens_of(peer, link)
    ends = body_of(ask(peer, "renew-lock", {"lock-tokens": uuids(*tokens)}))["expirations"].items
    assert len(ends) == FRAGMENTS == len(sent(world, RenewLocks))
    # One broker answers later than the others, so its locks end later.
    tokens += tokens[:5]
    fragments = [*numbers(peer, link), *numbers(peer, link)[:5]]
    late = world.gates[store_of(world, fragments[2])]
    later = [store_of(world, fragment) == store_of(world, fragments[2]) for fragment in fragments]
    late.hold[RenewLocks] = []
    peer.env.call_later(250, lambda: late.release(RenewLocks))
    ends = body_of(ask(peer, "renew-lock", {"lock-tokens": uuids(*tokens)}))["expirations"].items
    assert [end > min(ends) + 50 for end in ends] == later


def test_a_token_of_no_fragment_is_a_lost_lock_and_the_others_are_done(world: World, peer: Peer) -> None:
    send_to(peer, 1, 8)
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    first, second = tokens_of(peer, link)
    foreign = type(first)(bytes=b"\x7f" + bytes(15))  # type: ignore[call-arg]
    assert code_of(ask(peer, "renew-lock", {"lock-tokens": uuids(first, foreign)})) == 410
    wanted = {"disposition-status": "completed", "lock-tokens": uuids(first, foreign, second)}
    assert (code_of(ask(peer, "update-disposition", wanted)), active(world)) == (410, 0)


@pytest.mark.parametrize("unknown", [0, 1])
def test_an_outcome_that_one_of_several_fragments_does_not_know_is_not_known(
    world: World, peer: Peer, unknown: int
) -> None:
    send_to(peer, 1, 8)
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    wanted = {"disposition-status": "completed", "lock-tokens": uuids(*tokens_of(peer, link))}
    stores = [store_of(world, fragment) for fragment in numbers(peer, link)]
    for at, store in enumerate(stores):
        answer = Refusal(STORE_OFFLINE, "its disk did not say", known=False) if at == unknown else AWAY
        world.gates[store].refuse[SettleMessages] = answer
    answer = ask(peer, "update-disposition", wanted)
    properties = answer.application_properties or {}
    assert (code_of(answer), properties["errorCondition"]) == (408, "com.microsoft:timeout")
    assert "update-disposition at 'orders' is not known: its disk did not say" in str(properties["statusDescription"])


def test_locks_are_settled_at_their_fragments_also_in_a_transaction(
    world: World, peer: Peer, controller: Controller
) -> None:
    send_to(peer, 1, 8, 8)
    link = peer.receiver("orders", credit=3, **PEEK_LOCK)
    wanted = {"disposition-status": "completed", "lock-tokens": uuids(*tokens_of(peer, link))}
    txn_id = controller.declare()
    assert code_of(ask(peer, "update-disposition", wanted, txn_id=txn_id)) == 200
    assert active(world) == 3
    controller.commit(txn_id)
    peer.run(500)
    assert active(world) == 0 and not sent(world, SettleMessages)


@pytest.mark.parametrize("way", ["link", "request"])
def test_a_transaction_that_can_have_some_of_these_settlements_alone_can_only_be_rolled_back(
    world: World, peer: Peer, controller: Controller, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(transactions, "SETTLED_LIMIT", 2)
    send_to(peer, 1, 8, 9)
    link = peer.receiver("orders", credit=3, **PEEK_LOCK)
    txn_id = controller.declare()
    if way == "link":
        state = TransactionalState(txn_id=txn_id, outcome=Accepted())
        [(_, _, told)] = settle(peer, link, 0, 2, state)
        assert str(told.error.condition) == "amqp:resource-limit-exceeded"
    else:
        wanted = {"disposition-status": "completed", "lock-tokens": uuids(*tokens_of(peer, link))}
        assert code_of(ask(peer, "update-disposition", wanted, txn_id=txn_id)) == 403
    assert "rollback" in controller.commit(txn_id)
    assert active(world) == 3


# Schedules


def test_what_is_scheduled_lies_where_its_key_says_and_is_cancelled_there(world: World, peer: Peer) -> None:
    answer = scheduled(peer, KEYS[6], KEYS[6])
    first, second = body_of(answer)["sequence-numbers"].items
    assert (first >> 48, second - first) == (6, 1)
    [other] = body_of(scheduled(peer, KEYS[12]))["sequence-numbers"].items
    assert other >> 48 == 12
    assert code_of(ask(peer, "cancel-scheduled-message", {"sequence-numbers": longs(other, first)})) == 200
    peer.run(61_000)
    link = peer.receiver("orders", credit=10, **PEEK_LOCK)
    assert [
        message.message_annotations[PARTITION] for message in peer.received(link) if message.message_annotations
    ] == [6]


def test_what_is_scheduled_together_without_a_key_lies_in_one_fragment_and_the_next_in_the_next(peer: Peer) -> None:
    requests = [body_of(scheduled(peer, None, None))["sequence-numbers"].items for _ in range(3)]
    fragments = [{number >> 48 for number in numbers} for numbers in requests]
    assert all(len(each) == 1 for each in fragments) and len(set.union(*fragments)) == 3


def test_what_is_scheduled_for_several_fragments_at_once_is_refused_and_for_one_that_is_away_later(
    world: World, peer: Peer
) -> None:
    assert code_of(scheduled(peer, KEYS[1], KEYS[2])) == 400
    for gate in world.gates:
        gate.refuse[EnqueueMessages] = AWAY
    answer = scheduled(peer, KEYS[1])
    assert (answer.application_properties or {})["errorCondition"] == "com.microsoft:server-busy"


# Sessions


@pytest.fixture
def sessions(world: World, peer: Peer) -> list[str]:
    """The ids of 40 sessions with a message each, in the order of their fragments."""
    create_queue(world, "sessions", storage=PARTITIONED, delivery=DeliverySettings(requires_session=True))
    names = [f"s{number}" for number in range(40)]
    for name in names:
        send(peer, b"x", queue="sessions", properties=Properties(group_id=name))
    return sorted(names, key=fragment_of)


def listed(peer: Peer, skip: int, top: int) -> list[str]:
    asked = {"last-updated-time": Timestamp(EVER_MS), "skip": Int(skip), "top": Int(top)}
    answer = ask(peer, "get-message-sessions", asked, node="sessions/$management")
    return [] if code_of(answer) == 204 else list(body_of(answer)["sessions-ids"].items)


@pytest.mark.parametrize("page", [1, 7, 40, 100])
def test_sessions_are_listed_over_all_fragments_in_pages_that_meet(peer: Peer, sessions: list[str], page: int) -> None:
    found: list[str] = []
    while more := listed(peer, len(found), page):
        assert len(more) <= page
        found += more
    assert found == sessions


def test_a_list_of_sessions_asks_no_more_fragments_than_it_needs(world: World, peer: Peer, sessions: list[str]) -> None:
    begun = len(sent(world, ListSessions))
    listed(peer, 0, 1)
    assert len(sent(world, ListSessions)) - begun == 1


def test_a_list_of_sessions_passes_over_fragments_that_are_away(world: World, peer: Peer, sessions: list[str]) -> None:
    world.gates[0].refuse[ListSessions] = AWAY
    entity = world.namespace.get("sessions", QueueDescription)
    there = [name for name in sessions if entity.placements[fragment_of(name)].store_index]
    assert 0 < len(there) < len(sessions)
    assert listed(peer, 0, 100) == listed(peer, 0, 7) + listed(peer, 7, 100) == there


def test_the_state_and_the_lock_of_a_session_are_kept_at_its_fragment(
    world: World, peer: Peer, sessions: list[str]
) -> None:
    link = accept_session(peer, "s7")
    node = "sessions/$management"
    assert code_of(ask(peer, "set-session-state", {"session-id": "s7", "session-state": b"on"}, node=node)) == 200
    assert body_of(ask(peer, "get-session-state", {"session-id": "s7"}, node=node)) == {"session-state": b"on"}
    assert code_of(ask(peer, "renew-session-lock", {"session-id": "s7"}, node=node)) == 200
    assert len(sent(world, RenewSession)) == 1
    assert code_of(ask(peer, "renew-session-lock", {"session-id": "s8"}, node=node)) == 410
    assert peer.is_attached(link)


# What there is not


def test_messages_are_not_deleted_in_batches(peer: Peer) -> None:
    answer = ask(peer, "batch-delete-messages", {"message-count": Int(5)})
    assert (answer.application_properties or {})["errorCondition"] == "amqp:not-allowed"


def test_rules_of_a_partitioned_topic_are_not_changed_in_a_transaction(
    world: World, peer: Peer, controller: Controller
) -> None:
    world.create(TopicDescription("news", storage=PARTITIONED))
    world.create(TopicDescription("plain"))
    for topic in ("news", "plain"):
        world.create(SubscriptionDescription(f"{topic}/Subscriptions/all"))
    txn_id = controller.declare()
    for topic, condition in (("news", "amqp:not-allowed"), ("plain", "amqp:not-implemented")):
        node = f"{topic}/Subscriptions/all/$management"
        answer = ask(peer, "remove-rule", {"rule-name": "$Default"}, node=node, txn_id=txn_id)
        assert (answer.application_properties or {})["errorCondition"] == condition
    answer = ask(peer, "remove-rule", {"rule-name": "$Default"}, node="news/Subscriptions/all/$management")
    assert code_of(answer) == 200
