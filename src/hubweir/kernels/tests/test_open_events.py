"""A client gets the service's annotations as integers and where the sections of each event are."""

from __future__ import annotations

from array import array
from types import SimpleNamespace

import pytest

from hubweir.kernels.contract import BATCH_FORMAT, E_BODY, E_BODY_LENGTH, EVENT_WIDTH
from hubweir.kernels.tests.legal_bytes import annotations, data_section, delivery_row, section, string, table

SERVICE = {
    "x-opt-sequence-number": b"\x81" + (2**40).to_bytes(8, "big"),
    "x-opt-offset": string("123456"),
    "x-opt-enqueued-time": b"\x83" + (-5).to_bytes(8, "big", signed=True),
    "x-opt-partition-key": string("pk"),
}


def open_one(kernels: SimpleNamespace, message: bytes) -> list[int]:
    rows = table(1, EVENT_WIDTH)
    assert kernels.open_events(message, delivery_row(message, 0, 0), 0, 1, rows) == 1
    return list(rows)


def test_all_columns_are_filled(kernels: SimpleNamespace) -> None:
    parts = [annotations(SERVICE), section(0x73, b"\x45"), section(0x74, b"\xc1\x01\x00"), data_section(b"body")]
    message = b"".join(parts)
    row = open_one(kernels, message)
    key = message.index(string("pk")) + 2
    properties = len(parts[0])
    assert row == [2**40, 123456, -5, key, 2, properties, properties + 4, len(message) - 4, 4]


def test_what_is_absent_or_of_another_type_is_minus_one(kernels: SimpleNamespace) -> None:
    assert open_one(kernels, b"") == [-1] * EVENT_WIDTH
    wrong = {
        "x-opt-sequence-number": string("7"), "x-opt-offset": b"\x81" + bytes(8), "x-opt-enqueued-time": b"\x55\x01",
        "x-opt-partition-key": b"\xa3\x01k",
    }  # fmt: skip
    assert open_one(kernels, annotations(wrong)) == [-1] * EVENT_WIDTH


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("9" * 18, 10**18 - 1), ("9" * 19, -1), ("", -1), ("-1", -1)])
def test_offsets_are_read_as_decimal_digits(kernels: SimpleNamespace, text: str, number: int) -> None:
    assert open_one(kernels, annotations({"x-opt-offset": string(text)}))[1] == number


def test_small_sequence_numbers_are_signed(kernels: SimpleNamespace) -> None:
    assert open_one(kernels, annotations({"x-opt-sequence-number": b"\x55\xff"}))[0] == -1
    assert open_one(kernels, annotations({"x-opt-sequence-number": b"\x55\x7f"}))[0] == 127


def test_a_body_that_is_not_one_data_section_shows_only_its_start(kernels: SimpleNamespace) -> None:
    front = annotations({})
    for body in (data_section(b"a") * 2, section(0x77, b"\x43"), section(0x76, b"\x45")):
        row = open_one(kernels, front + body)
        assert (row[E_BODY], row[E_BODY_LENGTH]) == (len(front), -1)


def test_it_stops_before_what_is_no_event_and_at_a_full_table(kernels: SimpleNamespace) -> None:
    body = data_section(b"x")
    data = body * 3
    rows = array("q")
    for index in range(3):
        rows += array("q", [index, index * len(body), len(body), 0, 0])
    assert kernels.open_events(data, rows, 0, 3, table(5, EVENT_WIDTH)) == 3
    assert kernels.open_events(data, rows, 1, 3, table(1, EVENT_WIDTH)) == 1
    rows[9] = BATCH_FORMAT
    assert kernels.open_events(data, rows, 0, 3, table(5, EVENT_WIDTH)) == 1
    rows[9], rows[7] = 0, len(body) - 1
    assert kernels.open_events(data, rows, 0, 3, table(5, EVENT_WIDTH)) == 1
