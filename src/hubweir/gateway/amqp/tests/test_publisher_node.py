"""Links that bring events: where they go, what is answered and when."""

from __future__ import annotations

import re

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import DataBody
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.partition import AppendEvents, AskPartitionInfo, PartitionInfo
from hubweir.broker.commands.process import Refusal
from hubweir.errors import SERVER_BUSY, TIMED_OUT
from hubweir.gateway.amqp.tests.world import Peer, World, event, keyed
from hubweir.gateway.settings import LinkSettings
from hubweir.limits import GatewayLimits
from hubweir.namespace.event_hub_description import EventHubDescription

PARTITION_KEY = Symbol("x-opt-partition-key")


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


def test_an_event_is_accepted_when_it_is_stored_and_not_before(world: World, peer: Peer) -> None:
    link = peer.sender("hub")
    world.gate.hold[AppendEvents] = []
    link.send(event(b"one"), settled=False)
    peer.run(1_000)
    assert peer.outcomes(link) == []
    world.gate.release(AppendEvents)
    peer.run()
    assert peer.outcomes(link) == [(0, 0, "accepted")]
    assert sum(counts(world)) == 1


def test_a_link_tells_its_size_limit_and_grants_a_thousand(peer: Peer) -> None:
    link = peer.sender("hub")
    assert link.credit == 1_000
    assert link.remote_max_message_size == 1_048_576


def test_credit_is_topped_up_at_half(peer: Peer) -> None:
    link = peer.sender("hub")
    for _ in range(499):
        link.send(event(b"x"), settled=False)
    peer.run(200)
    assert link.credit == 501
    link.send(event(b"x"), settled=False)
    peer.run(200)
    assert link.credit == 1_000


def test_unkeyed_events_of_a_hub_link_take_turns_over_all_partitions(world: World, peer: Peer) -> None:
    link = peer.sender("hub")
    for number in range(8):
        link.send(event(b"%d" % number), settled=False)
    peer.run()
    assert counts(world) == [2, 2, 2, 2]


def test_deliveries_of_one_read_are_settled_with_one_disposition_though_they_went_to_four_logs(
    world: World, peer: Peer
) -> None:
    link = peer.sender("hub")
    world.gate.hold[AppendEvents] = []
    for _ in range(40):
        link.send(event(b"x"), settled=False)
    peer.run()
    assert len(world.gate.hold[AppendEvents]) == 4
    world.gate.release(AppendEvents)
    peer.run(100)
    outcomes = peer.outcomes(link)
    assert sorted(number for first, last, _ in outcomes for number in range(first, last + 1)) == list(range(40))
    assert all(text == "accepted" for _, _, text in outcomes)


def test_all_links_of_a_turn_share_one_append_a_partition(world: World) -> None:
    peers = [world.trusted_peer() for _ in range(3)]
    links = [peer.sender("hub/Partitions/2") for peer in peers]
    for peer, link in zip(peers, links, strict=True):
        for _ in range(10):
            link.send(event(b"x"), settled=False)
        peer._carry_to_server()
    world.run_for(100)
    assert len(world.gate.sent(AppendEvents)) == 1
    for peer, link in zip(peers, links, strict=True):
        assert peer.outcomes(link) == [(0, 9, "accepted")]
    assert counts(world) == [0, 0, 30, 0]


@pytest.mark.parametrize(("key", "partition"), [("a", 0), ("pk1", 1), ("alphabet", 2), ("abcdefghijklm", 3)])
def test_a_key_chooses_the_partition_single_or_batch(world: World, peer: Peer, key: str, partition: int) -> None:
    link = peer.sender("hub")
    link.send(keyed(b"single", key), settled=False)
    batch = pack_batch([event(b"1"), event(b"2")], annotations={PARTITION_KEY: key})
    link.send(batch, message_format=BATCH_FORMAT, settled=False)
    peer.run()
    expected = [0, 0, 0, 0]
    expected[partition] = 3
    assert counts(world) == expected


def test_a_batch_is_many_events_and_one_disposition(world: World, peer: Peer) -> None:
    link = peer.sender("hub/Partitions/1")
    link.send(pack_batch([event(b"%d" % n) for n in range(100)]), message_format=BATCH_FORMAT, settled=False)
    peer.run()
    assert peer.outcomes(link) == [(0, 0, "accepted")]
    assert counts(world) == [0, 100, 0, 0]


def test_deliveries_that_settle_unlike_go_out_in_the_run_that_they_fill() -> None:
    """The limit of a run is reached by what one read brought, some of it settled by its sender and some not."""
    world = World(link_settings=LinkSettings(run_limit_bytes=1_000))
    peer = world.trusted_peer()
    link = peer.sender("hub/Partitions/0")
    for settled in (True, False, True, False):
        link.send(event(bytes(500)), settled=settled)
    peer.run()
    assert counts(world)[0] == 4
    assert [entry[2] for entry in peer.outcomes(link)] == ["accepted", "accepted"]
    assert len(world.gate.sent(AppendEvents)) == 1


