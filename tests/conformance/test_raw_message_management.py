"""`queue/$management` frame by frame: types, statuses and conditions, as clients insist on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, Properties, ValueBody, decode_message, encode_message
from hubweir.amqp.messaging.outcome import Modified
from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.transport.performatives import Attach, Detach, Disposition, Transfer
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Symbol, Timestamp, UInt, ULong
from hubweir.testing.frames import frame
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import RawClient

Make = Callable[..., str]
pytestmark = pytest.mark.conformance
LOCK = {"rcv_settle_mode": 1}
SESSION_FILTER = Symbol("com.microsoft:session-filter")
EVER_MS = 253_402_300_800_000
NOBODYS = UUID(int=0)
# Clients look for these words.
LOCK_LOST = (
    "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue"
)


@pytest.fixture
def client(doors: Doors) -> Iterator[RawClient]:
    with doors.raw() as client:
        yield client.trusted()


def message(body: bytes, **sections: Any) -> bytes:
    return encode_message(Message(body=DataBody((body,)), **sections))


def send(client: RawClient, queue: str, *payloads: bytes) -> None:
    sender = client.sender(queue)
    for payload in payloads:
        client.publish(sender, payload)
    client.write(frame(Detach(handle=sender, closed=True)))
    client.expect(Detach)


def ask(client: RawClient, queue: str, operation: str, body: object, **said: object) -> tuple[Any, Any, dict[str, Any]]:
    """One request: status, condition, and the map of the answer. Every answer is held against the envelope's types."""
    request = Message(
        properties=Properties(message_id=UUID(int=7)),
        application_properties={"operation": f"com.microsoft:{operation}", **said},
        body=ValueBody(body),
    )
    answer = client.request(f"{queue}/$management", request)
    assert answer.properties is not None
    assert answer.properties.correlation_id == UUID(int=7)
    found = answer.application_properties or {}
    assert type(found["statusCode"]) is Int
    assert type(found["statusDescription"]) is str
    condition = found.get("errorCondition")
    assert condition is None or type(condition) is Symbol
    assert condition != "com.microsoft:message-lock-lost" or LOCK_LOST in found["statusDescription"]
    assert isinstance(answer.body, ValueBody)
    return int(found["statusCode"]), condition, answer.body.value or {}  # type: ignore[return-value]


def tokens_of(*tokens: UUID) -> dict[str, object]:
    return {"lock-tokens": Array(AmqpType.UUID, tokens)}


def numbers_of(*numbers: int) -> dict[str, object]:
    return {"sequence-numbers": Array(AmqpType.LONG, tuple(map(Long, numbers)))}


def locked(client: RawClient, queue: str, count: int) -> list[UUID]:
    """Receive so many, and return their tokens."""
    client.receiver(queue, credit=count, **LOCK)
    return [UUID(bytes_le=client.expect(Transfer).delivery_tag) for _ in range(count)]


@pytest.mark.sb(88, 89, 90, 91)
def test_peek(client: RawClient, queue: str) -> None:
    def peek(first: int, count: int) -> tuple[Any, Any, dict[str, Any]]:
        return ask(client, queue, "peek-message", {"from-sequence-number": Long(first), "message-count": Int(count)})

    assert peek(1, 5)[0] == 204
    send(client, queue, message(b"1"), message(b"2"), message(b"3"))
    [_] = locked(client, queue, 1)
    code, _, found = peek(1, 2)
    assert code == 200
    assert type(found["messages"]) is list
    got = [decode_message(each["message"]) for each in found["messages"]]
    assert [each.body for each in got] == [DataBody((b"1",)), DataBody((b"2",))]
    for each in got:
        assert each.header is not None
        assert set(each.message_annotations or {}) == {Symbol("x-opt-enqueued-time"), Symbol("x-opt-sequence-number")}
    assert [decode_message(each["message"]).body for each in peek(3, 5)[2]["messages"]] == [DataBody((b"3",))]
    assert peek(4, 5)[0] == 204
    send(client, queue, *(message(bytes(60_000)) for _ in range(6)))
    assert [len(peek(first, 9)[2]["messages"]) for first in (4, 8)] == [4, 2]


