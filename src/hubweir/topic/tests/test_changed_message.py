"""The bytes of a changed copy: what was not changed stays as it was sent."""

import pytest
from hypothesis import given
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
from hubweir.amqp.messaging.sections import HEADER
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Int, Symbol, Timestamp, UByte, ULong
from hubweir.topic.changed_message import write_copy
from hubweir.topic.filtered_message import EncodedMessage
from hubweir.topic.rule_action import MessageChanges
from hubweir.topic.sql_values import TimeSpan

FULL = Message(
    header=Header(durable=True, priority=7, ttl=5_000, delivery_count=3),
    delivery_annotations={Symbol("x-opt-mine"): 1},
    message_annotations={Symbol("x-opt-partition-key"): "k", Symbol("x-opt-other"): Int(2)},
    properties=Properties(
        message_id=ULong(5), user_id=b"u", to="t", subject="s", reply_to="r", correlation_id="c",
        content_type=Symbol("text/plain"), content_encoding=Symbol("gzip"), absolute_expiry_time=Timestamp(9),
        creation_time=Timestamp(8), group_id="g", group_sequence=4, reply_to_group_id="rg",
    ),
    application_properties={"a": Int(1), "b": UByte(2)},
    body=DataBody((b"one", b"two")),
    footer={Symbol("f"): 1},
)  # fmt: skip


def copied(message: Message, changes: MessageChanges) -> Message:
    return decode_message(write_copy(EncodedMessage(encode_message(message)), changes))


def test_a_copy_with_no_more_than_properties_is_otherwise_the_same() -> None:
    found = copied(FULL, MessageChanges({"a": Int(1), "RuleName": "r"}, {}))
    assert found.application_properties == {"a": 1, "RuleName": "r"}
    assert type(found.application_properties["a"]) is Int
    for part in ("header", "delivery_annotations", "message_annotations", "properties", "body", "footer"):
        assert getattr(found, part) == getattr(FULL, part)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("label", "subject"), ("to", "to"), ("replyto", "reply_to"), ("correlationid", "correlation_id"),
        ("messageid", "message_id"), ("sessionid", "group_id"), ("replytosessionid", "reply_to_group_id"),
        ("contenttype", "content_type"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["new", None])
def test_a_system_text_changes_its_field_alone(name: str, field: str, value: str | None) -> None:
    found = copied(FULL, MessageChanges({}, {name: value})).properties
    assert found is not None and FULL.properties is not None
    for other in Properties.FIELDS:
        expected = value if other.name == field else getattr(FULL.properties, other.name)
        assert getattr(found, other.name) == expected
    if name == "contenttype" and value:
        assert type(found.content_type) is Symbol


def test_time_to_live_and_partition_key_change_alone() -> None:
    found = copied(FULL, MessageChanges({}, {"timetolive": TimeSpan(70_009_999), "partitionkey": "new"}))
    assert found.header == Header(durable=True, priority=7, ttl=7_000, delivery_count=3)
    assert found.message_annotations == {Symbol("x-opt-partition-key"): "new", Symbol("x-opt-other"): 2}
    gone = copied(FULL, MessageChanges({}, {"timetolive": None, "partitionkey": None}))
    assert gone.header == Header(durable=True, priority=7, delivery_count=3)
    assert gone.message_annotations == {Symbol("x-opt-other"): 2}


def test_sections_that_are_not_there_are_made() -> None:
    bare = Message(body=ValueBody(None))
    changes = MessageChanges({"RuleName": "r"}, {"timetolive": TimeSpan(10_000), "label": "l", "partitionkey": "k"})
    assert copied(bare, changes) == Message(
        header=Header(ttl=1),
        message_annotations={Symbol("x-opt-partition-key"): "k"},
        properties=Properties(subject="l"),
        application_properties={"RuleName": "r"},
        body=ValueBody(None),
    )


@pytest.mark.parametrize("body", [None, DataBody((b"",)), SequenceBody(([1], [2])), ValueBody({"a": [1.5]})])
def test_every_kind_of_body_stays_byte_for_byte(body) -> None:
    message = Message(application_properties={"a": 1}, body=body)
    encoded = encode_message(message)
    written = write_copy(EncodedMessage(encoded), MessageChanges({"a": 1}, {}))
    assert written == encoded


def test_a_list_that_ends_early_is_written_whole() -> None:
    short = encode(Described(ULong(0x73), ["m", None, "to"])) + encode(Described(ULong(0x75), b"x"))
    found = decode_message(write_copy(EncodedMessage(short), MessageChanges({}, {"sessionid": "s"})))
    assert found.properties == Properties(message_id="m", to="to", group_id="s")
    header = encode(Described(ULong(0x70), [True])) + short
    found = decode_message(write_copy(EncodedMessage(header), MessageChanges({}, {"timetolive": TimeSpan(10_000)})))
    assert found.header == Header(durable=True, ttl=1)
    assert found.properties == Properties(message_id="m", to="to")


def test_sections_in_another_order_are_written_in_that_of_the_standard() -> None:
    parts = [
        encode_message(part)
        for part in (
            Message(body=DataBody((b"one", b"two"))),
            Message(application_properties={"a": 1}),
            Message(properties=Properties(to="t")),
        )
    ]
    written = write_copy(EncodedMessage(b"".join(parts)), MessageChanges({"a": 2}, {}))
    assert written == parts[2] + encode_message(Message(application_properties={"a": 2})) + parts[0]


def test_neither_message_nor_changes_are_touched() -> None:
    encoded = encode_message(FULL)
    seen = EncodedMessage(encoded)
    changes = MessageChanges({"a": 2}, {"label": "x", "partitionkey": None, "timetolive": TimeSpan(10_000)})
    first = write_copy(seen, changes)
    assert write_copy(seen, changes) == first
    assert seen.system_property("label") == "s" and seen.system_property("partitionkey") == "k"


@given(
    st.dictionaries(st.text(max_size=5), st.integers(-9, 9) | st.text(max_size=5) | st.none()),
    st.dictionaries(
        st.sampled_from(["label", "to", "messageid", "sessionid", "partitionkey"]), st.none() | st.text(max_size=5)
    ),
)
def test_what_is_written_is_what_filters_see(properties: dict[str, object], system: dict[str, str | None]) -> None:
    seen = EncodedMessage(write_copy(EncodedMessage(encode_message(FULL)), MessageChanges(properties, system)))
    assert seen.application_properties == properties
    for name, value in system.items():
        assert seen.system_property(name) == value
    assert seen.system_property("replyto") == "r"
    assert seen.list_section(HEADER)[2] == 5_000
