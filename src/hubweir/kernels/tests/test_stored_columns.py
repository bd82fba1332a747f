"""Stored events become the columns that their deliveries become: which rows, where a call stops, what is refused."""

from __future__ import annotations

from array import array
from random import Random
from types import SimpleNamespace

import pytest

from hubweir.kernels import columns_contract as names
from hubweir.kernels import twins
from hubweir.kernels.columns_contract import (
    ALL_COLUMNS,
    COLUMN_BODY,
    COLUMN_PROPERTIES,
    COLUMN_SEQUENCE_NUMBER,
    COLUMNS_FULL,
    COLUMNS_MALFORMED,
    COLUMNS_OK,
    COLUMNS_UNTIL,
)
from hubweir.kernels.contract import BATCH_WIDTH, DELIVERY_WIDTH, FRAME_WIDTH, RunCursor, SendRoom, TransferForm
from hubweir.kernels.stored_batch import (
    AT_APPLICATION_PROPERTIES,
    AT_BODY,
    AT_LENGTH,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    HEADER_SIZE,
)
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests import rich_bytes as rich
from hubweir.kernels.tests.rich_bytes import column_entries, column_texts, column_times

MANY = 1 << 30
FRAME_BYTES = 2**31 - 1


def stored(*messages: bytes, index: int = 7, **batch: object) -> bytes:
    records = bytearray()
    for message in messages:
        assert twins.ingest(message, legal.delivery_row(message, 0, 0), 0, 1, 0, None, records, MANY)[3] == 0
    return legal.stored_batch(bytes(records), len(messages), first_index=index, **batch)  # type: ignore[arg-type]


def table_of(run: bytes) -> array[int]:
    table = legal.table(50, BATCH_WIDTH)
    count, position, _ = twins.scan_batches(run, 0, len(run), 0, table)
    assert position == len(run)
    return table[: count * BATCH_WIDTH]


def delivered(run: bytes) -> tuple[bytes, array[int], int]:
    """The run's events as a client gets them one by one: bytes, delivery rows, how many."""
    out, form = bytearray(), TransferForm(0, 0, FRAME_BYTES, True)
    events = twins.deliver(run, RunCursor(), form, 0, SendRoom(MANY, MANY, MANY), out)[0]
    frames, rows = legal.table(events, FRAME_WIDTH), legal.table(events, DELIVERY_WIDTH)
    twins.scan_frames(out, 0, len(out), FRAME_BYTES, frames)
    assert twins.collect_deliveries(frames, 0, events, rows) == events
    return bytes(out), rows, events


def numbers_of(columns: list[bytearray]) -> list[int]:
    return array("q", bytes(columns[names.SEQUENCE_NUMBERS])).tolist()


def test_every_part_of_an_event_finds_its_column(kernels: SimpleNamespace) -> None:
    message = b"".join([
        legal.annotations({"mine": b"\x54\x05", "x-opt-offset": legal.string("no")}),
        legal.section(0x73, legal.compound(0xC0, [legal.string("id"), b"\x40", legal.string("to"), b"\x40"])),
        legal.section(0x74, legal.compound(0xC1, [legal.string("s"), legal.string("té"), legal.string("b"), b"\x41"])),
        legal.data_section(b"body"),
    ])  # fmt: skip
    run = stored(message, message, name=b"who", flags=FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER)
    columns = rich.empty_columns()
    answer = kernels.stored_columns(run, table_of(run), 1, 2, 8, -1, ALL_COLUMNS, 0, columns)
    assert answer == (2, 8, 8, -1, COLUMNS_OK)
    assert numbers_of(columns) == [8]
    length = (len(run) - HEADER_SIZE - 3) // 2
    assert column_texts(columns, names.OFFSET_OFFSETS) == [b"%d" % (1000 + length)]
    assert column_times(columns) == [legal.TIME * 1000]
    assert column_texts(columns, names.BODY_OFFSETS) == [b"body"]
    assert column_texts(columns, names.PARTITION_KEY_OFFSETS) == [b"who"]
    assert column_texts(columns, names.PUBLISHER_OFFSETS) == [b"who"]
    assert column_entries(columns, names.PROPERTIES_OFFSETS) == {"s": "té", "b": "true"}
    assert column_entries(columns, names.SYSTEM_OFFSETS) == {"mine": "5", "message-id": "id", "to": "to"}


def test_a_key_without_a_name_block_is_the_senders(kernels: SimpleNamespace) -> None:
    keyed = legal.annotations({"x-opt-partition-key": legal.string("mine")}) + legal.data_section(b"")
    symbol = legal.annotations({"x-opt-partition-key": legal.symbol("no")}) + legal.data_section(b"")
    run = stored(keyed, symbol, legal.data_section(b""))
    columns = rich.empty_columns()
    assert kernels.stored_columns(run, table_of(run), 0, 3, -1, -1, ALL_COLUMNS, 0, columns)[0] == 3
    assert column_texts(columns, names.PARTITION_KEY_OFFSETS) == [b"mine", b"", b""]
    assert columns[names.PARTITION_KEY_VALIDITY] == bytes([0b001])


def test_the_name_of_a_batch_counts_once_for_each_of_its_rows(kernels: SimpleNamespace) -> None:
    """It stands in the batch once: counted so, its columns outgrew what an offset of 32 bits can tell."""
    run = stored(*[legal.data_section(b"")] * 1000, name=b"n" * 20_000, flags=FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER)
    columns = rich.empty_columns()
    answer = kernels.stored_columns(run, table_of(run), 0, 1000, -1, -1, ALL_COLUMNS, 0, columns, 6_000_000)
    assert 200 < answer[0] < 300 and answer[-1] == COLUMNS_FULL
    assert len(columns[names.PARTITION_KEY_BYTES]) == 20_000 * answer[0] <= 6_000_000


