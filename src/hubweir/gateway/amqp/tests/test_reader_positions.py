"""Where a link begins to read, and what its attach is answered with."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.annotations import SELECTOR_FILTER, SELECTOR_FILTER_CODE, SELECTOR_FILTER_CODE_DOTNET
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import LinkAttached
from hubweir.amqp.types.values import Described, Symbol, Timestamp, UInt
from hubweir.broker.commands.reader import OpenReader
from hubweir.gateway.amqp.tests.filled_partition import OFFSET, PARTITION, SEQUENCE_NUMBER, TIME, fill, numbers
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.gateway.settings import LinkSettings


@pytest.fixture
def world() -> World:
    return World(link_settings=LinkSettings(turn_limit_bytes=256 * 1024))  # less than a partition here holds


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
