"""Links that read: positions, credit, drain, back-pressure, and how they end.

Long because every way in which one link can read needs the same filled partitions.
"""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.annotations import SELECTOR_FILTER, SELECTOR_FILTER_CODE, SELECTOR_FILTER_CODE_DOTNET
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import LinkAttached
from hubweir.amqp.transport.settings import EndpointSettings
from hubweir.amqp.types.values import Described, Symbol, Timestamp, UInt
from hubweir.broker.commands.process import CloseOwner
from hubweir.broker.commands.reader import CancelRead, CloseReader, OpenReader, ReadEvents
from hubweir.gateway.amqp.consumer_node import ConsumerNode
from hubweir.gateway.amqp.tests.world import HOST, KEY, ROOT, Peer, World, event
from hubweir.gateway.settings import LinkSettings
from hubweir.namespace.event_hub_description import EventHubDescription

PARTITION = "hub/ConsumerGroups/$Default/Partitions/0"
SEQUENCE_NUMBER, OFFSET, TIME = (
    Symbol("x-opt-sequence-number"),
    Symbol("x-opt-offset"),
    Symbol("x-opt-enqueued-time"),
)


@pytest.fixture
def world() -> World:
    return World(link_settings=LinkSettings(turn_limit_bytes=256 * 1024))  # less than a partition here holds


@pytest.fixture
def peer(world: World) -> Peer:
    return world.trusted_peer()


def fill(peer: Peer, count: int, *, size: int = 0, address: str = "hub/Partitions/0") -> None:
    """Send events 0 … count - 1 to a partition, 5 ms apart."""
    link = peer.sender(address)
    for number in range(count):
        link.send(event(b"%d" % number + bytes(size)), settled=False)
        peer.run(5)
    peer.run(100)
    link.detach()
    peer.run()


def numbers(peer: Peer, link: object) -> list[int]:
    return [int((message.message_annotations or {})[SEQUENCE_NUMBER]) for message in peer.received(link)]


@pytest.mark.parametrize(
    ("selector", "first"),
    [
        (None, 0),
        ("amqp.annotation.x-opt-offset > '-1'", 0),
        ("amqp.annotation.x-opt-offset > '@latest'", 10),
        ("amqp.annotation.x-opt-sequence-number > '4'", 5),
        ("amqp.annotation.x-opt-sequence-number >= '4'", 4),
        ("amqp.annotation.x-opt-sequence-number > 4", 5),
        ("amqp.annotation.x-opt-sequence-number > '9'", 10),
        ("amqp.annotation.x-opt-sequence-number > '-1'", 0),
        ("amqp.annotation.x-opt-enqueued-time > '-62135596800000'", 0),
        ("amqp.annotation.x-opt-enqueued-time > '99999999999999'", 10),
    ],
)
def test_a_reader_starts_where_its_filter_says(peer: Peer, selector: str | None, first: int) -> None:
    fill(peer, 10)
    link = peer.receiver(PARTITION, selector=selector, credit=100)
    assert numbers(peer, link) == list(range(first, 10))
    fill(peer, 1)
    assert numbers(peer, link) == list(range(first, 11))


def test_offset_and_time_of_an_event_lead_back_to_it(peer: Peer) -> None:
    fill(peer, 10)
    everything = peer.receiver(PARTITION, credit=100)
    fifth = peer.received(everything)[5].message_annotations or {}
    for name, value in (("x-opt-offset", fifth[OFFSET]), ("x-opt-enqueued-time", int(str(fifth[TIME])))):
        behind = peer.receiver(PARTITION, selector=f"amqp.annotation.{name} > '{value}'", credit=100)
        assert numbers(peer, behind) == [6, 7, 8, 9]
        at = peer.receiver(PARTITION, selector=f"amqp.annotation.{name} >= '{value}'", credit=100)
        assert numbers(peer, at) == [5, 6, 7, 8, 9]


def test_annotations_have_the_types_that_clients_read(peer: Peer) -> None:
    fill(peer, 1)
    link = peer.receiver(PARTITION, credit=1)
    (message,) = peer.received(link)
    found = message.message_annotations or {}
    assert type(found[SEQUENCE_NUMBER]) is int  # a long
    assert type(found[OFFSET]) is str
    assert str(found[OFFSET]).isdigit()
    assert type(found[TIME]) is Timestamp


