"""What a publisher's link refuses of one read, and that everything else of it is stored in order."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.broker.commands.partition import AskPartitionInfo, PartitionInfo
from hubweir.gateway.amqp.tests.world import Peer, World, event, keyed


def counts(world: World, hub: str = "hub") -> list[int]:
    """How many events each partition of a hub holds."""
    found = []
    for place in world.gateway.directory.partitions(hub):
        info = world.ask(AskPartitionInfo(place.log_id))
        assert isinstance(info, PartitionInfo)
        found.append(info.last_sequence_number + 1)
    return found


def error_text(peer: Peer, link: object) -> str:
    """The description of the last rejection on a link."""
    texts = [
        entry[4].error.description
        for entry in peer.side.said
        if isinstance(entry, tuple) and entry[0] == "settled" and getattr(entry[4], "error", None) is not None
    ]
    return str(texts[-1])


@pytest.mark.parametrize("address", ["hub", "hub/Partitions/0", "hub/Publishers/p"])
def test_properties_over_their_limit_are_rejected_and_the_link_goes_on(world: World, peer: Peer, address: str) -> None:
    link = peer.sender(address)
    good, one_too_large = {"a": "x" * 30_000, "b": "y" * 30_000}, {"a": "x" * 33_000}
    together_too_large = {"a": "x" * 30_000, "b": "y" * 30_000, "c": "z" * 6_000}
    for properties in (good, one_too_large, together_too_large):
        link.send(event(b"body", application_properties=properties), settled=False)
    peer.run(100)
    assert sum(counts(world)) == 1
    assert sorted(outcome for _, _, outcome in peer.outcomes(link)) == [
        "accepted", "com.microsoft:argument-error", "com.microsoft:argument-error",
    ]  # fmt: skip
    text = error_text(peer, link)
    assert "'hub'" in text and "32768" in text and "65536" in text and "body" in text
    link.send(event(b"next"), settled=False)
    peer.run(100)
    assert sum(counts(world)) == 2


def test_a_batch_with_too_large_properties_leaves_nothing(world: World, peer: Peer) -> None:
    link = peer.sender("hub")
    bad = event(b"body", application_properties={"a": "x" * 33_000})
    link.send(pack_batch([event(b"1"), bad, event(b"2")]), message_format=BATCH_FORMAT, settled=False)
    peer.run(100)
    assert [outcome for _, _, outcome in peer.outcomes(link)] == ["com.microsoft:argument-error"]
    assert counts(world) == [0] * 4


def test_events_of_a_key_keep_their_order_whatever_came_between(world: World, peer: Peer) -> None:
    """One read of single events with many keys, some without and some refused."""
    link = peer.sender("hub")
    for number in range(200):
        key = "k" * 129 if number % 50 == 49 else f"key {number % 13}"
        one = event(b"- %d" % number) if number % 5 == 0 else keyed(b"%d" % (number % 13) + b" %d" % number, key)
        link.send(one, settled=False)
    peer.run(300)
    bodies = []
    for partition in range(4):
        reader = peer.receiver(f"hub/ConsumerGroups/$Default/Partitions/{partition}", credit=500)
        peer.run(200)
        bodies.append([body.decode().split() for body in peer.bodies(reader)])
    assert sum(map(len, bodies)) == 196
    assert [sum(key == "-" for key, _ in found) for found in bodies] == [10] * 4
    owners: dict[str, int] = {}
    for partition, found in enumerate(bodies):
        for key in {key for key, _ in found} - {"-"}:
            assert owners.setdefault(key, partition) == partition
            numbers = [int(number) for one, number in found if one == key]
            assert numbers == sorted(numbers)
    settled = sorted((first, last, outcome.split()[0]) for first, last, outcome in peer.outcomes(link))
    assert sum(last - first + 1 for first, last, _ in settled) == 200
    assert [(first, last) for first, last, outcome in settled if outcome != "accepted"] == [
        (number, number) for number in (49, 99, 149, 199)
    ]
