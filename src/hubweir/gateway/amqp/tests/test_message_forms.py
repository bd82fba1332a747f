"""Requests about messages: what they ask is read with a check of each type, and answers have the types clients want."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, decode_message, encode_message
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Timestamp, UInt, ULong
from hubweir.errors import ServiceError
from hubweir.event_hub.open_run import OpenRun
from hubweir.gateway.amqp.message_forms import (
    Asked,
    asked_of,
    message_maps,
    numbers_array,
    sessions_map,
    times_array,
)
from hubweir.kernels.stored_batch import HEADER_SIZE
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode

TOKEN = UUID("50fef1e1-c37a-80ee-2a17-b56d2ac14c69")


def test_numbers_of_any_width_are_taken() -> None:
    asked = asked_of({"a": Int(3), "b": ULong(4), "c": 0, "d": Timestamp(7)})
    assert (asked.number("a"), asked.number("b"), asked.number("c"), asked.number("d")) == (3, 4, 0, 7)
    assert asked.optional_number("missing") is None


def test_arrays_and_lists_are_both_taken() -> None:
    asked = asked_of({
        "sequence-numbers": Array(AmqpType.LONG, (Long(3), Long(2**48 + 1))), "list": [5],
        "lock-tokens": Array(AmqpType.UUID, (TOKEN, UUID(int=1))),
    })  # fmt: skip
    assert list(asked.numbers("sequence-numbers")) == [3, 2**48 + 1]
    assert list(asked.numbers("list")) == [5]
    assert asked.tokens("lock-tokens") == TOKEN.bytes + UUID(int=1).bytes


def test_the_least_and_the_largest_number_are_taken() -> None:
    asked = asked_of({"n": [Long(0), Long(2**63 - 1)], "most": Long(2**63 - 1), "least": Long(-(2**63))})
    assert list(asked.numbers("n")) == [0, 2**63 - 1]
    assert (asked.number("most"), asked.optional_number("least")) == (2**63 - 1, -(2**63))


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ({"n": [Long(-1)]}, lambda asked: asked.numbers("n")),
        ({"n": [ULong(2**63)]}, lambda asked: asked.numbers("n")),
        ({}, lambda asked: asked.number("n")),
        ({"n": "3"}, lambda asked: asked.number("n")),
        ({"n": True}, lambda asked: asked.number("n")),
        ({"n": -1}, lambda asked: asked.number("n")),
        ({"n": 0}, lambda asked: asked.number("n", least=1)),
        ({"n": ULong(2**63)}, lambda asked: asked.number("n")),
        ({}, lambda asked: asked.numbers("n")),
        ({"n": []}, lambda asked: asked.numbers("n")),
        ({"n": [1, "2"]}, lambda asked: asked.numbers("n")),
        ({"n": [-1]}, lambda asked: asked.numbers("n")),
        ({"n": [1] * 4_097}, lambda asked: asked.numbers("n")),
        ({"n": [TOKEN.bytes]}, lambda asked: asked.tokens("n")),
        ({"n": [TOKEN, TOKEN.bytes]}, lambda asked: asked.tokens("n")),
        ({"n": [{"message": b"m"}, {}]}, lambda asked: asked.messages("n")),
        ({"disposition-status": "completed", "properties-to-modify": {"a": 1, 2: 3}}, lambda asked: asked.settlement()),
        ({"n": 1}, lambda asked: asked.text("n")),
        ({}, lambda asked: asked.session_id()),
        ({"n": "text"}, lambda asked: asked.binary("n")),
        ({"n": UInt(2)}, lambda asked: asked.receive_mode("n")),
        ({"n": [{"message": "text"}]}, lambda asked: asked.messages("n")),
        ({"n": [b"bytes"]}, lambda asked: asked.messages("n")),
        ({"disposition-status": "lost"}, lambda asked: asked.settlement()),
        ({"disposition-status": "completed", "properties-to-modify": [1]}, lambda asked: asked.settlement()),
    ],
)
def test_what_is_missing_or_of_another_type_is_refused_by_name(
    values: dict[str, object], read: Callable[[Asked], object]
) -> None:
    with pytest.raises(ServiceError) as refused:
        read(asked_of(values))
    assert refused.value.condition.symbol == "com.microsoft:argument-error"


@pytest.mark.parametrize("body", [None, [], b"", "map"])
def test_a_body_that_is_no_map_is_refused(body: object) -> None:
    with pytest.raises(ServiceError):
        asked_of(body)


def test_settlements_are_those_of_the_contract() -> None:
    for status, outcome in (
        ("completed", SettleOutcome.COMPLETE), ("abandoned", SettleOutcome.ABANDON),
        ("suspended", SettleOutcome.DEAD_LETTER), ("defered", SettleOutcome.DEFER),
    ):  # fmt: skip
        assert asked_of({"disposition-status": status}).settlement() == (outcome, None)
    asked = asked_of({
        "disposition-status": "suspended", "deadletter-reason": "r", "deadletter-description": "d",
        "properties-to-modify": {"k": 1},
    })  # fmt: skip
    assert asked.settlement() == (SettleOutcome.DEAD_LETTER, SettleDetails("r", "d", encode({"k": 1})))


def test_modes_sessions_and_states() -> None:
    asked = asked_of({"mode": UInt(0), "session-id": "", "state": None, "bytes": b"x"})
    assert asked.receive_mode("mode") is ReceiveMode.RECEIVE_AND_DELETE
    assert asked_of({"mode": 1}).receive_mode("mode") is ReceiveMode.PEEK_LOCK
    assert (asked.session_id(), asked.binary("state"), asked.binary("bytes")) == ("", None, b"x")


def test_messages_are_whole_and_a_locked_one_has_its_token() -> None:
    run = OpenRun(names_keys=False)
    payload = encode_message(Message(body=DataBody((b"body",))))
    run.add_deliveries(payload, array("q", (0, 0, len(payload), 0, 0)), 0, 1)
    lock, check = (int.from_bytes(half, "big") for half in (TOKEN.bytes[:8], TOKEN.bytes[8:]))
    locked = [HEADER_SIZE, 3, 5, 60_000, 0, 1, lock, check, -1, -1, -1, -1, 3]
    free = [HEADER_SIZE, 4, 5, -1, 0, 0, 0, 0, -1, -1, -1, -1, 4]
    stored, rows = bytes(run.take_run()), array("q", locked + free)
    first, second = message_maps(stored, rows, b"0" * 16, with_tokens=True)
    assert first["lock-token"] == TOKEN and "lock-token" not in second
    message = first["message"]
    assert isinstance(message, bytes)
    assert decode_message(message).body == DataBody((b"body",))
    assert all("lock-token" not in each for each in message_maps(stored, rows, b"0" * 16, with_tokens=False))


def test_answers_have_arrays_of_the_types_that_clients_insist_on() -> None:
    assert decode(encode(numbers_array([1, 2**48])))[0] == Array(AmqpType.LONG, (1, 2**48))
    assert decode(encode(times_array([5])))[0] == Array(AmqpType.TIMESTAMP, (Timestamp(5),))
    page = sessions_map(("a", ""), 100)
    assert page == {"skip": Int(102), "sessions-ids": Array(AmqpType.STRING, ("a", ""))}
