"""forwarded_record.py: the id and the dead-letter source that a forwarded message takes along, and nothing else."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import DataBody, Header, Message, Properties, decode_message, encode_message
from hubweir.amqp.messaging.sections import walk_sections
from hubweir.amqp.types.values import Symbol, Timestamp
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE
from hubweir.queue.changed_properties import record_of
from hubweir.queue.forwarded_record import forwarded_record

SOURCE = "x-opt-deadletter-source"
HEADER = Header(durable=True, ttl=60_000)
ANNOTATIONS: dict[str, Any] = {"x-opt-partition-key": "k", "x-opt-scheduled-enqueue-time": Timestamp(5)}
PROPERTIES, DATA = 0x73, 0x75


def encoded(message_id: object = None, annotations: dict[str, Any] | None = None, **more: Any) -> bytes:
    """A message with every section but properties, which it has when it has an id or more."""
    has_properties = message_id is not None or more
    return encode_message(
        Message(
            header=HEADER,
            delivery_annotations={Symbol("d"): 1},
            message_annotations=None
            if annotations is None
            else {Symbol(key): each for key, each in annotations.items()},
            properties=Properties(message_id=message_id, **more) if has_properties else None,
            application_properties={"a": 1},
            body=DataBody((b"body",)),
            footer={Symbol("f"): 2},
        )
    )


def forwarded(
    message: bytes, message_id: bytes = b"here-1", source: bytes | None = None, *, was_forwarded: bool = True
) -> bytes:
    record = forwarded_record(record_of(message), message_id, source, was_forwarded=was_forwarded)
    assert record == record_of(record[RECORD_HEADER_SIZE:]), "the places of its sections are right"
    return record[RECORD_HEADER_SIZE:]


def sections(message: bytes) -> dict[int, bytes]:
    return {each.code: message[each.start : each.end] for each in walk_sections(memoryview(message))}


@pytest.mark.parametrize("message_id", ["own", 7, UUID(int=7), b"bytes"])
@pytest.mark.parametrize("annotations", [None, ANNOTATIONS])
def test_a_message_with_an_id_of_any_type_stays_as_it_was_sent(message_id: object, annotations: Any) -> None:
    message = encoded(message_id, annotations, subject="s")
    assert forwarded(message) == message


@pytest.mark.parametrize("more", [{}, {"subject": "s", "group_id": "session"}, {"reply_to_group_id": "last"}])
@pytest.mark.parametrize("size", [6, 255, 256, 300])
def test_one_without_takes_along_the_id_that_it_had_and_its_other_properties(more: dict[str, Any], size: int) -> None:
    message, message_id = encoded(None, ANNOTATIONS, **more), b"i" * size
    after = forwarded(message, message_id)
    assert decode_message(after).properties == Properties(message_id="i" * size, **more)
    others = sections(message)
    others.pop(PROPERTIES, None)
    assert {code: part for code, part in sections(after).items() if code != PROPERTIES} == others
    assert [each.code for each in walk_sections(memoryview(after))] == sorted({*others, PROPERTIES})


@pytest.mark.parametrize("before", [None, {}, ANNOTATIONS, {SOURCE: "an earlier one", **ANNOTATIONS}])
@pytest.mark.parametrize("source", ["orders", "o" * 255, "o" * 260])
def test_a_dead_letter_says_where_it_was_dead_lettered_last(before: Any, source: str) -> None:
    message = encoded("own", before)
    after = forwarded(message, source=source.encode())
    assert decode_message(after).message_annotations == {**(before or {}), SOURCE: source}
    assert {**sections(after), 0x72: b""} == {**sections(message), 0x72: b""}


def test_what_it_says_of_an_earlier_source_stays_where_there_is_no_new_one() -> None:
    message = encoded("own", {SOURCE: "an earlier one"})
    assert forwarded(message, source=None) == message


@pytest.mark.parametrize("others", [{}, ANNOTATIONS])
def test_what_its_sender_wrote_as_its_source_goes_when_it_is_forwarded_first(others: dict[str, Any]) -> None:
    message = encoded("own", {SOURCE: "a sender's", **others})
    after = forwarded(message, source=None, was_forwarded=False)
    assert (decode_message(after).message_annotations or {}) == others
    assert {**sections(after), 0x72: b""} == {**sections(message), 0x72: b""}


@pytest.mark.parametrize("annotations", [None, {}, ANNOTATIONS])
def test_one_without_a_source_stays_as_it_was_sent_when_it_is_forwarded_first(annotations: Any) -> None:
    message = encoded("own", annotations)
    assert forwarded(message, was_forwarded=False) == message


def test_a_body_of_many_sections_stays_whole() -> None:
    message = encode_message(Message(body=DataBody((b"one", b"two", b"three"))))
    after = decode_message(forwarded(message, source=b"orders"))
    assert after.body == DataBody((b"one", b"two", b"three"))
    assert after.properties == Properties(message_id="here-1")


@pytest.mark.parametrize("message", [b"no message", bytes((0, 0x53, DATA)), encoded("own")[:-1]])
def test_a_record_that_holds_no_legal_message_stays_as_it_is(message: bytes) -> None:
    record = struct.pack(">8I", RECORD_HEADER_SIZE + len(message), *range(7)) + message
    assert forwarded_record(record, b"here-1", b"orders", was_forwarded=False) == record
