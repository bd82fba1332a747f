"""What rules see of an encoded message: names without case, sections decoded when asked for, damage as a failure."""

import struct
from array import array
from uuid import UUID

import pytest

from hubweir.amqp.messaging import sections as section_of
from hubweir.amqp.messaging.message import DataBody, Header, Message, Properties, ValueBody, encode_message
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Int, Symbol, Timestamp, UInt, ULong
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_ID_NUMBER
from hubweir.queue.changed_properties import record_of
from hubweir.topic import filtered_message
from hubweir.topic.filtered_message import SYSTEM_PROPERTIES, BrokerValues, EncodedMessage, message_at
from hubweir.topic.sql_values import EvaluationFailed, Instant, TimeSpan
from hubweir.topic.tests.given_messages import message

GIVEN = "0123456789abcdef000000000000001a"


def test_application_properties_keep_their_names_and_types() -> None:
    seen = message({"Color": "blue", "n": Int(5)})
    assert seen.application_properties == {"Color": "blue", "n": 5}
    assert type(seen.application_properties["n"]) is Int
    assert seen.user_properties == {"color": "blue", "n": 5}


def test_as_many_properties_are_seen_as_a_sender_may_give() -> None:
    """One value of a peer has 4,096 entries at most, but properties have 64 KiB."""
    many = {f"k{number}": None for number in range(6_000)} | {"Color": "blue"}
    seen = message(many)
    assert seen.application_properties == many
    assert seen.user_properties["color"] == "blue"


