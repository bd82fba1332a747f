"""Readers that come to damage: told once what is lost, then served what is sound behind it."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hubweir.alarms import DAMAGE
from hubweir.gateway.amqp.consumer_node import TELL_NOTHING_ELSE
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.namespace.event_hub_changes import add_group
from hubweir.namespace.event_hub_description import EventHubDescription

GROUP = "hub/ConsumerGroups/{}/Partitions/0"
PARTITION = GROUP.format("$Default")
LOST, STOLEN = "amqp:resource-deleted", "amqp:link:stolen"
EVENTS, DAMAGED = 10, 4
SOUND = [0, 1, 2, 3, 5, 6, 7, 8, 9]


def filled() -> World:
    """A world with EVENTS events in a partition, a batch each, that nothing of is in memory."""
    world = World()
    peer = world.trusted_peer()
    link = peer.sender("hub/Partitions/0")
    for number in range(EVENTS):
        link.send(event(b"event %d." % number), settled=False)
        peer.run(20)
    peer.run(3_000)  # the mark vouches for them
    world.env.crash()
    return World(env=world.env.restart())


def segment(world: World, content: bytes) -> str:
    """The file that holds these bytes."""
    files = world.env.files
    [path] = [path for path in files.paths() if path.endswith(".log") and content in bytes(files.bytes_of(path))]
    return path


def damage(world: World, number: int) -> None:
    content = b"event %d." % number
    data = world.env.files.bytes_of(segment(world, content))
    data[data.index(content)] ^= 1


@pytest.fixture
def world() -> World:
    made = filled()
    damage(made, DAMAGED)
    return made


def behind(number: int) -> str:
    return f"amqp.annotation.x-opt-sequence-number > '{number}'"


class Read:
    """A reader's link and what came on it."""

    def __init__(self, peer: Peer, selector: str | None = None, *, address: str = PARTITION, **attach: Any) -> None:
        self.link = peer.receiver(address, selector=selector, credit=100, **attach)
        peer.run(1_000)  # cold reads take their time
        self.numbers = [int(body.removeprefix(b"event ").removesuffix(b".")) for body in peer.bodies(self.link)]
        self.error = peer.refusal(self.link)

    @property
    def condition(self) -> str | None:
        return None if self.error is None else str(self.error.condition)


def test_a_reader_is_told_what_is_lost_and_goes_on_behind_it_when_it_comes_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    peer = world.trusted_peer()
    told = Read(peer)
    assert (told.numbers, told.condition) == ([0, 1, 2, 3], LOST)
    assert told.error.description.startswith(
        "Lost: events 4 to 4 of partition 0 of event hub 'hub' (sequence numbers). What the disk holds of them is "
        "damaged. Attach again to read on with 5., TrackingId:"
    )
    again = Read(peer, behind(3))
    assert (again.numbers, again.condition) == ([5, 6, 7, 8, 9], None)
    assert any("consumer group $default is told: Lost: events 4 to 4" in line for line in caplog.messages)
    [alarm] = world.store.alarms.current()
    assert alarm.kind is DAMAGE and "partition 0 of hub" in alarm.about and "records 4 to 4" in alarm.text


@pytest.mark.parametrize("selector", [None, behind(1), behind(3)])
def test_where_it_comes_again_makes_no_difference(world: World, selector: str | None) -> None:
    peer = world.trusted_peer()
    assert Read(peer).condition == LOST
    again = Read(world.trusted_peer(), selector)
    assert again.condition is None and again.numbers[-5:] == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("kind", ["offset", "time", "sequence number"])
def test_a_position_inside_damage_is_told_too(world: World, kind: str) -> None:
    peer = world.trusted_peer()
    assert Read(peer).condition == LOST
    whole = Read(peer)
    annotations = [message.message_annotations or {} for message in peer.received(whole.link)]
    place = whole.numbers.index(DAMAGED - 1)
    last = {str(name): value for name, value in annotations[place].items()}
    selector = {
        "offset": f"amqp.annotation.x-opt-offset > '{last['x-opt-offset']}'",
        "time": f"amqp.annotation.x-opt-enqueued-time > '{int(last['x-opt-enqueued-time'])}'",
        "sequence number": behind(DAMAGED - 1),
    }[kind]
    told, again = Read(peer, selector), Read(peer, selector)
    assert (told.numbers, told.condition) == ([], LOST)
    assert (again.numbers, again.condition) == ([5, 6, 7, 8, 9], None)


