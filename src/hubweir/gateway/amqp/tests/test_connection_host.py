"""One connection's host: what reaches which node, what a refusal carries, what is left when the connection ends.

How links end for idleness and how connections end for want of a claim is in gateway/tests/test_gateway.py and
test_connection_claims.py.
"""

from __future__ import annotations

import gc
import logging
import re

import pytest

from hubweir.broker.commands.process import CloseOwner
from hubweir.errors import DETACH_FORCED, RESOURCE_LIMIT, SERVER_BUSY, STORE_OFFLINE, TIMED_OUT, Condition, ServiceError
from hubweir.gateway.amqp.node import Node
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.gateway.refusals import What

READER = "hub/ConsumerGroups/$Default/Partitions/0"
REFERENCE = re.compile(r", TrackingId:\S+, SystemTracker:\S+, Timestamp:\S+")


@pytest.fixture
def world() -> World:
    return World(hubs={"hub": 2})


class Listening(Node):
    """A node that notes what it is told."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.told: list[str] = []

    def finish(self) -> None:
        self.told.append("finish")

    def closed(self) -> None:
        self.told.append("closed")


def listening(peer: Peer) -> Listening:
    """Put a listening node in the place of the one on a link that stands."""
    peer.receiver("$management")
    (old,) = peer.host.nodes
    node = Listening(peer.host, old.link)
    old.link.context = node
    peer.host._nodes = {node: None}
    return node


def test_nodes_stand_in_the_order_of_their_attaches(peer: Peer) -> None:
    links = [peer.sender("hub"), peer.receiver(READER), peer.sender("hub/Partitions/1")]
    assert [node.link.name for node in peer.host.nodes] == [link.name for link in links]
    links[1].detach()
    peer.run()
    assert [node.link.name for node in peer.host.nodes] == [links[0].name, links[2].name]


def test_a_node_that_asks_is_finished_once_and_a_closed_one_not_at_all(peer: Peer) -> None:
    node = listening(peer)
    for _ in range(3):
        peer.host.finish_later(node)
    peer.run()
    assert node.told == ["finish"]
    peer.host.finish_later(node)
    peer.host.detach(node, ServiceError(DETACH_FORCED, "enough"))
    peer.run()
    assert node.told == ["finish", "closed"]


@pytest.mark.parametrize("end", ["detach", "session", "cut", "close"])
def test_a_node_hears_of_its_end_once_whoever_ended_it(peer: Peer, end: str) -> None:
    node = listening(peer)
    match end:
        case "detach":
            peer.host.detach(node, ServiceError(DETACH_FORCED, "enough"))
        case "session":
            peer.session().end()
        case "cut":
            peer.cut()
        case "close":
            peer.endpoint.close()
    peer.run(200)
    peer.host.detach(node, ServiceError(DETACH_FORCED, "again"))
    assert node.told == ["closed"]
    assert peer.host.nodes == ()


def test_what_comes_on_a_link_that_was_just_detached_harms_nothing(world: World, peer: Peer) -> None:
    link, other = peer.sender("hub"), peer.sender("hub")
    node = peer.host.nodes[0]
    peer.host.detach(node, ServiceError(DETACH_FORCED, "enough"))
    link.send(event(b"too late"), settled=False)
    other.send(event(b"x"), settled=False)
    peer.run(200)
    assert peer.outcomes(link) == []
    assert [outcome for _, _, outcome in peer.outcomes(other)] == ["accepted"]
    assert sum(hosted.log.bounds.next_index for hosted in world.broker._residents) == 1
    assert world.process.budget.used == 0


def test_a_refusal_names_its_condition_and_the_reference_that_people_quote(peer: Peer) -> None:
    error = peer.host.describe(What.SEND, ServiceError(RESOURCE_LIMIT, "Too much."), entity="hub")
    assert error.condition == "amqp:resource-limit-exceeded"
    assert error.description is not None
    assert error.description.startswith("Too much.") and REFERENCE.search(error.description)
    assert "hub" in error.description.partition("SystemTracker:")[2]
    again = peer.host.describe(What.SEND, ServiceError(RESOURCE_LIMIT, "Too much."), entity="hub")
    assert again.description != error.description  # every one has an id of its own


@pytest.mark.parametrize("error", [TIMED_OUT, SERVER_BUSY, STORE_OFFLINE])
def test_a_link_that_stood_ends_with_no_condition_behind_which_a_client_keeps_it(peer: Peer, error: Condition) -> None:
    symbols = {what: peer.host.describe(what, ServiceError(error, "Later.")).condition for what in What}
    assert symbols.pop(What.LINK) == "amqp:link:detach-forced"
    assert set(symbols.values()) == {"com.microsoft:timeout" if error is TIMED_OUT else "com.microsoft:server-busy"}


def test_a_refused_proof_is_in_the_log_and_shows_no_key(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        peer = world.peer(mechanism="PLAIN", response=b"\0RootManageSharedAccessKey\0not the key")
    assert not peer.endpoint.is_open
    assert "refused" in caplog.text and "not the key" not in caplog.text


def test_a_node_that_asks_again_while_it_is_finished_has_that_in_the_same_turn(peer: Peer) -> None:
    """The driver gives whoever wakes it within a turn no other one."""
    node = listening(peer)
    finish = node.finish

    def again() -> None:
        node.finish = finish  # type: ignore[method-assign]
        peer.host.finish_later(node)

    node.finish = again  # type: ignore[method-assign]
    peer.host.finish_later(node)
    peer.host.on_turn_end()
    assert node.told == ["finish"]


def test_brokers_hear_of_the_end_of_connections_that_used_readers_and_of_no_others(world: World) -> None:
    reads, sends = world.trusted_peer(), world.trusted_peer()
    reads.receiver(READER)
    sends.sender("hub")
    sends.cut()
    assert world.gate.sent(CloseOwner) == []
    reads.cut()
    assert world.gate.sent(CloseOwner) == [CloseOwner(reads.host.owner)]


def test_an_ended_connection_leaves_no_timer_that_looks_for_it(world: World) -> None:
    peer = world.trusted_peer()
    peer.sender("hub")
    peer.cut()
    peer.host = peer.server = None  # type: ignore[assignment]
    gc.collect()
    world.run_for(world.process.limits.idle_link_ms * 2)


def test_nothing_of_an_ended_connection_happens_later(world: World, peer: Peer) -> None:
    node = listening(peer)
    peer.cut()
    told = list(node.told)
    peer.host.close(ServiceError(DETACH_FORCED, "again"))
    world.run_for(world.process.limits.idle_link_ms * 2)
    assert node.told == told == ["closed"]
    assert world.gateway.connection_count == 0


def test_a_host_wakes_its_driver_as_long_as_it_has_one(peer: Peer) -> None:
    woken: list[str] = []
    peer.wake = lambda: woken.append("woken")  # type: ignore[method-assign]
    host = peer.host
    host.on_connected(peer)  # type: ignore[arg-type]
    host.wake()
    assert woken == ["woken"]
    host.on_closed()
    host.wake()
    assert woken == ["woken"]