FORGED = {
    Symbol("x-opt-sequence-number"): Long(77), Symbol("x-opt-enqueued-time"): Timestamp(1),
    Symbol("x-opt-enqueue-sequence-number"): Long(9), Symbol("x-opt-locked-until"): Timestamp(2),
    Symbol("x-opt-message-state"): Int(2), Symbol("x-opt-partition-id"): 3,
    Symbol("x-opt-deadletter-source"): "elsewhere",
}  # fmt: skip


@pytest.mark.sb(46, 47, 88, 95)
def test_what_a_sender_says_in_the_broker_s_annotations_is_in_no_answer(client: RawClient, queue: str) -> None:
    send(client, queue, message(b"forged", message_annotations={**FORGED, Symbol("mine"): "kept"}))
    asked = {"from-sequence-number": Long(1), "message-count": Int(9)}
    [entry] = ask(client, queue, "peek-message", asked)[2]["messages"]
    annotations = dict(decode_message(entry["message"]).message_annotations or {})
    assert annotations.pop(Symbol("x-opt-enqueued-time")) > 1
    assert annotations == {Symbol("x-opt-sequence-number"): 1, Symbol("mine"): "kept"}
    client.receiver(queue, credit=1, **LOCK)
    first = client.expect(Transfer).delivery_id
    defer = Modified(undeliverable_here=True)
    client.write(frame(Disposition(role=True, first=first, last=first, settled=False, state=defer)))
    client.expect(Disposition)
    body = {**numbers_of(1), "receiver-settle-mode": UInt(0)}
    [entry] = ask(client, queue, "receive-by-sequence-number", body)[2]["messages"]
    annotations = dict(decode_message(entry["message"]).message_annotations or {})
    assert annotations.pop(Symbol("x-opt-enqueued-time")) > 1
    assert annotations == {
        Symbol("x-opt-sequence-number"): 1, Symbol("x-opt-message-state"): 1, Symbol("mine"): "kept",
    }  # fmt: skip


@pytest.mark.sb(46, 92, 93)
def test_schedule_and_cancel(client: RawClient, queue: str) -> None:
    due = int(time.time() * 1_000) + 3_600_000
    annotated = message(b"x", message_annotations={Symbol("x-opt-scheduled-enqueue-time"): Timestamp(due)})
    entries = [{"message-id": f"{number}", "message": annotated} for number in range(3)]
    code, _, found = ask(client, queue, "schedule-message", {"messages": entries})
    assert code == 200
    numbers = found["sequence-numbers"]
    assert (type(numbers), numbers.element_type) == (Array, AmqpType.LONG)
    assert list(numbers.items) == sorted(set(numbers.items))
    assert ask(client, queue, "cancel-scheduled-message", numbers_of(*numbers.items[:2]))[0] == 200
    for gone in (numbers.items[0], 4_711):
        code, condition, _ = ask(client, queue, "cancel-scheduled-message", numbers_of(gone))
        assert (code, condition) == (404, "com.microsoft:message-not-found")
    _, _, found = ask(client, queue, "peek-message", {"from-sequence-number": Long(1), "message-count": Int(9)})
    [left] = found["messages"]
    state = (decode_message(left["message"]).message_annotations or {})[Symbol("x-opt-message-state")]
    assert (type(state), state) == (Int, 2)


@pytest.mark.sb(94)
def test_renew_lock(client: RawClient, queue: str) -> None:
    send(client, queue, message(b"1"), message(b"2"))
    tokens = locked(client, queue, 2)
    code, _, found = ask(client, queue, "renew-lock", tokens_of(*tokens))
    assert code == 200
    ends = found["expirations"]
    assert (type(ends), ends.element_type, len(ends.items)) == (Array, AmqpType.TIMESTAMP, 2)
    for bad in ((NOBODYS,), (tokens[0], NOBODYS)):
        code, condition, _ = ask(client, queue, "renew-lock", tokens_of(*bad))
        assert (code, condition) == (410, "com.microsoft:message-lock-lost")


