"""message_output.py: bodies, or documents, in the order in which messages came, and how many there were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import (
    DataBody,
    Header,
    Message,
    Properties,
    SequenceBody,
    ValueBody,
    encode_message,
)
from hubweir.amqp.types.values import Symbol, Timestamp, ULong
from hubweir.cli.message_output import MessageOutput, message_document
from hubweir.client.message_run import MessageRun


def run_of(*messages: Message) -> MessageRun:
    return MessageRun.of_messages([encode_message(each) for each in messages])


def printed(capsysbinary: pytest.CaptureFixture[bytes], runs: Sequence[MessageRun], *, as_json: bool) -> bytes:
    output = MessageOutput(as_json)
    for run in runs:
        output.take(run)
    told = capsysbinary.readouterr()
    assert told.err == b""
    assert output.printed == sum(map(len, runs))
    return told.out


def test_a_body_is_a_line_byte_for_byte(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    bodies = (b"text", b"\xff\x00", b"", "größe".encode())
    runs = [run_of(*(Message(body=DataBody((body,))) for body in bodies)), run_of(Message())]
    assert printed(capsysbinary, runs, as_json=False) == b"text\n\xff\x00\n\ngr\xc3\xb6\xc3\x9fe\n\n"


def test_a_document_is_a_line_whatever_types_its_properties_have(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    properties = {"id": UUID(int=7), "raw": b"\xff", "n": ULong(2**63), "at": Timestamp(5), "yes": True, "none": None}
    run = run_of(Message(application_properties=properties, body=DataBody((b"two\nlines",))))
    [line] = printed(capsysbinary, [run], as_json=True).splitlines()
    document = json.loads(line)
    assert document["body"] == "two\nlines"
    assert document["properties"] == {
        "id": "00000000-0000-0000-0000-000000000007", "raw": "/w==", "n": 2**63, "at": 5, "yes": True, "none": None,
    }  # fmt: skip


def test_a_document_has_what_the_message_has_and_null_for_the_rest() -> None:
    [bare] = run_of(Message())
    document = message_document(bare)
    for given_by_the_service in ("sequence_number", "enqueued_time_ms"):
        del document[given_by_the_service]
    state, deliveries, properties = (document.pop(name) for name in ("state", "delivery_count", "properties"))
    assert (state, deliveries, properties, set(document.values())) == ("active", 0, {}, {None})
    annotations = {Symbol("x-opt-sequence-number"): 9, Symbol("x-opt-enqueued-time"): Timestamp(1_000)}
    full = Message(
        header=Header(ttl=2_000, delivery_count=3),
        properties=Properties(message_id="m", group_id="s", subject="l", correlation_id="c", reply_to="r"),
        message_annotations=annotations,
        body=DataBody((b"x",)),
    )
    document = message_document(run_of(full)[0])
    assert (document["sequence_number"], document["enqueued_time_ms"], document["delivery_count"]) == (9, 1_000, 3)
    named = ("message_id", "session_id", "subject", "correlation_id", "reply_to", "time_to_live_ms", "body")
    assert [document[name] for name in named] == ["m", "s", "l", "c", "r", 2_000, "x"]
    assert "body_base64" not in document


def test_a_body_that_is_no_text_stands_in_base64() -> None:
    document = message_document(run_of(Message(body=DataBody((b"\xff\xfe",))))[0])
    assert (document["body"], document["body_base64"]) == (None, "//4=")


VALUES = [
    (ValueBody("größe"), "größe".encode(), "größe"),
    (ValueBody(b"\xff"), b"\xff", "/w=="),
    (ValueBody({Symbol("a"): [1, None]}), b'{"a": [1, null]}', {"a": [1, None]}),
    (ValueBody(0), b"0", 0),
    (SequenceBody(([1, "x"], [])), b'[[1, "x"], []]', [[1, "x"], []]),
]


@pytest.mark.parametrize(("body", "line", "value"), VALUES)
def test_a_body_of_values_is_printed_too(
    capsysbinary: pytest.CaptureFixture[bytes], body: ValueBody | SequenceBody, line: bytes, value: object
) -> None:
    """Other clients send such; a message that is printed as nothing would be gone when it is completed."""
    run = run_of(Message(body=body))
    assert printed(capsysbinary, [run], as_json=False) == line + b"\n"
    document = json.loads(printed(capsysbinary, [run], as_json=True))
    assert (document["body"], document["body_value"]) == (None, value)


def test_a_value_that_is_null_is_no_body(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    run = run_of(Message(body=ValueBody(None)))
    assert printed(capsysbinary, [run], as_json=False) == b"\n"
    assert "body_value" not in json.loads(printed(capsysbinary, [run], as_json=True))


def test_the_end_tells_how_many_there_were_beside_what_was_printed(capsys: pytest.CaptureFixture[str]) -> None:
    MessageOutput(as_json=False).end()
    assert capsys.readouterr() == ("", "0 messages\n")
