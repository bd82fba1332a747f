"""Readers beside and instead of each other, and runtime metrics, as a scripted client sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from hubweir.amqp.messaging.annotations import ENABLE_RECEIVER_RUNTIME_METRIC, EPOCH, RECEIVER_NAME
from hubweir.amqp.messaging.message import DataBody, Message, decode_message, encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport.performatives import Attach, Detach, Transfer
from hubweir.amqp.types.values import Long, Symbol, Timestamp
from hubweir.testing.frames import frame
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import RawClient
from tests.conformance.test_raw_connection import READER

EVENT = encode_message(Message(body=DataBody((b"x",))))
METRICS = (
    "last_enqueued_sequence_number",
    "last_enqueued_offset",
    "last_enqueued_time_utc",
    "runtime_info_retrieval_time_utc",
)
STOLEN = "amqp:link:stolen"

pytestmark = pytest.mark.both_ways


@pytest.fixture
def client(doors: Doors) -> Iterator[RawClient]:
    with doors.raw() as client:
        yield client.trusted()


def named(name: str | None, epoch: int | None = None) -> dict[Any, object]:
    """Link properties of a reader."""
    properties: dict[Any, object] = {} if name is None else {RECEIVER_NAME: name}
    if epoch is not None:
        properties[EPOCH] = Long(epoch)
    return properties


def send(client: RawClient, hub: str, count: int = 1) -> None:
    sender = client.sender(f"{hub}/Partitions/0")
    for _ in range(count):
        assert isinstance(client.publish(sender, EVENT).state, Accepted)


@pytest.mark.eh(59, 58)
def test_every_delivery_tells_the_partitions_end_when_the_reader_asked_for_it(client: RawClient, hub: str) -> None:
    send(client, hub, 3)
    before_ms = int(time.time() * 1000) - 1_000
    client.attach(READER.format(hub), sends=False, desired_capabilities=(ENABLE_RECEIVER_RUNTIME_METRIC,))
    answer = client.expect(Attach)
    assert ENABLE_RECEIVER_RUNTIME_METRIC in (answer.offered_capabilities or ())
    client.grant(1, 10)
    messages = client.messages(3)
    last = messages[-1].message_annotations or {}
    for message in messages:
        told = message.delivery_annotations or {}
        assert set(told) == {Symbol(name) for name in METRICS}
        number, offset, enqueued, retrieved = (told[Symbol(name)] for name in METRICS)
        assert (number, offset, enqueued) == tuple(
            last[Symbol(f"x-opt-{name}")] for name in ("sequence-number", "offset", "enqueued-time")
        )
        assert [type(value) for value in (number, offset, enqueued, retrieved)] == [int, str, Timestamp, Timestamp]
        assert int(str(retrieved)) >= before_ms
    send(client, hub)
    (message,) = client.messages(1)
    assert (message.delivery_annotations or {})[Symbol(METRICS[0])] == 3


@pytest.mark.eh(59)
def test_a_reader_that_did_not_ask_is_told_nothing(client: RawClient, hub: str) -> None:
    send(client, hub)
    client.attach(READER.format(hub), sends=False)
    assert ENABLE_RECEIVER_RUNTIME_METRIC not in (client.expect(Attach).offered_capabilities or ())
    client.grant(1, 10)
    came = client.expect_frame(Transfer)
    assert came.payload.startswith(b"\x00\x53\x72")
    assert decode_message(came.payload).delivery_annotations is None


@pytest.mark.eh(61)
def test_the_sixth_reader_is_refused_until_one_leaves(client: RawClient, hub: str) -> None:
    names = ["one", "two", None, "four", "five"]
    first = [client.receiver(READER.format(hub), properties=named(name)) for name in names][0]
    error = client.refused(READER.format(hub), sends=False, properties=named("six"))
    assert error.condition == "amqp:resource-limit-exceeded"
    for name in names:
        assert (name or "nil") in error.description
    # Another partition, and another group, have readers of their own.
    client.receiver(f"{hub}/ConsumerGroups/$Default/Partitions/1", properties=named("six"))
    client.receiver(f"{hub}/ConsumerGroups/second/Partitions/0", properties=named("six"))
    client.write(frame(Detach(handle=first, closed=True)))
    client.expect(Detach)
    client.receiver(READER.format(hub), credit=1, properties=named("six"))
    send(client, hub)
    client.messages(1)


@pytest.mark.eh(62)
@pytest.mark.parametrize(("old", "new"), [(None, 0), (None, 1), (0, 1), (1, 1), (0, 0), (3, 7)])
def test_an_owner_level_displaces_who_has_none_or_no_higher_one(
    client: RawClient, hub: str, old: int | None, new: int
) -> None:
    send(client, hub)
    loser = client.receiver(READER.format(hub), properties=named("loser", old))
    at = len(client.frames)
    winner = client.attach(READER.format(hub), sends=False, properties=named("winner", new))
    client.grant(winner, 1)
    client.messages(1)
    came = [each.performative for each in client.frames[at:]]
    detached = next(number for number, each in enumerate(came) if isinstance(each, Detach))
    delivered = next(number for number, each in enumerate(came) if isinstance(each, Transfer))
    assert detached < delivered
    assert came[detached].handle == loser
    assert came[detached].closed
    assert came[detached].error.condition == STOLEN
    assert "'winner'" in came[detached].error.description
    assert client.expect(Attach).source is not None
    assert next(each for each in came if isinstance(each, Transfer)).handle == winner


@pytest.mark.eh(62)
def test_every_reader_without_a_level_goes_when_one_with_a_level_comes(doors: Doors, hub: str) -> None:
    with doors.raw() as readers, doors.raw() as owner:
        readers.trusted()
        handles = {readers.receiver(READER.format(hub)) for _ in range(5)}
        owner.trusted().receiver(READER.format(hub), properties=named("owner", 0))
        gone = [readers.expect(Detach) for _ in range(5)]
        assert {each.handle for each in gone} == handles
        assert {str(each.error.condition) for each in gone if each.error is not None} == {STOLEN}


@pytest.mark.eh(62)
@pytest.mark.parametrize("holder", ["holder", None])
@pytest.mark.parametrize("asked", [4, None])
def test_a_lower_level_and_none_are_refused(client: RawClient, hub: str, holder: str | None, asked: int | None) -> None:
    client.receiver(READER.format(hub), credit=1, properties=named(holder, 5))
    error = client.refused(READER.format(hub), sends=False, properties=named("late", asked))
    assert error.condition == STOLEN
    if asked is not None:
        assert error.description.startswith(
            f"Receiver '{holder or 'nil'}' with a higher epoch '5' already exists. Receiver 'late' with epoch 4 cannot "
            "be created. Make sure you are creating receiver with increasing epoch value to ensure connectivity, or "
            "ensure all old epoch receivers are closed or disconnected"
        )
    send(client, hub)
    client.messages(1)  # the holder reads on


@pytest.mark.eh(62)
def test_when_the_owner_leaves_anyone_may_come(client: RawClient, hub: str) -> None:
    handle = client.receiver(READER.format(hub), properties=named("owner", 9))
    client.write(frame(Detach(handle=handle, closed=True)))
    client.expect(Detach)
    client.receiver(READER.format(hub), properties=named("next", 1))
