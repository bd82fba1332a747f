"""Sessions of a queue of 16 fragments: a named one is its key's fragment's, and the next free one is any fragment's."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.fragment import CloseReceiver, GiveUpSession, OpenReceiver
from hubweir.gateway.amqp.queue_receiver_node import SESSION_GRACE_MS
from hubweir.gateway.amqp.tests.partitioned_world import (
    FRAGMENTS,
    PARTITIONED,
    fragment_of,
    partitioned_world,
)
from hubweir.gateway.amqp.tests.queue_world import create_queue, send, settle
from hubweir.gateway.amqp.tests.test_fan_in import sent
from hubweir.gateway.amqp.tests.test_queue_receiver_node import accept_session, granted_id
from hubweir.gateway.amqp.tests.test_receiver_part import AWAY, refuse
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.queue_description import QueueDescription


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return partitioned_world(monkeypatch)


@pytest.fixture
def sessions(world: World, peer: Peer) -> None:
    create_queue(world, "sessions", storage=PARTITIONED, delivery=DeliverySettings(requires_session=True))
    for name in ("a", "b", "c"):
        send(peer, f"{name}1".encode(), f"{name}2".encode(), queue="sessions", properties=Properties(group_id=name))


def opened(world: World) -> list[OpenReceiver]:
    return sent(world, OpenReceiver)


def test_a_named_session_is_opened_at_the_fragment_of_its_key_alone(world: World, peer: Peer, sessions: None) -> None:
    link = accept_session(peer, "b", credit=5)
    assert (granted_id(peer, link), peer.bodies(link)) == ("b", [b"b1", b"b2"])
    entity = world.namespace.find("sessions", QueueDescription)
    assert entity is not None
    [command] = opened(world)
    assert command.log_id == entity.placements[fragment_of("b")].log_id
    annotations = peer.received(link)[0].message_annotations or {}
    assert annotations[Symbol("x-opt-partition-id")] == fragment_of("b")
    assert settle(peer, link, 0, 1, Accepted()) == [(0, 1, Accepted())]


def test_the_next_session_is_that_of_any_fragment_until_none_is_free(world: World, peer: Peer, sessions: None) -> None:
    links = [accept_session(peer, None, credit=5) for _ in range(3)]
    assert {granted_id(peer, link) for link in links} == {"a", "b", "c"}
    for link in links:
        name = granted_id(peer, link)
        assert peer.bodies(link) == [f"{name}1".encode(), f"{name}2".encode()]
    late = accept_session(peer, None, wait_ms=2_000)
    peer.run(2_500)
    assert str(peer.refusal(late).condition) == "com.microsoft:timeout"


def test_who_waits_for_the_next_session_gets_one_and_the_other_fragments_are_given_up(
    world: World, peer: Peer, sessions: None
) -> None:
    links = [accept_session(peer, None) for _ in range(3)]
    late = accept_session(peer, None, wait_ms=30_000, credit=5)
    peer.run(1_000)
    send(peer, b"d1", queue="sessions", properties=Properties(group_id="d"))
    assert (granted_id(peer, late), peer.bodies(late)) == ("d", [b"d1"])
    assert len(sent(world, GiveUpSession)) >= FRAGMENTS - 1
    send(peer, b"e1", queue="sessions", properties=Properties(group_id="e"))
    assert granted_id(peer, accept_session(peer, "e")) == "e", "nobody else holds it"
    assert all(peer.is_attached(link) for link in links)


def test_a_session_that_comes_for_a_link_that_has_one_is_free_again(world: World, peer: Peer) -> None:
    """Two fragments have one at the same time, and their brokers are other processes."""
    create_queue(world, "sessions", storage=PARTITIONED, delivery=DeliverySettings(requires_session=True))
    for name in map(str, range(40)):
        send(peer, b"x", queue="sessions", properties=Properties(group_id=name))
    for gate in world.gates:
        gate.hold[OpenReceiver] = []
    link = accept_session(peer, None, credit=1)
    for gate in world.gates:
        gate.release(OpenReceiver)
    peer.run()
    assert peer.is_attached(link)
    closed, given_up = len(sent(world, CloseReceiver)), len(sent(world, GiveUpSession))
    assert closed > 1 and given_up >= closed and len(opened(world)) == FRAGMENTS
    link.detach()
    peer.run()
    assert peer.is_attached(accept_session(peer, granted_id(peer, link)))


def test_a_fragment_that_is_away_does_not_keep_others_from_giving_a_session(
    world: World, peer: Peer, sessions: None
) -> None:
    refuse(world, 1, AWAY)
    late = accept_session(peer, None, wait_ms=1_000)
    if not peer.is_attached(late):  # all three are at the broker that is away
        peer.run(1_500)
        assert str(peer.refusal(late).condition) == "com.microsoft:timeout"


@pytest.mark.parametrize("name", [None, "a"])
def test_a_stalled_broker_keeps_nobody_waiting_for_a_session_beyond_their_time(
    world: World, peer: Peer, name: str | None
) -> None:
    create_queue(world, "sessions", storage=PARTITIONED, delivery=DeliverySettings(requires_session=True))
    entity = world.namespace.find("sessions", QueueDescription)
    assert entity is not None
    stalled = world.gates[1 if name is None else entity.placements[fragment_of(name)].store_index]
    stalled.hold[OpenReceiver] = []
    late = accept_session(peer, name, wait_ms=2_000)
    peer.run(2_000 + SESSION_GRACE_MS - 100)
    assert not peer.is_attached(late) and peer.refusal(late) is None
    peer.run(200)
    refusal = peer.refusal(late)
    assert str(refusal.condition) == "com.microsoft:timeout" and "does not answer" in str(refusal.description)
    stalled.release(OpenReceiver)
    send(peer, b"x", queue="sessions", properties=Properties(group_id="a"))
    assert peer.is_attached(accept_session(peer, "a")), "what answers late keeps no session"


def test_who_has_a_session_keeps_it_beyond_the_time_that_it_waited_for_it(
    world: World, peer: Peer, sessions: None
) -> None:
    link = accept_session(peer, None, wait_ms=1_000)
    peer.run(2_000 + SESSION_GRACE_MS)
    assert peer.is_attached(link)


def test_a_session_is_refused_while_its_fragment_is_away(world: World, peer: Peer, sessions: None) -> None:
    entity = world.namespace.find("sessions", QueueDescription)
    assert entity is not None
    store = entity.placements[fragment_of("a")].store_index
    refuse(world, store, AWAY)
    assert str(peer.refusal(accept_session(peer, "a")).condition) == "com.microsoft:server-busy"


def test_the_end_of_a_link_ends_its_wait_for_a_session_in_all_fragments(world: World, peer: Peer) -> None:
    create_queue(world, "sessions", storage=PARTITIONED, delivery=DeliverySettings(requires_session=True))
    link = accept_session(peer, None, wait_ms=2**32 - 1)
    link.detach()
    peer.run()
    assert len(sent(world, GiveUpSession)) == FRAGMENTS
    send(peer, b"x", queue="sessions", properties=Properties(group_id="a"))
    assert peer.is_attached(accept_session(peer, "a"))


def test_a_session_whose_lock_ends_detaches_its_link(peer: Peer, sessions: None) -> None:
    link = accept_session(peer, None, credit=1)
    peer.run(61_000)
    assert str(peer.refusal(link).condition) == "com.microsoft:session-lock-lost"
