"""Whole messages, built and opened."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Described, Int, Symbol, Timestamp, UInt, ULong
from hubweir.errors import DecodeError, EncodeError

FULL = Message(
    header=Header(durable=True, priority=7, ttl=60_000, first_acquirer=True, delivery_count=2),
    delivery_annotations={Symbol("d"): 1},
    message_annotations={Symbol("x-opt-partition-key"): "pk1", Symbol("when"): Timestamp(5)},
    properties=Properties(
        message_id=UUID(int=7),
        user_id=b"user",
        to="to",
        subject="subject",
        reply_to="reply",
        correlation_id=ULong(9),
        content_type=Symbol("text/plain"),
        content_encoding=Symbol("gzip"),
        absolute_expiry_time=Timestamp(1),
        creation_time=Timestamp(2),
        group_id="group",
        group_sequence=3,
        reply_to_group_id="reply-group",
    ),
    application_properties={"k": "v", "n": Int(5), "none": None},
    body=DataBody((b"one", b"", b"two" * 100)),
    footer={Symbol("f"): b"x"},
)
MESSAGES = [
    FULL,
    Message(),
    Message(body=DataBody((b"",))),
    Message(body=ValueBody(None)),
    Message(body=ValueBody({"status": Int(200)})),
    Message(body=SequenceBody(([1, 2], []))),
    Message(properties=Properties(), body=ValueBody("text")),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_read_back(message: Message) -> None:
    data = encode_message(message)
    assert decode_message(data) == message
    assert decode_message(memoryview(b"\xff" + data + b"\xff"), 1, len(data) + 1) == message


@pytest.mark.parametrize("message", MESSAGES)
def test_a_truncated_message_raises_nothing_but_decode_errors(message: Message) -> None:
    data = encode_message(message)
    whole = 0
    for length in range(len(data)):
        try:
            decode_message(data[:length])
        except DecodeError:
            continue
        whole += 1
    # Only the ends of sections are messages too.
    assert whole <= 9


def test_header_and_properties_are_written_with_all_their_fields() -> None:
    assert encode_message(Message(header=Header(durable=True))).hex() == "005370c00705415004404243"
    assert encode_message(Message(properties=Properties(to="x"))).hex() == "005373c0100d4040a10178" + "40" * 10


def test_an_answer_carries_the_request_id_with_its_type() -> None:
    for request_id in (UUID(int=1), "1", ULong(1), b"1", UInt(1)):
        request = decode_message(encode_message(Message(properties=Properties(message_id=request_id))))
        assert request.properties is not None
        answer = encode_message(Message(properties=Properties(correlation_id=request.properties.message_id)))
        assert encode(request_id) in answer
        opened = decode_message(answer).properties
        assert opened is not None and type(opened.correlation_id) is type(request_id)


def test_delivery_annotations_behind_the_footer_are_read() -> None:
    parts = [Message(body=DataBody((b"x",))), Message(footer={}), Message(delivery_annotations={Symbol("d"): 1})]
    message = decode_message(b"".join(map(encode_message, parts)))
    assert message == Message(body=DataBody((b"x",)), footer={}, delivery_annotations={Symbol("d"): 1})


def test_an_array_of_strings_in_a_value_body_stays_an_array() -> None:
    body = ValueBody({"partition_ids": Array(AmqpType.STRING, ("0", "1"))})
    assert decode_message(encode_message(Message(body=body))).body == body


@pytest.mark.parametrize(
    "section, complaint",
    [
        (Described(ULong(0x72), {"text": 1}), "message_annotations of a message is not a map with symbol"),
        (Described(ULong(0x74), {Symbol("s"): 1}), "application_properties of a message is not a map with string"),
        (Described(ULong(0x73), [1.5]), "amqp:properties:list field message_id holds a double"),
        (Described(ULong(0x70), ["yes"]), "amqp:header:list field durable holds a string"),
    ],
)
def test_a_section_with_the_wrong_content_is_refused_by_name(section: object, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        decode_message(encode(section))


def test_a_map_that_cannot_be_encoded_is_refused_by_name() -> None:
    with pytest.raises(EncodeError, match="application_properties of a message"):
        encode_message(Message(application_properties={"x": object()}))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_changed_bytes_raise_nothing_but_decode_errors(data: st.DataObject) -> None:
    changed = bytearray(encode_message(FULL))
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(decode_message(changed), Message)
    except DecodeError:
        return


def test_the_azure_client_reads_our_message() -> None:
    azure: Any = pytest.importorskip("azure.eventhub._pyamqp._decode")
    theirs = azure.decode_payload(memoryview(encode_message(FULL)))
    assert list(theirs.header) == [True, 7, 60_000, True, 2]
    assert theirs.message_annotations == {b"x-opt-partition-key": b"pk1", b"when": 5}
    assert theirs.delivery_annotations == {b"d": 1}
    assert theirs.application_properties == {b"k": b"v", b"n": 5, b"none": None}
    assert theirs.data == [b"one", b"", b"two" * 100]
    assert theirs.properties.message_id == UUID(int=7)
    assert theirs.properties.reply_to_group_id == b"reply-group"
    assert theirs.footer == {b"f": b"x"}


def test_we_read_the_azure_clients_message() -> None:
    pytest.importorskip("azure.eventhub")
    from azure.eventhub._pyamqp import message as theirs
    from azure.eventhub._pyamqp._encode import encode_payload

    message = theirs.Message(
        header=theirs.Header(durable=True),
        delivery_annotations={"d": 1},
        message_annotations={"x-opt-partition-key": "pk1"},
        properties=theirs.Properties(message_id="7", group_sequence=3),
        application_properties={"k": "v"},
        data=[b"one", b"two"],
        footer={"f": True},
    )
    opened = decode_message(encode_payload(bytearray(), message))
    assert opened.header is not None and opened.header.durable
    assert opened.delivery_annotations == {"d": 1}
    assert opened.message_annotations == {"x-opt-partition-key": "pk1"}
    assert opened.properties == Properties(message_id="7", group_sequence=3)
    assert opened.application_properties == {"k": "v"}
    assert opened.body == DataBody((b"one", b"two"))
    assert opened.footer == {"f": True}


@pytest.mark.parametrize("message", MESSAGES[1:])
def test_proton_reads_our_message(message: Message) -> None:
    proton: Any = pytest.importorskip("proton")
    theirs = proton.Message()
    theirs.decode(encode_message(message))
    if isinstance(message.body, ValueBody):
        assert theirs.body == message.body.value


def test_we_read_protons_message() -> None:
    proton: Any = pytest.importorskip("proton")
    theirs = proton.Message(body={"a": [1, "two", None]}, id="7", subject="s", properties={"k": 1}, durable=True)
    opened = decode_message(theirs.encode())
    assert opened.body == ValueBody({"a": [1, "two", None]})
    assert opened.properties is not None and opened.properties.message_id == "7"
    assert opened.application_properties == {"k": 1}
    assert opened.header is not None and opened.header.durable