def test_presettled_deliveries_are_stored_and_get_no_disposition(world: World, peer: Peer) -> None:
    link = peer.sender("hub/Partitions/0")
    link.send(event(b"quiet"), settled=True)
    link.send(event(b"loud"), settled=False)
    link.send(event(b"quiet"), settled=True)
    peer.run()
    assert counts(world)[0] == 3
    assert peer.outcomes(link) == [(1, 1, "accepted")]


def test_a_malformed_delivery_is_rejected_alone_and_its_neighbours_are_stored(world: World, peer: Peer) -> None:
    link = peer.sender("hub/Partitions/0")
    for payload in (event(b"1"), b"no message", event(b"2")):
        link.send(payload, settled=False)
    peer.run()
    assert sorted(peer.outcomes(link)) == [(0, 0, "accepted"), (1, 1, "amqp:decode-error"), (2, 2, "accepted")]
    assert counts(world)[0] == 2


@pytest.mark.parametrize("address", ["hub", "hub/Partitions/1"])
def test_a_batch_with_one_bad_message_leaves_nothing(world: World, peer: Peer, address: str) -> None:
    link = peer.sender(address)
    link.send(pack_batch([event(b"1"), b"\x00\x53", event(b"3")]), message_format=BATCH_FORMAT, settled=False)
    peer.run()
    assert [text for _, _, text in peer.outcomes(link)] == ["amqp:decode-error"]
    assert counts(world) == [0, 0, 0, 0]


@pytest.mark.parametrize(("length", "outcome"), [(128, "accepted"), (129, "com.microsoft:argument-out-of-range")])
@pytest.mark.parametrize("address", ["hub", "hub/Partitions/1"])
def test_a_key_has_at_most_128_characters(peer: Peer, length: int, outcome: str, address: str) -> None:
    link = peer.sender(address)
    key = "é" * length
    link.send(pack_batch([event(b"x")], annotations={PARTITION_KEY: key}), message_format=BATCH_FORMAT, settled=False)
    peer.run()
    assert [text for _, _, text in peer.outcomes(link)] == [outcome]


def test_exactly_the_size_limit_is_taken_and_one_byte_more_is_rejected_with_both_numbers() -> None:
    world = World(limits=GatewayLimits(max_message_size_bytes=1_000))
    peer = world.trusted_peer()
    link = peer.sender("hub/Partitions/0")
    overhead = len(event(bytes(500))) - 500
    link.send(event(bytes(1_000 - overhead)), settled=False)
    link.send(event(bytes(1_001 - overhead)), settled=False)
    link.send(event(b"next"), settled=False)
    peer.run()
    assert sorted(peer.outcomes(link)) == [
        (0, 0, "accepted"),
        (1, 1, "amqp:link:message-size-exceeded"),
        (2, 2, "accepted"),
    ]
    text = error_text(peer, link)
    assert "(delivery-id:1, size:1001 bytes) exceeds the limit (1000 bytes) currently allowed on the link" in text
    assert "TrackingId:" in text
    link.send(event(bytes(1_001 - overhead)), settled=True)  # nobody wants to hear of it
    peer.run()
    assert len(peer.outcomes(link)) == 3 and world.counters["gateway.deliveries_rejected"] == 1
    assert counts(world)[0] == 2


def test_a_refusal_that_is_known_rejects_with_its_condition(world: World, peer: Peer) -> None:
    link = peer.sender("hub")
    world.gate.refuse[AppendEvents] = Refusal(SERVER_BUSY, "busy")
    link.send(event(b"x"), settled=False)
    peer.run()
    assert [text for _, _, text in peer.outcomes(link)] == ["com.microsoft:server-busy"]
    assert peer.is_attached(link)


def test_an_unknown_outcome_detaches_the_link_and_says_nothing_of_the_delivery(world: World, peer: Peer) -> None:
    link = peer.sender("hub")
    world.gate.refuse[AppendEvents] = Refusal(TIMED_OUT, "the broker went away", known=False)
    link.send(event(b"x"), settled=False)
    peer.run()
    assert peer.outcomes(link) == []
    assert peer.refusal(link).condition == "amqp:link:detach-forced"
    assert len(world.gate.sent(AppendEvents)) == 1  # and is not sent again


def test_every_event_of_a_publisher_goes_to_the_partition_of_its_name(world: World, peer: Peer) -> None:
    link = peer.sender("hub/Publishers/alphabet")
    for number in range(4):
        link.send(event(b"%d" % number), settled=False)
    peer.run()
    assert counts(world) == [0, 0, 4, 0]
    reader = peer.receiver("hub/ConsumerGroups/$Default/Partitions/2", credit=10)
    annotations = [message.message_annotations for message in peer.received(reader)]
    assert all(found[Symbol("x-opt-publisher")] == "alphabet" for found in annotations if found)
    assert all(found[PARTITION_KEY] == "alphabet" for found in annotations if found)