def test_who_starts_behind_the_damage_hears_nothing_of_it(world: World) -> None:
    peer = world.trusted_peer()
    read = Read(peer, behind(DAMAGED))
    assert (read.numbers, read.condition) == ([5, 6, 7, 8, 9], None)
    assert Read(peer).condition == LOST


def test_each_consumer_group_is_told(world: World) -> None:
    peer = world.trusted_peer()
    another = partial(add_group, name="another")
    world.wait(lambda done: world.gateway.keeper.change("hub", EventHubDescription, another, done))
    another = GROUP.format("another")
    assert [Read(peer, address=address).condition for address in (PARTITION, another)] == [LOST, LOST]
    assert [Read(peer, address=address).numbers for address in (PARTITION, another)] == [SOUND, SOUND]


def test_of_two_readers_each_is_told_before_it_goes_on(world: World) -> None:
    one, two = world.trusted_peer(), world.trusted_peer()
    first, second = Read(one), Read(two)
    assert first.condition == LOST and second.numbers == SOUND  # they have changed places
    third, fourth = Read(one, behind(3)), Read(one, behind(3))
    assert third.condition == LOST and fourth.numbers == [5, 6, 7, 8, 9]


def test_two_ranges_are_told_one_after_the_other(world: World) -> None:
    damage(world, 7)
    peer = world.trusted_peer()
    heard = [(read.numbers, read.condition) for read in (Read(peer), Read(peer, behind(3)), Read(peer, behind(6)))]
    assert heard == [([0, 1, 2, 3], LOST), ([5, 6], LOST), ([8, 9], None)]


def test_a_dropped_run_that_is_read_again_meets_the_damage_once(world: World) -> None:
    peer = world.trusted_peer()
    assert Read(peer).condition == LOST
    link = peer.receiver(PARTITION, credit=2)
    peer.run(500)
    for _ in range(6):
        for node in peer.host.nodes:
            node.drop_stale_run()
            node.drop_stale_run()
        link.grant(2)
        peer.run(500)
    assert peer.refusal(link) is None
    assert [int(body[6:-1]) for body in peer.bodies(link)] == SOUND


def test_damage_at_the_first_event_and_at_the_last_is_told(world: World) -> None:
    damage(world, 0)
    damage(world, 9)
    peer = world.trusted_peer()
    first, second = Read(peer), Read(peer)
    assert (first.numbers, first.condition) == ([], LOST)
    assert (second.numbers, second.condition) == ([1, 2, 3], LOST)
    third = Read(peer, behind(3))
    assert (third.numbers, third.condition) == ([5, 6, 7, 8], LOST)
    link = peer.receiver(PARTITION, selector=behind(8), credit=100)
    peer.run(1_000)
    sender = peer.sender("hub/Partitions/0")
    sender.send(event(b"event 10."), settled=False)
    peer.run(500)
    assert peer.refusal(link) is None and peer.bodies(link) == [b"event 10."]


@pytest.mark.parametrize("selector", [None, behind(6), "amqp.annotation.x-opt-offset > '400'"])
def test_a_file_that_is_lost_is_told_like_damage(selector: str | None) -> None:
    world = filled()
    world.env.files.remove(segment(world, b"event 7."))
    peer = world.trusted_peer()
    told = Read(peer, selector)
    assert told.condition == LOST and "events 0 to 9 of partition 0" in told.error.description
    link = peer.receiver(PARTITION, selector=selector, credit=100)
    peer.run(1_000)
    sender = peer.sender("hub/Partitions/0")
    sender.send(event(b"event 10."), settled=False)
    peer.run(500)
    assert peer.refusal(link) is None and peer.bodies(link) == [b"event 10."]


@pytest.mark.parametrize("product", [*TELL_NOTHING_ELSE, "another"])
def test_clients_that_tell_of_nothing_but_stolen_links_are_told_so(world: World, product: str) -> None:
    peer = world.trusted_peer()
    connection = peer.server._connection
    assert connection.remote_open is not None
    connection.remote_open = replace(connection.remote_open, properties={"product": product})
    told = Read(peer)
    assert told.condition == (LOST if product == "another" else STOLEN)
    assert "events 4 to 4 of partition 0" in told.error.description
    assert Read(peer).numbers == SOUND
