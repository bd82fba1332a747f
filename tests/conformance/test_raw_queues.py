"""Queues frame by frame: what is stored, what a delivery holds, credit, and what each settlement is answered.

Long because each is one short conversation, in the order of the checklist.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
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
from hubweir.amqp.messaging.outcome import Accepted, Modified, Rejected, Released
from hubweir.amqp.transport.performatives import Attach, Detach, Disposition, Flow, Transfer
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Byte, Char, Int, Long, Symbol, Timestamp, UByte, UInt, ULong
from hubweir.testing.frames import frame
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import Frame, RawClient

Make = Callable[..., str]
pytestmark = pytest.mark.conformance
LOCK = {"rcv_settle_mode": 1}
DELETE = {"snd_settle_mode": 1}
LOCK_TOKEN = Symbol("x-opt-lock-token")
ENQUEUED, NUMBER, UNTIL = (Symbol(f"x-opt-{name}") for name in ("enqueued-time", "sequence-number", "locked-until"))


@pytest.fixture
def client(doors: Doors) -> Iterator[RawClient]:
    with doors.raw() as client:
        yield client.trusted()


def message(body: bytes, **sections: Any) -> bytes:
    return encode_message(Message(body=DataBody((body,)), **sections))


def send(client: RawClient, queue: str, *payloads: bytes, **how: Any) -> list[Any]:
    """Send each over a link of its own; the states that they were answered with."""
    sender = client.sender(queue)
    states = [client.publish(sender, payload, **how).state for payload in payloads]
    client.write(frame(Detach(handle=sender, closed=True)))
    client.expect(Detach)
    return states


def refusal(state: Any) -> str:
    assert isinstance(state, Rejected)
    assert state.error is not None
    return str(state.error.condition)


def delivery(client: RawClient, **how: Any) -> Frame:
    return client.expect_frame(Transfer, **how)


def settle(client: RawClient, came: Frame, state: Any, *, last: int | None = None, seconds: float = 5.0) -> Any:
    """Settle as official clients do: unsettled; the state that comes back."""
    first = came.performative.delivery_id
    client.write(frame(Disposition(role=True, first=first, last=last or first, settled=False, state=state)))
    answer = client.expect(Disposition, where=lambda d: not d.role and d.first == first, seconds=seconds)
    assert answer.settled
    return answer.state


def stored(client: RawClient, queue: str) -> list[bytes]:
    """The bodies of all that a queue has. What is locked is among them, which no receiver would get."""
    wanted = {"from-sequence-number": Long(1), "message-count": Int(100)}
    request = Message(
        properties=Properties(message_id="peek"),
        application_properties={"operation": "com.microsoft:peek-message"},
        body=ValueBody(wanted),
    )
    answer = client.request(f"{queue}/$management", request)
    found = answer.body.value if isinstance(answer.body, ValueBody) else None
    bodies = [decode_message(each["message"]).body for each in (found or {}).get("messages", ())]
    return [b"".join(bytes(part) for part in body.parts) for body in bodies if isinstance(body, DataBody)]


def annotations(came: Frame) -> dict[Any, Any]:
    return decode_message(came.payload).message_annotations or {}


@pytest.mark.sb(18, 21, 22)
def test_every_form_of_an_address_reaches_the_queue(doors: Doors, client: RawClient) -> None:
    doors.namespace.create_queue("Path/to.a-queue_1")
    try:
        forms = (
            f"amqps://{doors.host}:{doors.port}/Path/to.a-queue_1", "/Path/to.a-queue_1", "PATH/TO.A-QUEUE_1",
            "Path%2Fto.a-queue_1", "/Path%2fto.a-queue_1/",
        )  # fmt: skip
        for form in forms:
            handle = client.attach(form, sends=True)
            answer = client.expect(Attach)
            assert answer.target is not None
            assert answer.target.address == form
            client.expect(Flow, where=lambda flow, handle=answer.handle: flow.handle == handle)
            assert isinstance(client.publish(handle, message(form.encode())).state, Accepted)
        client.receiver("path/to.a-queue_1", credit=10, **DELETE)
        assert [each.body for each in client.messages(len(forms))] == [DataBody((form.encode(),)) for form in forms]
    finally:
        doors.namespace.delete_queue("Path/to.a-queue_1")


@pytest.mark.sb(23, 24)
def test_unknown_queues_and_parts_are_refused(client: RawClient, queue: str) -> None:
    error = client.refused("nowhere", sends=True)
    assert error.condition == "amqp:not-found"
    assert "The messaging entity 'sb://" in error.description
    assert "could not be found" in error.description
    assert client.refused("nowhere", sends=False).condition == "amqp:not-found"
    assert client.refused(f"{queue}/$DeadLetterQueue", sends=True).condition == "amqp:not-allowed"


@pytest.mark.sb(20)
@pytest.mark.parametrize(
    "part", ["$DeadLetterQueue", "$deadletterqueue", "$Transfer/$DeadLetterQueue", "$transfer/$deadletterqueue"]
)
def test_sub_queues_are_receivable_in_either_case(client: RawClient, queue: str, part: str) -> None:
    client.receiver(f"{queue}/{part}", credit=1, **LOCK)
    assert client.none_of(Transfer)


@pytest.mark.sb(25, 34)
@pytest.mark.parametrize("is_partitioned", [False, True], ids=["plain", "partitioned"])
def test_the_size_limit_is_exact_and_the_link_goes_on(
    client: RawClient, make_queue: Make, is_partitioned: bool
) -> None:
    queue, limit = make_queue(max_message_kilobytes=256, is_partitioned=is_partitioned), 262_144
    sender = client.attach(queue, sends=True)
    assert client.expect(Attach).max_message_size == limit
    client.expect(Flow)
    overhead = len(message(bytes(100_000))) - 100_000

    def split(delivery_id: int, payload: bytes) -> Any:
        pieces = [payload[at : at + 60_000] for at in range(0, len(payload), 60_000)]
        for number, piece in enumerate(pieces):
            transfer = Transfer(
                handle=sender, delivery_id=delivery_id, delivery_tag=b"%d" % delivery_id, message_format=0,
                settled=False, more=number < len(pieces) - 1,
            )  # fmt: skip
            client.write(frame(transfer, piece))
        return client.outcome(delivery_id).state

    assert isinstance(split(0, message(bytes(limit - overhead))), Accepted)
    assert refusal(split(1, message(bytes(limit - overhead + 1)))) == "amqp:link:message-size-exceeded"
    assert refusal(split(2, message(bytes(1_000_000)))) == "amqp:link:message-size-exceeded"
    assert isinstance(split(3, message(b"next")), Accepted)


@pytest.mark.sb(29, 30, 45, 46, 47)
def test_every_section_and_type_comes_back(client: RawClient, queue: str) -> None:
    own = {
        "uint": UInt(7), "ulong": ULong(2**40), "negative": -5, "when": Timestamp(-5), "char": Char("c"),
        "ubyte": UByte(1), "byte": Byte(-1), "uuid": UUID(int=9), "none": None, "binary": b"\0", "real": 0.5,
    }  # fmt: skip
    sections: dict[str, Any] = {
        "header": Header(durable=True, priority=7),
        "delivery_annotations": {Symbol("x-opt-mine"): 1},
        "properties": Properties(message_id=UUID(int=5), subject="s", content_type="text/plain", group_sequence=3),
        "application_properties": own,
        "footer": {Symbol("x-opt-foot"): 2},
    }
    kept = {Symbol("x-opt-unknown"): "kept", Symbol("mine"): [1]}
    nulls = {Symbol("x-opt-partition-key"): None, Symbol("x-opt-deadletter-source"): None, UNTIL: None, NUMBER: None}
    forged = {
        ENQUEUED: Timestamp(1), Symbol("x-opt-message-state"): 1, Symbol("x-opt-partition-id"): 3,
        Symbol("x-opt-enqueue-sequence-number"): 9, Symbol("x-opt-deadletter-source"): "elsewhere",
    }  # fmt: skip
    bodies = (
        DataBody((b"a", b"", b"c")), SequenceBody(([1, "two"], [])), ValueBody({"k": [1.5, None]}), ValueBody(None),
        ValueBody(Array(AmqpType.STRING, ("a", "b"))), DataBody((b"",)), None,
    )  # fmt: skip
    sent = [Message(body=body, message_annotations=nulls | forged | kept, **sections) for body in bodies]
    assert all(isinstance(state, Accepted) for state in send(client, queue, *map(encode_message, sent)))
    before_ms = int(time.time() * 1_000)
    client.receiver(queue, credit=10, **LOCK)
    for at, given in enumerate(sent):
        came = delivery(client)
        got, tag = decode_message(came.payload), came.performative.delivery_tag
        assert got.header == Header(durable=True, priority=7, delivery_count=0)
        assert (got.properties, got.application_properties) == (given.properties, own)
        assert [type(value) for value in (got.application_properties or {}).values()] == list(map(type, own.values()))
        assert (got.body, got.footer) == (given.body, given.footer)
        assert got.delivery_annotations == {Symbol("x-opt-mine"): 1, LOCK_TOKEN: UUID(bytes_le=tag)}
        found = dict(got.message_annotations or {})
        enqueued, number, until = found.pop(ENQUEUED), found.pop(NUMBER), found.pop(UNTIL)
        assert found == kept
        assert [type(each) for each in (enqueued, number, until)] == [Timestamp, int, Timestamp]  # int: a long
        assert number == at + 1
        assert before_ms - 5_000 < enqueued <= int(time.time() * 1_000)
        assert 55_000 < until - before_ms < 65_000
        assert not came.performative.settled


@pytest.mark.sb(45, 46, 48)
def test_a_plain_message_comes_with_a_header_and_an_id_and_nothing_more(client: RawClient, queue: str) -> None:
    send(client, queue, message(b"x"))
    client.receiver(queue, credit=1, **LOCK)
    got = decode_message(delivery(client).payload)
    assert got.header == Header()
    assert got.properties is not None
    assert isinstance(got.properties.message_id, str)
    assert got.properties == Properties(message_id=got.properties.message_id)
    assert set(got.message_annotations or {}) == {ENQUEUED, NUMBER, UNTIL}
    assert set(got.delivery_annotations or {}) == {LOCK_TOKEN}


@pytest.mark.sb(31, 33)
def test_a_batch_is_its_messages_or_nothing(client: RawClient, make_queue: Make) -> None:
    queue, with_sessions = make_queue(), make_queue(requires_session=True)
    parts = [message(b"one", properties=Properties(message_id="1")), message(b"two"), message(b"three")]
    envelope = encode_message(Message(properties=Properties(message_id="e", subject="leak"))) + pack_batch(parts)
    [state] = send(client, queue, envelope, message_format=BATCH_FORMAT)
    assert isinstance(state, Accepted)
    client.receiver(queue, credit=10, **DELETE)
    got = client.messages(3)
    assert [each.body for each in got] == [DataBody((text,)) for text in (b"one", b"two", b"three")]
    assert [each.properties and each.properties.subject for each in got] == [None, None, None]
    assert client.none_of(Transfer)
    half = pack_batch([message(b"good", properties=Properties(group_id="s")), message(b"bad")])
    assert refusal(send(client, with_sessions, half, message_format=BATCH_FORMAT)[0]) == "amqp:not-allowed"
    wrong = pack_batch([message(b"good"), b"no message"])
    assert refusal(send(client, queue, wrong, message_format=BATCH_FORMAT)[0])
    assert client.none_of(Transfer)
    assert stored(client, with_sessions) == stored(client, queue) == []


@pytest.mark.sb(36, 37)
def test_a_split_delivery_is_stored_once_and_a_settled_one_not_answered(client: RawClient, queue: str) -> None:
    sender, payload = client.sender(queue), message(bytes(range(256)) * 100)
    pieces = [payload[at : at + 700] for at in range(0, len(payload), 700)]
    for number, piece in enumerate(pieces):
        transfer = Transfer(
            handle=sender, delivery_id=0 if number == 0 else None, delivery_tag=b"t" if number == 0 else None,
            message_format=0 if number == 0 else None, settled=False, more=number < len(pieces) - 1,
        )  # fmt: skip
        client.write(frame(transfer, piece))
    assert isinstance(client.outcome(0).state, Accepted)
    client.write(frame(Transfer(handle=sender, delivery_id=1, delivery_tag=b"q", settled=True), message(b"quiet")))
    assert client.none_of(Disposition)
    client.receiver(queue, credit=5, **DELETE)
    assert [each.body for each in client.messages(2)] == [DataBody((bytes(range(256)) * 100,)), DataBody((b"quiet",))]
    assert client.none_of(Transfer)


@pytest.mark.sb(40, 42)
@pytest.mark.parametrize(
    ("sections", "condition"),
    [
        ({"properties": Properties(message_id="x" * 129)}, "com.microsoft:argument-error"),
        ({"properties": Properties(group_id="x" * 129)}, "com.microsoft:argument-error"),
        ({"message_annotations": {Symbol("x-opt-partition-key"): "x" * 129}}, "com.microsoft:argument-error"),
        (
            {"properties": Properties(group_id="s"), "message_annotations": {Symbol("x-opt-partition-key"): "p"}},
            "amqp:not-allowed",
        ),
    ],
)
def test_ids_and_keys_that_no_queue_takes(
    client: RawClient, queue: str, sections: dict[str, Any], condition: str
) -> None:
    assert refusal(send(client, queue, message(b"x", **sections))[0]) == condition
    assert stored(client, queue) == []


@pytest.mark.sb(118)
def test_ids_of_every_type_are_duplicates_of_themselves(client: RawClient, make_queue: Make) -> None:
    queue = make_queue(duplicate_window_ms=60_000)
    ids = ("a", UUID(int=1), ULong(1), b"a")
    payloads = [message(b"%d" % at, properties=Properties(message_id=each)) for at, each in enumerate(ids)]
    assert all(isinstance(state, Accepted) for state in send(client, queue, *payloads, *payloads))
    client.receiver(queue, credit=10, **DELETE)
    assert [each.properties and each.properties.message_id for each in client.messages(4)] == list(ids)
    assert client.none_of(Transfer)


@pytest.mark.sb(43, 44, 65)
def test_credit_is_never_exceeded_and_the_mode_is_the_links(client: RawClient, queue: str) -> None:
    send(client, queue, *(message(b"%d" % number) for number in range(4)))
    locking = client.receiver(queue, **LOCK)
    assert client.none_of(Transfer)
    client.grant(locking, 2)
    for _ in range(2):
        came = delivery(client)
        assert not came.performative.settled
        assert len(came.performative.delivery_tag) == 16
    assert client.none_of(Transfer)
    client.receiver(queue, credit=2, **DELETE)
    for _ in range(2):
        came = delivery(client)
        assert came.performative.settled
        assert UNTIL not in annotations(came)
        assert LOCK_TOKEN not in (decode_message(came.payload).delivery_annotations or {})


@pytest.mark.sb(50, 51, 52, 53, 66, 160)
def test_each_settlement_is_answered_in_kind(client: RawClient, queue: str) -> None:
    send(client, queue, *(message(body) for body in (b"c", b"a", b"d", b"x")))
    handle = client.receiver(queue, credit=4, **LOCK)
    completed, abandoned, deferred, dead = (delivery(client) for _ in range(4))
    assert settle(client, completed, Accepted()) == Accepted()
    # A token that is over is told so, settled, and never as not-found.
    assert refusal(settle(client, completed, Modified())) == "com.microsoft:message-lock-lost"
    state = settle(client, deferred, Modified(undeliverable_here=True))
    assert isinstance(state, Modified)
    info = {Symbol("DeadLetterReason"): "broken", Symbol("DeadLetterErrorDescription"): "no wheels"}
    error = AmqpError(condition=Symbol("com.microsoft:dead-letter"), info=info)
    assert settle(client, dead, Rejected(error=error)) == Rejected(error=None)
    assert isinstance(settle(client, abandoned, Modified(delivery_failed=True)), Modified)
    client.grant(handle, 4, delivery_count=4)
    again = delivery(client, seconds=1)
    got = decode_message(again.payload)
    assert (got.body, got.header and got.header.delivery_count) == (DataBody((b"a",)), 1)
    assert again.performative.delivery_tag != abandoned.performative.delivery_tag
    assert client.none_of(Transfer)
    assert stored(client, queue) == [b"a", b"d"]
    client.receiver(f"{queue}/$DeadLetterQueue", credit=1, **LOCK)
    got = client.messages(1)[0]
    assert got.application_properties == {"DeadLetterReason": "broken", "DeadLetterErrorDescription": "no wheels"}


@pytest.mark.sb(53, 55)
@pytest.mark.parametrize(
    "error",
    [
        None,
        AmqpError(condition=Symbol("com.microsoft:dead-letter")),
        AmqpError(
            condition=Symbol("com.microsoft:dead-letter"),
            info={Symbol("DeadLetterReason"): None, Symbol("DeadLetterErrorDescription"): None},
        ),
    ],
)
def test_dead_letter_without_reason_sets_no_properties(client: RawClient, queue: str, error: AmqpError | None) -> None:
    send(client, queue, message(b"x"))
    client.receiver(queue, credit=1, **LOCK)
    assert settle(client, delivery(client), Rejected(error=error)) == Rejected(error=None)
    assert stored(client, queue) == []
    client.receiver(f"{queue}/$DeadLetterQueue", credit=1, **LOCK)
    assert not client.messages(1)[0].application_properties


@pytest.mark.sb(70)
def test_an_abandoned_dead_letter_keeps_its_count_and_takes_properties(client: RawClient, queue: str) -> None:
    send(client, queue, message(b"x", application_properties={"own": 1}))
    handle = client.receiver(queue, credit=1, **LOCK)
    settle(client, delivery(client), Modified(delivery_failed=True))
    client.grant(handle, 1, delivery_count=1)
    settle(client, delivery(client), Rejected(error=None))
    dead = client.receiver(f"{queue}/$DeadLetterQueue", credit=1, **LOCK)
    for times in range(1, 4):
        state = Modified(delivery_failed=True, message_annotations={Symbol("times"): times})
        assert isinstance(settle(client, delivery(client), state), Modified)
        client.grant(dead, 1, delivery_count=times)
    got = decode_message(delivery(client).payload)
    assert got.header is not None and got.header.delivery_count == 1
    assert got.application_properties == {"own": 1, "times": 3}


@pytest.mark.sb(50)
def test_a_range_is_settled_each_and_what_is_settled_already_is_done_in_silence(client: RawClient, queue: str) -> None:
    send(client, queue, *(message(b"%d" % number) for number in range(4)))
    client.receiver(queue, credit=4, **LOCK)
    came = [delivery(client) for _ in range(4)]
    ids = [each.performative.delivery_id for each in came]
    client.write(frame(Disposition(role=True, first=ids[0], last=ids[2], settled=False, state=Accepted())))
    answered: set[int] = set()
    while len(answered) < 3:
        answer = client.expect(Disposition)
        assert (answer.settled, answer.state) == (True, Accepted())
        answered |= set(range(answer.first, (answer.first if answer.last is None else answer.last) + 1))
    assert answered == set(ids[:3])
    client.write(frame(Disposition(role=True, first=ids[3], last=ids[3], settled=True, state=Accepted())))
    assert client.none_of(Disposition)
    assert stored(client, queue) == []


@pytest.mark.sb(56)
def test_properties_to_modify_change_application_properties(client: RawClient, queue: str) -> None:
    send(client, queue, message(b"x", application_properties={"kept": 1, "changed": "before"}))
    handle = client.receiver(queue, credit=1, **LOCK)
    modify = {Symbol("changed"): "after", Symbol("added"): True}
    settle(client, delivery(client), Modified(message_annotations=modify))
    client.grant(handle, 1, delivery_count=1)
    got = client.messages(1)[0]
    assert got.application_properties == {"kept": 1, "changed": "after", "added": True}


@pytest.mark.sb(57)
def test_a_released_message_is_back_at_once_uncounted_and_at_its_place(client: RawClient, make_queue: Make) -> None:
    queue = make_queue(lock_duration_ms=5_000)
    send(client, queue, message(b"1"), message(b"2"))
    handle = client.receiver(queue, credit=1, **LOCK)
    assert settle(client, delivery(client), Released()) == Released()
    time.sleep(5.5)  # the old lock's end is not counted either
    client.grant(handle, 2, delivery_count=1)
    got = client.messages(2)
    assert [each.body for each in got] == [DataBody((b"1",)), DataBody((b"2",))]
    assert [each.header and each.header.delivery_count for each in got] == [0, 0]


@pytest.mark.sb(61, 62)
def test_drain_gives_what_there_is_and_uses_the_credit_up(client: RawClient, queue: str) -> None:
    send(client, queue, message(b"1"), message(b"2"))
    handle = client.receiver(queue, **LOCK)
    client.forget()
    client.grant(handle, 5, drain=True)
    assert len(client.messages(2)) == 2
    flow = client.expect(Flow, where=lambda flow: bool(flow.drain))
    assert (flow.delivery_count, flow.link_credit) == (5, 0)
    client.grant(handle, 0, delivery_count=5, drain=True)
    flow = client.expect(Flow, where=lambda flow: bool(flow.drain))
    assert (flow.delivery_count, flow.link_credit) == (5, 0)
    client.grant(handle, 1, delivery_count=5)
    send(client, queue, message(b"3"))
    assert client.messages(1)[0].body == DataBody((b"3",))


@pytest.mark.sb(71)
@pytest.mark.parametrize("cleanly", [True, False])
def test_a_lock_outlives_its_link_and_its_connection(
    doors: Doors, client: RawClient, queue: str, cleanly: bool
) -> None:
    send(client, queue, message(b"x"))
    with doors.raw() as gone:
        handle = gone.trusted().receiver(queue, credit=1, **LOCK)
        token = UUID(bytes_le=delivery(gone).performative.delivery_tag)
        if cleanly:
            gone.write(frame(Detach(handle=handle, closed=True)))
            gone.expect(Detach)
    client.receiver(queue, credit=1, **LOCK)
    assert client.none_of(Transfer)
    tokens = {"lock-tokens": Array(AmqpType.UUID, (token,))}
    for operation, more in (("renew-lock", {}), ("update-disposition", {"disposition-status": "abandoned"})):
        said = {"operation": f"com.microsoft:{operation}", "associated-link-name": "a dead link"}
        asked = Message(
            properties=Properties(message_id="m"), application_properties=said, body=ValueBody(tokens | more)
        )
        with doors.raw() as other:
            answer = other.trusted().request(f"{queue}/$management", asked)
        assert (answer.application_properties or {})["statusCode"] == 200
    got = client.messages(1)[0]
    assert got.header is not None
    assert got.header.delivery_count == 1
