"""Idempotent producers as clients see them: the attach's answer, outcomes, take-over, and a restart."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.annotations import (
    IDEMPOTENT_PRODUCER,
    PRODUCER_DIGEST,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    PRODUCER_ROUND,
    PRODUCER_SEQUENCE_NUMBER,
    RESUMING_PRODUCER,
)
from hubweir.amqp.messaging.message import Message, encode_message
from hubweir.amqp.types.values import Int, Long, Short, ULong
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AppendNumbered, CloseProducer, OpenProducer
from hubweir.errors import SERVER_BUSY
from hubweir.event_hub.producer_state import DIGEST_LIMIT, ROUND_LIMIT
from hubweir.gateway.amqp.tests.filled_partition import PARTITION
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.kernels.contract import BATCH_FORMAT
from hubweir.testing.simulated_env import SimulatedEnv

WANTED = (IDEMPOTENT_PRODUCER,)
ADDRESS = "hub/Partitions/0"
STOLEN, OUT_OF_ORDER = "com.microsoft:producer-epoch-stolen", "com.microsoft:out-of-order-sequence"


def numbers(producer_id: int | None, epoch: int | None, number: int | None) -> dict[Any, Any]:
    given = (PRODUCER_ID, Long, producer_id), (PRODUCER_EPOCH, Short, epoch), (PRODUCER_SEQUENCE_NUMBER, Int, number)
    return {name: None if value is None else kind(value) for name, kind, value in given}


def producer(
    peer: Peer, producer_id: int | None = 7, epoch: int | None = 0, number: int | None = 0, *, address: str = ADDRESS
) -> Any:
    asked = numbers(producer_id, epoch, number)
    link = peer.sender(address, properties=asked, desired_capabilities=WANTED)
    peer.run(100)  # the first one in a partition waits for a snapshot
    return link


def answered(link: Any) -> tuple[int, int, int]:
    properties = link.attach.properties
    return properties[PRODUCER_ID], properties[PRODUCER_EPOCH], properties[PRODUCER_SEQUENCE_NUMBER]


def send(peer: Peer, link: Any, first: int, events: int = 1, *, wait: int = 100, epoch: int = 0) -> list[str]:
    """Send one transfer; what became of it, and of all before it."""
    envelope = encode_message(Message(message_annotations=numbers(7, epoch, first)))
    for number in range(first, first + events):
        inner = event(b"%d" % number)
        envelope += b"\x00\x53\x75\xb0" + len(inner).to_bytes(4, "big") + inner
    link.send(envelope, message_format=BATCH_FORMAT, settled=False)
    peer.run(wait)
    return [outcome for first_id, last_id, outcome in peer.outcomes(link) for _ in range(first_id, last_id + 1)]


def stored(peer: Peer) -> list[bytes]:
    return peer.bodies(peer.receiver(PARTITION, credit=100))


def test_the_attach_is_answered_with_what_it_names_and_the_rest_is_assigned(peer: Peer) -> None:
    link = producer(peer, None, None, None)
    producer_id, epoch, number = answered(link)
    assert producer_id > 0 and (epoch, number) == (0, 0)
    assert link.attach.offered_capabilities == WANTED
    properties = link.attach.properties
    assert (type(properties[PRODUCER_EPOCH]), type(properties[PRODUCER_SEQUENCE_NUMBER])) == (Short, Int)
    assert answered(producer(peer, 99, 3, 41)) == (99, 3, 41)


def test_transfers_are_stored_once_however_often_they_are_sent(peer: Peer) -> None:
    link = producer(peer)
    assert send(peer, link, 1, 2) == ["accepted"]
    assert send(peer, link, 3, 2, wait=0) + send(peer, link, 3, 2, wait=0) == ["accepted"] * 2  # the first one's, twice
    peer.run(100)
    assert send(peer, link, 1, 2) == ["accepted"] * 4
    assert stored(peer) == [b"1", b"2", b"3", b"4"]


def test_gaps_and_overlaps_are_rejected_and_the_link_goes_on(peer: Peer) -> None:
    link = producer(peer)
    send(peer, link, 1, 2)
    assert send(peer, link, 4) == ["accepted", OUT_OF_ORDER]
    assert send(peer, link, 2, 2)[2:] == [OUT_OF_ORDER]
    assert send(peer, link, 3)[3:] == ["accepted"]
    assert stored(peer) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("number", [2**31, 2**63, 2**64 - 1])
def test_a_number_that_no_event_can_have_is_rejected_and_the_link_goes_on(peer: Peer, number: int) -> None:
    """Of a delivery that makes several stored batches, each with a number of its own."""
    link = producer(peer)
    envelope = encode_message(Message(message_annotations={PRODUCER_SEQUENCE_NUMBER: ULong(number)}))
    for _ in range(3):
        inner = event(bytes(60_000))
        envelope += b"\x00\x53\x75\xb0" + len(inner).to_bytes(4, "big") + inner
    link.send(envelope, message_format=BATCH_FORMAT, settled=False)
    peer.run(100)
    assert [outcome for _, _, outcome in peer.outcomes(link)] == ["com.microsoft:argument-error"]
    assert send(peer, link, 1)[1:] == ["accepted"]


def test_what_follows_a_refused_transfer_is_out_of_order(world: World, peer: Peer) -> None:
    link = producer(peer)
    world.gate.refuse[AppendNumbered] = Refusal(SERVER_BUSY, "wait")
    assert send(peer, link, 1) == ["com.microsoft:server-busy"]
    del world.gate.refuse[AppendNumbered]
    assert send(peer, link, 2)[1:] == [OUT_OF_ORDER]
    assert send(peer, link, 1)[2:] == ["accepted"]


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_new_link_takes_the_producer_over(world: World, peer: Peer, epoch: int) -> None:
    old = producer(peer)
    send(peer, old, 1)
    other = world.trusted_peer()
    new = producer(other, epoch=epoch, number=None)
    assert answered(new) == (7, epoch, 1)
    assert send(peer, old, 2)[1:] == [STOLEN]
    assert send(other, new, 2, epoch=epoch) == ["accepted"]
    late = producer(peer, epoch=epoch - 1) if epoch else None
    assert late is None or str(peer.refusal(late).condition) == STOLEN


@pytest.mark.parametrize("address", ["hub", "hub/Publishers/p"])
def test_only_a_partition_takes_numbers(peer: Peer, address: str) -> None:
    assert str(peer.refusal(producer(peer, address=address)).condition) == "amqp:not-allowed"


def test_a_transfer_without_its_number_or_of_another_producer_is_rejected(peer: Peer) -> None:
    link = producer(peer)
    link.send(event(b"x"), settled=False)
    link.send(event(b"x", message_annotations=numbers(8, 0, 1)), settled=False)
    link.send(event(b"x", message_annotations=numbers(None, None, 1)), settled=False)
    peer.run(100)
    outcomes = sorted((first, outcome) for first, _, outcome in peer.outcomes(link))
    assert [outcome for _, outcome in outcomes] == ["com.microsoft:argument-error"] * 2 + ["accepted"]
    assert str(peer.refusal(peer.sender(ADDRESS, properties={PRODUCER_ID: "7"}, desired_capabilities=WANTED))).count(
        "invalid-field"
    )


def test_after_a_crash_numbers_go_on_and_duplicates_are_known(world: World, peer: Peer) -> None:
    link = producer(peer)
    send(peer, link, 1, 3)
    send(peer, link, 4, 2)
    world.env.crash(power_cut=True)
    env: SimulatedEnv = world.env.restart()
    after = World(env=env)
    again = after.trusted_peer()
    link = producer(again, number=None)
    assert answered(link) == (7, 0, 5)
    assert send(again, link, 4, 2) == ["accepted"]
    assert send(again, link, 6) == ["accepted"] * 2
    assert stored(again) == [b"%d" % number for number in range(1, 7)]


def test_the_end_of_a_connection_closes_its_producers(world: World, peer: Peer) -> None:
    producer(peer)
    peer.cut()
    other = world.trusted_peer()
    assert answered(producer(other, epoch=None)) == (7, 0, 0)  # held by nobody: no need for a higher epoch
    assert len(world.gate.sent(OpenProducer)) == 2


def test_the_end_of_a_link_closes_its_producer_and_no_other(world: World, peer: Peer) -> None:
    link, other = producer(peer, 7), producer(peer, 8)
    link.detach()
    peer.run(100)
    [closed] = world.gate.sent(CloseProducer)
    openings = [each.producer_id for each in world.gate.sent(OpenProducer)]
    assert openings == [7, 8] and peer.is_attached(other)
    assert answered(producer(peer, 7, epoch=None)) == (7, 0, 0)  # held by nobody: no need for a higher epoch
    assert closed.log_id == world.gateway.directory.partition("hub", "0").log_id


def test_a_producer_that_is_opened_behind_the_end_of_its_link_is_closed(world: World, peer: Peer) -> None:
    world.gate.hold[OpenProducer] = []
    link = producer(peer)
    link.detach()
    peer.run(100)
    world.gate.release(OpenProducer)
    peer.run(100)
    assert len(world.gate.sent(CloseProducer)) == 1
    assert answered(producer(peer, epoch=None)) == (7, 0, 0)


def sink(peer: Peer, round_number: int | None, *, epoch: int | None = None, number: int | None = None) -> Any:
    asked = numbers(7, epoch, number) | {PRODUCER_ROUND: None if round_number is None else Long(round_number)}
    link = peer.sender(ADDRESS, properties=asked, desired_capabilities=(*WANTED, RESUMING_PRODUCER))
    peer.run(100)
    return link


def resumed(link: Any) -> tuple[int, int, int, int]:
    properties = link.attach.properties
    return (
        properties[PRODUCER_ROUND], properties[PRODUCER_EPOCH], properties[PRODUCER_SEQUENCE_NUMBER],
        properties[PRODUCER_DIGEST],
    )  # fmt: skip


def send_rows(peer: Peer, link: Any, first: int, events: int, digest: int | None, *, epoch: int = 0) -> str:
    """Send one transfer of a round; the newest outcome."""
    annotations = numbers(7, epoch, first) | ({} if digest is None else {PRODUCER_DIGEST: Long(digest)})
    envelope = encode_message(Message(message_annotations=annotations))
    for number in range(first, first + events):
        inner = event(b"%d" % number)
        envelope += b"\x00\x53\x75\xb0" + len(inner).to_bytes(4, "big") + inner
    link.send(envelope, message_format=BATCH_FORMAT, settled=False)
    peer.run(100)
    return peer.outcomes(link)[-1][2]


def test_a_sink_resumes_its_round_behind_the_last_row_and_begins_the_next_one_at_one(peer: Peer) -> None:
    link = sink(peer, 0)
    assert resumed(link) == (0, 0, 0, 0)
    assert link.attach.offered_capabilities == (*WANTED, RESUMING_PRODUCER)
    assert send_rows(peer, link, 1, 3, 77) == "accepted"
    assert send_rows(peer, link, 4, 2, 2**63 - 1) == "accepted"
    again = sink(peer, 0)
    assert resumed(again) == (0, 1, 5, 2**63 - 1)
    assert send_rows(peer, link, 6, 1, 1) == STOLEN
    assert send_rows(peer, again, 1, 3, 77, epoch=1) == "accepted", "a duplicate"
    following = sink(peer, 1)
    assert resumed(following) == (1, 0, 0, 0)
    assert send_rows(peer, following, 2, 1, 5) == OUT_OF_ORDER and send_rows(peer, following, 1, 1, 5) == "accepted"
    assert str(peer.refusal(sink(peer, 0)).condition) == STOLEN
    assert str(peer.refusal(producer(peer, 7, 9, None)).condition) == STOLEN, "an attach without a round"
    assert stored(peer) == [b"1", b"2", b"3", b"4", b"5", b"1"]


@pytest.mark.parametrize("power_cut", [False, True])
def test_after_a_crash_the_round_the_epoch_and_the_digest_are_what_they_were(
    world: World, peer: Peer, power_cut: bool
) -> None:
    send_rows(peer, sink(peer, 3), 1, 4, 99)
    assert resumed(sink(peer, 3)) == (3, 1, 4, 99)
    world.env.crash(power_cut=power_cut)
    after = World(env=world.env.restart())
    again = after.trusted_peer()
    assert str(again.refusal(sink(again, 2)).condition) == STOLEN
    assert str(again.refusal(sink(again, 3, epoch=0)).condition) == STOLEN, "its attach was answered before the crash"
    assert resumed(sink(again, 3)) == (3, 2, 4, 99)


def test_an_attach_that_took_over_and_sent_nothing_fences_after_a_crash_too(world: World, peer: Peer) -> None:
    send(peer, producer(peer), 1)
    assert answered(producer(peer, epoch=5, number=None)) == (7, 5, 1)
    world.env.crash(power_cut=True)
    again = World(env=world.env.restart()).trusted_peer()
    assert str(again.refusal(producer(again, epoch=4)).condition) == STOLEN
    assert answered(producer(again, epoch=5, number=None)) == (7, 5, 1)


def test_what_a_round_must_not_look_like_is_refused(peer: Peer) -> None:
    assert str(peer.refusal(sink(peer, 0, number=4)).condition) == "com.microsoft:argument-error"
    assert str(peer.refusal(sink(peer, -1)).condition) == "com.microsoft:argument-out-of-range"
    assert str(peer.refusal(sink(peer, 2**63 - 1)).condition) == "com.microsoft:argument-out-of-range"
    assert str(peer.refusal(sink(peer, ROUND_LIMIT)).condition) == "com.microsoft:argument-out-of-range"
    link = sink(peer, 0)
    for digest in (None, -1):
        assert send_rows(peer, link, 1, 1, digest) == "com.microsoft:argument-error"
    assert send_rows(peer, link, 1, 1, 0) == "accepted"


def test_the_last_round_and_the_largest_digest_are_taken(peer: Peer) -> None:
    link = sink(peer, ROUND_LIMIT - 1)
    assert resumed(link)[0] == ROUND_LIMIT - 1
    assert send_rows(peer, link, 1, 1, DIGEST_LIMIT) == "accepted"


def test_whoever_names_no_round_sees_nothing_of_rounds(peer: Peer) -> None:
    link = producer(peer)
    assert link.attach.offered_capabilities == WANTED
    assert {PRODUCER_ROUND, PRODUCER_DIGEST}.isdisjoint(link.attach.properties)
    nothing = sink(peer, None)
    assert nothing.attach.offered_capabilities == WANTED and PRODUCER_DIGEST not in nothing.attach.properties
