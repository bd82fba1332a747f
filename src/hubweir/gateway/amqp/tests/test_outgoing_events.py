"""Readers that get stored batches: the same events within the same bounds as single ones, and no secret."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.annotations import (
    ENABLE_RECEIVER_RUNTIME_METRIC,
    EPOCH,
    EVENT_LIMIT,
    STORED_BATCHES,
)
from hubweir.amqp.messaging.message import DataBody, decode_message
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.values import Long, Symbol
from hubweir.broker.commands.reader import ReadEvents
from hubweir.errors import LINK_STOLEN
from hubweir.gateway.amqp.consumer_node import ConsumerNode
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.kernels import scan_batches, scan_records
from hubweir.kernels.contract import (
    B_COUNT,
    B_DURABLE_UPTO,
    B_FIRST_INDEX,
    B_POSITION,
    B_WRITER_EPOCH,
    BATCH_WIDTH,
    BATCHES_OK,
    R_MESSAGE,
    R_MESSAGE_LENGTH,
    RECORD_WIDTH,
)
from hubweir.kernels.stored_batch import AT_HEADER_CRC, AT_NONCE
from hubweir.kernels.tests.legal_bytes import table

PARTITION = "hub/ConsumerGroups/$Default/Partitions/0"
ORIGIN = "amqp.annotation.x-opt-sequence-number >= "


def fill(peer: Peer, count: int, *, size: int = 0) -> None:
    """Send events 0 … count - 1, 5 ms apart, which makes a batch of each."""
    link = peer.sender("hub/Partitions/0")
    for number in range(count):
        link.send(event(b"%d" % number + bytes(size)), settled=False)
        peer.run(5)
    peer.run(100)


def reader(peer: Peer, *, limit: int | None = None, start: int | None = None, credit: int = 0) -> ReceiverLink:
    properties: dict[Symbol, object] | None = None if limit is None else {EVENT_LIMIT: Long(limit)}
    return peer.receiver(
        PARTITION,
        selector=None if start is None else f"{ORIGIN}'{start}'",
        credit=credit,
        desired_capabilities=(STORED_BATCHES,),
        properties=properties,
    )


def payloads(peer: Peer, link: ReceiverLink) -> list[bytes]:
    return [bytes(entry.payload) for entry in peer.side.deliveries() if entry.link_name == link.name]


def numbers(peer: Peer, link: ReceiverLink) -> list[int]:
    """The sequence numbers that came; every batch has to be sound, and its events those that fill sent."""
    found: list[int] = []
    for payload in payloads(peer, link):
        batches = table(100, BATCH_WIDTH)
        count, position, status = scan_batches(payload, 0, len(payload), 0, batches)
        assert (status, position) == (BATCHES_OK, len(payload))
        for at in range(0, count * BATCH_WIDTH, BATCH_WIDTH):
            rows = table(batches[at + B_COUNT], RECORD_WIDTH)
            scan_records(payload, batches[at + B_POSITION], rows)
            for place in range(batches[at + B_COUNT]):
                number, row = batches[at + B_FIRST_INDEX] + place, place * RECORD_WIDTH
                start = rows[row + R_MESSAGE]
                message = decode_message(memoryview(payload)[start : start + rows[row + R_MESSAGE_LENGTH]])
                assert isinstance(message.body, DataBody)
                assert b"".join(message.body.parts).rstrip(b"\0") == b"%d" % number
                found.append(number)
    return found


def test_a_reader_that_desires_stored_batches_gets_all_events_in_few_deliveries(peer: Peer) -> None:
    fill(peer, 40)
    link = reader(peer, credit=5)
    peer.run(200)
    assert link.attach is not None
    assert link.attach.offered_capabilities == (STORED_BATCHES,)
    assert numbers(peer, link) == list(range(40))
    assert len(payloads(peer, link)) == 5 - link.credit < 5


def test_who_does_not_desire_them_or_wants_metrics_gets_single_events(peer: Peer) -> None:
    fill(peer, 3)
    plain = peer.receiver(PARTITION, credit=10)
    told = peer.receiver(PARTITION, credit=10, desired_capabilities=(STORED_BATCHES, ENABLE_RECEIVER_RUNTIME_METRIC))
    peer.run(200)
    assert plain.attach is not None and told.attach is not None
    assert plain.attach.offered_capabilities is None
    assert told.attach.offered_capabilities == (ENABLE_RECEIVER_RUNTIME_METRIC,)
    assert len(peer.received(plain)) == len(peer.received(told)) == 3


def test_nothing_that_is_the_services_own_goes_out(world: World, peer: Peer) -> None:
    fill(peer, 3)
    link = reader(peer, credit=5)
    peer.run(200)
    for payload in payloads(peer, link):
        batches = table(100, BATCH_WIDTH)
        count, _, _ = scan_batches(payload, 0, len(payload), 0, batches)
        for at in range(0, count * BATCH_WIDTH, BATCH_WIDTH):
            position = batches[at + B_POSITION]
            assert payload[position + AT_NONCE : position + AT_NONCE + 8] == bytes(8)
            assert payload[position + AT_HEADER_CRC : position + AT_HEADER_CRC + 4] == bytes(4)
            assert (batches[at + B_WRITER_EPOCH], batches[at + B_DURABLE_UPTO]) == (0, 0)


def test_exactly_the_events_asked_for_go_out_wherever_their_batches_begin(peer: Peer) -> None:
    link = peer.sender("hub/Partitions/0")
    for number in range(30):  # sent at once, so that batches hold several
        link.send(event(b"%d" % number), settled=False)
    peer.run(200)
    for start, limit in ((0, 30), (4, 7), (29, 5), (11, 1)):
        asked = reader(peer, start=start, limit=limit, credit=50)
        peer.run(200)
        assert numbers(peer, asked) == list(range(start, min(30, start + limit)))
        asked.detach()
        peer.run()


def test_without_credit_nothing_is_read(world: World, peer: Peer) -> None:
    fill(peer, 5)
    link = reader(peer)
    peer.run(200)
    assert world.gate.sent(ReadEvents) == []
    link.grant(1)
    peer.run(200)
    assert numbers(peer, link) == [0, 1, 2, 3, 4]


def test_behind_the_limit_nothing_is_read_and_a_drain_is_answered(world: World, peer: Peer) -> None:
    fill(peer, 5)
    link = reader(peer, limit=3, credit=10)
    peer.run(2_000)
    reads = len(world.gate.sent(ReadEvents))
    fill(peer, 2)
    assert numbers(peer, link) == [0, 1, 2]
    assert len(world.gate.sent(ReadEvents)) == reads
    link.grant(10, drain=True)
    peer.run(200)
    assert link.credit == 0
    assert peer.is_attached(link)


def test_one_credit_is_one_delivery_of_a_frame(peer: Peer) -> None:
    fill(peer, 20, size=10_000)
    link = reader(peer, credit=1)
    peer.run(200)
    (payload,) = payloads(peer, link)
    assert 50_000 < len(payload) < 65_536
    assert link.credit == 0
    link.grant(10)
    peer.run(200)
    assert numbers(peer, link) == list(range(20))


def test_an_event_larger_than_a_frame_arrives_whole(peer: Peer) -> None:
    fill(peer, 2, size=300_000)
    link = reader(peer, credit=5)
    peer.run(500)
    assert numbers(peer, link) == [0, 1]


def test_events_that_come_later_come_as_batches_too(peer: Peer) -> None:
    link = reader(peer, credit=50)
    peer.run(200)
    fill(peer, 4)
    assert numbers(peer, link) == [0, 1, 2, 3]


def test_units_pace_the_events_and_count_them(peer: Peer, world: World) -> None:
    fill(peer, 400, size=10_000)
    admission = world.gateway.units.admission
    admission.set_units(1, world.env.monotonic_ms())
    link = reader(peer, credit=1_000)
    peer.run(500)
    assert 0 < len(numbers(peer, link)) < 400  # two megabytes a second, and as much at the start
    peer.run(3_000)
    assert numbers(peer, link) == list(range(400))
    usage = admission.usage.row(world.env.monotonic_ms())
    assert usage.events_out == 400
    assert usage.bytes_out > 4_000_000
    assert world.counters["gateway.events_delivered"] == 400


def test_a_full_transport_keeps_no_run_and_loses_no_event(peer: Peer) -> None:
    fill(peer, 150, size=10_000)
    link = reader(peer)
    link.grant(100)
    peer._carry_to_server()
    peer.host.on_writing_paused()
    peer.run(2_000)
    (node,) = [node for node in peer.host.nodes if isinstance(node, ConsumerNode)]
    assert not node.holds_run
    assert 0 < len(numbers(peer, link)) < 150
    peer.host.on_writable()
    peer.run(500)
    assert numbers(peer, link) == list(range(150))


def test_a_higher_epoch_ends_the_link(peer: Peer) -> None:
    def owner(epoch: int) -> ReceiverLink:
        return peer.receiver(
            PARTITION, credit=5, desired_capabilities=(STORED_BATCHES,), properties={EPOCH: Long(epoch)}
        )

    fill(peer, 2)
    first, second = owner(1), owner(2)
    peer.run(200)
    assert peer.refusal(first).condition == LINK_STOLEN.symbol
    assert numbers(peer, second) == [0, 1]


@pytest.mark.parametrize("value", [Long(-1), "many"])
def test_a_limit_that_is_none_refuses_the_link(peer: Peer, value: object) -> None:
    link = peer.receiver(PARTITION, desired_capabilities=(STORED_BATCHES,), properties={EVENT_LIMIT: value})
    assert peer.refusal(link).condition == "amqp:invalid-field"


def test_unsettled_deliveries_are_settled_by_the_receiver(peer: Peer) -> None:
    fill(peer, 3)
    link = peer.receiver(PARTITION, credit=5, desired_capabilities=(STORED_BATCHES,), rcv_settle_mode=1)
    peer.run(200)
    assert numbers(peer, link) == [0, 1, 2]
    assert link.unsettled_count == len(payloads(peer, link))
