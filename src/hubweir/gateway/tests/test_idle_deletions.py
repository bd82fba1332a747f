"""Queues, topics and subscriptions go when nobody used them for their AutoDeleteOnIdle, and never before."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from hubweir.amqp.types.values import Symbol, Timestamp
from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.fragment import AskFragmentInfo, DeleteFragment, OpenReceiver
from hubweir.broker.commands.process import CloseOwner, Refusal
from hubweir.broker.commands.topic import RemoveSubscription
from hubweir.errors import STORE_OFFLINE
from hubweir.gateway.amqp.tests.queue_world import ask, code_of, send
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.gateway.idle_deletions import ASKED_AT_ONCE, GATHER_MS, RETRY_MS
from hubweir.limits import GatewayLimits
from hubweir.namespace.iso_duration import MINUTE_MS, UNLIMITED, WrittenDuration, written_duration
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription, WantedRule
from hubweir.namespace.topic_description import TopicDescription
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

SPAN = written_duration("PT5M")
SPAN_MS = 5 * MINUTE_MS
# How much later than its span an entity may go: the look behind its making, the one at its time, and the steps.
LATE_MS = 3 * GATHER_MS
ORDERS = QueueDescription("orders", auto_delete_on_idle=SPAN)
NEWS, ALL = "news", "news/Subscriptions/all"
MAIN, PEEK_LOCK = SubQueue.MAIN, ReceiveMode.PEEK_LOCK


@pytest.fixture
def world() -> World:
    return World()


def coarse_peer(world: World) -> Peer:
    """A peer for tests of minutes."""
    return world.trusted_peer(tick_ms=500)


def is_there(world: World, name: str = "orders") -> bool:
    return world.namespace.find(name, MessagingDescription) is not None


def change(world: World, name: str, **settings: Any) -> None:
    """Set something of an entity, as the operator does."""
    kind = type(world.namespace.get(name, MessagingDescription).description)
    now_ms = world.env.now_ms()
    changed = world.wait(
        lambda done: world.gateway.keeper.change(
            name, kind, lambda known, _: replace(known, changed_at_ms=now_ms, **settings), done
        )
    )
    assert isinstance(changed, MessagingDescription), changed


def make_topic(world: World, *, topic: WrittenDuration = UNLIMITED, subscription: WrittenDuration = UNLIMITED) -> None:
    world.create(TopicDescription(NEWS, auto_delete_on_idle=topic))
    world.create(SubscriptionDescription(ALL, auto_delete_on_idle=subscription))


def test_a_queue_that_nobody_used_goes_with_its_messages(world: World) -> None:
    world.create(ORDERS)
    (placement,) = world.namespace.get("orders", QueueDescription).placements
    world.create(QueueDescription("kept"))
    peer = world.trusted_peer()
    send(peer, b"tea")
    peer.cut()
    world.run_for(SPAN_MS - 1_000)
    assert is_there(world)
    world.run_for(LATE_MS)
    assert not is_there(world) and is_there(world, "kept")
    assert world.gate.sent(DeleteFragment) == [DeleteFragment(placement.log_id)]
    assert placement.log_id not in world.store.log_ids()


def test_a_topic_goes_with_its_subscriptions_and_a_subscription_alone(world: World) -> None:
    make_topic(world, subscription=SPAN)
    world.run_for(SPAN_MS + LATE_MS)
    assert is_there(world, NEWS) and not is_there(world, ALL)
    assert len(world.gate.sent(RemoveSubscription)) == 1
    world.create(SubscriptionDescription(ALL))
    change(world, NEWS, auto_delete_on_idle=SPAN)
    world.run_for(SPAN_MS + LATE_MS)
    assert not is_there(world, NEWS) and not is_there(world, ALL)


def test_a_topic_and_a_subscription_whose_time_comes_together_go_together(world: World) -> None:
    make_topic(world, topic=SPAN, subscription=SPAN)
    world.run_for(SPAN_MS + LATE_MS)
    assert not is_there(world, NEWS) and not is_there(world, ALL)
    assert world.namespace.unfinished() == ()


def test_a_use_of_a_subscription_keeps_its_topic_and_a_send_to_the_topic_keeps_the_topic_alone(world: World) -> None:
    make_topic(world, topic=SPAN, subscription=SPAN)
    world.create(SubscriptionDescription("news/Subscriptions/unused", auto_delete_on_idle=SPAN))
    world.run_for(SPAN_MS - MINUTE_MS)
    peer = world.trusted_peer()
    assert code_of(
        ask(peer, "peek-message", {"from-sequence-number": 1, "message-count": 1}, node=f"{ALL}/$management")
    )
    peer.cut()
    world.run_for(SPAN_MS - MINUTE_MS)
    assert is_there(world, NEWS) and is_there(world, ALL) and not is_there(world, "news/Subscriptions/unused")
    peer = world.trusted_peer()
    send(peer, b"tea", queue=NEWS)
    peer.cut()
    world.run_for(SPAN_MS - MINUTE_MS)
    assert is_there(world, NEWS) and not is_there(world, ALL)


def test_a_receiver_that_waits_keeps_a_queue_and_its_end_does_not(world: World) -> None:
    world.create(ORDERS)
    peer = coarse_peer(world)
    link = peer.receiver("orders", credit=1, rcv_settle_mode=1)
    peer.run(3 * SPAN_MS)
    assert peer.is_attached(link) and is_there(world)
    peer.cut()
    world.run_for(SPAN_MS - LATE_MS)
    assert is_there(world)
    world.run_for(2 * LATE_MS)
    assert not is_there(world)


def test_a_sender_that_sends_nothing_keeps_a_queue_until_it_goes(world: World) -> None:
    world.create(ORDERS)
    peer = coarse_peer(world)
    link = peer.sender("orders")
    peer.run(2 * SPAN_MS - MINUTE_MS)
    assert peer.is_attached(link) and is_there(world)
    peer.cut()
    world.run_for(SPAN_MS - LATE_MS)
    assert is_there(world)
    world.run_for(2 * LATE_MS)
    assert not is_there(world)


def test_a_sender_that_was_detached_for_idleness_keeps_nothing() -> None:
    world = World(limits=GatewayLimits(idle_link_ms=MINUTE_MS))
    world.create(ORDERS)
    peer = coarse_peer(world)
    peer.sender("orders")
    peer.run(SPAN_MS + 2 * MINUTE_MS)
    assert not is_there(world)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("peek-message", {"from-sequence-number": 1, "message-count": 1}),
        ("enumerate-rules", {"skip": 0, "top": 1}),
    ],
)
def test_what_is_asked_of_the_management_node_keeps_an_entity(
    world: World, operation: str, body: dict[str, object]
) -> None:
    make_topic(world, topic=SPAN, subscription=SPAN)
    for _ in range(3):
        peer = world.trusted_peer()
        ask(peer, operation, body, node=f"{ALL}/$management")
        peer.cut()
        world.run_for(SPAN_MS - MINUTE_MS)
    assert is_there(world, NEWS) and is_there(world, ALL)
    world.run_for(MINUTE_MS + LATE_MS)
    assert not is_there(world, NEWS)


def test_who_may_not_ask_keeps_nothing(world: World) -> None:
    world.create(ORDERS)
    world.run_for(SPAN_MS - MINUTE_MS)
    peer = world.peer()
    answer = ask(peer, "peek-message", {"from-sequence-number": 1, "message-count": 1})
    assert code_of(answer) == 401
    peer.cut()
    world.run_for(MINUTE_MS + LATE_MS)
    assert not is_there(world)


def test_an_update_keeps_an_entity_and_a_shorter_or_longer_span_counts_from_it(world: World) -> None:
    world.create(ORDERS)
    world.create(QueueDescription("other", auto_delete_on_idle=written_duration("P1D")))
    world.run_for(SPAN_MS - MINUTE_MS)
    change(world, "orders", user_metadata="wanted")
    change(world, "other", auto_delete_on_idle=SPAN)
    world.run_for(SPAN_MS - LATE_MS)
    assert is_there(world) and is_there(world, "other")
    change(world, "orders", auto_delete_on_idle=written_duration("PT10M"))
    world.run_for(2 * LATE_MS)
    assert is_there(world) and not is_there(world, "other")
    world.run_for(2 * SPAN_MS - 3 * LATE_MS)
    assert is_there(world)
    world.run_for(2 * LATE_MS)
    assert not is_there(world)


def test_a_span_that_is_taken_away_deletes_nothing(world: World) -> None:
    world.create(ORDERS)
    world.run_for(SPAN_MS - 10)
    change(world, "orders", auto_delete_on_idle=UNLIMITED)
    world.run_for(10 * SPAN_MS)
    assert is_there(world)


def test_a_rule_more_keeps_a_subscription(world: World) -> None:
    make_topic(world, subscription=SPAN)
    world.run_for(SPAN_MS - MINUTE_MS)
    rule = SubscriptionRuleDescription("more")
    world.wait(lambda done: world.gateway.keeper.put_subscription_rule(ALL, WantedRule(rule), done))
    world.run_for(SPAN_MS - MINUTE_MS)
    assert is_there(world, ALL)


def test_a_message_that_waits_for_its_time_keeps_a_queue(world: World) -> None:
    world.create(ORDERS)
    peer = world.trusted_peer()
    at_ms = world.env.now_ms() + 3 * SPAN_MS
    send(peer, b"later", message_annotations={Symbol("x-opt-scheduled-enqueue-time"): Timestamp(at_ms)})
    peer.cut()
    world.run_for(4 * SPAN_MS - MINUTE_MS)
    assert is_there(world)
    world.run_for(MINUTE_MS + LATE_MS)
    assert not is_there(world)


def test_jumps_of_the_wall_clock_delete_nothing_and_keep_nothing(world: World) -> None:
    world.create(ORDERS)
    world.env.jump(1_000 * SPAN_MS)
    world.run_for(SPAN_MS - LATE_MS)
    assert is_there(world)
    world.env.jump(-2_000 * SPAN_MS)
    world.run_for(2 * LATE_MS)
    assert not is_there(world)


def test_idleness_counts_anew_from_a_start(world: World) -> None:
    world.create(ORDERS)
    world.run_for(SPAN_MS - LATE_MS)
    world.env.crash(power_cut=False)
    again = World(env=world.env.restart())
    again.run_for(SPAN_MS - LATE_MS)
    assert is_there(again)
    again.run_for(2 * LATE_MS)
    assert not is_there(again)


def test_only_those_whose_time_may_have_come_are_asked_about(world: World) -> None:
    """What was used in between is asked about once in its span; what has a longer one, and what has none, never."""
    for name, span in (("orders", "PT5M"), ("long", "P1D"), ("kept", UNLIMITED.text)):
        world.create(QueueDescription(name, auto_delete_on_idle=written_duration(span)))
    peer = coarse_peer(world)
    peer.receiver("orders", credit=1, rcv_settle_mode=1)
    peer.run(4 * SPAN_MS + LATE_MS)
    (placement,) = world.namespace.get("orders", QueueDescription).placements
    assert world.gate.sent(AskFragmentInfo) == [AskFragmentInfo(placement.log_id)] * 4


def test_many_go_in_several_looks(world: World) -> None:
    names = [f"queue-{number}" for number in range(ASKED_AT_ONCE + 1)]
    for name in names:
        world.create(QueueDescription(name, auto_delete_on_idle=SPAN))
    world.run_for(SPAN_MS + LATE_MS + 2 * GATHER_MS)
    assert not any(is_there(world, name) for name in names)


def test_what_its_broker_does_not_tell_is_asked_again(world: World) -> None:
    world.create(ORDERS)
    world.gate.refuse[AskFragmentInfo] = Refusal(STORE_OFFLINE, "away")
    world.run_for(2 * SPAN_MS)
    assert is_there(world)
    assert len(world.gate.sent(AskFragmentInfo)) <= 1 + SPAN_MS // RETRY_MS
    del world.gate.refuse[AskFragmentInfo]
    world.run_for(RETRY_MS + LATE_MS)
    assert not is_there(world)


def test_a_queue_of_the_same_name_that_is_made_meanwhile_is_another(world: World) -> None:
    world.create(ORDERS)
    world.gate.hold[AskFragmentInfo] = []
    world.run_for(SPAN_MS + LATE_MS)
    assert len(world.gate.hold[AskFragmentInfo]) == 1
    world.wait(partial(world.gateway.keeper.delete, "orders", QueueDescription))
    world.create(ORDERS)
    world.gate.release(AskFragmentInfo)
    world.run_for(LATE_MS)
    assert is_there(world)


def test_nothing_is_deleted_after_the_stop(world: World) -> None:
    world.create(ORDERS)
    world.gateway.idle_deletions.stop()
    world.run_for(2 * SPAN_MS)
    assert is_there(world)
    world.create(QueueDescription("another", auto_delete_on_idle=SPAN))
    world.run_for(2 * SPAN_MS)
    assert is_there(world, "another")


def test_a_partitioned_queue_goes_when_none_of_its_fragments_was_used_and_all_say_so() -> None:
    world = World(stores=3)
    world.create(replace(ORDERS, storage=StorageSettings(is_partitioned=True)))
    places = world.gateway.directory.fragments(world.namespace.get("orders", QueueDescription)).places
    world.run_for(SPAN_MS - MINUTE_MS)
    for place in places[-1:]:
        world.wait(partial(place.broker.submit, OpenReceiver(place.log_id, Owner(1, 1), MAIN, PEEK_LOCK)))
    world.run_for(2 * SPAN_MS)
    assert is_there(world), "one fragment is in use"
    world.gates[places[-1].store_index].submit(CloseOwner(Owner(1, 1)), lambda _: None)
    world.gates[places[0].store_index].is_up = False
    world.run_for(2 * SPAN_MS)
    assert is_there(world), "one fragment does not say"
    world.gates[places[0].store_index].is_up = True
    world.run_for(RETRY_MS + LATE_MS)
    assert not is_there(world)