@pytest.mark.parametrize("wrong", ["twice", "no text", "cut", "odd", "more"])
def test_a_large_map_that_is_none_is_a_failure(wrong: str) -> None:
    count = 10_000
    content = b"".join(b"\xa1\x05%05d\x40" % number for number in range(count // 2))
    if wrong == "twice":
        content = content[:8] + content[:8] + content[16:]
    elif wrong == "no text":
        content = b"\xa3" + content[1:]
    elif wrong == "cut":
        content, count = content[:-8], count
    elif wrong == "odd":
        content, count = content[:-1], count - 1
    else:
        content += b"\x40"
    value = b"\xd1" + struct.pack(">II", 4 + len(content), count) + content
    with pytest.raises(EvaluationFailed, match="cannot be read"):
        _ = EncodedMessage(b"\x00\x53\x74" + value + b"\x00\x53\x75\xa0\x00").application_properties


def test_of_names_that_differ_in_case_alone_the_first_counts() -> None:
    assert message({"Color": 1, "COLOR": 2, "color": 3}).user_properties == {"color": 1}


def test_only_ascii_letters_are_folded() -> None:
    # The Kelvin sign is no k, and the dotted capital I no i.
    assert message({"\u212a": 1, "\u0130D": 2}).user_properties == {"\u212a": 1, "\u0130d": 2}


@pytest.mark.parametrize(
    ("message_id", "expected"),
    [
        ("a", "a"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (ULong(7), "7"),
        (b"\x01\xff", "01ff"),
        (None, None),
    ],
)
def test_ids_of_every_type_have_a_text(message_id: object, expected: str | None) -> None:
    seen = message(message_id=message_id, correlation_id=message_id)
    assert seen.system_property("messageid") == expected
    assert seen.system_property("correlationid") == expected


def test_each_property_is_the_one_of_its_name() -> None:
    seen = EncodedMessage(
        encode_message(
            Message(
                properties=Properties(
                    message_id="m", user_id=b"u", to="t", subject="s", reply_to="r", correlation_id="c",
                    content_type=Symbol("ct"), content_encoding=Symbol("ce"), group_id="g", group_sequence=UInt(1),
                    reply_to_group_id="rg",
                )
            )
        )
    )  # fmt: skip
    names = ("messageid", "to", "label", "subject", "replyto", "correlationid", "contenttype", "sessionid")
    assert [seen.system_property(name) for name in names] == ["m", "t", "s", "s", "r", "c", "ct", "g"]
    assert seen.system_property("replytosessionid") == "rg"


def test_properties_whose_list_ends_early_are_there_or_null() -> None:
    """As Azure's Python client writes them: fields at the end left out."""
    seen = EncodedMessage(encode(Described(ULong(0x73), ["m", None, "to"])) + encode(Described(ULong(0x75), b"x")))
    assert seen.system_property("to") == "to"
    assert seen.system_property("label") is None and seen.system_property("sessionid") is None


def test_a_message_without_sections_has_no_properties() -> None:
    for encoded in (b"", encode_message(Message(body=ValueBody(None)))):
        seen = EncodedMessage(encoded)
        assert seen.user_properties == {}
        assert all(seen.system_property(name) is None for name in SYSTEM_PROPERTIES - {"deliverycount", "state"})


def test_the_brokers_own_values_are_not_taken_from_the_message() -> None:
    annotations = {Symbol("x-opt-sequence-number"): 9, Symbol("x-opt-enqueued-time"): Timestamp(9)}
    assert message(annotations=annotations).system_property("sequencenumber") is None
    known = BrokerValues(sequence_number=5, enqueued_time_ms=-1)
    seen = message(annotations=annotations, broker=known)
    assert seen.system_property("sequencenumber") == 5
    assert seen.system_property("enqueuedtimeutc") == Instant(-10_000)


@pytest.mark.parametrize(("was_forwarded", "expected"), [(True, "orders"), (False, None)])
def test_a_dead_letter_source_counts_where_a_forward_can_have_written_it(
    was_forwarded: bool, expected: str | None
) -> None:
    seen = message(
        annotations={Symbol("x-opt-deadletter-source"): "orders"}, broker=BrokerValues(was_forwarded=was_forwarded)
    )
    assert seen.system_property("deadlettersource") == expected


def test_annotations_with_string_keys_count() -> None:
    section = encode(Described(ULong(0x72), {"x-opt-partition-key": "k"}))
    assert EncodedMessage(section).system_property("partitionkey") == "k"


def test_annotations_of_another_type_are_null() -> None:
    odd = {Symbol("x-opt-partition-key"): [1], Symbol("x-opt-scheduled-enqueue-time"): "soon"}
    seen = message(annotations=odd)
    assert seen.system_property("partitionkey") is None
    assert seen.system_property("scheduledenqueuetimeutc") is None


@pytest.mark.parametrize("ttl_ms", [0, 5, 2**32 - 1, 2**33])
def test_a_time_to_live_is_the_span_that_the_broker_left_it(ttl_ms: int) -> None:
    sent = encode_message(Message(header=Header(ttl=5_000)))
    assert EncodedMessage(sent, BrokerValues(time_to_live_ms=ttl_ms)).system_property("timetolive") == TimeSpan(
        ttl_ms * 10_000
    )
    assert EncodedMessage(sent).system_property("timetolive") is None


@pytest.mark.parametrize(
    ("properties", "expected"),
    [({}, GIVEN), ({"to": "t"}, GIVEN), ({"message_id": ""}, ""), ({"message_id": "a"}, "a")],
)
def test_a_message_without_an_id_has_the_one_that_it_is_given(properties: dict[str, str], expected: str) -> None:
    seen = message(broker=BrokerValues(id_prefix="0123456789abcdef", id_number=26), **properties)
    assert seen.system_property("messageid") == expected
    assert seen.system_property("correlationid") is None, "no other text is given"


def test_a_given_id_is_written_only_for_a_rule_that_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    monkeypatch.setattr(filtered_message, "given_id", lambda prefix, number: str(written.append(number)))
    rows, data = array("q", bytes(8 * MESSAGE_WIDTH)), record_of(encode_message(Message(body=DataBody((b"body",)))))
    rows[Q_ID_NUMBER] = 26
    seen = message_at(data, rows, 0, "0123456789abcdef")
    assert seen.system_property("sequencenumber") == 0 and written == []
    seen.system_property("messageid")
    assert written == [26]


def test_sections_are_decoded_once_and_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    real = filtered_message.decode

    def counted(buffer, start, end):
        decoded.append(start)
        return real(buffer, start, end)

    monkeypatch.setattr(filtered_message, "decode", counted)
    seen = message({"a": 1}, subject="s", ttl=5, annotations={Symbol("x"): 1})
    assert not decoded
    assert seen.system_property("label") == "s" and seen.system_property("to") is None
    assert decoded == [seen.sections[section_of.PROPERTIES].value]
    assert seen.user_properties and seen.user_properties and seen.application_properties
    assert len(decoded) == 2


def test_a_body_is_never_decoded() -> None:
    """Its content is no AMQP at all."""
    head = encode_message(Message(application_properties={"a": 1}))
    broken = head + bytes((0x00, 0x53, section_of.AMQP_VALUE, 0xC0, 3, 9, 0xEE, 0xEE))
    assert EncodedMessage(broken).user_properties == {"a": 1}


@pytest.mark.parametrize(
    "encoded",
    [
        b"\xff",
        b"\x00\x53\x99\x40",
        encode_message(Message(application_properties={"a": "b"}))[:-1],
        encode(Described(ULong(0x74), {1: 2})),
        encode(Described(ULong(0x74), {Symbol("a"): 2})),
        encode(Described(ULong(0x74), ["a"])),
        b"\x00\x53\x74\xc1\x03\x02\xa1\x05",  # a name that is longer than the map
    ],
    ids=range(7),
)
def test_what_cannot_be_read_is_a_failure(encoded: bytes) -> None:
    for ask in (lambda seen: seen.user_properties, lambda seen: seen.application_properties):
        seen = EncodedMessage(encoded)
        for _ in range(2):
            with pytest.raises(EvaluationFailed, match="the message cannot be read"):
                ask(seen)


def test_damaged_application_properties_leave_the_others_readable() -> None:
    sound = encode_message(Message(properties=Properties(subject="s")))
    seen = EncodedMessage(
        sound + encode(Described(ULong(0x74), {1: 2})) + encode_message(Message(body=DataBody((b"x",))))
    )
    assert seen.system_property("label") == "s"
    with pytest.raises(EvaluationFailed):
        _ = seen.user_properties


def test_a_message_in_a_piece_of_memory_is_read_too() -> None:
    encoded = encode_message(Message(application_properties={"a": 1}, properties=Properties(subject="s")))
    seen = EncodedMessage(memoryview(bytearray(encoded)))
    assert seen.user_properties == {"a": 1} and seen.system_property("subject") == "s"
