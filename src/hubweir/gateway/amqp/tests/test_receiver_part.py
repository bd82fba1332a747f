"""A part of a receiver's link: taken away before it is sent, and opened again where its broker was away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hubweir.amqp.messaging.outcome import Accepted, Released
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.command import Command, OnAnswer, Owner
from hubweir.broker.commands.fragment import (
    CancelReceive,
    CloseReceiver,
    OpenReceiver,
    ReceiveMessages,
    SettleMessages,
)
from hubweir.broker.commands.process import CloseOwner, Refusal
from hubweir.errors import STORE_OFFLINE, TIMED_OUT
from hubweir.gateway.amqp.queue_receiver_node import REOPEN_MS, SLOW_MS
from hubweir.gateway.amqp.tests.partitioned_world import FRAGMENTS, partitioned_world
from hubweir.gateway.amqp.tests.queue_world import (
    PEEK_LOCK,
    RECEIVE_AND_DELETE,
    create_queue,
    flows,
    settle,
    transfers,
)
from hubweir.gateway.amqp.tests.test_fan_in import active, numbers, send_to, sent
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.namespace.queue_description import QueueDescription
from hubweir.queue.settle_outcome import SettleOutcome

AWAY = Refusal(STORE_OFFLINE, "its broker is away")
LOST = Refusal(TIMED_OUT, "its broker went away meanwhile", known=False)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return partitioned_world(monkeypatch)


def store_of(world: World, fragment: int) -> int:
    entity = world.namespace.find("orders", QueueDescription)
    assert entity is not None
    return entity.placements[fragment].store_index


def refuse(world: World, store: int, refusal: Refusal, *kinds: Any) -> None:
    for kind in kinds or (OpenReceiver, ReceiveMessages, SettleMessages):
        world.gates[store].refuse[kind] = refusal


@pytest.mark.parametrize("mode", [PEEK_LOCK, RECEIVE_AND_DELETE], ids=["peek-lock", "receive-and-delete"])
def test_what_was_on_its_way_when_the_link_ended_is_given_back(world: World, peer: Peer, mode: dict[str, int]) -> None:
    """The broker of another process has locked it, and its answer comes behind the end."""
    held: list[Callable[[], None]] = []
    gate = world.gates[store_of(world, 3)]
    submit = gate.submit

    def answer_later(command: Command, on_answer: OnAnswer) -> None:
        if isinstance(command, ReceiveMessages):
            submit(command, lambda answer: held.append(partial(on_answer, answer)))
        else:
            submit(command, on_answer)

    gate.submit = answer_later  # type: ignore[method-assign]
    send_to(peer, 3)
    link = peer.receiver("orders", credit=5, **mode)
    peer.run(2 * SLOW_MS)
    link.detach()
    peer.run(100)
    gate.submit = submit  # type: ignore[method-assign]
    assert held and numbers(peer, link) == []
    for answer in held:
        answer()
    other = peer.receiver("orders", credit=5, **PEEK_LOCK)
    peer.run(200)
    assert numbers(peer, other) == [3]
    assert [message.header.delivery_count for message in peer.received(other) if message.header] == [0]


# Receive and delete


def test_what_is_deleted_goes_out_settled_and_without_a_lock(world: World, peer: Peer) -> None:
    send_to(peer, *range(FRAGMENTS))
    begun = len(peer.came)
    link = peer.receiver("orders", credit=FRAGMENTS + 5, **RECEIVE_AND_DELETE)
    peer.run(200)
    assert sorted(numbers(peer, link)) == list(range(FRAGMENTS))
    assert all(part.settled for part in transfers(peer, begun))
    assert all(message.delivery_annotations is None for message in peer.received(link))
    assert not any(
        Symbol("x-opt-locked-until") in (message.message_annotations or {}) for message in peer.received(link)
    )
    assert active(world) == 0


def test_of_what_comes_over_the_credit_nothing_is_deleted(world: World, peer: Peer) -> None:
    for gate in world.gates:
        gate.hold[CancelReceive] = []
    link = peer.receiver("orders", credit=1, **RECEIVE_AND_DELETE)
    send_to(peer, *range(FRAGMENTS))
    peer.run(100)
    assert (len(numbers(peer, link)), active(world)) == (1, FRAGMENTS - 1)
    link.grant(2)
    peer.run(100)
    assert (len(numbers(peer, link)), active(world)) == (3, FRAGMENTS - 3)
    peer.run(1_000)
    other = peer.receiver("orders", credit=100, **RECEIVE_AND_DELETE)
    peer.run(200)
    assert sorted(numbers(peer, link) + numbers(peer, other)) == list(range(FRAGMENTS))


def test_what_is_deleted_as_the_credit_is_taken_back_is_sent_with_the_next(world: World, peer: Peer) -> None:
    send_to(peer, 3, 3, 3)
    gate = world.gates[store_of(world, 3)]
    gate.hold[SettleMessages] = []
    link = peer.receiver("orders", credit=3, **RECEIVE_AND_DELETE)
    peer.run(200)
    link.grant(1)
    peer.run()
    gate.release(SettleMessages)
    peer.run(2_000)
    assert (numbers(peer, link), active(world)) == ([3], 0)
    link.grant(5)
    peer.run()
    assert numbers(peer, link) == [3, 3, 3]


def test_more_credit_while_something_is_deleted_sends_nothing_that_was_not(world: World, peer: Peer) -> None:
    send_to(peer, 3, 3, 3)
    gate = world.gates[store_of(world, 3)]
    gate.hold[ReceiveMessages] = []
    gate.hold[SettleMessages] = []
    link = peer.receiver("orders", credit=3, **RECEIVE_AND_DELETE)
    peer.run(FRAGMENTS * SLOW_MS)
    link.grant(1)
    peer.run()
    gate.release(ReceiveMessages)
    peer.run()
    link.grant(3)
    peer.run()
    gate.release(SettleMessages)
    peer.run(62_000)
    assert (numbers(peer, link), active(world)) == ([3, 3, 3], 0)


def test_a_message_whose_lock_ended_before_it_could_be_deleted_goes_to_somebody_else(world: World, peer: Peer) -> None:
    send_to(peer, 3, 3)
    gate = world.gates[store_of(world, 3)]
    gate.hold[SettleMessages] = []
    link = peer.receiver("orders", credit=2, **RECEIVE_AND_DELETE)
    peer.run(61_000)
    gate.release(SettleMessages)
    peer.run(200)
    assert (numbers(peer, link), active(world)) == ([3, 3], 0), "each once, by its second lock"


@pytest.mark.parametrize("refusal", [AWAY, LOST], ids=["known", "unknown"])
def test_what_may_have_been_deleted_is_never_sent_and_the_link_goes_on(
    world: World, peer: Peer, refusal: Refusal
) -> None:
    link = peer.receiver("orders", **RECEIVE_AND_DELETE)
    send_to(peer, 3)
    store = store_of(world, 3)
    refuse(world, store, refusal, SettleMessages)
    link.grant(5)
    peer.run(500)
    assert numbers(peer, link) == []
    world.gates[store].refuse.clear()
    send_to(peer, next(each for each in range(FRAGMENTS) if store_of(world, each) != store))
    assert len(numbers(peer, link)) == 1 and peer.is_attached(link)
    peer.run(62_000)
    assert 3 in numbers(peer, link), "its lock ended, so it was in the queue"


# Brokers that are away


@pytest.mark.parametrize("mode", [PEEK_LOCK, RECEIVE_AND_DELETE])
def test_a_link_lives_on_without_a_broker_and_has_its_messages_when_it_is_back(
    world: World, peer: Peer, mode: dict[str, int]
) -> None:
    refuse(world, 1, AWAY)
    link = peer.receiver("orders", credit=100, **mode)
    send_to(peer, *range(FRAGMENTS))
    peer.run(200)
    there = [each for each in range(FRAGMENTS) if store_of(world, each) != 1]
    assert sorted(numbers(peer, link)) == there
    world.gates[1].refuse.clear()
    peer.run(REOPEN_MS + 200)
    assert sorted(numbers(peer, link)) == list(range(FRAGMENTS))


def test_a_broker_that_goes_away_leaves_the_link_and_its_fragments_are_opened_again(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", credit=100, **PEEK_LOCK)
    refuse(world, 1, LOST)
    send_to(peer, *range(FRAGMENTS))  # what waits there is answered, and asked again: that is refused
    begun = len(sent(world, OpenReceiver))
    assert peer.is_attached(link)
    peer.run(3 * REOPEN_MS)
    assert peer.is_attached(link) and len(sent(world, OpenReceiver)) > begun
    world.gates[1].refuse.clear()
    peer.run(REOPEN_MS + 200)
    send_to(peer, *range(FRAGMENTS), body="0")
    assert {number for number in numbers(peer, link) if number % 10 == 0} >= {10 * each for each in range(FRAGMENTS)}


@pytest.mark.parametrize("credit", [0, 100])
def test_a_broker_that_ended_and_is_back_is_asked_anew_by_the_same_link(world: World, peer: Peer, credit: int) -> None:
    link = peer.receiver("orders", credit=credit, **PEEK_LOCK)
    closed = len(sent(world, CloseReceiver))
    world.connections.broker_gone(world.gates[1])
    world.gates[1]._client.submit(CloseOwner(Owner(0, -1)), lambda _: None)
    peer.run(REOPEN_MS + 200)
    assert len(sent(world, CloseReceiver)) == closed, "its number may be another's by now"
    link.grant(100)
    send_to(peer, *range(FRAGMENTS))
    assert sorted(numbers(peer, link)) == list(range(FRAGMENTS))


def test_a_link_of_one_fragment_ends_with_its_broker(world: World, peer: Peer) -> None:
    create_queue(world, "plain")
    link = peer.receiver("plain", credit=1, **PEEK_LOCK)
    entity = world.namespace.find("plain", QueueDescription)
    assert entity is not None
    world.connections.broker_gone(world.gates[entity.placements[0].store_index])
    peer.run()
    assert str(peer.refusal(link).condition) == "amqp:link:detach-forced"


def test_a_link_ends_when_all_brokers_are_away_and_clients_may_attach_again(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", credit=100, **PEEK_LOCK)
    for store in range(3):
        refuse(world, store, AWAY)
    send_to(peer, *range(FRAGMENTS))
    assert str(peer.refusal(link).condition) == "amqp:link:detach-forced"
    refused = peer.receiver("orders", credit=3, **PEEK_LOCK)
    assert str(peer.refusal(refused).condition) == "com.microsoft:server-busy"
    for gate in world.gates:
        gate.refuse.clear()
    again = peer.receiver("orders", credit=3, **PEEK_LOCK)
    send_to(peer, 7)
    assert numbers(peer, again) == [7]


@pytest.mark.parametrize("mode", [PEEK_LOCK, RECEIVE_AND_DELETE])
@pytest.mark.parametrize("stalled", [ReceiveMessages, SettleMessages])
def test_a_broker_that_says_nothing_keeps_neither_messages_of_others_nor_a_drain(
    world: World, peer: Peer, mode: dict[str, int], stalled: Any
) -> None:
    send_to(peer, *range(FRAGMENTS))
    world.gates[1].hold[stalled] = []
    link = peer.receiver("orders", credit=FRAGMENTS, **mode)
    peer.run(3 * SLOW_MS)  # whichever of the fragments there is looked at first, the others are not
    there = {each for each in range(FRAGMENTS) if store_of(world, each) != 1}
    assert there <= set(numbers(peer, link))
    begun = len(peer.came)
    link.grant(FRAGMENTS, drain=True)
    peer.run(3 * SLOW_MS)
    assert [flow.drain for flow in flows(peer, begun)] == [True]
    world.gates[1].release(stalled)
    peer.run(500)
    link.grant(FRAGMENTS)
    peer.run(1_500)
    assert sorted(numbers(peer, link)) == list(range(FRAGMENTS))


def test_how_long_a_fragment_is_waited_for_counts_from_when_it_is_asked(world: World, peer: Peer) -> None:
    """The first one answers late, but in time; the second one is not slow for that."""
    for gate in world.gates:
        gate.hold[ReceiveMessages] = []
    peer.receiver("orders", credit=5, **PEEK_LOCK)
    peer.run(SLOW_MS - 100)
    [answer_first] = [ask for gate in world.gates for ask in gate.hold[ReceiveMessages]]
    answer_first()
    peer.run(100)
    assert len(sent(world, ReceiveMessages)) == 2
    peer.run(SLOW_MS)
    assert len(sent(world, ReceiveMessages)) == 3


def test_settlements_at_a_broker_that_goes_away_are_refused_and_the_link_lives_on(world: World, peer: Peer) -> None:
    send_to(peer, *range(FRAGMENTS))
    link = peer.receiver("orders", credit=FRAGMENTS, **PEEK_LOCK)
    refuse(world, 1, LOST, SettleMessages)
    told = settle(peer, link, 0, FRAGMENTS - 1, Accepted())
    by_id = {number: state for first, last, state in told for number in range(first, last + 1)}
    for delivery, fragment in enumerate(numbers(peer, link)):
        if store_of(world, fragment) == 1:
            assert str(by_id[delivery].error.condition) == "com.microsoft:timeout"
        else:
            assert by_id[delivery] == Accepted()
    assert peer.is_attached(link)


def test_settlements_of_one_turn_are_a_command_for_each_outcome_and_fragment(world: World, peer: Peer) -> None:
    send_to(peer, 2, 2, 9, 9)
    link = peer.receiver("orders", credit=4, **PEEK_LOCK)
    for number, state in enumerate((Accepted(), Released(), Accepted(), Accepted())):
        link.settle(number, number, state, settled=False)
    link.grant(0)
    peer.run()
    asked = [(command.outcome, len(command.tokens) // 16) for command in sent(world, SettleMessages)]
    assert sorted(asked) == [(SettleOutcome.COMPLETE, 1), (SettleOutcome.COMPLETE, 2), (SettleOutcome.RELEASE, 1)]
