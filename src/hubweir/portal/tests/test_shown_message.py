import json

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, Properties, SequenceBody, ValueBody, encode_message
from hubweir.portal.shown_message import BODY_LIMIT_BYTES, PROPERTY_COUNT, body_limit, shown_body, shown_message


@pytest.mark.parametrize(
    ("data", "view", "shown_as", "text"),
    [
        (b'{"b": 1, "a": "\xc3\xa9"}', "auto", "json", '{\n  "b": 1,\n  "a": "é"\n}'),
        (b"42", "auto", "text", "42"),
        (b"42", "json", "json", "42"),
        (b'{"b": 1}', "text", "text", '{"b": 1}'),
        (b"two\nlines\t", "auto", "text", "two\nlines\t"),
        (b"", "auto", "text", ""),
        (b"\xff\x00abc", "auto", "hex", "000000  ff 00 61 62 63                                   ..abc"),
        (b"abc", "hex", "hex", "000000  61 62 63                                         abc"),
        (b"\x1b[31mred", "auto", "hex", "000000  1b 5b 33 31 6d 72 65 64                          .[31mred"),
    ],
)
def test_a_body_is_shown_as_what_it_is(data: bytes, view: str, shown_as: str, text: str) -> None:
    shown = shown_body(data, view)
    assert (shown.view, shown.text, shown.size_bytes, shown.is_cut) == (shown_as, text, len(data), False)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a": 1, "a": 2}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5_000 + b"}",
        b'{"a": "\\ud800"}',
        b'{"a": NaN}',
    ],
)
def test_json_that_could_be_two_things_or_costs_too_much_is_shown_as_text(data: bytes) -> None:
    shown = shown_body(data, "json")
    assert shown.view == "text" and shown.text.encode() == data[:BODY_LIMIT_BYTES]


def test_a_large_body_is_cut_also_in_the_middle_of_a_character() -> None:
    data = "é".encode() * BODY_LIMIT_BYTES
    shown = shown_body(b"x" + data, "auto")
    assert shown.is_cut and shown.view == "text" and len(shown.text.encode()) == BODY_LIMIT_BYTES - 1
    assert shown_body(json.dumps(["x" * BODY_LIMIT_BYTES]).encode(), "json").view == "text"
    assert len(shown_body(b"\0" * 10**6, "auto").text.splitlines()) == 128


def test_every_kind_of_body_and_what_stands_beside_it() -> None:
    properties = Properties(message_id="m-1", subject="tea")
    message = Message(
        properties=properties,
        application_properties={"colour": "red", "n": 7, "raw": b"\1\2"},
        body=DataBody((b"a", b"b")),
    )
    shown = shown_message(encode_message(message))
    assert shown.body.text == "ab" and shown.properties == [("colour", "red"), ("n", "7"), ("raw", "0102")]
    assert ("message-id", "m-1") in shown.system and ("subject", "tea") in shown.system
    assert shown_message(encode_message(Message(body=ValueBody("text")))).body.text == "text"
    assert shown_message(encode_message(Message(body=ValueBody([1, 2])))).body.preview == "[ 1, 2 ]"
    assert shown_message(encode_message(Message(body=SequenceBody(([1],))))).body.preview == "[ [ 1 ] ]"
    assert shown_message(b"\xff\xff").body.view == "hex"


def test_json_that_grows_when_it_is_indented_is_shown_as_it_came() -> None:
    """Numbers deep in lists have 64 blanks each in front of them: 16 KB would become a megabyte."""
    data = b"[" * 30 + b",".join([b"1"] * 7_000) + b"]" * 30
    shown = shown_body(data, "json")
    assert shown.view == "text" and shown.text == data.decode()
    assert shown_body(b"[" + b",".join([b"1"] * 100) + b"]", "json").view == "json", "the control"


def test_a_page_of_many_messages_shows_less_of_each() -> None:
    assert [body_limit(count) for count in (0, 1, 25, 32, 100)] == [BODY_LIMIT_BYTES] * 4 + [5_242]
    assert len(shown_message(encode_message(Message(body=DataBody((b"x" * 9_000,)))), "text", 5_000).body.text) == 5_000


def test_properties_beyond_what_a_page_has_room_for_are_counted() -> None:
    many = {f"p{number}": "x" for number in range(PROPERTY_COUNT + 20)}
    shown = shown_message(encode_message(Message(application_properties=many)))
    assert len(shown.properties) == PROPERTY_COUNT + 1 and shown.properties[-1] == (
        "…",
        "20 more, which are left out here",
    )
    large = {f"p{number}": "x" * 2_000 for number in range(20)}
    shown = shown_message(encode_message(Message(application_properties=large)))
    assert sum(len(name) + len(value) for name, value in shown.properties) < 10_000
    assert shown.properties[-1][0] == "…" and shown.properties[0][1].endswith(" …")
    raw = shown_message(encode_message(Message(application_properties={"raw": b"\1" * 2_000})))
    assert raw.properties == [("raw", "01" * 512 + " …")]
