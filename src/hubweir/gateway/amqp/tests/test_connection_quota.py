"""A tier's quota of connections: one more is closed after its open, the others notice nothing, an end makes room."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.gateway.amqp.tests.world import Peer, World, quotas

HUB = "sb://localhost/hub"


def closed_with(peer: Peer) -> Any:
    """The error of the close that the service sent; None while the connection stands."""
    errors = [entry.error for entry in peer.side.events if type(entry).__name__ == "Closed"]
    return errors[0] if errors else None


def test_one_connection_too_many_is_closed_after_open_and_the_others_stay() -> None:
    world = World(settings=quotas(connections=2))
    first, second = world.trusted_peer(), world.peer()
    assert second.put_token(HUB)[0] == 202
    links = [first.sender("hub"), second.sender("hub")]
    third = world.trusted_peer()
    world.run_for(50)
    error = closed_with(third)
    assert error.condition == "amqp:resource-limit-exceeded"
    assert "2 connections, which is its quota" in error.description
    for peer, link in zip((first, second), links, strict=True):
        assert peer.is_attached(link)


@pytest.mark.parametrize("end", ["closed", "cut"])
def test_the_end_of_one_makes_room_for_another(end: str) -> None:
    world = World(settings=quotas(connections=1))
    first = world.trusted_peer()
    if end == "cut":
        first.cut()
    else:
        first.endpoint.close()
    world.run_for(50)
    second = world.trusted_peer()
    assert second.is_attached(second.sender("hub"))


def test_those_that_were_turned_away_count_no_more() -> None:
    world = World(settings=quotas(connections=1))
    first = world.trusted_peer()
    for _ in range(5):
        refused = world.trusted_peer()
        world.run_for(50)
        assert closed_with(refused) is not None
    assert world.gateway.connection_count == 1
    first.cut()
    world.run_for(50)
    second = world.trusted_peer()
    assert second.is_attached(second.sender("hub"))


def test_without_a_quota_there_are_as_many_as_come() -> None:
    world = World()
    peers = [world.trusted_peer() for _ in range(20)]
    assert all(closed_with(peer) is None for peer in peers)
