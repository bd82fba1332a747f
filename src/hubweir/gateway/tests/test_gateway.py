"""Connections as a whole: what links of one do to another, and what ends them."""

from __future__ import annotations

import pytest

from hubweir.gateway.amqp.tests.world import World, event
from hubweir.gateway.settings import GatewaySettings
from hubweir.limits import GatewayLimits
from hubweir.namespace.tiers import PROFILES


def test_an_idle_sender_is_detached_after_ten_minutes_and_a_waiting_reader_is_not() -> None:
    world = World()
    peer = world.trusted_peer(tick_ms=20)
    sender = peer.sender("hub")
    reader = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=10)
    peer.run(590_000)
    assert peer.is_attached(sender)
    peer.run(170_000)
    assert peer.refusal(sender).condition == "amqp:link:detach-forced"
    assert peer.is_attached(reader)


@pytest.mark.parametrize("node", ["$cbs", "$management", "hub/$management"])
@pytest.mark.parametrize("beside", ["hub", None])
def test_links_of_requests_and_of_answers_stay_however_long_they_are_idle(node: str, beside: str | None) -> None:
    world = World(limits=GatewayLimits(idle_link_ms=2_000))
    peer = world.trusted_peer(tick_ms=20)
    requests, answers = peer.sender(node), peer.receiver(node)
    sender = None if beside is None else peer.sender(beside)
    peer.run(8_000)
    assert peer.is_attached(requests) and peer.is_attached(answers)
    assert sender is None or peer.refusal(sender).condition == "amqp:link:detach-forced"


def test_a_connection_whose_last_link_is_gone_is_ended_after_five_minutes_and_not_before() -> None:
    world = World()
    peer = world.trusted_peer(tick_ms=50)
    peer.sender("hub").detach()
    peer.run(290_000)
    peer.sender("hub").detach()  # another link in between: the time begins again
    peer.run(290_000)
    assert not peer.is_cut
    peer.run(20_000)
    (closed,) = [entry for entry in peer.side.events if type(entry).__name__ == "Closed"]
    assert closed.error.condition == "amqp:connection:forced"
    assert "no link" in closed.error.description


def test_a_sender_in_use_is_not_idle() -> None:
    world = World(limits=GatewayLimits(idle_link_ms=10_000))
    peer = world.trusted_peer()
    sender = peer.sender("hub")
    for _ in range(10):
        peer.run(4_000)
        sender.send(event(b"x"), settled=False)
    assert peer.is_attached(sender)


def test_the_end_of_one_session_ends_its_links_and_no_others() -> None:
    world = World()
    peer = world.trusted_peer()
    doomed = peer.endpoint.begin_session()
    peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=1, session=doomed)
    kept = peer.receiver("hub/ConsumerGroups/$Default/Partitions/1", credit=1)
    assert world.open_readers == 2
    doomed.end()
    peer.run()
    assert world.open_readers == 1
    assert peer.is_attached(kept)


@pytest.mark.parametrize(
    ("profile", "limit_bytes", "taken_bytes"),
    [("development", 4 << 20, 4 << 20), ("basic", 4 << 20, 256 << 10), ("standard", 100_000, 100_000)],
)
def test_a_message_is_as_large_as_the_service_and_the_tier_of_its_namespace_take(
    profile: str, limit_bytes: int, taken_bytes: int
) -> None:
    limits, settings = GatewayLimits(max_message_size_bytes=limit_bytes), GatewaySettings(profile=PROFILES[profile])
    world = World(limits=limits, settings=settings)
    sender = world.trusted_peer().sender("hub")
    assert sender.attach is not None and sender.attach.max_message_size == taken_bytes


def test_connections_are_counted() -> None:
    world = World()
    peer = world.trusted_peer()
    other = world.trusted_peer()
    assert world.counters["gateway.connections"] == 2
    other.cut()
    assert world.counters["gateway.connections"] == 1
    assert world.counters["gateway.connections_accepted"] == 2
    assert peer.endpoint.is_open
