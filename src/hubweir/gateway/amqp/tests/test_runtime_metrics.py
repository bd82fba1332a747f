"""Delivery annotations for receivers that desire runtime metrics, and for no others."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.annotations import (
    ENABLE_RECEIVER_RUNTIME_METRIC,
    LAST_ENQUEUED_OFFSET,
    LAST_ENQUEUED_SEQUENCE_NUMBER,
    LAST_ENQUEUED_TIME_UTC,
    RUNTIME_INFO_RETRIEVAL_TIME_UTC,
)
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.values import Described, Symbol
from hubweir.broker.commands.partition import AskPartitionInfo, PartitionInfo
from hubweir.gateway.amqp.runtime_metrics import encode_metrics
from hubweir.gateway.amqp.tests.filled_partition import PARTITION, fill
from hubweir.gateway.amqp.tests.world import Peer, World, event

WANTED = (ENABLE_RECEIVER_RUNTIME_METRIC,)
LAST_NUMBER, LAST_OFFSET = LAST_ENQUEUED_SEQUENCE_NUMBER, LAST_ENQUEUED_OFFSET
LAST_TIME, TAKEN_AT = LAST_ENQUEUED_TIME_UTC, RUNTIME_INFO_RETRIEVAL_TIME_UTC


def metrics(peer: Peer, link: Any) -> list[dict[Any, Any] | None]:
    return [message.delivery_annotations for message in peer.received(link)]


@pytest.mark.parametrize("offset", [0, 2**63 - 1])
def test_the_section_holds_the_four_names_with_their_types(offset: int) -> None:
    info = PartitionInfo("a", 0, 2**62, offset, 1_700_000_000_123, False, 9)
    data = encode_metrics(info, 1_700_000_000_999)
    value, end = decode(memoryview(data), 0, len(data))
    assert end == len(data) and isinstance(value, Described) and value.descriptor == 0x71
    assert dict(value.value) == {
        LAST_NUMBER: 2**62, LAST_OFFSET: str(offset), LAST_TIME: 1_700_000_000_123, TAKEN_AT: 1_700_000_000_999,
    }  # fmt: skip
    assert all(isinstance(name, Symbol) for name in value.value)
    assert b"\x81" + (2**62).to_bytes(8, "big") in data and data.count(b"\x83\x00\x00\x01\x8b") == 2


def test_only_a_receiver_that_desires_them_gets_them_and_is_offered_the_capability(peer: Peer) -> None:
    fill(peer, 3)
    plain = peer.receiver(PARTITION, credit=10)
    told = peer.receiver(PARTITION, credit=10, desired_capabilities=WANTED)
    assert metrics(peer, plain) == [None] * 3
    assert plain.attach.offered_capabilities is None
    assert told.attach.offered_capabilities == WANTED
    assert all(found is not None and None not in found.values() and len(found) == 4 for found in metrics(peer, told))
    assert len(metrics(peer, told)) == 3


def test_the_last_events_metrics_are_its_own_numbers(peer: Peer) -> None:
    fill(peer, 5)
    link = peer.receiver(PARTITION, credit=10, desired_capabilities=WANTED)
    last = peer.received(link)[-1]
    own, told = last.message_annotations or {}, last.delivery_annotations or {}
    assert told[LAST_NUMBER] == own[Symbol("x-opt-sequence-number")] == 4
    assert told[LAST_OFFSET] == own[Symbol("x-opt-offset")]
    assert told[LAST_TIME] == own[Symbol("x-opt-enqueued-time")]
    assert int(told[TAKEN_AT]) >= int(told[LAST_TIME])


def test_they_say_how_far_the_partition_reaches_when_the_delivery_is_made(peer: Peer) -> None:
    fill(peer, 3)
    link = peer.receiver(PARTITION, credit=1, desired_capabilities=WANTED)
    fill(peer, 4)
    link.grant(1)  # an event of the run that was read before the four came
    peer.run()
    assert [(found or {})[LAST_NUMBER] for found in metrics(peer, link)] == [2, 6]


def test_they_replace_a_senders_own_delivery_annotations(peer: Peer) -> None:
    sender = peer.sender("hub/Partitions/0")
    sender.send(event(b"x", delivery_annotations={Symbol("hop"): 1}), settled=False)
    peer.run(100)
    link = peer.receiver(PARTITION, credit=1, desired_capabilities=WANTED)
    plain = peer.receiver(PARTITION, credit=1)
    assert metrics(peer, plain) == [{"hop": 1}]
    assert set(metrics(peer, link)[0] or ()) == {LAST_NUMBER, LAST_OFFSET, LAST_TIME, TAKEN_AT}


def test_a_slow_answer_of_the_owner_delays_deliveries_and_loses_none(world: World, peer: Peer) -> None:
    fill(peer, 3)
    world.gate.hold[AskPartitionInfo] = []
    link = peer.receiver(PARTITION, credit=2, desired_capabilities=WANTED)
    link.grant(10)
    peer.run()
    assert metrics(peer, link) == []
    world.gate.release(AskPartitionInfo)
    peer.run()
    assert [(found or {})[LAST_NUMBER] for found in metrics(peer, link)] == [2, 2, 2]
    assert len(world.gate.sent(AskPartitionInfo)) == 1  # one question for the whole send