@pytest.mark.parametrize(
    ("selector", "condition"),
    [
        ("amqp.annotation.x-opt-sequence-number > '10'", "com.microsoft:argument-error"),
        ("amqp.annotation.x-opt-offset > '99999'", "com.microsoft:argument-error"),
        ("amqp.annotation.x-opt-offset > 'abc'", "com.microsoft:argument-error"),
        ("nonsense", "amqp:invalid-field"),
    ],
)
def test_an_impossible_position_is_refused(peer: Peer, selector: str, condition: str) -> None:
    fill(peer, 10)
    link = peer.receiver(PARTITION, selector=selector, credit=1)
    assert peer.refusal(link).condition == condition


def test_the_refusal_of_a_position_names_what_was_asked_and_the_last_one(peer: Peer) -> None:
    fill(peer, 10)
    link = peer.receiver(PARTITION, selector="amqp.annotation.x-opt-sequence-number > '77'", credit=1)
    text = peer.refusal(link).description
    assert "'77'" in text
    assert "'9'" in text


@pytest.mark.parametrize("descriptor", [SELECTOR_FILTER, SELECTOR_FILTER_CODE, SELECTOR_FILTER_CODE_DOTNET])
def test_every_descriptor_of_the_filter_is_taken_and_echoed_and_others_are_dropped(
    peer: Peer, descriptor: object
) -> None:
    fill(peer, 3)
    value = Described(descriptor, "amqp.annotation.x-opt-sequence-number > '1'")
    source = Source(address=PARTITION, filter={SELECTOR_FILTER: value, Symbol("unknown"): Described(UInt(1), 2)})
    link = peer.session().attach_receiver("r", source=source, target=Target(address="t"))
    link.grant(10)
    peer.run()
    assert numbers(peer, link) == [2]
    assert link.source.filter == {SELECTOR_FILTER: value}


def test_a_bare_string_is_taken_as_a_filter_too(peer: Peer) -> None:
    fill(peer, 3)
    source = Source(address=PARTITION, filter={SELECTOR_FILTER: "amqp.annotation.x-opt-sequence-number > '1'"})
    link = peer.session().attach_receiver("r", source=source, target=Target(address="t"))
    link.grant(10)
    peer.run()
    assert numbers(peer, link) == [2]


@pytest.mark.parametrize("credit", [1, 2, 3, 5])
def test_credit_of_n_brings_n_in_one_go_and_nothing_more(peer: Peer, credit: int) -> None:
    fill(peer, 10)
    link = peer.receiver(PARTITION)
    before = len(peer.side.events)
    link.grant(credit)
    peer.run(1_000)
    assert numbers(peer, link) == list(range(credit))
    (only,) = [entry for entry in peer.side.events[before:] if type(entry).__name__ == "DeliveriesReceived"]
    assert only.count == credit


def test_small_credit_goes_on_where_it_stopped_without_another_read(world: World, peer: Peer) -> None:
    fill(peer, 10)
    link = peer.receiver(PARTITION, credit=3)
    reads = len(world.gate.sent(ReadEvents))
    for _ in range(2):
        link.grant(3)
        peer.run()
    assert numbers(peer, link) == list(range(9))
    assert len(world.gate.sent(ReadEvents)) == reads


def test_no_credit_no_events(peer: Peer) -> None:
    fill(peer, 3)
    link = peer.receiver(PARTITION)
    peer.run(120_000)
    assert peer.is_attached(link)
    assert numbers(peer, link) == []


def test_a_waiting_reader_gets_a_new_event_at_once(peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=10)
    peer.run(200_000)  # several waits of an idle reader
    sender = peer.sender("hub/Partitions/0")
    sender.send(event(b"now"), settled=False)
    peer.run(50)
    assert peer.bodies(link) == [b"now"]


def test_drain_without_events_gives_the_credit_back(peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=10)
    assert link.credit == 10
    link.grant(10, drain=True)
    peer.run()
    assert link.credit == 0


def test_drain_sends_what_there_is_first(peer: Peer) -> None:
    fill(peer, 4)
    link = peer.receiver(PARTITION)
    link.grant(10, drain=True)
    peer.run()
    assert numbers(peer, link) == [0, 1, 2, 3]
    assert link.credit == 0
    link.grant(10)
    fill(peer, 1)
    assert numbers(peer, link) == [0, 1, 2, 3, 4]


