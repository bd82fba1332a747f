"""Which node stands behind an address, and what is refused before there is one."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.gateway.amqp.tests.world import Peer, World


@pytest.fixture
def peer() -> Peer:
    return World(hubs={"hub": 2, "deep/hub": 2}).trusted_peer()


@pytest.mark.parametrize(
    "address",
    [
        "hub",
        "/hub",
        "HUB",
        "amqps://localhost/hub",
        "amqps://localhost:5671/hub/",
        "sb://anything:1/hub",
        "hub/Partitions/1",
        "/hub/partitions/1",
        "amqps://localhost/HUB/PARTITIONS/1",
        "hub/Publishers/me",
        "deep/hub",
        "deep/hub/Partitions/0",
        "$management",
        "hub/$management",
        "$cbs",
        "amqps://localhost/$cbs",
    ],
)
def test_senders_reach_every_form_of_an_address(peer: Peer, address: str) -> None:
    link = peer.sender(address)
    assert peer.is_attached(link)
    assert link.target == Target(address=address)  # byte for byte as it was asked


@pytest.mark.parametrize(
    "address",
    [
        "hub/ConsumerGroups/$Default/Partitions/0",
        "HUB/consumergroups/$DEFAULT/partitions/0",
        "/hub/ConsumerGroups/%24Default/Partitions/0",
        "amqps://localhost:5671/hub/ConsumerGroups/$Default/Partitions/1",
        "deep/hub/ConsumerGroups/$Default/Partitions/1",
        "$management",
    ],
)
def test_receivers_reach_every_form_of_an_address(peer: Peer, address: str) -> None:
    assert peer.is_attached(peer.receiver(address))


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("nowhere", "amqp:not-found"),
        ("hub/Elsewhere/1", "amqp:not-found"),
        ("hub/Partitions/1/more", "amqp:not-found"),
        ("hub/../hub", "amqp:not-found"),
        ("hub//", "amqp:not-found"),
        ("hub%2F..%2Fhub", "amqp:not-found"),
        ("hub%2FPartitions%2F", "amqp:not-found"),
        ("hub%252FPartitions", "amqp:not-found"),
        ("hub\0", "amqp:not-found"),
        ("x" * 300, "amqp:not-found"),
        ("hub/Partitions/XYZ", "com.microsoft:argument-out-of-range"),
        ("hub/Partitions/-1", "com.microsoft:argument-out-of-range"),
        ("hub/Partitions/1000", "com.microsoft:argument-out-of-range"),
        ("hub/Partitions/-", "com.microsoft:argument-out-of-range"),
        ("hub/Partitions/01", "com.microsoft:argument-out-of-range"),
        ("hub/ConsumerGroups/$Default/Partitions/0", "amqp:not-allowed"),
        ("hub/ConsumerGroups/$Default", "amqp:not-allowed"),
        ("hub/Publishers/" + "p" * 129, "amqp:invalid-field"),
    ],
)
def test_senders_are_refused_by_name_and_the_connection_goes_on(peer: Peer, address: str, condition: str) -> None:
    link = peer.sender(address)
    error = peer.refusal(link)
    assert error.condition == condition
    assert "TrackingId:" in error.description
    if condition == "amqp:not-found":
        assert "The messaging entity" in error.description
        assert "could not be found" in error.description
    if "out-of-range" in condition:
        assert "The specified partition is invalid for an EventHub partition sender or receiver" in error.description
    assert peer.is_attached(peer.sender("hub"))


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("hub", "amqp:not-allowed"),
        ("hub/Partitions/0", "amqp:not-allowed"),
        ("hub/ConsumerGroups/nobody/Partitions/0", "amqp:not-found"),
        ("hub/ConsumerGroups/$Default/Partitions/9", "com.microsoft:argument-out-of-range"),
        ("nowhere/ConsumerGroups/$Default/Partitions/0", "amqp:not-found"),
    ],
)
def test_receivers_are_refused_by_name(peer: Peer, address: str, condition: str) -> None:
    assert peer.refusal(peer.receiver(address)).condition == condition


def test_a_dynamic_node_and_no_address_are_refused(peer: Peer) -> None:
    session = peer.session()
    here = Source(address="here")
    links = [
        session.attach_sender("dynamic", source=here, target=Target(dynamic=True)),
        session.attach_sender("empty", source=here, target=Target(address="")),
    ]
    peer.run()
    conditions = [peer.refusal(link).condition for link in links]
    assert conditions == ["amqp:not-implemented", "amqp:invalid-field"]


def test_a_stranger_cannot_tell_what_exists(peer: Peer) -> None:
    stranger = peer.world.peer()
    texts = {
        stranger.refusal(stranger.sender(address)).description.partition(" Resource")[0]
        for address in ("hub", "nowhere", "hub/Partitions/77", "hub/Elsewhere/1", "hub\0")
    }
    assert texts == {"Unauthorized access. 'Send' claim(s) are required to perform this operation."}
