"""Events in and out, and the management node, as a scripted client sees them.

Long because every line of the contract about events has a test, on one filled hub.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hubweir.amqp.messaging.annotations import SELECTOR_FILTER, SELECTOR_FILTER_CODE, SELECTOR_FILTER_CODE_DOTNET
from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import (
    DataBody,
    Header,
    Message,
    Properties,
    SequenceBody,
    ValueBody,
    decode_message,
    encode_message,
)
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.transport.performatives import Attach, Detach, Disposition, Transfer
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Described, Int, Symbol, Timestamp
from hubweir.auth.shared_access_signature import make_token
from hubweir.testing.frames import frame
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import KEY, ROOT, RawClient, status_of
from tests.conformance.test_raw_connection import READER

SEQUENCE_NUMBER, OFFSET = Symbol("x-opt-sequence-number"), Symbol("x-opt-offset")
ENQUEUED_TIME, PARTITION_KEY = Symbol("x-opt-enqueued-time"), Symbol("x-opt-partition-key")

pytestmark = pytest.mark.both_ways


def event(body: bytes, **sections: object) -> bytes:
    return encode_message(Message(body=DataBody((body,)), **sections))  # type: ignore[arg-type]


@pytest.fixture
def client(doors: Doors) -> Iterator[RawClient]:
    with doors.raw() as client:
        yield client.trusted()


def fill(client: RawClient, hub: str, count: int, *, partition: int = 0) -> None:
    sender = client.sender(f"{hub}/Partitions/{partition}")
    payload = pack_batch([event(b"%d" % number) for number in range(count)])
    assert isinstance(client.publish(sender, payload, message_format=BATCH_FORMAT).state, Accepted)


def numbers(messages: list[Message]) -> list[int]:
    return [int(str((message.message_annotations or {})[SEQUENCE_NUMBER])) for message in messages]


def read_hub(client: RawClient, kind: str, name: str, **more: object) -> Message:
    said: dict[str, object] = {"operation": "READ", "type": f"com.microsoft:{kind}", "name": name, **more}
    return client.request("$management", Message(properties=Properties(message_id="m"), application_properties=said))


def map_of(answer: Message) -> dict[str, object]:
    assert isinstance(answer.body, ValueBody)
    assert isinstance(answer.body.value, dict)
    return answer.body.value


@pytest.mark.eh(39, 40, 42, 67)
def test_a_batch_is_its_events_with_the_envelopes_key_and_nothing_else_of_it(client: RawClient, hub: str) -> None:
    sender = client.sender(hub)
    envelope = encode_message(
        Message(
            message_annotations={PARTITION_KEY: "pk1", Symbol("leak"): "no"},
            properties=Properties(subject="leak"),
            application_properties={"leak": "no"},
        )
    ) + pack_batch([event(b"one"), event(b"two"), event(b"three", application_properties={"k": "v"})])
    outcome = client.publish(sender, envelope, message_format=BATCH_FORMAT)
    assert isinstance(outcome.state, Accepted)
    assert outcome.settled
    client.receiver(f"{hub}/ConsumerGroups/$Default/Partitions/1", credit=10)
    messages = client.messages(3)
    assert [message.body for message in messages] == [DataBody((text,)) for text in (b"one", b"two", b"three")]
    assert numbers(messages) == [0, 1, 2]
    for message in messages:
        assert (message.message_annotations or {})[PARTITION_KEY] == "pk1"
        assert Symbol("leak") not in (message.message_annotations or {})
        assert message.properties is None
    assert [message.application_properties for message in messages] == [None, None, {"k": "v"}]


@pytest.mark.eh(45)
def test_every_section_and_kind_of_body_comes_back(client: RawClient, hub: str) -> None:
    sections = {
        "header": Header(durable=True, priority=7, ttl=9),
        "properties": Properties(message_id="id", subject="s", content_type="text/plain", group_sequence=3),
        "application_properties": {"n": None, "b": b"\0", "t": Timestamp(-5), "l": 2**40, "s": "é"},
        "footer": {Symbol("f"): 1},
    }
    sent = [
        Message(body=DataBody((b"a", b"", b"c")), **sections),  # type: ignore[arg-type]
        Message(body=SequenceBody(([1, "two"], [])), **sections),  # type: ignore[arg-type]
        Message(body=ValueBody({"k": [1.5, None]}), **sections),  # type: ignore[arg-type]
        Message(body=DataBody((b"",))),
        Message(**sections),  # type: ignore[arg-type]
    ]
    late = event(b"late") + encode_message(Message(footer={Symbol("f"): 2}, delivery_annotations=None))
    late += encode_message(Message(delivery_annotations={Symbol("d"): "after the footer"}))
    sender = client.sender(f"{hub}/Partitions/0")
    for message in sent:
        assert isinstance(client.publish(sender, encode_message(message)).state, Accepted)
    assert isinstance(client.publish(sender, late).state, Accepted)
    client.receiver(READER.format(hub), credit=10)
    got = client.messages(6)
    for before, after in zip(sent, got, strict=False):
        for name in ("header", "properties", "application_properties", "body", "footer"):
            assert getattr(before, name) == getattr(after, name)
    assert got[5].delivery_annotations == {Symbol("d"): "after the footer"}
    assert got[5].footer == {Symbol("f"): 2}


@pytest.mark.eh(46, 47)
def test_the_size_limit_is_exact_and_the_link_goes_on(client: RawClient, hub: str) -> None:
    limit = 1_048_576
    sender = client.sender(f"{hub}/Partitions/0")
    overhead = len(event(bytes(1_000_000))) - 1_000_000

    def split(delivery_id: int, payload: bytes) -> None:
        pieces = [payload[at : at + 60_000] for at in range(0, len(payload), 60_000)]
        for number, piece in enumerate(pieces):
            transfer = Transfer(
                handle=sender,
                delivery_id=delivery_id,
                delivery_tag=b"%d" % delivery_id,
                message_format=0,
                settled=False,
                more=number < len(pieces) - 1,
            )
            client.write(frame(transfer, piece))

    split(0, event(bytes(limit - overhead)))
    assert isinstance(client.outcome(0).state, Accepted)
    split(1, event(bytes(limit - overhead + 1)))
    refused = client.outcome(1)
    assert refused.settled
    assert isinstance(refused.state, Rejected)
    assert refused.state.error is not None
    assert refused.state.error.condition == "amqp:link:message-size-exceeded"
    text = f"(delivery-id:1, size:{limit + 1} bytes) exceeds the limit ({limit} bytes) currently allowed on the link"
    assert text in refused.state.error.description
    split(2, event(b"next"))
    assert isinstance(client.outcome(2).state, Accepted)
    found = map_of(read_hub(client, "partition", hub, partition="0"))
    assert found["last_enqueued_sequence_number"] == 1


@pytest.mark.eh(47)
def test_garbage_is_rejected_settled_and_never_released(client: RawClient, hub: str) -> None:
    sender = client.sender(hub)
    outcome = client.publish(sender, b"no message")
    assert outcome.settled
    assert isinstance(outcome.state, Rejected)


@pytest.mark.eh(48)
@pytest.mark.parametrize("repeats", [True, False])
def test_a_split_delivery_is_joined_whatever_its_later_frames_repeat(
    client: RawClient, hub: str, repeats: bool
) -> None:
    sender = client.sender(f"{hub}/Partitions/0")
    payload = event(bytes(range(256)) * 100)
    pieces = [payload[at : at + 700] for at in range(0, len(payload), 700)]
    for number, piece in enumerate(pieces):
        full = repeats or number == 0
        transfer = Transfer(
            handle=sender,
            delivery_id=0 if full else None,
            delivery_tag=b"t" if full else None,
            message_format=0 if full else None,
            settled=False,
            more=number < len(pieces) - 1,
        )
        client.write(frame(transfer, piece))
    assert isinstance(client.outcome(0).state, Accepted)
    client.receiver(READER.format(hub), credit=1)
    assert client.messages(1)[0].body == DataBody((bytes(range(256)) * 100,))


@pytest.mark.eh(49)
def test_a_settled_transfer_is_stored_and_not_answered(client: RawClient, hub: str) -> None:
    sender = client.sender(f"{hub}/Partitions/0")
    client.transfer(sender, event(b"quiet"), settled=True)
    assert client.none_of(Disposition)
    client.receiver(READER.format(hub), credit=1)
    assert client.messages(1)[0].body == DataBody((b"quiet",))


@pytest.mark.eh(51)
def test_a_partition_address_stores_there_and_a_hub_address_spreads(client: RawClient, hub: str) -> None:
    sender = client.sender(hub)
    for _ in range(8):
        client.publish(sender, event(b"x"))
    fill(client, hub, 5, partition=1)
    last = [
        map_of(read_hub(client, "partition", hub, partition=str(n)))["last_enqueued_sequence_number"] for n in range(4)
    ]
    assert last == [1, 6, 1, 1]


@pytest.mark.eh(52, 58)
def test_annotations_are_ours_and_have_their_types(client: RawClient, hub: str) -> None:
    sender = client.sender(f"{hub}/Partitions/0")
    forged = {SEQUENCE_NUMBER: 77, OFFSET: "77", ENQUEUED_TIME: Timestamp(1), Symbol("own"): "kept"}
    before_ms = int(time.time() * 1000) - 5
    client.publish(sender, event(b"x", message_annotations=forged))
    client.receiver(READER.format(hub), credit=1)
    came = client.expect_frame(Transfer)
    assert came.payload.startswith(b"\x00\x53\x72")
    found = decode_message(came.payload).message_annotations or {}
    assert type(found[SEQUENCE_NUMBER]) is int
    assert found[SEQUENCE_NUMBER] == 0
    assert found[OFFSET] == "0"
    assert type(found[ENQUEUED_TIME]) is Timestamp
    assert int(str(found[ENQUEUED_TIME])) >= before_ms
    assert found[Symbol("own")] == "kept"
    assert came.performative.delivery_tag
    assert len(came.performative.delivery_tag) <= 32


@pytest.mark.eh(55, 57)
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("amqp.annotation.x-opt-offset > '-1'", 0),
        ("amqp.annotation.x-opt-offset > -1", 0),
        ("amqp.annotation.x-opt-offset > '@latest'", 10),
        ("amqp.annotation.x-opt-offset >= '@latest'", 10),
        ("amqp.annotation.x-opt-offset > @latest", 10),
        ("amqp.annotation.x-opt-offset > '{offset}'", 6),
        ("amqp.annotation.x-opt-offset >= '{offset}'", 5),
        ("amqp.annotation.x-opt-sequence-number > '5'", 6),
        ("amqp.annotation.x-opt-sequence-number >= 5", 5),
        ("amqp.annotation.x-opt-sequence-number > '-1'", 0),
        ("amqp.annotation.x-opt-enqueued-time > '{time}'", 10),
        ("amqp.annotation.x-opt-enqueued-time >= '{time}'", 0),
        ("amqp.annotation.x-opt-enqueuedtimeutc >= {time}", 0),
        ("amqp.annotation.x-opt-enqueued-time > '-62135596800000'", 0),
        ("", 0),
    ],
)
def test_every_position_starts_at_the_right_event(doors: Doors, hub: str, text: str, first: int) -> None:
    with doors.raw() as client:
        client.trusted()
        fill(client, hub, 10)
        client.receiver(READER.format(hub), credit=10)
        sixth = client.messages(10)[5].message_annotations or {}
        asked = text.format(offset=sixth[OFFSET], time=int(str(sixth[ENQUEUED_TIME])))
        client.receiver(READER.format(hub), credit=100, selector=asked or None)
        fill(client, hub, 1)
        came: list[int] = []
        while not came or came[-1] != 10:
            came += numbers(client.messages(1))  # the first reader has no credit left
        assert came == list(range(first, 11))


@pytest.mark.eh(56)
@pytest.mark.parametrize("descriptor", [SELECTOR_FILTER, SELECTOR_FILTER_CODE, SELECTOR_FILTER_CODE_DOTNET])
def test_filter_descriptors_are_taken_and_echoed(client: RawClient, hub: str, descriptor: object) -> None:
    fill(client, hub, 3)
    wanted = {SELECTOR_FILTER: Described(descriptor, "amqp.annotation.x-opt-sequence-number > '1'")}
    client.attach(READER.format(hub), sends=False, source=Source(address=READER.format(hub), filter=wanted))
    answer = client.expect(Attach)
    assert answer.source is not None
    assert answer.source.filter == wanted
    client.grant(1, 10)
    assert numbers(client.messages(1)) == [2]


@pytest.mark.eh(57)
@pytest.mark.parametrize("name", ["x-opt-sequence-number", "x-opt-offset"])
def test_a_position_beyond_the_end_is_refused_with_both_values(client: RawClient, hub: str, name: str) -> None:
    fill(client, hub, 3)
    filters = {SELECTOR_FILTER: Described(SELECTOR_FILTER, f"amqp.annotation.{name} > '123456'")}
    error = client.refused(READER.format(hub), sends=False, source=Source(address=READER.format(hub), filter=filters))
    assert error.condition == "com.microsoft:argument-error"
    assert "123456" in error.description


@pytest.mark.eh(64, 83)
@pytest.mark.parametrize("credit", [2, 3, 5])
def test_credit_is_answered_in_one_go_and_never_exceeded(client: RawClient, hub: str, credit: int) -> None:
    fill(client, hub, 10)
    receiver = client.receiver(READER.format(hub))
    assert client.none_of(Transfer)
    client.grant(receiver, credit)
    assert numbers(client.messages(credit, seconds=1)) == list(range(credit))
    assert client.none_of(Transfer)


@pytest.mark.eh(64)
def test_after_three_hundred_nothing_comes_until_a_new_flow(client: RawClient, hub: str) -> None:
    fill(client, hub, 350)
    receiver = client.receiver(READER.format(hub), credit=300)
    assert numbers(client.messages(300)) == list(range(300))
    assert client.none_of(Transfer)
    client.grant(receiver, 300, delivery_count=300)
    assert numbers(client.messages(50)) == list(range(300, 350))


@pytest.mark.eh(65)
@pytest.mark.parametrize(("modes", "settled"), [((0, 0), True), ((1, 0), True), ((0, 1), False)])
def test_settle_modes(client: RawClient, hub: str, modes: tuple[int, int], settled: bool) -> None:
    fill(client, hub, 1)
    client.receiver(READER.format(hub), credit=1, snd_settle_mode=modes[0], rcv_settle_mode=modes[1])
    came = client.expect(Transfer)
    assert bool(came.settled) is settled
    if not settled:
        first = came.delivery_id or 0
        client.write(frame(Disposition(role=True, first=first, last=first, settled=False, state=Accepted())))
        answer = client.expect(Disposition, where=lambda d: d.role is False)
        assert (answer.first, answer.settled) == (first, True)


@pytest.mark.eh(66)
def test_a_killed_connection_frees_its_readers(client: RawClient, doors: Doors, hub: str) -> None:
    """While five read, which is the most of a group, a sixth is refused."""
    place = READER.format(hub)

    def is_taken() -> bool:
        handle = client.attach(place, sends=False)
        answer = client.expect(Attach)
        if answer.source is None:
            client.expect(Detach)
        client.write(frame(Detach(handle=handle, closed=True)))
        return answer.source is not None

    killed = doors.raw().trusted()
    for _ in range(5):
        killed.receiver(place, credit=1)
    assert not is_taken()
    killed.socket.close()
    end = time.monotonic() + 1
    while not is_taken():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.eh(69, 71)
def test_the_hubs_map(client: RawClient, hub: str) -> None:
    answer = read_hub(client, "eventhub", hub.upper())
    found = map_of(answer)
    assert set(found) == {
        "name",
        "type",
        "created_at",
        "partition_count",
        "partition_ids",
        "georeplication_factor",
    }
    assert found["name"] == hub
    assert found["partition_ids"] == Array(AmqpType.STRING, ("0", "1", "2", "3"))
    assert type(found["partition_count"]) is Int
    assert type(found["georeplication_factor"]) is Int
    assert type(found["created_at"]) is Timestamp
    said = answer.application_properties or {}
    assert said["status-code"] == said["statusCode"] == 200
    assert said["status-description"] == said["statusDescription"]


@pytest.mark.eh(70, 82)
def test_partitions_empty_filled_and_read_twice(doors: Doors, hub: str) -> None:
    with doors.raw() as one, doors.raw() as two:
        one.trusted()
        two.trusted()
        empty = map_of(read_hub(one, "partition", hub, partition="0"))
        assert empty["last_enqueued_offset"] == "-1"
        assert empty["last_enqueued_time_utc"] == -62_135_596_800_000
        assert (empty["begin_sequence_number"], empty["last_enqueued_sequence_number"]) == (-1, -1)
        assert empty["is_partition_empty"] is True
        fill(one, hub, 5)
        first = map_of(read_hub(one, "partition", hub, partition="0"))
        assert first["last_enqueued_sequence_number"] == 4
        assert first["is_partition_empty"] is False
        assert map_of(read_hub(two, "partition", hub, partition="0")) == first
        fill(two, hub, 7)
        assert map_of(read_hub(one, "partition", hub, partition="0"))["last_enqueued_sequence_number"] == 11


@pytest.mark.eh(72)
def test_a_token_inside_the_request_counts(doors: Doors, hub: str) -> None:
    with doors.raw() as client:
        client.start()
        for key, code in ((KEY, 200), ("wrong", 401)):
            token = make_token(f"sb://localhost/{hub}", ROOT, key, int(time.time()) + 60)
            answer = read_hub(client, "eventhub", hub, security_token=token)
            assert status_of(answer)[0] == code
            assert ("error-condition" in (answer.application_properties or {})) is (code == 401)


@pytest.mark.eh(73)
def test_failures_of_the_management_node(client: RawClient, hub: str) -> None:
    code, text = status_of(read_hub(client, "eventhub", "missing"))
    assert code == 404
    assert "The messaging entity" in text
    assert "could not be found" in text
    answer = read_hub(client, "partition", hub, partition="99")
    assert status_of(answer)[0] == 400
    assert (answer.application_properties or {})["error-condition"] == "com.microsoft:argument-out-of-range"
    assert "The specified partition is invalid for an EventHub partition sender or receiver" in status_of(answer)[1]


@pytest.mark.eh(81)
def test_offsets_of_fresh_partitions_start_alike(doors: Doors, hub: str) -> None:
    with doors.raw() as client:
        client.trusted()
        offsets = []
        for partition in ("0", "1", "2"):
            fill(client, hub, 2, partition=int(partition))
            offsets.append(map_of(read_hub(client, "partition", hub, partition=partition))["last_enqueued_offset"])
        assert len(set(offsets)) == 1
