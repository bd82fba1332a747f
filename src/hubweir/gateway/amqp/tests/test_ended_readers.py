"""How links that read end: none leaves a reader behind at the broker."""

from __future__ import annotations

import pytest

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.process import CloseOwner
from hubweir.broker.commands.reader import CloseReader, ConfirmReaderClosed, OpenReader, ReaderClosed
from hubweir.errors import ENTITY_MOVED
from hubweir.gateway.amqp.tests.filled_partition import PARTITION
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.gateway.settings import LinkSettings
from hubweir.namespace.event_hub_description import EventHubDescription


@pytest.fixture
def world() -> World:
    return World(link_settings=LinkSettings(turn_limit_bytes=256 * 1024))  # less than a partition here holds


def test_a_detached_link_frees_its_reader(world: World, peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=1)
    link.detach()
    peer.run()
    assert len(world.gate.sent(CloseReader)) == 1
    assert world.open_readers == 0


def test_a_dead_connection_frees_all_its_readers_at_once(world: World, peer: Peer) -> None:
    for partition in range(4):
        peer.receiver(f"hub/ConsumerGroups/$Default/Partitions/{partition}", credit=1)
    assert world.open_readers == 4
    peer.cut()
    assert world.open_readers == 0
    assert len(world.gate.sent(CloseOwner)) == 1 and world.gate.sent(CloseReader) == []


def test_a_reader_that_was_opened_for_a_link_that_is_gone_is_closed(world: World, peer: Peer) -> None:
    world.gate.hold[OpenReader] = []
    link = peer.receiver(PARTITION)
    link.detach()
    peer.run()
    world.gate.release(OpenReader)
    peer.run()
    assert world.open_readers == 0


def test_a_reader_of_a_dead_connection_is_closed_though_it_opened_later(world: World, peer: Peer) -> None:
    world.gate.hold[OpenReader] = []
    peer.receiver(PARTITION)
    peer.cut()
    world.gate.release(OpenReader)
    world.run_for(100)
    assert world.open_readers == 0


def test_a_deleted_hub_ends_its_readers_with_the_reason(world: World, peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=1)
    world.wait(lambda done: world.gateway.keeper.delete("hub", EventHubDescription, done))
    peer.run(200)
    assert peer.refusal(link).condition == "amqp:not-found"


def test_what_a_broker_says_of_another_process_concerns_no_connection_here(world: World, peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=1)
    peer.run()
    place, owner = world.gateway.directory.partition("hub", "0"), peer.host.owner
    for process, stands in ((owner.process + 1, True), (owner.process, False)):
        whose = Owner(process, owner.connection)
        world.broker.on_push(ReaderClosed(whose, place.log_id, 1, ENTITY_MOVED, "elsewhere"))
        peer.run()
        assert peer.is_attached(link) is stands
    assert [each.reader_id for each in world.gate.sent(ConfirmReaderClosed)] == [1]
