"""Avro records written by fastavro, as any producer of such files may write them, become columns."""

from __future__ import annotations

import struct
from array import array
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubweir.kernels import columns_contract as names
from hubweir.kernels.capture.read_capture import parse_time
from hubweir.kernels.columns_contract import ALL_COLUMNS, COLUMNS_MALFORMED, COLUMNS_OK
from hubweir.kernels.tests import rich_bytes as rich
from hubweir.kernels.tests.rich_bytes import column_entries, column_texts, column_times
from hubweir.kernels.tests.test_capture_block import SCHEMA

ALWAYS = (-(2**62), 2**62)
TIME = "11/14/2023 10:13:20 PM"


def record(**changed: Any) -> dict[str, Any]:
    found = {
        "SequenceNumber": 7, "Offset": "1000", "EnqueuedTimeUtc": TIME, "SystemProperties": {}, "Properties": {},
        "Body": b"body",
    }  # fmt: skip
    return found | changed


def block_of(*records: dict[str, Any]) -> bytes:
    out = BytesIO()
    for each in records:
        fastavro.schemaless_writer(out, SCHEMA, each)
    return out.getvalue()


def read(kernels: SimpleNamespace, *records: dict[str, Any], span: tuple[int, int] = ALWAYS) -> list[bytearray]:
    block, columns = block_of(*records), rich.empty_columns()
    answer = kernels.read_capture_block(block, 0, len(block), len(records), *span, ALL_COLUMNS, 0, columns)
    assert answer[:2] == (len(block), len(records))
    assert answer[-1] == COLUMNS_OK
    return columns


def test_every_part_of_a_record_finds_its_column(kernels: SimpleNamespace) -> None:
    system = {
        "x-opt-sequence-number": 7, "x-opt-offset": "1000", "x-opt-enqueued-time": "2023-11-14T22:13:20.123Z",
        "x-opt-partition-key": "key", "x-opt-publisher": "who", "mine": 5, "message-id": "id",
    }  # fmt: skip
    columns = read(kernels, record(SystemProperties=system, Properties={"d": 0.5, "b": b"\x00\xff", "s": "té"}))
    assert column_texts(columns, names.BODY_OFFSETS) == [b"body"]
    assert column_texts(columns, names.OFFSET_OFFSETS) == [b"1000"]
    assert column_texts(columns, names.PARTITION_KEY_OFFSETS) == [b"key"]
    assert column_texts(columns, names.PUBLISHER_OFFSETS) == [b"who"]
    assert columns[names.PUBLISHER_VALIDITY] == b"\x01"
    assert array("q", bytes(columns[names.SEQUENCE_NUMBERS])).tolist() == [7]
    assert column_times(columns) == [1_700_000_000_123_000]
    assert column_entries(columns, names.SYSTEM_OFFSETS) == {"mine": "5", "message-id": "id"}
    assert column_entries(columns, names.PROPERTIES_OFFSETS) == {"d": "0.5", "b": "AP8=", "s": "té"}


def test_what_is_absent_is_null_or_empty(kernels: SimpleNamespace) -> None:
    columns = read(kernels, record(Body=None, SystemProperties={"x-opt-partition-key": ""}))
    assert column_texts(columns, names.BODY_OFFSETS) == [b""]
    assert columns[names.PARTITION_KEY_VALIDITY] == columns[names.PUBLISHER_VALIDITY] == b"\x00"
    assert array("i", bytes(columns[names.PROPERTIES_OFFSETS])).tolist() == [0, 0]


TIMES = [
    ("11/14/2023 10:13:20 PM", 1_700_000_000_000),
    ("1/5/2024 12:00:00 AM", 1_704_412_800_000),
    ("1/5/2024 12:00:00 pm", 1_704_456_000_000),
    ("01/05/2024 00:00:00", 1_704_412_800_000),
    ("2024-01-05T00:00:00Z", 1_704_412_800_000),
    ("2024-01-05 00:00:00.1234567+00:00", 1_704_412_800_123),
    ("2024-01-05T00:00:00.5", 1_704_412_800_500),
    ("1/1/0001 12:00:00 AM", -62_135_596_800_000),
    ("2024-02-29T23:59:59.999999999Z", 1_709_251_199_999),
]
NO_TIMES = [
    "", "today", "13/1/2024 1:00:00 AM", "0/1/2024 1:00:00 AM", "4/31/2024 1:00:00 AM", "2/30/2024 1:00:00 AM",
    "1/1/2024 13:00:00 PM", "1/1/2024 0:00:00 AM", "1/1/2024 24:00:00", "1/1/2024 1:60:00 AM", "1/1/2024 1:00:60 AM",
    "1/1/2024 1:00:00 XM", "1/1/2024 1:00:00 A", "1/1/2024 1:00:00 AMX", "1/1/24 1:00:00 AM", "1/1/2024", "2024-01-05",
    "2024-01-05T00:00:00.Z", "2024-01-05T00:00:00.1234567890Z", "2024-01-05T00:00:00+01:00", "2024-13-05T00:00:00Z",
    "2024-01-05T00:00:00Z ", "2024-01-05T00:00:00Z\n", "0000-01-05T00:00:00Z", "2024-1-05T00:00:00Z",
    "2024-01-05T0:00:00Z", "2024-01-05T00:00:00+00:0",
]  # fmt: skip


