"""What a receiver's attach says about its reader, as far as the links themselves do not show it."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.annotations import (
    EPOCH,
    EVENT_LIMIT,
    RECEIVER_NAME,
    SELECTOR_FILTER,
    SELECTOR_FILTER_DESCRIPTORS,
    STORED_BATCHES,
)
from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.transport.performatives import Attach
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Described, Long, Symbol, ULong
from hubweir.errors import ServiceError
from hubweir.event_hub.event_position import EARLIEST, parse_selector
from hubweir.gateway.amqp.reader_attach import (
    RECEIVER_NAME_LIMIT,
    ReaderWish,
    read_attach,
    read_event_limit,
    takes_batches,
)
from hubweir.gateway.amqp.tests.world import Peer, World

PARTITION = "hub/ConsumerGroups/$Default/Partitions/0"


@pytest.fixture(scope="module")
def peer() -> Peer:
    return World().trusted_peer()


def asked(
    peer: Peer,
    *,
    properties: dict[Symbol, object] | None = None,
    desired: tuple[Symbol, ...] | None = None,
    max_message_size: int | None = None,
    filters: dict[Symbol, object] | None = None,
) -> SenderLink:
    """A link that a receiver asks for, as the service sees it before it answers."""
    session = peer.session()
    attach = Attach(
        name="reader",
        handle=0,
        role=True,
        source=Source(address=PARTITION, filter=filters),
        properties=properties,
        desired_capabilities=desired,
        max_message_size=max_message_size,
    )
    return SenderLink(session, None, attach)


def test_stored_batches_go_to_who_desires_them_and_takes_deliveries_of_any_size(peer: Peer) -> None:
    other = Symbol("hubweir:something-else")
    assert takes_batches(asked(peer, desired=(other, STORED_BATCHES)))
    assert takes_batches(asked(peer, desired=(STORED_BATCHES,), max_message_size=0))  # no limit (part 2, section 2.7.3)
    assert not takes_batches(asked(peer, desired=(STORED_BATCHES,), max_message_size=1 << 20))
    assert not takes_batches(asked(peer, desired=(other,)))
    assert not takes_batches(asked(peer))


def test_a_limit_an_epoch_and_a_name_are_read(peer: Peer) -> None:
    link = asked(peer, properties={EVENT_LIMIT: Long(7), EPOCH: Long(0), RECEIVER_NAME: "me"})
    assert read_event_limit(link) == 7
    assert (read_attach(link).owner_level, read_attach(link).name) == (0, "me")
    assert read_event_limit(asked(peer)) is None
    assert read_attach(asked(peer)) == ReaderWish(EARLIEST, Source(address=PARTITION), None, None)


@pytest.mark.parametrize("descriptor", [*SELECTOR_FILTER_DESCRIPTORS, None])
def test_a_position_is_a_text_with_a_known_descriptor_or_without_one(peer: Peer, descriptor: object) -> None:
    text = "amqp.annotation.x-opt-sequence-number > '4'"
    wanted = text if descriptor is None else Described(descriptor, text)
    wish = read_attach(asked(peer, filters={SELECTOR_FILTER: wanted, Symbol("unknown"): "x"}))
    assert wish.position == parse_selector(text)
    assert wish.source.filter == {SELECTOR_FILTER: wanted}, "what means nothing here is not answered"
    assert read_attach(asked(peer, filters={Symbol("unknown"): "x"})).source.filter is None


@pytest.mark.parametrize("wanted", [Described(ULong(5), "x"), Described(Symbol("another"), "x"), Long(4)])
def test_a_position_of_another_kind_is_refused(peer: Peer, wanted: object) -> None:
    with pytest.raises(ServiceError, match=str(SELECTOR_FILTER)):
        read_attach(asked(peer, filters={SELECTOR_FILTER: wanted}))


def test_the_longest_name_and_the_largest_number_are_taken(peer: Peer) -> None:
    name, number = "n" * RECEIVER_NAME_LIMIT, 2**63 - 1
    link = asked(peer, properties={RECEIVER_NAME: name, EPOCH: Long(number), EVENT_LIMIT: Long(number)})
    assert (read_attach(link).name, read_attach(link).owner_level, read_event_limit(link)) == (name, number, number)


@pytest.mark.parametrize("value", ["7", -1, True, 2**63, 1.5])
@pytest.mark.parametrize("name", [EVENT_LIMIT, EPOCH])
def test_what_is_no_such_number_is_refused(peer: Peer, name: Symbol, value: object) -> None:
    link = asked(peer, properties={name: value})
    with pytest.raises(ServiceError, match=str(name)):
        read_event_limit(link)
        read_attach(link)


@pytest.mark.parametrize("name", [5, "n" * (RECEIVER_NAME_LIMIT + 1)])
def test_a_name_that_is_none_is_refused(peer: Peer, name: object) -> None:
    with pytest.raises(ServiceError, match=RECEIVER_NAME):
        read_attach(asked(peer, properties={RECEIVER_NAME: name}))