@pytest.mark.parametrize("seed", range(60))
def test_the_columns_are_those_of_single_deliveries(kernels: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    run, index = b"", 7
    for _ in range(rng.choice([1, 3])):
        messages = [rng.choice([rich.message, legal.random_message])(rng) for _ in range(rng.choice([1, 4]))]
        name, flags = rng.choice([(b"", 0), (b"key", 2), (b"publisher", 4), (b"bad \xff", 2), (b"none", 0)])
        run += stored(*messages, index=index, name=name, flags=flags, producer=rng.choice([b"", bytes(40)]))
        index += len(messages)
    data, rows, events = delivered(run)
    mask = rng.choice([ALL_COLUMNS, rng.randrange(256)])
    expected, found = rich.empty_columns(), rich.empty_columns()
    wanted = twins.event_columns(data, rows, 0, events, -1, -1, mask, 0, expected)
    assert kernels.stored_columns(run, table_of(run), 0, events, -1, -1, mask, 0, found) == wanted
    assert found == expected


def test_a_call_stops_before_until_and_tells_of_gaps(kernels: SimpleNamespace) -> None:
    body = legal.data_section(b"x")
    run = stored(body, body, index=5) + stored(body, body, index=9)
    mask, columns = 1 << COLUMN_SEQUENCE_NUMBER, rich.empty_columns()
    batches = table_of(run)
    assert kernels.stored_columns(run, batches, 0, 4, 5, 10, mask, 0, columns) == (3, 5, 9, 2, COLUMNS_UNTIL)
    assert kernels.stored_columns(run, batches, 3, 4, 9, -1, mask, 3, columns) == (4, 10, 10, 3, COLUMNS_OK)
    assert kernels.stored_columns(run, batches, 4, 4, 9, -1, mask, 4, columns) == (4, -1, -1, -1, COLUMNS_OK)
    assert numbers_of(columns) == [5, 6, 9, 10]


def test_a_column_that_is_nearly_full_takes_no_more_rows(kernels: SimpleNamespace) -> None:
    body = legal.data_section(bytes(50))
    run = stored(body, body)
    length = int.from_bytes(run[HEADER_SIZE : HEADER_SIZE + 4])
    wanted, columns = 16 * length + 4096, rich.empty_columns()
    arguments = (run, table_of(run), 0, 2, -1, -1, 1 << COLUMN_BODY, 0, columns)
    assert kernels.stored_columns(*arguments, wanted - 1)[::4] == (0, COLUMNS_FULL)
    assert kernels.stored_columns(*arguments, wanted)[::4] == (1, COLUMNS_FULL)


@pytest.mark.parametrize(
    ("at", "number", "mask"),
    [
        (AT_LENGTH, 2**31, ALL_COLUMNS),  # of the batch
        (HEADER_SIZE, 2**31, 1 << COLUMN_SEQUENCE_NUMBER),  # of the record
        (HEADER_SIZE, 31, 1 << COLUMN_SEQUENCE_NUMBER),
        (HEADER_SIZE + AT_APPLICATION_PROPERTIES, 2**31, 1 << COLUMN_PROPERTIES),
        (HEADER_SIZE + AT_APPLICATION_PROPERTIES, 1, 1 << COLUMN_PROPERTIES),
    ],
)
def test_positions_that_lead_nowhere_are_not_followed(
    kernels: SimpleNamespace, at: int, number: int, mask: int
) -> None:
    run = stored(legal.data_section(b"body"))
    batches, columns = table_of(run), rich.empty_columns()
    damaged = run[:at] + number.to_bytes(4) + run[at + 4 :]
    answer = kernels.stored_columns(damaged, batches, 0, 1, -1, -1, mask, 0, columns)
    assert answer == (0, -1, -1, -1, COLUMNS_MALFORMED)
    assert columns == rich.empty_columns()


def test_a_body_that_is_not_where_the_record_says_is_looked_for(kernels: SimpleNamespace) -> None:
    run = stored(legal.data_section(b"body"))
    at, columns = HEADER_SIZE + AT_BODY, rich.empty_columns()
    damaged = run[:at] + (2).to_bytes(4) + run[at + 4 :]
    mask = 1 << COLUMN_BODY
    assert kernels.stored_columns(damaged, table_of(run), 0, 1, -1, -1, mask, 0, columns)[0] == 1
    assert column_texts(columns, names.BODY_OFFSETS) == [b"body"]


def test_batches_in_front_of_the_rows_asked_for_are_not_walked(kernels: SimpleNamespace) -> None:
    body = legal.data_section(b"x")
    run = stored(body, body) + stored(body, index=9)
    batches, columns, mask = table_of(run), rich.empty_columns(), 1 << COLUMN_SEQUENCE_NUMBER
    damaged = run[:HEADER_SIZE] + (2**31).to_bytes(4) + run[HEADER_SIZE + 4 :]
    assert kernels.stored_columns(damaged, batches, 1, 3, -1, -1, mask, 0, columns)[::4] == (
        1,
        COLUMNS_MALFORMED,
    )
    answer = kernels.stored_columns(damaged, batches, 2, 3, -1, -1, mask, 0, columns)
    assert answer == (3, 9, 9, -1, COLUMNS_OK)