def test_drain_is_answered_when_all_is_sent_however_small_the_peers_window_is(world: World) -> None:
    proof = {"sasl_mechanism": "PLAIN", "sasl_response": f"\0{ROOT}\0{KEY}".encode()}
    peer = Peer(world, EndpointSettings("peer", HOST, incoming_window=4, **proof))
    peer.endpoint.open()
    peer.run()
    fill(peer, 20)
    link = peer.receiver(PARTITION)
    link.grant(30, drain=True)
    peer.run(500)
    assert numbers(peer, link) == list(range(20))
    assert link.credit == 0


def test_a_read_is_broken_off_for_a_drain_and_for_no_other_credit(world: World, peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=1)
    link.grant(5)
    peer.run()
    assert world.gate.sent(CancelRead) == []
    link.grant(5, drain=True)
    peer.run()
    assert len(world.gate.sent(CancelRead)) == 1


def test_events_are_settled_unless_the_receiver_settles_second(peer: Peer) -> None:
    fill(peer, 2)
    first = peer.receiver(PARTITION, credit=10)
    second = peer.receiver(PARTITION, credit=10, rcv_settle_mode=1)
    by_name = {entry.link_name: entry.settled for entry in peer.side.deliveries()}
    assert by_name[first.name] is True
    assert by_name[second.name] is False
    second.settle(0, 3, Accepted(), settled=False)
    peer.run()
    fill(peer, 1)
    assert numbers(peer, second) == [0, 1, 2]


def test_a_full_transport_stops_the_sending_and_a_drained_one_goes_on(world: World, peer: Peer) -> None:
    fill(peer, 100, size=10_000)
    link = peer.receiver(PARTITION)
    peer.transport_full = True
    peer.host.on_writing_paused()
    link.grant(1_000)
    peer.run(500)
    assert world.gate.sent(ReadEvents) == []
    peer.transport_full = False
    peer.host.on_writable()
    peer.run(500)
    assert numbers(peer, link) == list(range(100))


def test_a_run_that_nothing_is_sent_from_is_dropped_and_read_again(world: World, peer: Peer) -> None:
    fill(peer, 60, size=1_000)
    link = peer.receiver(PARTITION, credit=3)
    (node,) = [node for node in peer.host.nodes if isinstance(node, ConsumerNode)]
    assert node.holds_run
    peer.run(2_000)
    assert not node.holds_run
    fill(peer, 1)
    link.grant(100)
    peer.run()
    assert numbers(peer, link) == list(range(61))
    assert [read.again_from for read in world.gate.sent(ReadEvents)][:2] == [None, 3]


def test_a_full_transport_keeps_no_run_and_loses_no_event(peer: Peer) -> None:
    fill(peer, 60, size=10_000)
    link = peer.receiver(PARTITION)
    link.grant(1_000)
    peer._carry_to_server()
    peer.host.on_writing_paused()
    peer.run(2_000)
    (node,) = [node for node in peer.host.nodes if isinstance(node, ConsumerNode)]
    assert not node.holds_run
    assert 0 < len(numbers(peer, link)) < 60
    peer.host.on_writable()
    peer.run(500)
    assert numbers(peer, link) == list(range(60))


def test_a_reader_that_catches_up_reads_more_at_once_and_one_at_the_end_reads_little(world: World, peer: Peer) -> None:
    settings = world.process.link_settings
    link = peer.receiver(PARTITION)
    fill(peer, 300, size=10_000)
    link.grant(1_000)
    peer.run(500)
    assert numbers(peer, link) == list(range(300))
    asked = [read.max_bytes for read in world.gate.sent(ReadEvents)]
    assert asked[:3] == [settings.read_bytes, 2 * settings.read_bytes, 4 * settings.read_bytes]
    assert max(asked) <= settings.read_limit_bytes and asked[-1] == settings.read_bytes
    assert world.gateway.held_runs.used_bytes == 0


