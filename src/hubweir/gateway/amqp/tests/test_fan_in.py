"""Receivers of a queue of 16 fragments at three brokers: whose messages come, in what order, how many are locked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.types.values import Short, Symbol
from hubweir.broker.commands.fragment import CancelReceive, ReceiveMessages, SettleMessages
from hubweir.gateway.amqp.fan_in import STAY_MS
from hubweir.gateway.amqp.queue_receiver_node import KEEP_MS, REOPEN_MS
from hubweir.gateway.amqp.tests.partitioned_world import FRAGMENTS, fragment_of, partitioned_world
from hubweir.gateway.amqp.tests.queue_world import PEEK_LOCK, RECEIVE_AND_DELETE, flows, settle, stored
from hubweir.gateway.amqp.tests.world import Peer, World, keyed
from hubweir.namespace.queue_description import QueueDescription
from hubweir.queue.settle_outcome import SettleOutcome

NUMBER, PARTITION = Symbol("x-opt-sequence-number"), Symbol("x-opt-partition-id")
# In which time a message is stored and given to who waits.
STORED_MS = 40
# One key for each fragment, by number.
KEYS = [next(key for key in map(str, range(1_000)) if fragment_of(key) == number) for number in range(FRAGMENTS)]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return partitioned_world(monkeypatch)


def send_to(peer: Peer, *fragments: int, body: str = "") -> None:
    """A message to each of these, all in one turn; its body is the number of the fragment, with more behind it."""
    link = peer.sender("orders")
    for fragment in fragments:
        link.send(keyed(f"{fragment}{body}".encode(), KEYS[fragment]), settled=False)
    peer.run()
    assert {how for _, _, how in peer.outcomes(link)} == {"accepted"}
    link.detach()
    peer.run()


def numbers(peer: Peer, link: Any) -> list[int]:
    """The fragments that the bodies of what came name."""
    return [int(body) for body in peer.bodies(link)]


def sent(world: World, kind: Any) -> list[Any]:
    return [command for gate in world.gates for command in gate.sent(kind)]


def released(world: World) -> int:
    """How many messages were given back."""
    return sum(
        len(command.tokens) // 16 for command in sent(world, SettleMessages) if command.outcome is SettleOutcome.RELEASE
    )


def active(world: World) -> int:
    return sum(map(len, stored(world)))


def test_messages_of_all_fragments_come_in_their_order_and_say_where_they_are_from(world: World, peer: Peer) -> None:
    for turn in ("0", "1"):
        send_to(peer, *range(FRAGMENTS), body=turn)
    link = peer.receiver("orders", credit=100, **PEEK_LOCK)
    bodies = [body.decode() for body in peer.bodies(link)]
    assert sorted(bodies) == sorted(f"{fragment}{turn}" for fragment in range(FRAGMENTS) for turn in "01")
    assert all(bodies.index(f"{fragment}0") < bodies.index(f"{fragment}1") for fragment in range(FRAGMENTS))
    for body, message in zip(bodies, peer.received(link), strict=True):
        said = message.message_annotations or {}
        fragment = int(body[:-1])
        assert said[PARTITION] == fragment and isinstance(said[PARTITION], Short)
        assert said[NUMBER] == (fragment << 48) + int(body[-1]) + 1


@pytest.mark.parametrize("mode", [PEEK_LOCK, RECEIVE_AND_DELETE])
def test_a_receiver_that_waits_gets_a_message_of_any_fragment_at_once(peer: Peer, mode: dict[str, int]) -> None:
    link = peer.receiver("orders", credit=FRAGMENTS, **mode)
    peer.run(10_000)
    for fragment in (3, 15, 3, 0):
        send_to(peer, fragment)
    assert numbers(peer, link) == [3, 15, 3, 0]


def test_a_fragment_that_was_away_when_the_link_came_is_asked_when_it_is_back(world: World, peer: Peer) -> None:
    send_to(peer, *range(FRAGMENTS))
    world.gates[1].is_up = False
    link = peer.receiver("orders", credit=100, **PEEK_LOCK)
    placements = world.namespace.get("orders", QueueDescription).placements
    assert sorted(numbers(peer, link)) == [each for each in range(FRAGMENTS) if placements[each].store_index != 1]
    world.gates[1].is_up = True
    peer.run(REOPEN_MS + STORED_MS)
    assert sorted(numbers(peer, link)) == list(range(FRAGMENTS)) and REOPEN_MS == 1_000


@pytest.mark.parametrize("credit", [1, 3])
def test_no_more_is_taken_than_there_is_credit_for(world: World, peer: Peer, credit: int) -> None:
    send_to(peer, *range(FRAGMENTS))
    send_to(peer, 5, 5, 5)
    link = peer.receiver("orders", credit=credit, **PEEK_LOCK)
    assert len(numbers(peer, link)) == credit
    other = peer.receiver("orders", credit=100, **PEEK_LOCK)
    assert sorted(numbers(peer, link) + numbers(peer, other)) == sorted([*range(FRAGMENTS), 5, 5, 5])
    assert released(world) == 0


def test_with_one_credit_after_the_other_every_fragment_has_its_turn(world: World, peer: Peer) -> None:
    send_to(peer, *[fragment for fragment in (2, 7, 11) for _ in range(10)])
    link = peer.receiver("orders", **PEEK_LOCK)
    for _ in range(9):
        link.grant(1)
        peer.run()
    assert sorted(numbers(peer, link)) == sorted([2, 7, 11] * 3)
    assert released(world) == 0


def by_one(peer: Peer, link: Any, count: int, gap_ms: int) -> list[int]:
    """Take so many messages one after the other; from which fragments they came, first one first."""
    for _ in range(count):
        link.grant(1)
        peer.run(gap_ms)
    return numbers(peer, link)[-count:]


def test_a_fast_receiver_stays_with_a_fragment_for_a_moment_and_goes_on_in_turn(world: World, peer: Peer) -> None:
    send_to(peer, *[fragment for fragment in (2, 7, 11) for _ in range(40)])
    link = peer.receiver("orders", **PEEK_LOCK)
    came = by_one(peer, link, 36, 2)
    stays = [len(list(same)) for _, same in groupby(came)]
    assert max(stays) <= STAY_MS // 2 + 1 and sum(stays) / len(stays) > 3, came
    assert {number: came.count(number) > 8 for number in set(came)} == {2: True, 7: True, 11: True}
    assert released(world) == 0


def test_a_fragment_that_has_no_more_is_left_at_once(world: World, peer: Peer) -> None:
    send_to(peer, 2, 7, 11)
    link = peer.receiver("orders", credit=3, **PEEK_LOCK)
    assert sorted(numbers(peer, link)) == [2, 7, 11]
    looks = [command for command in sent(world, ReceiveMessages) if not command.waits]
    assert len(looks) <= FRAGMENTS + 3


def test_a_fragment_whose_messages_are_being_taken_away_is_not_asked_for_more(world: World, peer: Peer) -> None:
    """One question brings few of them: they are large."""
    padding = "x" * 100_000
    link = peer.sender("orders")
    for number in range(12):
        link.send(keyed(f"{number}{padding}".encode(), KEYS[5]), settled=True)
    peer.run(200)
    receiver = peer.receiver("orders", credit=12, **RECEIVE_AND_DELETE)
    peer.run(500)
    assert [body.rstrip(b"x") for body in peer.bodies(receiver)] == [b"%d" % number for number in range(12)]


def test_a_fragment_that_has_much_is_asked_for_all_that_is_wanted(world: World, peer: Peer) -> None:
    send_to(peer, *[5] * 60)
    link = peer.receiver("orders", credit=40, **PEEK_LOCK)
    assert len(numbers(peer, link)) == 40
    assert max(command.max_count for command in sent(world, ReceiveMessages)) == 40
    assert len([command for command in sent(world, ReceiveMessages) if not command.waits]) <= FRAGMENTS


@pytest.fixture
def late_cancels(world: World) -> None:
    """Brokers hear late that nothing is asked any more, as other processes do: messages come all the same."""
    for gate in world.gates:
        gate.hold[CancelReceive] = []


@pytest.fixture
def burst(peer: Peer) -> Callable[[], None]:
    """Sends a message to each fragment, all in one turn, and sees them stored; that takes less than KEEP_MS."""
    link = peer.sender("orders")

    def send_all() -> None:
        for fragment in range(FRAGMENTS):
            link.send(keyed(b"%d" % fragment, KEYS[fragment]), settled=True)
        peer.run(STORED_MS)

    return send_all


def test_what_comes_over_the_credit_is_for_the_next_credit(
    world: World, peer: Peer, late_cancels: None, burst: Callable[[], None]
) -> None:
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    burst()
    assert len(numbers(peer, link)) == 1
    link.grant(FRAGMENTS - 1)
    peer.run(10)
    assert sorted(numbers(peer, link)) == list(range(FRAGMENTS))
    assert released(world) == 0


def test_what_is_kept_as_too_many_are_unsettled_is_sent_when_one_is_settled(world: World, late_cancels: None) -> None:
    world.connections._settings = replace(world.connections._settings, max_unsettled=1)
    peer, other = world.trusted_peer(), world.trusted_peer()
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    sender = other.sender("orders")
    for fragment in range(FRAGMENTS):
        sender.send(keyed(b"%d" % fragment, KEYS[fragment]), settled=True)
    peer.run(STORED_MS)
    link.grant(5)
    peer.run(1_000)  # so no timer of the link is left that would have it go on
    assert len(numbers(peer, link)) == 1
    for delivery in range(2):
        settle(peer, link, delivery, delivery, Accepted())
        assert len(numbers(peer, link)) == delivery + 2


def test_what_comes_over_the_credit_is_for_others_when_it_is_not_used(
    world: World, peer: Peer, late_cancels: None, burst: Callable[[], None]
) -> None:
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    other = peer.receiver("orders", **PEEK_LOCK)
    burst()
    other.grant(100)
    peer.run(10)
    assert numbers(peer, other) == []
    peer.run(KEEP_MS)
    assert sorted(numbers(peer, link) + numbers(peer, other)) == list(range(FRAGMENTS))
    assert released(world) == FRAGMENTS - 1
    assert all(message.header is not None and message.header.delivery_count == 0 for message in peer.received(other))


def test_a_client_that_takes_one_at_a_time_finds_its_questions_as_they_were(world: World, peer: Peer) -> None:
    link, sender = peer.receiver("orders", credit=1, **PEEK_LOCK), peer.sender("orders")
    begun = len(sent(world, ReceiveMessages))
    for number in range(10):  # to a fragment each: no log counts a delivery while it stores the next message
        sender.send(keyed(b"5", KEYS[number]), settled=True)
        peer.run(STORED_MS)
        link.grant(1)
        peer.run(10)
        assert len(numbers(peer, link)) == number + 1
    assert not sent(world, CancelReceive)
    assert len(sent(world, ReceiveMessages)) - begun <= 20, "a look and a wait for each"


def test_a_link_without_credit_asks_for_nothing_after_a_moment(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    send_to(peer, 5)
    peer.run(KEEP_MS)
    assert len(sent(world, CancelReceive)) == FRAGMENTS - 1
    send_to(peer, *range(FRAGMENTS))
    peer.run(1_000)
    assert numbers(peer, link) == [5] and released(world) == 0
    assert len(numbers(peer, peer.receiver("orders", credit=100, **PEEK_LOCK))) == FRAGMENTS


@pytest.mark.parametrize("mode", [PEEK_LOCK, RECEIVE_AND_DELETE])
def test_a_drain_gives_what_there_is_in_all_fragments_and_ends_behind_it(
    world: World, peer: Peer, mode: dict[str, int]
) -> None:
    send_to(peer, 1, 8, 8, 14)
    link = peer.receiver("orders", **mode)
    begun = len(peer.came)
    link.grant(9, drain=True)
    peer.run(200)
    assert sorted(numbers(peer, link)) == [1, 8, 8, 14]
    [flow] = flows(peer, begun)
    assert (flow.drain, flow.link_credit, flow.delivery_count) == (True, 0, 9)
    link.grant(1)
    send_to(peer, 4)
    assert numbers(peer, link)[-1] == 4


def test_a_second_drain_looks_again(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", **PEEK_LOCK)
    link.grant(5, drain=True)
    peer.run(200)
    send_to(peer, 1, 9)
    link.grant(5, drain=True)
    peer.run(200)
    assert sorted(numbers(peer, link)) == [1, 9]


def test_those_that_wait_ask_for_little_more_than_is_wanted_together(world: World, peer: Peer) -> None:
    peer.receiver("orders", credit=40, **PEEK_LOCK)
    waiting = [command.max_count for command in sent(world, ReceiveMessages) if command.waits]
    assert waiting == [3] * FRAGMENTS


def test_a_drain_of_a_receiver_that_waits_is_answered(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", credit=5, **PEEK_LOCK)
    begun = len(peer.came)
    link.grant(5, drain=True)
    peer.run()
    assert [(flow.drain, flow.link_credit) for flow in flows(peer, begun)] == [(True, 0)]
    send_to(peer, 3)
    assert numbers(peer, peer.receiver("orders", credit=1, **PEEK_LOCK)) == [3], "nobody else waits"


def test_a_drain_gives_back_at_once_what_is_kept(
    world: World, peer: Peer, late_cancels: None, burst: Callable[[], None]
) -> None:
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    burst()
    for gate in world.gates:
        gate.release(CancelReceive)
    begun = len(peer.came)
    link.grant(0, drain=True)
    peer.run(10)
    assert [(flow.drain, flow.link_credit) for flow in flows(peer, begun)] == [(True, 0)]
    assert released(world) == FRAGMENTS - 1
    other = peer.receiver("orders", credit=100, **PEEK_LOCK)
    assert len(numbers(peer, other)) == FRAGMENTS - 1


def test_the_end_of_a_link_gives_back_what_is_kept(world: World, peer: Peer, late_cancels: None) -> None:
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    send_to(peer, *range(FRAGMENTS))
    link.detach()
    peer.run()
    assert len(numbers(peer, peer.receiver("orders", credit=100, **PEEK_LOCK))) == FRAGMENTS - 1


def test_receivers_share_what_comes_and_each_message_goes_to_one(world: World, peer: Peer) -> None:
    links = [peer.receiver("orders", credit=8, **PEEK_LOCK) for _ in range(3)]
    for _ in range(4):
        send_to(peer, *range(FRAGMENTS))
        for link in links:
            link.grant(32)
        peer.run(1_500)
    assert sorted(number for link in links for number in numbers(peer, link)) == sorted([*range(FRAGMENTS)] * 4)


def test_settlements_of_messages_of_several_fragments_are_done_and_answered(world: World, peer: Peer) -> None:
    send_to(peer, *range(FRAGMENTS))
    link = peer.receiver("orders", credit=FRAGMENTS, **PEEK_LOCK)
    told = settle(peer, link, 0, FRAGMENTS - 1, Accepted())
    assert {state for _, _, state in told} == {Accepted()}
    assert sorted(number for first, last, _ in told for number in range(first, last + 1)) == list(range(FRAGMENTS))
    assert active(world) == 0
