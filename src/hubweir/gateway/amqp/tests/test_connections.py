"""All connections of a process: counted, and told together that the service stops."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.gateway.amqp.tests.queue_world import PEEK_LOCK, RECEIVE_AND_DELETE, create_queue, send
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.namespace.storage_settings import StorageSettings


def test_each_connection_has_a_number_of_its_own_and_is_counted_until_it_is_over() -> None:
    world = World()
    first, second = world.peer(), world.peer()
    assert first.host.owner != second.host.owner
    assert world.connections.count == world.counters["gateway.connections"] == 2
    first.cut()
    assert world.connections.count == world.counters["gateway.connections"] == 1
    assert world.counters["gateway.connections_accepted"] == 2


def test_a_stopping_service_tells_every_peer_and_says_when_all_are_gone() -> None:
    world = World()
    peers = [world.trusted_peer() for _ in range(3)]
    for peer in peers:
        peer.sender("hub")
    done: list[bool] = []
    world.connections.close_all(lambda: done.append(True))
    world.run_for(50)
    assert done == [True]
    assert world.connections.count == world.gateway.connection_count == 0
    for peer in peers:
        (closed,) = [entry for entry in peer.side.events if type(entry).__name__ == "Closed"]
        assert closed.error.condition == "amqp:connection:forced"


def test_without_connections_there_is_nothing_to_wait_for() -> None:
    done: list[bool] = []
    world = World()
    world.connections.close_all(lambda: done.append(True))
    assert done == [True]
    world.peer().cut()  # one that came too late is nothing to be told again
    assert done == [True]


@contextmanager
def no_collections() -> Iterator[None]:
    """What is freed meanwhile is freed because nobody knows it any more."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("ends", ["cut", "closed by the peer", "closed by the service", "links first"])
def test_a_connection_is_freed_when_it_ends_without_a_collection(ends: str) -> None:
    world = World()
    with no_collections():
        peer = world.trusted_peer()
        sender, receiver = (
            peer.sender("hub/Partitions/0"),
            peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=10),
        )
        peer.put_token("hub")
        sender.send(encode_message(Message(body=DataBody((b"event",)))), settled=False)
        peer.run(500)
        assert peer.bodies(receiver) == [b"event"]
        session = peer.server.sessions[0]
        parts = [peer.host, peer.server, peer.host.claims, peer.host.share, session, *session.links, *peer.host.nodes]
        known = [weakref.ref(part) for part in parts]
        assert len(known) >= 9
        del session, parts
        end(world, peer, ends)
        assert [part() for part in known] == [None] * len(known)


def end(world: World, peer: Peer, ends: str) -> None:
    """Have a connection end so, and forget it."""
    if ends == "cut":
        peer.cut()
    elif ends == "closed by the peer":
        peer.endpoint.close()
    elif ends == "closed by the service":
        world.connections.close_all(lambda: None)
    else:
        for link in list(peer.endpoint.sessions[0].links):
            link.detach()
        peer.run()
        peer.cut()
    peer.run(500)
    assert peer.is_cut
    peer.host = peer.server = None  # type: ignore[assignment]


@pytest.mark.parametrize("is_partitioned", [False, True])
@pytest.mark.parametrize("mode", [PEEK_LOCK, RECEIVE_AND_DELETE])
@pytest.mark.parametrize("ends", ["cut", "closed by the peer", "closed by the service", "links first"])
def test_a_connection_that_received_of_a_queue_is_freed_without_a_collection(
    ends: str, mode: dict[str, int], is_partitioned: bool
) -> None:
    """One message is unsettled, and for another one the receiver still waits."""
    world = World()
    create_queue(world, "orders", storage=StorageSettings(is_partitioned=is_partitioned))
    with no_collections():
        peer = world.trusted_peer()
        send(peer, b"message")
        receiver = peer.receiver("orders", credit=10, **mode)
        peer.run(500)
        assert peer.bodies(receiver) == [b"message"]
        session = peer.server.sessions[0]
        parts = [peer.host, peer.server, session, *session.links, *peer.host.nodes]
        known = [weakref.ref(part) for part in parts]
        assert len(known) == 5
        del session, parts
        end(world, peer, ends)
        assert [part() for part in known] == [None] * len(known)


@pytest.mark.parametrize("address", ["hub/ConsumerGroups/$Default/Partitions/0", "orders", ""])
def test_a_link_is_freed_when_it_ends_and_its_connection_goes_on(address: str) -> None:
    """Without an address it is one that sends."""
    world = World()
    create_queue(world, "orders")
    with no_collections():
        peer = world.trusted_peer()
        peer.sender("hub/Partitions/0")
        link = peer.receiver(address, credit=10) if address else peer.sender("hub")
        node = peer.host.nodes[-1]
        known = [weakref.ref(node), weakref.ref(node.link)]
        del node
        link.detach()
        peer.run()
        assert [part() for part in known] == [None, None]


def test_a_session_is_freed_when_it_ends_and_its_connection_goes_on() -> None:
    world = World()
    with no_collections():
        peer = world.trusted_peer()
        peer.sender("hub/Partitions/0")
        session = peer.endpoint.begin_session()
        peer.sender("hub", session=session)
        server = peer.server.sessions[-1]
        known = [weakref.ref(server), *(weakref.ref(link) for link in server.links)]
        assert len(known) == 2
        del server
        session.end()
        peer.run()
        assert [part() for part in known] == [None, None]