def test_a_publisher_cannot_send_with_another_key(world: World, peer: Peer) -> None:
    link = peer.sender("hub/Publishers/alphabet")
    link.send(keyed(b"mine", "alphabet"), settled=False)
    link.send(keyed(b"stolen", "other"), settled=False)
    peer.run()
    assert sorted(text for _, _, text in peer.outcomes(link)) == ["accepted", "amqp:not-allowed"]
    assert sum(counts(world)) == 1


def test_a_delivery_of_many_frames_is_one_chain_and_read_back_whole(world: World, peer: Peer) -> None:
    link = peer.sender("hub/Partitions/0")
    bodies = [bytes([number]) * 20_000 for number in range(30)]
    link.send(pack_batch([event(body) for body in bodies]), message_format=BATCH_FORMAT, settled=False)
    peer.run(200)
    assert peer.outcomes(link) == [(0, 0, "accepted")]
    reader = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=100)
    peer.run(200)
    assert peer.bodies(reader) == bodies


def test_a_connection_with_too_many_unanswered_bytes_is_not_read_until_half_is_answered() -> None:
    world = World(limits=GatewayLimits(connection_budget_bytes=10_000))
    peer = world.trusted_peer()
    link = peer.sender("hub/Partitions/0")
    world.gate.hold[AppendEvents] = []
    for _ in range(12):
        link.send(event(bytes(1_000)), settled=False)
    peer.run()
    assert peer.reading_paused
    link.send(event(b"waits in the socket"), settled=False)
    peer.run(1_000)
    assert len(world.gate.sent(AppendEvents)) == 1
    world.gate.release(AppendEvents)
    peer.run(200)
    assert not peer.reading_paused
    assert counts(world)[0] == 13
    assert world.gateway.process.budget.used == 0


def test_the_budget_is_given_back_when_the_connection_dies_with_sends_under_way() -> None:
    world = World()
    peer = world.trusted_peer()
    link = peer.sender("hub")
    world.gate.hold[AppendEvents] = []
    link.send(event(bytes(1_000)), settled=False)
    peer.run()
    assert world.gateway.process.budget.used > 0
    peer.cut()
    world.gate.release(AppendEvents)
    world.run_for(100)
    assert world.gateway.process.budget.used == 0
    assert sum(counts(world)) == 1  # what was under way is not cancelled by the end of whoever asked


def test_two_connections_with_the_same_link_name_both_work(world: World) -> None:
    peers = [world.trusted_peer(), world.trusted_peer()]
    links = [peer.sender("hub") for peer in peers]
    assert links[0].name == links[1].name
    for link in links:
        link.send(event(b"x"), settled=False)
    world.run_for(100)
    assert [peer.outcomes(link) for peer, link in zip(peers, links, strict=True)] == [[(0, 0, "accepted")]] * 2


def test_service_annotations_of_a_sender_are_overwritten_and_its_own_are_kept(peer: Peer) -> None:
    link = peer.sender("hub/Partitions/0")
    forged = {
        Symbol("x-opt-sequence-number"): 999,
        Symbol("x-opt-offset"): "999",
        Symbol("x-opt-enqueued-time"): 0,
        Symbol("x-opt-publisher"): "somebody",
        Symbol("mine"): "kept",
    }
    link.send(event(b"x", message_annotations=forged), settled=False)
    peer.run()
    reader = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=1)
    (message,) = peer.received(reader)
    found = message.message_annotations or {}
    assert found[Symbol("x-opt-sequence-number")] == 0
    assert found[Symbol("x-opt-offset")] == "0"
    assert found[Symbol("mine")] == "kept"
    assert Symbol("x-opt-publisher") not in found
    assert message.body == DataBody((b"x",))


def test_links_to_a_hub_that_is_deleted_end_so_that_clients_find_its_successor(world: World, peer: Peer) -> None:
    world.create_hub("other", 1)
    links = [peer.sender("hub"), peer.sender("hub/Partitions/1"), peer.sender("hub/Publishers/p")]
    other = peer.sender("other")
    world.wait(lambda done: world.gateway.keeper.delete("hub", EventHubDescription, done))
    peer.run()
    for link in links:
        refusal = peer.refusal(link)
        assert refusal.condition == "amqp:not-found"
        assert re.search("The messaging entity .*hub.* could not be found", refusal.description)
    assert peer.is_attached(other)
    world.create_hub("hub", 2)
    again = peer.sender("hub/Partitions/1")
    again.send(event(b"one"), settled=False)
    peer.run()
    assert peer.outcomes(again) == [(0, 0, "accepted")]


def test_a_link_that_waits_for_an_answer_is_not_idle_however_long_that_takes() -> None:
    world = World(limits=GatewayLimits(idle_link_ms=1_000))
    peer = world.trusted_peer()
    waiting, idle = peer.sender("hub"), peer.sender("hub")
    world.gate.hold[AppendEvents] = []
    waiting.send(event(b"one"), settled=False)
    peer.run(5_000)
    assert peer.is_attached(waiting) and not peer.is_attached(idle)
    world.gate.release(AppendEvents)
    peer.run(100)
    assert [outcome for *_, outcome in peer.outcomes(waiting)] == ["accepted"]
