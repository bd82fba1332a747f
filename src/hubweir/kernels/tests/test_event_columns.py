"""Delivered events become columns: what each column holds, where a call stops, what it says of gaps."""

from __future__ import annotations

import struct
from array import array
from types import SimpleNamespace

import pytest

from hubweir.kernels import columns_contract as names
from hubweir.kernels import twins
from hubweir.kernels.columns_contract import ALL_COLUMNS, COLUMNS_MALFORMED, COLUMNS_OK, COLUMNS_UNTIL
from hubweir.kernels.contract import RunCursor, SendRoom, TransferForm
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests import rich_bytes as rich
from hubweir.kernels.tests.rich_bytes import column_entries, column_texts, column_times


def annotated(number: int, **others: bytes) -> bytes:
    service = {
        "x-opt-sequence-number": struct.pack(">Bq", 0x81, number),
        "x-opt-offset": legal.string(str(100 * number)),
        "x-opt-enqueued-time": struct.pack(">Bq", 0x83, legal.TIME + number),
    }
    return legal.annotations(service | {name.replace("_", "-"): value for name, value in others.items()})


def delivered(*messages: bytes) -> tuple[bytes, array[int]]:
    """Messages behind one another, and their delivery rows."""
    rows, data = array("q"), b"front"
    for index, message in enumerate(messages):
        rows += array("q", [index, len(data), len(message), 1, 0])
        data += message
    return data, rows


def numbers_of(columns: list[bytearray]) -> list[int]:
    return array("q", bytes(columns[names.SEQUENCE_NUMBERS])).tolist()


def test_every_part_of_an_event_finds_its_column(kernels: SimpleNamespace) -> None:
    message = b"".join([
        annotated(7, x_opt_partition_key=legal.string("key"), x_opt_publisher=legal.string("who"), mine=b"\x54\x05"),
        legal.section(0x73, legal.compound(0xC0, [legal.string("id"), b"\x40", legal.string("to"), b"\x40"])),
        legal.section(0x74, legal.compound(0xC1, [legal.string("s"), legal.string("té"), legal.string("b"), b"\x41"])),
        legal.data_section(b"body"),
    ])  # fmt: skip
    data, rows = delivered(message)
    columns = rich.empty_columns()
    answer = kernels.event_columns(data, rows, 0, 1, 7, -1, ALL_COLUMNS, 0, columns)
    assert answer == (1, 7, 7, -1, COLUMNS_OK)
    assert numbers_of(columns) == [7]
    assert column_texts(columns, names.OFFSET_OFFSETS) == [b"700"]
    assert column_times(columns) == [(legal.TIME + 7) * 1000]
    assert column_texts(columns, names.BODY_OFFSETS) == [b"body"]
    assert column_texts(columns, names.PARTITION_KEY_OFFSETS) == [b"key"]
    assert column_texts(columns, names.PUBLISHER_OFFSETS) == [b"who"]
    assert column_entries(columns, names.PROPERTIES_OFFSETS) == {"s": "té", "b": "true"}
    assert column_entries(columns, names.SYSTEM_OFFSETS) == {"mine": "5", "message-id": "id", "to": "to"}


