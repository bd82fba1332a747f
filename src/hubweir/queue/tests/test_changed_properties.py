"""Application properties that were changed go into a message beside its own, and into no other section."""

from __future__ import annotations

from array import array

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
from hubweir.amqp.types.values import Symbol
from hubweir.kernels import ingest
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE
from hubweir.queue.changed_properties import (
    changed_record,
    dead_letter_properties,
    is_property_map,
    merged_properties,
)

RED = b"\xc1\x0d\x02\xa1\x06colour\xa1\x03red"
RED = b"\xc1" + bytes((len(RED) - 2,)) + RED[2:]


def record_of(message: bytes) -> bytes:
    out = bytearray()
    assert ingest(message, array("q", [0, 0, len(message), 0, 0]), 0, 1, 0, None, out, 1 << 20)[3] == 0
    return bytes(out)


@pytest.mark.parametrize("own", [None, {"size": 5}, {"colour": "blue", "size": 5}])
@pytest.mark.parametrize("body", [None, DataBody([b"a", b"b"]), ValueBody("x")])
@pytest.mark.parametrize("is_full", [False, True])
def test_a_changed_message_is_as_it_was_but_for_its_application_properties(
    own: dict[str, object] | None, body: object, is_full: bool
) -> None:
    message = Message(
        header=Header(ttl=5) if is_full else None,
        message_annotations={Symbol("x-opt-mine"): 1} if is_full else None,
        properties=Properties(message_id="m", group_id="g") if is_full else None,
        application_properties=own,
        body=body,  # type: ignore[arg-type]
        footer={Symbol("f"): 1} if is_full else None,
    )
    changed = changed_record(record_of(encode_message(message)), RED)
    encoded = changed[RECORD_HEADER_SIZE:]
    assert changed == record_of(encoded), "the places in a record's header are those that ingest finds"
    after = decode_message(encoded)
    assert after.application_properties == (own or {}) | {"colour": "red"}
    before = decode_message(encode_message(message))
    for name in ("header", "message_annotations", "properties", "body", "footer"):
        assert getattr(after, name) == getattr(before, name)


def test_a_message_whose_own_properties_are_no_map_of_strings_stays_as_it_was() -> None:
    odd = b"\x00\x53\x74\xc1\x05\x02\x54\x01\x54\x02" + b"\x00\x53\x75\xa0\x01a"
    assert changed_record(record_of(odd), RED) == record_of(odd)


def test_later_changes_go_before_earlier_ones() -> None:
    blue = RED.replace(b"red", b"sky")
    assert merged_properties(RED, b"") == merged_properties(b"", RED) == RED
    merged = merged_properties(merged_properties(RED, b"\xc1\x06\x02\xa1\x01n\x54\x01"), blue)
    message = decode_message(changed_record(record_of(b"\x00\x53\x75\xa0\x01a"), merged)[RECORD_HEADER_SIZE:])
    assert message.application_properties == {"colour": "sky", "n": 1}


def test_reasons_of_any_length_are_strings_and_those_that_are_none_are_absent() -> None:
    assert dead_letter_properties(None, None) == b""
    said = dead_letter_properties("r" * 4_096, None)
    message = decode_message(changed_record(record_of(b"\x00\x53\x75\xa0\x01a"), said)[RECORD_HEADER_SIZE:])
    assert message.application_properties == {"DeadLetterReason": "r" * 4_096}


def test_what_is_a_map_of_properties_is_told() -> None:
    assert is_property_map(RED) and is_property_map(b"\xc1\x01\x00")
    for wrong in (b"", b"\x40", b"\x45", RED[:-1], RED + b"\x40", b"\xc1\x04\x02\xa3\x00\x40"):
        assert not is_property_map(wrong), wrong
