"""Places follow the catalog; where a place of before leads, the broker says that the log moved and stores nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hubweir.broker.commands.partition import AskPartitionInfo, PartitionInfo
from hubweir.broker.commands.process import Refusal
from hubweir.errors import ENTITY_MOVED
from hubweir.gateway.amqp.tests.world import World
from hubweir.messaging_store.tests.conftest import events


def test_a_gateway_that_knows_an_old_placement_hears_that_the_log_moved_and_finds_it_when_it_looks_again() -> None:
    world = World(hubs={"hub": 1}, stores=2)
    place = world.gateway.directory.partition("hub", "0")
    own, other = sorted(world.gates, key=lambda gate: gate is not place.broker)
    stale = replace(place, broker=other)  # as if the log had lain there when the gateway looked
    run = events([b"one"])
    refused = world.wait(partial(stale.broker.submit, stale.store(bytearray(run), 1, len(run))))
    assert isinstance(refused, Refusal) and refused.known
    assert refused.condition is ENTITY_MOVED and refused.condition.retriable
    again = world.gateway.directory.partition("hub", "0")
    assert again.broker is own
    stored = world.wait(partial(again.broker.submit, again.store(bytearray(run), 1, len(run))))
    assert not isinstance(stored, Refusal)
    info = world.wait(partial(own.submit, AskPartitionInfo(place.log_id)))
    assert isinstance(info, PartitionInfo)


def test_a_place_is_that_of_the_newest_operation_of_the_catalog() -> None:
    world = World(hubs={"hub": 2}, stores=2)
    moves, stays = (world.gateway.directory.partition("hub", number) for number in "01")
    target = 1 - world.gates.index(moves.broker)
    world.wait(partial(world.gateway.keeper._writer.move_log, moves.log_id, target))
    assert world.gateway.directory.partition("hub", "0") == replace(moves, broker=world.gates[target])
    assert world.gateway.directory.partition("hub", "1") == stays