@pytest.mark.sb(46, 95)
@pytest.mark.parametrize("mode", [UInt(0), UInt(1), Int(1)])
def test_receive_by_sequence_number(client: RawClient, queue: str, mode: Any) -> None:
    send(client, queue, message(b"deferred"), message(b"active"))
    client.receiver(queue, credit=1, **LOCK)
    first = client.expect(Transfer).delivery_id
    defer = Modified(undeliverable_here=True)
    client.write(frame(Disposition(role=True, first=first, last=first, settled=False, state=defer)))
    client.expect(Disposition)

    def receive(*numbers: int) -> tuple[Any, Any, dict[str, Any]]:
        body = {**numbers_of(*numbers), "receiver-settle-mode": mode}
        return ask(client, queue, "receive-by-sequence-number", body)

    assert receive(1, 2)[:2] == (404, "com.microsoft:message-not-found")
    code, _, found = receive(1)
    assert code == 200
    [entry] = found["messages"]
    got = decode_message(entry["message"])
    annotations = got.message_annotations or {}
    assert got.body == DataBody((b"deferred",))
    assert type(annotations[Symbol("x-opt-message-state")]) is Int
    assert annotations[Symbol("x-opt-message-state")] == 1
    assert (Symbol("x-opt-locked-until") in annotations) == ("lock-token" in entry) == bool(mode)
    if mode:
        assert type(entry["lock-token"]) is UUID
        abandoned = {**tokens_of(entry["lock-token"]), "disposition-status": "abandoned"}
        assert ask(client, queue, "update-disposition", abandoned)[0] == 200
        [entry] = receive(1)[2]["messages"]
        completed = {**tokens_of(entry["lock-token"]), "disposition-status": "completed"}
        assert ask(client, queue, "update-disposition", completed)[0] == 200
    assert receive(1)[:2] == (404, "com.microsoft:message-not-found")


@pytest.mark.sb(56, 67, 96)
@pytest.mark.parametrize("status", ["completed", "abandoned", "suspended", "defered"])
def test_update_disposition_of_another_clients_message(
    doors: Doors, client: RawClient, queue: str, status: str
) -> None:
    send(client, queue, message(b"x", application_properties={"n": 1}))
    with doors.raw() as holder:
        [token] = locked(holder.trusted(), queue, 1)
        body = {**tokens_of(token), "disposition-status": status, "properties-to-modify": {"added": 2}}
        if status == "suspended":
            body |= {"deadletter-reason": "why", "deadletter-description": "because"}
        assert ask(client, queue, "update-disposition", body, **{"associated-link-name": "another's"})[0] == 200
        assert ask(client, queue, "update-disposition", body)[:2] == (410, "com.microsoft:message-lock-lost")
    where = f"{queue}/$DeadLetterQueue" if status == "suspended" else queue
    _, _, found = ask(client, where, "peek-message", {"from-sequence-number": Long(1), "message-count": Int(9)})
    if status == "completed":
        assert not found
        return
    [entry] = found["messages"]
    got = decode_message(entry["message"])
    why = {"DeadLetterReason": "why", "DeadLetterErrorDescription": "because"} if status == "suspended" else {}
    assert got.application_properties == {"n": 1, "added": 2, **why}
    assert got.header is not None
    assert got.header.delivery_count == (1 if status == "abandoned" else 0)


@pytest.mark.sb(102)
def test_batch_delete(client: RawClient, queue: str) -> None:
    send(client, queue, *(message(b"%d" % number) for number in range(4)))
    locked(client, queue, 1)
    now = {"enqueued-time-utc": Timestamp(int(time.time() * 1_000) + 1_000)}
    code, _, found = ask(client, queue, "batch-delete-messages", {"message-count": Int(2), **now})
    assert (code, found) == (200, {"message-count": 2})
    assert type(found["message-count"]) is Int
    early = {"enqueued-time-utc": Timestamp(int(time.time() * 1_000) - 60_000)}
    assert ask(client, queue, "batch-delete-messages", {"message-count": Int(9), **early})[0] == 204
    assert ask(client, queue, "batch-delete-messages", {"message-count": Int(9)})[2] == {"message-count": 1}
    _, _, found = ask(client, queue, "peek-message", {"from-sequence-number": Long(1), "message-count": Int(9)})
    assert len(found["messages"]) == 1  # the locked one