def test_calls_one_after_the_other_make_the_same_columns_as_one(kernels: SimpleNamespace) -> None:
    keys = [legal.string("k" * (number % 3)) for number in range(20)]
    messages = [
        annotated(number, x_opt_partition_key=key) + legal.data_section(b"x" * number)
        for number, key in enumerate(keys)
    ]
    data, rows = delivered(*messages)
    whole, pieces = rich.empty_columns(), rich.empty_columns()
    assert kernels.event_columns(data, rows, 0, 20, 0, -1, ALL_COLUMNS, 0, whole)[0] == 20
    for first in range(0, 20, 3):
        last = min(first + 3, 20)
        answer = kernels.event_columns(data, rows, first, last, first, -1, ALL_COLUMNS, first, pieces)
        assert answer == (last, first, last - 1, -1, COLUMNS_OK)
    assert pieces == whole
    valid = [whole[names.PARTITION_KEY_VALIDITY][row // 8] >> row % 8 & 1 for row in range(20)]
    assert valid == [int(row % 3 > 0) for row in range(20)]


@pytest.mark.parametrize("mask", [0, 1, 1 << names.COLUMN_SEQUENCE_NUMBER, 1 << names.COLUMN_PROPERTIES, 0b10001])
def test_columns_that_are_not_asked_for_stay_empty(kernels: SimpleNamespace, mask: int) -> None:
    data, rows = delivered(annotated(1) + legal.data_section(b"x"))
    every, asked = rich.empty_columns(), rich.empty_columns()
    kernels.event_columns(data, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, every)
    assert kernels.event_columns(data, rows, 0, 1, -1, -1, mask, 0, asked)[0] == 1
    bounds = [0, 2, 4, 5, 6, 9, 12, 17, 22]
    for column in range(8):
        part = slice(bounds[column], bounds[column + 1])
        assert asked[part] == (every[part] if mask >> column & 1 else [b""] * (part.stop - part.start))


@pytest.mark.parametrize(
    ("found", "expected", "gap"),
    [
        ([5, 6, 7], 5, -1),
        ([5, 6, 7], -1, -1),
        ([5, 6, 7], 4, 0),
        ([5, 6, 7], 6, 0),
        ([5, 7, 9], 5, 1),
        ([5, 6, 6], 5, 2),
        ([5, 6, 4], -1, 2),
    ],
)
def test_the_first_gap_is_told_and_gone_over(
    kernels: SimpleNamespace, found: list[int], expected: int, gap: int
) -> None:
    data, rows = delivered(*(annotated(number) for number in found))
    columns = rich.empty_columns()
    answer = kernels.event_columns(data, rows, 0, 3, expected, -1, ALL_COLUMNS, 0, columns)
    assert answer == (3, found[0], found[-1], gap, COLUMNS_OK)
    assert numbers_of(columns) == found


def test_a_gap_row_counts_from_the_start_of_the_table(kernels: SimpleNamespace) -> None:
    data, rows = delivered(*(annotated(number) for number in (1, 2, 3, 9)))
    answer = kernels.event_columns(data, rows, 2, 4, 3, -1, ALL_COLUMNS, 0, rich.empty_columns())
    assert answer == (4, 3, 9, 3, COLUMNS_OK)


@pytest.mark.parametrize(("until", "taken"), [(0, 0), (5, 0), (6, 1), (7, 2), (8, 2), (9, 3), (10, 3)])
def test_it_stops_before_the_end_of_the_range(kernels: SimpleNamespace, until: int, taken: int) -> None:
    data, rows = delivered(*(annotated(number) for number in (5, 6, 8)))
    row, first, last, _, status = kernels.event_columns(
        data, rows, 0, 3, -1, until, ALL_COLUMNS, 0, rich.empty_columns()
    )
    assert row == taken
    assert (first, last) == ((5, (5, 6, 8)[taken - 1]) if taken else (-1, -1))
    assert status == (COLUMNS_OK if taken == 3 else COLUMNS_UNTIL)


NO_EVENTS = [
    b"no message",
    b"",
    legal.data_section(b"without annotations"),
    legal.annotations({"x-opt-sequence-number": struct.pack(">Bq", 0x81, 1)}),
    annotated(1, **{"x_opt_enqueued_time": struct.pack(">Bq", 0x83, 2**62)}),
    legal.annotations({
        "x-opt-sequence-number": legal.string("1"), "x-opt-offset": legal.string("1"),
        "x-opt-enqueued-time": struct.pack(">Bq", 0x83, 1),
    }),
    legal.annotations({
        "x-opt-sequence-number": b"\x55\x01", "x-opt-offset": b"\x55\x01",
        "x-opt-enqueued-time": struct.pack(">Bq", 0x83, 1),
    }),
]  # fmt: skip


@pytest.mark.parametrize("message", NO_EVENTS)
def test_what_is_no_event_of_the_service_ends_the_call(kernels: SimpleNamespace, message: bytes) -> None:
    data, rows = delivered(annotated(1), message, annotated(3))
    columns = rich.empty_columns()
    answer = kernels.event_columns(data, rows, 0, 3, -1, -1, ALL_COLUMNS, 0, columns)
    assert answer == (1, 1, 1, -1, COLUMNS_MALFORMED)
    assert numbers_of(columns) == [1]


def test_a_batch_envelope_is_no_delivered_event(kernels: SimpleNamespace) -> None:
    data, rows = delivered(annotated(1))
    rows[4] = 0x80013700
    answer = kernels.event_columns(data, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, rich.empty_columns())
    assert answer == (0, -1, -1, -1, COLUMNS_MALFORMED)


def test_properties_are_given_up_to_where_they_break_off(kernels: SimpleNamespace) -> None:
    pairs = legal.string("a") + b"\x41" + legal.string("b") + b"\x99"
    broken = legal.section(0x74, b"\xc1" + bytes([len(pairs) + 1, 4]) + pairs)
    fields = legal.section(0x73, b"\xc0\x04\x03" + legal.string("i"))
    data, rows = delivered(annotated(1) + fields + broken)
    columns = rich.empty_columns()
    assert kernels.event_columns(data, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, columns)[0] == 1
    assert column_entries(columns, names.PROPERTIES_OFFSETS) == {"a": "true"}
    assert column_entries(columns, names.SYSTEM_OFFSETS) == {"message-id": "i"}


def test_every_cut_and_every_flipped_bit_is_answered(kernels: SimpleNamespace) -> None:
    application = legal.section(0x74, legal.compound(0xC1, [legal.string("k"), legal.compound(0xC0, [b"\x41"])]))
    message = annotated(1, mine=b"\x40") + application + legal.section(0x77, legal.compound(0xC0, [b"\x54\x05"]))
    rows = legal.delivery_row(message, 0, 0)
    for end in range(len(message)):
        rows[2] = end
        assert kernels.event_columns(message, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, rich.empty_columns())[0] <= 1
    rows[2] = len(message)
    for place in range(8 * len(message)):
        flipped = bytearray(message)
        flipped[place // 8] ^= 1 << place % 8
        answer = kernels.event_columns(flipped, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, rich.empty_columns())
        assert answer[-1] in (COLUMNS_OK, COLUMNS_MALFORMED)


def test_what_deliver_writes_is_what_columns_hold(kernels: SimpleNamespace) -> None:
    records = bytearray()
    for size in range(30):
        message = legal.data_section(bytes(size))
        twins.ingest(message, legal.delivery_row(message, 0, 0), 0, 1, 0, None, records, 10**6)
    run = legal.stored_batch(bytes(records), 30, checked=False, name=b"who", flags=4)
    frames, table, rows = bytearray(), legal.table(30, 16), legal.table(30, 5)
    twins.deliver(run, RunCursor(), TransferForm(0, 0, 65536, True), 0, SendRoom(99, 99, 10**6), frames)
    count, _, _ = twins.scan_frames(frames, 0, len(frames), 65536, table)
    assert twins.collect_deliveries(table, 0, count, rows) == 30
    columns = rich.empty_columns()
    answer = kernels.event_columns(frames, rows, 0, 30, 7, -1, ALL_COLUMNS, 0, columns)
    assert answer == (30, 7, 36, -1, COLUMNS_OK)
    assert column_texts(columns, names.BODY_OFFSETS) == [bytes(size) for size in range(30)]
    assert (
        column_texts(columns, names.PUBLISHER_OFFSETS)
        == column_texts(columns, names.PARTITION_KEY_OFFSETS)
        == [b"who"] * 30
    )
