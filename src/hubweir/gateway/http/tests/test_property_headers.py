"""User properties of a message as headers, both ways, and dates."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from hubweir.amqp.types.values import Char, Symbol, Timestamp, UInt, ULong
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.property_headers import date_ms, date_text, header_of, property_headers, property_of

DATE, DATE_MS = "Mon, 23 Nov 2026 02:00:00 GMT", 1_795_399_200_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"7"', "7"),
        ('"true"', "true"),
        (f'"{DATE}"', DATE),
        ('"a \\"b\\""', 'a "b"'),
        ('"not closed', '"not closed'),
        ("7", 7),
        ("-7", -7),
        ("7.5", 7.5),
        ("1e3", 1000.0),
        ("true", True),
        ("false", False),
        ("True", "True"),
        (DATE, Timestamp(DATE_MS)),
        ("Strong Winds", "Strong Winds"),
        ("007", "007"),
        ("+7", "+7"),
        ("0x7", "0x7"),
        ("NaN", "NaN"),
        ("", ""),
    ],
)
def test_a_header_says_a_value_of_the_type_that_it_is_written_as(text: str, value: object) -> None:
    found = property_of(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["9223372036854775808", "1e999"])
def test_a_number_that_fits_nowhere_is_refused(text: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        property_of(text)
    assert refusal.value.condition is ARGUMENT_ERROR


@pytest.mark.parametrize(
    "value", ["text", 'a "b" \u00fc\u20ac', "7", "", 7, -7, 7.5, 1e300, True, False, Timestamp(DATE_MS)]
)
def test_what_is_received_can_be_sent_again(value: object) -> None:
    found = property_of(header_of(value))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (UInt(5), "5"),
        (ULong(2**64 - 1), str(2**64 - 1)),
        (Symbol("s"), '"s"'),
        (Char("c"), '"c"'),
        (b"\x00\xff", '"\\u0000\\u00ff"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (float("nan"), '"nan"'),
        (Timestamp(2**62), str(2**62)),
        ([1], '"[1]"'),
    ],
)
def test_values_of_other_types_go_out_as_well_as_a_header_can(value: object, text: str) -> None:
    assert header_of(value) == text


def test_no_property_breaks_out_of_its_header() -> None:
    wicked = "".join(map(chr, range(256))) + "\r\nset-cookie: a=b\u2028"
    text = header_of(wicked)
    assert text.isascii() and text.isprintable()
    assert json.loads(text) == wicked


def test_properties_that_no_header_can_be_are_left_out() -> None:
    properties: dict[str, object] = {
        "Good": 1, "good": 2, "with space": 1, "colon:": 1, "\u00fc": 1, "": 1, "new\r\nline": 1, "Content-Length": 1,
        "transfer-encoding": 1, "Connection": 1, "Location": 1, "Set-Cookie": 1, "BrokerProperties": 1, "Date": 1,
        "taken": 1, "also.good": "x",
    }  # fmt: skip
    assert property_headers(properties, ("taken",)) == {"Good": "1", "also.good": '"x"'}


def test_dates_are_those_of_http() -> None:
    assert date_text(DATE_MS + 999) == DATE
    assert (
        date_text(-62_135_596_800_000) == "Mon, 01 Jan 0001 00:00:00 GMT"
        and date_ms("Mon, 01 Jan 0001 00:00:00 GMT") is not None
    )
    assert date_ms(DATE) == DATE_MS
    assert (date_text(0), date_text(2**62), date_text(-(2**62))) == ("Thu, 01 Jan 1970 00:00:00 GMT", None, None)
    for other in ("2026-11-23T02:00:00Z", "Mon, 23 Nov 2026 02:00:00 +0100", "Mon, 31 Feb 2026 02:00:00 GMT", ""):
        assert date_ms(other) is None
