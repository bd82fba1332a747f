from array import array
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import (
    DataBody,
    Header,
    Message,
    Properties,
    ValueBody,
    decode_message,
    encode_message,
)
from hubweir.amqp.types.values import Int, Long, Symbol, Timestamp
from hubweir.client import message_run
from hubweir.client.message_run import EMPTY, MessageRun, spans_of
from hubweir.errors import DecodeError

TOKEN = UUID(int=77)


def received(number: int, body: object = b"body", token: object = TOKEN, **annotations: object) -> bytes:
    """A message as a service delivers it."""
    return encode_message(
        Message(
            header=Header(delivery_count=2, ttl=9),
            delivery_annotations={Symbol("x-opt-lock-token"): token},
            message_annotations={
                Symbol("x-opt-sequence-number"): Long(number),
                Symbol("x-opt-enqueued-time"): Timestamp(1_000 + number),
                **{Symbol(name): value for name, value in annotations.items()},
            },
            properties=Properties(message_id="m", group_id="s"),
            application_properties={"DeadLetterReason": "r", "n": 4},
            body=DataBody((body,)) if isinstance(body, bytes) else ValueBody(body),
        )
    )


def test_columns_are_read_without_decoding_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    run = MessageRun.of_messages([received(number, b"%d" % number) for number in range(5)])

    def decode(*arguments: object) -> None:
        raise AssertionError("a message was decoded")

    monkeypatch.setattr(message_run, "decode_message", decode)
    assert run.sequence_numbers() == [0, 1, 2, 3, 4]
    assert run.bodies() == [b"0", b"1", b"2", b"3", b"4"]
    assert [message.enqueued_time_ms for message in run] == [1_000, 1_001, 1_002, 1_003, 1_004]


def test_the_other_fields_come_from_the_whole_message() -> None:
    more = {"x-opt-locked-until": Timestamp(5), "x-opt-message-state": Int(2)}
    (message,) = MessageRun.of_messages([received(7, **more)])
    assert (message.delivery_count, message.time_to_live_ms, message.message_id) == (2, 9, "m")
    assert (message.session_id, message.locked_until_ms, message.state) == ("s", 5, "scheduled")
    assert (message.dead_letter_reason, message.dead_letter_description) == ("r", None)
    assert (message.properties["n"], message.lock_token) == (4, TOKEN)


def test_a_body_of_another_kind_is_found_in_the_message() -> None:
    parts = encode_message(Message(body=DataBody((b"a", b"b"))))
    run = MessageRun.of_messages([received(1, "text"), parts])
    assert run[0].body is None and run[0].message.body == ValueBody("text")
    assert run[1].body == b"ab"


def test_what_is_no_message_has_no_fields_and_takes_nothing_from_those_before_it() -> None:
    run = MessageRun.of_messages([received(1), b"\x00\x53"])
    assert run.sequence_numbers() == [1, -1]
    with pytest.raises(DecodeError):
        _ = run[1].properties


def test_runs_are_cut_and_joined_over_their_bytes() -> None:
    first = MessageRun.of_messages([received(number) for number in range(3)])
    second = MessageRun.of_messages([received(number) for number in range(3, 5)])
    joined = MessageRun.joined([first.part(1, 3), second])
    assert joined.sequence_numbers() == [1, 2, 3, 4]
    assert [message.sequence_number for message in joined[1:3]] == [2, 3]
    assert joined[-1].sequence_number == 4
    with pytest.raises(IndexError):
        joined[4]
    assert len(MessageRun.joined([])) == len(EMPTY) == 0 and EMPTY.spans() == []


def test_delivery_ids_are_ranges_also_over_the_wrap() -> None:
    rows = array("q")
    for delivery_id in (7, 8, 9):
        rows.extend((delivery_id, 0, 0, 0, 0))
    assert [(span.first, span.last) for span in MessageRun(b"", rows).spans()] == [(7, 9)]
    found = spans_of([2**32 - 2, 2**32 - 1, 0, 1, 5, 4, 6])
    assert [(span.first, span.last) for span in found] == [(2**32 - 2, 1), (5, 5), (4, 4), (6, 6)]
    assert spans_of([]) == []


def test_tokens_of_an_answer_go_before_those_in_the_messages() -> None:
    other = UUID(int=1)
    run = MessageRun.of_messages([received(1), received(2)], [other, None])
    assert [message.lock_token for message in run] == [other, None]
    assert run.part(1, 2).token(0) is None


def test_a_token_that_is_no_uuid_is_none() -> None:
    run = MessageRun.of_messages([received(1, token="77")])
    assert (run[0].lock_token, run.token(0)) == (None, None)


def test_a_message_is_decoded_once_whatever_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[memoryview] = []

    def decode(data: memoryview) -> Message:
        decoded.append(data)
        return decode_message(data)

    monkeypatch.setattr(message_run, "decode_message", decode)
    (message,) = MessageRun.of_messages([received(1)])
    assert (message.lock_token, message.lock_token, message.message_id) == (TOKEN, TOKEN, "m")
    assert len(decoded) == 1
