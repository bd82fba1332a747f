"""message_management.py: bounds of what a request asks, lost locks among good ones, rights, and links that it names.

What each operation answers, frame by frame, is in tests/conformance/test_raw_message_management.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, Properties, encode_message
from hubweir.amqp.messaging.outcome import Accepted, Modified
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Timestamp, UInt
from hubweir.broker.commands.fragment import DeleteMessages, ListSessions, PeekMessages
from hubweir.gateway.amqp.message_management import DELETE_LIMIT_MESSAGES, PEEK_LIMIT_MESSAGES, SESSIONS_LIMIT
from hubweir.gateway.amqp.session_filter import SESSION_FILTER
from hubweir.gateway.amqp.tests.queue_world import (
    PEEK_LOCK,
    ask,
    body_of,
    code_of,
    counts,
    create_queue,
    queue_world,
    send,
    settle,
    switch,
)
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription

EVER_MS = 253_402_300_800_000


@pytest.fixture
def world() -> World:
    return queue_world()


def tokens_of(peer: Peer, link: Any) -> list[object]:
    """The lock tokens of what came on a link."""
    annotations = [message.delivery_annotations or {} for message in peer.received(link)]
    return [each["x-opt-lock-token"] for each in annotations]


def uuids(*tokens: object) -> Array:
    return Array(AmqpType.UUID, tokens)


def test_a_request_for_too_much_is_answered_with_as_much_as_one_answer_has(world: World, peer: Peer) -> None:
    many = Int(2**31 - 1)
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    assert code_of(ask(peer, "peek-message", {"from-sequence-number": Long(1), "message-count": many})) == 204
    assert code_of(ask(peer, "batch-delete-messages", {"message-count": many})) == 204
    listing = {"last-updated-time": Timestamp(EVER_MS), "skip": Int(0), "top": many}
    assert code_of(ask(peer, "get-message-sessions", listing, node="sessions/$management")) == 204
    (peeked,), (deleted,) = world.gate.sent(PeekMessages), world.gate.sent(DeleteMessages)
    (listed,) = world.gate.sent(ListSessions)
    assert (peeked.max_count, deleted.max_count, listed.top) == (
        PEEK_LIMIT_MESSAGES,
        DELETE_LIMIT_MESSAGES,
        SESSIONS_LIMIT,
    )


def test_of_several_locks_one_that_is_lost_refuses_the_request_wherever_it_stands(world: World, peer: Peer) -> None:
    send(peer, b"a", b"b", b"c")
    link = peer.receiver("orders", credit=3, **PEEK_LOCK)
    first, second, third = tokens_of(peer, link)
    settle(peer, link, 1, 1, Accepted())
    assert code_of(ask(peer, "renew-lock", {"lock-tokens": uuids(first, second)})) == 410
    wanted = {"disposition-status": "completed", "lock-tokens": uuids(third, second)}
    assert code_of(ask(peer, "update-disposition", wanted)) == 410
    assert code_of(ask(peer, "renew-lock", {"lock-tokens": uuids(first)})) == 200


@pytest.mark.parametrize("status", [Availability.DISABLED, Availability.SEND_DISABLED, Availability.RECEIVE_DISABLED])
def test_a_request_sends_and_receives_as_the_status_of_the_queue_says(
    world: World, peer: Peer, status: Availability
) -> None:
    send(peer, b"a", b"deferred")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    settle(peer, link, 1, 1, Modified(undeliverable_here=True))
    switch(world, "orders", status)
    message = {"message": encode_message(Message(body=DataBody([b"b"])))}
    scheduled = ask(peer, "schedule-message", {"messages": [message]})
    deferred = ask(peer, "receive-by-sequence-number", {"sequence-numbers": [Long(2)], "receiver-settle-mode": UInt(1)})
    deleted = ask(peer, "batch-delete-messages", {"message-count": Int(5)})
    takes, gives = status is Availability.RECEIVE_DISABLED, status is Availability.SEND_DISABLED
    assert [code_of(each) for each in (scheduled, deferred, deleted)] == [
        200 if takes else 400,
        200 if gives else 400,
        204 if gives else 400,
    ]
    condition = (scheduled.application_properties or {}).get("errorCondition")
    assert takes or condition == "com.microsoft:entity-disabled"
    # What was received before is settled, and looked at, whatever the status is.
    completed = {"disposition-status": "completed", "lock-tokens": uuids(tokens_of(peer, link)[0])}
    assert code_of(ask(peer, "update-disposition", completed)) == 200
    assert code_of(ask(peer, "peek-message", {"from-sequence-number": Long(1), "message-count": Int(9)})) == 200


def test_messages_before_a_time_are_deleted_and_the_first_moment_is_a_time(world: World, peer: Peer) -> None:
    send(peer, b"a", b"b")
    before = {"message-count": Int(5), "enqueued-time-utc": Timestamp(0)}
    assert code_of(ask(peer, "batch-delete-messages", before)) == 204
    assert counts(world).active == 2
    assert body_of(ask(peer, "batch-delete-messages", {"message-count": Int(5)})) == {"message-count": 2}


def test_sessions_and_rules_are_listed_by_pages(world: World, peer: Peer) -> None:
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    for session in ("a", "b", "c"):
        send(peer, b"x", queue="sessions", properties=Properties(group_id=session))
    page = {"last-updated-time": Timestamp(EVER_MS), "skip": Int(1), "top": Int(1)}
    listed = body_of(ask(peer, "get-message-sessions", page, node="sessions/$management"))
    assert list(listed["sessions-ids"].items) == ["b"]

    world.create(TopicDescription("flights"))
    world.create(SubscriptionDescription("flights/Subscriptions/all"))
    node = "flights/Subscriptions/all/$management"
    for name in ("one", "two"):
        rule = {"rule-name": name, "rule-description": {"sql-filter": {"expression": "1 = 1"}}}
        assert code_of(ask(peer, "add-rule", rule, node=node)) == 200
    rules = body_of(ask(peer, "enumerate-rules", {"skip": Int(1), "top": Int(1)}, node=node))["rules"]
    assert [each["rule-description"].value[2] for each in rules] == ["one"]
    both = body_of(ask(peer, "enumerate-rules", {"skip": Int(1), "top": Int(5)}, node=node))["rules"]
    assert [each["rule-description"].value[2] for each in both] == ["one", "two"]


def test_the_state_of_a_session_is_no_larger_than_a_message(world: World, peer: Peer) -> None:
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    most = 1024 * 1024
    peer.session().attach_receiver(
        "mine", source=Source(address="sessions", filter={SESSION_FILTER: "s"}), target=Target(address="t"),
        **PEEK_LOCK,
    )  # fmt: skip
    peer.run()
    for size, code in ((most, 200), (most + 1, 403)):
        state = {"session-id": "s", "session-state": bytes(size)}
        assert code_of(ask(peer, "set-session-state", state, node="sessions/$management")) == code


def test_the_link_that_a_request_names_is_one_of_its_own_queue(world: World, peer: Peer) -> None:
    for queue in ("sessions", "others"):
        create_queue(world, queue, delivery=DeliverySettings(requires_session=True))
        for session in ("a", "b"):
            send(peer, session.encode(), queue=queue, properties=Properties(group_id=session))
    for queue, session in (("others", "b"), ("sessions", "a")):
        peer.session().attach_receiver(
            "mine", source=Source(address=queue, filter={SESSION_FILTER: session}), target=Target(address="t"),
            **PEEK_LOCK,
        )  # fmt: skip
        peer.run()
    wanted = {"from-sequence-number": Long(1), "message-count": Int(5)}
    said = {"associated-link-name": "mine"}
    for queue, session in (("others", "b"), ("sessions", "a")):
        found = body_of(ask(peer, "peek-message", wanted, node=f"{queue}/$management", **said))["messages"]
        assert len(found) == 1 and f"\xa1\x01{session}".encode("latin-1") in bytes(found[0]["message"])


@pytest.mark.parametrize(
    ("rule", "operation", "code"),
    [("sender", "peek-message", 401), ("sender", "cancel-scheduled-message", 404), ("listener", "peek-message", 204),
     ("listener", "cancel-scheduled-message", 401)],
)  # fmt: skip
def test_each_operation_needs_its_own_right(world: World, rule: str, operation: str, code: int) -> None:
    peer = world.peer()
    assert peer.put_token("sb://localhost/orders", rule=rule)[0] == 202
    wanted = {
        "from-sequence-number": Long(1), "message-count": Int(1),
        "sequence-numbers": Array(AmqpType.LONG, (Long(1),)),
    }  # fmt: skip
    assert code_of(ask(peer, operation, wanted)) == code
