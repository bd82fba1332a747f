"""A hub that is switched off, for sending, for receiving or for both: attaches, and links that stand."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.namespace.entity import Availability
from hubweir.namespace.event_hub_changes import set_settings
from hubweir.namespace.event_hub_description import EventHubDescription

DISABLED = "com.microsoft:entity-disabled"
READER = "hub/ConsumerGroups/$Default/Partitions/0"


def switch(world: World, availability: Availability) -> Any:
    wanted = replace(world.namespace.get("hub", EventHubDescription).description, availability=availability)
    return world.wait(
        lambda done: world.gateway.keeper.change(
            wanted.name, EventHubDescription, partial(set_settings, wanted=wanted), done
        )
    )


def condition(peer: Peer, link: Any) -> str | None:
    error = peer.refusal(link)
    return None if error is None else str(error.condition)


@pytest.mark.parametrize(
    ("availability", "sender", "receiver"),
    [
        (Availability.ACTIVE, None, None),
        (Availability.DISABLED, DISABLED, DISABLED),
        (Availability.SEND_DISABLED, DISABLED, None),
        (Availability.RECEIVE_DISABLED, None, DISABLED),
    ],
)
def test_links_that_stand_end_and_new_ones_are_refused(
    world: World, availability: Availability, sender: str | None, receiver: str | None
) -> None:
    peer = world.trusted_peer()
    senders = [peer.sender(address) for address in ("hub", "hub/Partitions/0", "hub/Publishers/alpha")]
    reader = peer.receiver(READER)
    assert all(peer.is_attached(link) for link in (*senders, reader))
    assert isinstance(switch(world, availability), EventHubDescription)
    peer.run(100)
    assert [condition(peer, link) for link in senders] == [sender] * 3
    assert condition(peer, reader) == receiver
    assert condition(peer, peer.sender("HUB/Partitions/0")) == sender
    assert condition(peer, peer.receiver(READER)) == receiver


def test_what_was_taken_stays_and_is_read_when_the_hub_is_active_again_after_a_crash(world: World) -> None:
    peer = world.trusted_peer()
    link = peer.sender("hub/Partitions/0")
    link.send(event(b"taken"), settled=False)
    peer.run(100)
    assert len(peer.outcomes(link)) == 1
    switch(world, Availability.DISABLED)
    world.env.crash(power_cut=True)
    after = World(env=world.env.restart())
    assert after.namespace.get("hub", EventHubDescription).description.availability is Availability.DISABLED
    switch(after, Availability.ACTIVE)
    peer = after.trusted_peer()
    assert peer.is_attached(peer.receiver(READER))
    info = after.wait(lambda done: after.gateway.management.partition_info("hub", "0", done))
    assert info.last_sequence_number == 0