@pytest.mark.parametrize(("text", "time_ms"), TIMES)
def test_a_time_is_read_in_each_of_its_forms(kernels: SimpleNamespace, text: str, time_ms: int) -> None:
    assert column_times(read(kernels, record(EnqueuedTimeUtc=text))) == [time_ms * 1000]
    assert parse_time(text.encode()) == time_ms


@pytest.mark.parametrize("text", NO_TIMES)
def test_a_text_that_is_no_time_makes_the_record_malformed(kernels: SimpleNamespace, text: str) -> None:
    block = block_of(record(), record(EnqueuedTimeUtc=text))
    first = len(block_of(record()))
    answer = kernels.read_capture_block(block, 0, len(block), 2, *ALWAYS, ALL_COLUMNS, 0, rich.empty_columns())
    assert answer == (first, 1, 1, 7, 7, COLUMNS_MALFORMED)


def test_the_time_of_the_system_properties_goes_first(kernels: SimpleNamespace) -> None:
    for value, time_us in (
        (1_700_000_000_123, 1_700_000_000_123_000),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123_000),
        ("no time", 1_700_000_000_000_000),
        (0.5, 1_700_000_000_000_000),
        (2**62, 1_700_000_000_000_000),
    ):
        assert column_times(read(kernels, record(SystemProperties={"x-opt-enqueued-time": value}))) == [time_us]


def test_only_records_of_the_asked_time_become_rows(kernels: SimpleNamespace) -> None:
    records = [record(SequenceNumber=at, SystemProperties={"x-opt-enqueued-time": 1000 + at}) for at in range(9)]
    block, columns = block_of(*records), rich.empty_columns()
    answer = kernels.read_capture_block(block, 0, len(block), 9, 1003, 1006, ALL_COLUMNS, 0, columns)
    assert answer == (len(block), 9, 3, 3, 5, COLUMNS_OK)
    assert column_times(columns) == [1_003_000, 1_004_000, 1_005_000]


def test_maps_may_come_in_blocks_with_sizes(kernels: SimpleNamespace) -> None:
    # Two blocks: one of -1 entries with its size in bytes, one of 1 entry.
    properties = b"\x01\x06\x02k\x00\x08" + b"\x02\x02l\x00\x0a" + b"\x00"
    block = b"\x0e\x020" + bytes([2 * len(TIME)]) + TIME.encode() + b"\x00" + properties + b"\x00"
    columns = rich.empty_columns()
    answer = kernels.read_capture_block(block, 0, len(block), 1, *ALWAYS, ALL_COLUMNS, 0, columns)
    assert answer[-1] == COLUMNS_OK
    assert column_entries(columns, names.PROPERTIES_OFFSETS) == {"k": "4", "l": "5"}


def test_unasked_columns_stay_empty(kernels: SimpleNamespace) -> None:
    block, columns = block_of(record(), record()), rich.empty_columns()
    mask = 1 << names.COLUMN_SEQUENCE_NUMBER
    assert kernels.read_capture_block(block, 0, len(block), 2, *ALWAYS, mask, 0, columns)[-1] == COLUMNS_OK
    assert [place for place, buffer in enumerate(columns) if buffer] == [names.SEQUENCE_NUMBERS]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_count_that_does_not_end_where_the_block_does_is_malformed(kernels: SimpleNamespace, count: int) -> None:
    block = block_of(record(), record())
    answer = kernels.read_capture_block(block, 0, len(block), count, *ALWAYS, ALL_COLUMNS, 0, rich.empty_columns())
    assert answer[1] == min(count, 2)
    assert answer[-1] == COLUMNS_MALFORMED


def test_every_cut_and_every_flipped_bit_is_answered(kernels: SimpleNamespace) -> None:
    block = block_of(record(SystemProperties={"k": "v", "d": 0.5}, Properties={"b": b"x"}))
    for end in range(len(block)):
        cut = kernels.read_capture_block(block, 0, end, 1, *ALWAYS, ALL_COLUMNS, 0, rich.empty_columns())
        assert cut == (0, 0, 0, -1, -1, COLUMNS_MALFORMED)
    for place in range(8 * len(block)):
        flipped = bytearray(block)
        flipped[place // 8] ^= 1 << place % 8
        answer = kernels.read_capture_block(flipped, 0, len(block), 1, *ALWAYS, ALL_COLUMNS, 0, rich.empty_columns())
        assert answer[-1] in (COLUMNS_OK, COLUMNS_MALFORMED)


MAP_VALUES = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(), st.binary())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    number=st.integers(-(2**63), 2**63 - 1),
    offset=st.text(),
    properties=st.dictionaries(st.text(), MAP_VALUES),
    body=st.one_of(st.none(), st.binary()),
)
def test_what_fastavro_writes_is_read(
    kernels: SimpleNamespace, number: int, offset: str, properties: dict[str, Any], body: bytes | None
) -> None:
    columns = read(kernels, record(SequenceNumber=number, Offset=offset, Properties=properties, Body=body))
    assert bytes(columns[names.SEQUENCE_NUMBERS]) == struct.pack("=q", number)
    assert column_texts(columns, names.OFFSET_OFFSETS) == [offset.encode()]
    assert column_texts(columns, names.BODY_OFFSETS) == [body or b""]
    found = column_entries(columns, names.PROPERTIES_OFFSETS)
    assert found.keys() == properties.keys()
    for name, value in properties.items():
        if isinstance(value, str):
            assert found[name] == value
        elif isinstance(value, (int, float)):
            assert float(found[name]) == float(value)