@pytest.mark.sb(82, 83, 84, 85, 100)
def test_sessions(client: RawClient, make_queue: Make) -> None:
    queue = make_queue(requires_session=True)
    everything = {"last-updated-time": Timestamp(EVER_MS), "skip": Int(0), "top": Int(10)}
    assert ask(client, queue, "get-message-sessions", everything)[0] == 204
    send(client, queue, *(message(b"x", properties=Properties(group_id=each)) for each in ("a", "b", "a")))
    _, _, found = ask(client, queue, "get-message-sessions", everything)
    assert found["sessions-ids"] == Array(AmqpType.STRING, ("a", "b"))
    _, _, found = ask(client, queue, "get-message-sessions", {**everything, "skip": Int(1)})
    assert found["sessions-ids"] == Array(AmqpType.STRING, ("b",))
    source = Source(address=queue, filter={SESSION_FILTER: "a"})
    client.attach(queue, sends=False, source=source, name="mine", **LOCK)
    assert client.expect(Attach).source is not None
    session = {"session-id": "a"}
    assert ask(client, queue, "get-session-state", session)[::2] == (200, {"session-state": None})
    assert ask(client, queue, "set-session-state", {**session, "session-state": b"kept"})[0] == 200
    assert ask(client, queue, "get-session-state", session)[2] == {"session-state": b"kept"}
    code, _, found = ask(client, queue, "renew-session-lock", session, **{"server-timeout": ULong(9_000)})
    assert (code, type(found["expiration"])) == (200, Timestamp)
    for operation in ("renew-session-lock", "set-session-state", "get-session-state"):
        body = {"session-id": "b", "session-state": None}
        assert ask(client, queue, operation, body)[:2] == (410, "com.microsoft:session-lock-lost")
    # Without the session's id, the link that is named says which one it is.
    wanted = {"from-sequence-number": Long(1), "message-count": Int(9)}
    _, _, found = ask(client, queue, "peek-message", wanted, **{"associated-link-name": "mine"})
    assert len(found["messages"]) == 2


@pytest.mark.sb(99, 100)
def test_what_is_unknown_or_of_another_type(client: RawClient, queue: str) -> None:
    assert ask(client, queue, "no-such-thing", {})[:2] == (501, "amqp:not-implemented")
    argument = (400, "com.microsoft:argument-error")
    assert ask(client, queue, "peek-message", None)[:2] == argument
    assert ask(client, queue, "peek-message", {"from-sequence-number": "1", "message-count": Int(1)})[:2] == argument
    assert ask(client, queue, "renew-lock", {})[:2] == argument
    assert ask(client, queue, "update-disposition", {**tokens_of(NOBODYS), "disposition-status": "x"})[:2] == argument
    wanted = {"from-sequence-number": Long(1), "message-count": Int(1)}
    timeout = {"com.microsoft:server-timeout": ULong(5_000)}
    assert ask(client, queue, "peek-message", wanted, **timeout)[0] == 204


@pytest.mark.sb(103)
def test_dead_letters_have_a_node_of_their_own(client: RawClient, queue: str) -> None:
    send(client, queue, message(b"x"))
    [token] = locked(client, queue, 1)
    ask(client, queue, "update-disposition", {**tokens_of(token), "disposition-status": "suspended"})
    wanted = {"from-sequence-number": Long(1), "message-count": Int(1)}
    assert ask(client, f"{queue}/$DeadLetterQueue", "peek-message", wanted)[0] == 200
    assert ask(client, f"{queue}/$Transfer/$DeadLetterQueue", "peek-message", wanted)[0] == 204
    assert ask(client, queue, "peek-message", wanted)[0] == 204