def test_while_the_process_holds_too_much_a_run_that_the_transport_does_not_take_is_dropped_at_once(
    world: World, peer: Peer
) -> None:
    world.gateway.held_runs.limit_bytes = 150_000  # one run of about 120 KB, not two
    other = world.trusted_peer()
    fill(peer, 60, size=10_000)
    nodes, links = [], []
    for stalled in (peer, other):
        link = stalled.receiver(PARTITION)
        stalled.transport_full = True
        link.grant(1_000)
        stalled._carry_to_server()
        stalled.host.on_writing_paused()
        links.append(link)
        (node,) = [node for node in stalled.host.nodes if isinstance(node, ConsumerNode)]
        assert node.holds_run
        nodes.append(node)
    assert world.gateway.held_runs.is_used_up
    for node in nodes:
        node.go_on()
    assert [node.holds_run for node in nodes] == [False, True]  # the first made room enough for the second
    for stalled, link in zip((peer, other), links, strict=True):
        stalled.transport_full = False
        stalled.host.on_writable()
        stalled.run(500)
        assert numbers(stalled, link) == list(range(60))
    assert world.gateway.held_runs.used_bytes == 0


def test_the_end_of_a_connection_gives_back_what_its_readers_hold(world: World, peer: Peer) -> None:
    fill(peer, 60, size=1_000)
    peer.receiver(PARTITION, credit=3)
    assert world.gateway.held_runs.used_bytes > 0
    peer.host.on_closed()
    assert world.gateway.held_runs.used_bytes == 0


def test_a_link_gives_others_a_turn_after_one_turns_worth(world: World, peer: Peer) -> None:
    fill(peer, 100, size=10_000)
    link = peer.receiver(PARTITION)
    peer.transport_full = True  # nothing leaves, so what one turn produced can be seen
    link.grant(1_000)
    peer._carry_to_server()
    assert 0 < peer.server.unsent_bytes <= world.process.link_settings.turn_limit_bytes + 20_000  # of a million
    peer.transport_full = False
    peer.run(500)
    assert len(numbers(peer, link)) == 100


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
    assert len(world.gate.sent(CloseOwner)) == 1


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


def test_an_attach_is_answered_with_what_was_asked(peer: Peer) -> None:
    link = peer.receiver(
        PARTITION, selector="amqp.annotation.x-opt-offset > '-1'", rcv_settle_mode=1, snd_settle_mode=0
    )
    assert any(isinstance(entry, LinkAttached) and entry.link is link for entry in peer.side.events)
    answer = link.attach
    assert (answer.rcv_settle_mode, answer.snd_settle_mode) == (1, 0)
    assert answer.source.address == PARTITION
    assert answer.initial_delivery_count is not None
    assert isinstance(answer.properties[Symbol("com.microsoft:tracking-id")], str)


@pytest.mark.parametrize(
    ("properties", "refused"),
    [
        ({Symbol("com.microsoft:epoch"): UInt(3)}, False),
        ({Symbol("com.microsoft:epoch"): "three"}, True),
        ({Symbol("com.microsoft:epoch"): True}, True),
        ({Symbol("com.microsoft:receiver-name"): "me"}, False),
        ({Symbol("com.microsoft:receiver-name"): 5}, True),
        ({Symbol("com.microsoft:unknown"): 5}, False),
    ],
)
def test_owner_level_and_name_are_read_in_any_integer_type(
    world: World, peer: Peer, properties: dict[Symbol, object], refused: bool
) -> None:
    link = peer.receiver(PARTITION, properties=properties)
    assert (peer.refusal(link) is not None) is refused
    if refused:
        assert peer.refusal(link).condition == "amqp:invalid-field"
    elif Symbol("com.microsoft:epoch") in properties:
        assert world.gate.sent(OpenReader)[-1].epoch == 3


def test_everything_is_there_again_after_a_restart(world: World, peer: Peer) -> None:
    fill(peer, 20)
    world.env.crash()
    again = World(env=world.env.restart())
    assert again.problems == []
    reader = again.trusted_peer()
    link = reader.receiver(PARTITION, selector="amqp.annotation.x-opt-sequence-number > '4'", credit=100)
    reader.run(1_000)  # cold reads take their time
    assert numbers(reader, link) == list(range(5, 20))


def test_a_small_window_holds_frames_back_and_loses_none() -> None:
    world = World(link_settings=LinkSettings(read_bytes=64 * 1024))
    peer = world.trusted_peer()
    fill(peer, 50, size=30_000)
    link = peer.receiver(PARTITION, credit=7)
    for _ in range(10):
        link.grant(7)
        peer.run(100)
    assert numbers(peer, link) == list(range(50))
