"""All connections of a process: counted, and told together that the service stops."""

from __future__ import annotations

from hubweir.gateway.amqp.tests.world import World


def test_each_connection_has_a_number_of_its_own_and_is_counted_until_it_is_over() -> None:
    world = World()
    first, second = world.peer(), world.peer()
    assert first.host.owner != second.host.owner
    assert world.connections.count == world.counters.get("gateway.connections") == 2
    first.cut()
    assert world.connections.count == world.counters.get("gateway.connections") == 1
    assert world.counters.get("gateway.connections_accepted") == 2


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
    World().connections.close_all(lambda: done.append(True))
    assert done == [True]
