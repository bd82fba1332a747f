"""The two twins of each kernel of columns give the same answers and write the same bytes, on legal bytes, on damaged
ones and on noise."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubweir.errors import KernelRefusal
from hubweir.kernels import columns_contract, twins
from hubweir.kernels.columns_contract import (
    ALL_COLUMNS,
    CAPTURE_OK,
    COLUMNS_FULL,
    COLUMNS_MALFORMED,
    COLUMNS_OK,
    ROWS_OK,
)
from hubweir.kernels.contract import B_COUNT, BATCH_WIDTH
from hubweir.kernels.stored_batch import CRC_SEED, HEADER_SIZE
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests import rich_bytes as rich

SEEDS = st.integers(0, 2**48)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
BIG = 1 << 40
# The buffers of bytes of each column of text, body, or map.
TEXT_BYTES = {0: [1], 1: [3], 4: [8], 5: [11], 6: [14, 16], 7: [19, 21]}
Buffers = list[Any]


def copied(value: Any) -> Any:
    if isinstance(value, list):
        return [bytearray(buffer) for buffer in value]
    return value[:] if isinstance(value, (bytearray, array)) else value


def agreed(compiled: SimpleNamespace, kernel: str, *arguments: Any) -> tuple[Any, Buffers]:
    """Call both twins with copies of the arguments; return what they both answered and left in their buffers."""
    answers = []
    for twin in (twins, compiled):
        copies = [copied(value) for value in arguments]
        try:
            result = getattr(twin, kernel)(*copies)
        except KernelRefusal:
            result = "refused"
        answers.append((result, [value for value in copies if isinstance(value, (bytearray, array, list))]))
    assert answers[0] == answers[1], kernel
    return answers[1]


def run_of_batches(rng: Random) -> bytes:
    """A run whose events came through ingest, with batches of other kinds between them."""
    run = b""
    for _ in range(rng.choice([1, 1, 2])):
        records, count = bytearray(), 0
        for _ in range(rng.choice([1, 3])):
            message = rng.choice([rich.message, legal.random_message])(rng)
            count += twins.ingest(message, legal.delivery_row(message, 0, 0), 0, 1, 0, None, records, 10**7)[2]
        run += legal.stored_batch(
            bytes(records), count, name=rng.choice([b"", b"key of all", b"bad \xff", b"n" * 200, b"n" * 4000]),
            flags=rng.choice([0, 2, 4, 6]), checked=False, first_index=rng.choice([0, 12, 2**40, 2**63 - 2, 2**64 - 1]),
            first_offset=rng.choice([0, 9, 2**63, 2**64 - 5]), time=rng.choice([*rich.TIMES, 2**62]),
        )  # fmt: skip
        if rng.random() < 0.3:
            run += legal.stored_batch(b"\x07control", 0, kind=3, checked=False)
    return run


@MANY
@given(seed=SEEDS)
def test_capture_and_its_reading_agree(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    run = run_of_batches(rng)
    if rng.random() < 0.4:
        run = legal.mutated(rng, run)
    place, out, events = (0, 0, 0), bytearray(), 0
    for _ in range(20):
        limits = (rng.choice([0, 500, 3000, BIG]), rng.choice([0, 1, 2, BIG]), rng.choice([-1, -1, 0, 13, 2**40 + 1]))
        answer, buffers = agreed(compiled, "capture_block", run, *place, *limits, out)
        out = buffers[0]
        if answer == "refused":
            break
        events += answer[0]
        if answer[-1] != CAPTURE_OK or place == answer[1:4]:
            break
        place = answer[1:4]
    block, count = bytes(out), events + rng.choice([0, 0, 0, 1, -1])
    for octets in (block, legal.mutated(rng, block)):
        since, until = rng.choice([(-(2**62), 2**62), (0, legal.TIME + 1), (legal.TIME, BIG)])
        mask, rows, columns = rng.choice([ALL_COLUMNS, ALL_COLUMNS, rng.randrange(256)]), 0, rich.empty_columns()
        for _ in range(2):
            answer, (columns,) = agreed(
                compiled, "read_capture_block", octets, 0, len(octets), count, since, until, mask, rows,
                columns, rng.choice([2**31 - 1, 9000]),
            )  # fmt: skip
            rows += answer[2]


@MANY
@given(seed=SEEDS)
def test_event_columns_agrees(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    data, rows = b"", array("q")
    for index in range(rng.choice([1, 2, 9])):
        message = rich.message(rng, service=rng.random() < 0.95)
        if rng.random() < 0.2:
            message = legal.mutated(rng, message)
        data += rng.randbytes(rng.randrange(3))
        rows += array("q", [index, len(data), len(message), 1, rng.choice([0] * 20 + [1])])
        data += message
    mask, columns, held, row = rng.choice([ALL_COLUMNS, ALL_COLUMNS, rng.randrange(256)]), rich.empty_columns(), 0, 0
    count = len(rows) // 5
    for _ in range(3):
        expected, until = rng.choice([-1, 0, 5, 6, 2**40]), rng.choice([-1, -1, 6, 2**50])
        answer, (_, columns) = agreed(
            compiled, "event_columns", data, rows, row, count, expected, until, mask, held, columns,
            rng.choice([2**31 - 1, 9000, 20000]),
        )  # fmt: skip
        held += answer[0] - row
        row = min(count, answer[0] + (answer[-1] == COLUMNS_MALFORMED))


@MANY
@given(seed=SEEDS)
def test_stored_columns_agrees(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    run, batches = run_of_batches(rng), legal.table(6, BATCH_WIDTH)
    found = twins.scan_batches(checked(run), 0, len(run), 0, batches)[0]
    del batches[found * BATCH_WIDTH :]
    events = sum(batches[B_COUNT::BATCH_WIDTH])
    if rng.random() < 0.3:
        run = legal.mutated(rng, run)
    mask, columns, held, row = rng.choice([ALL_COLUMNS, ALL_COLUMNS, rng.randrange(256)]), rich.empty_columns(), 0, 0
    for _ in range(3):
        answer, (_, columns) = agreed(
            compiled, "stored_columns", run, batches, row, rng.choice([events, events, row]),
            rng.choice([-1, 0, 12, 2**40]), rng.choice([-1, -1, 13, 2**50]), mask, held, columns,
            rng.choice([2**31 - 1, 9000, 20000]),
        )  # fmt: skip
        held += answer[0] - row
        row = min(events, answer[0] + (answer[-1] == COLUMNS_MALFORMED))


def checked(run: bytes) -> bytes:
    """The same batches with checksums of their payloads."""
    sound, at = bytearray(run), 0
    while at < len(run):
        length = int.from_bytes(run[at + 8 : at + 12])
        sound[at + 24 : at + 28] = twins.crc32c(run[at + HEADER_SIZE : at + length], CRC_SEED).to_bytes(4)
        at += length
    return bytes(sound)


@MANY
@given(seed=SEEDS)
def test_rows_out_agree(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    rows, spoiled = rng.choice([0, 1, 3, 20]), rng.random() < 0.3
    body = rich.texts(rng, rows, spoiled=spoiled and rng.random() < 0.5)
    keys = rng.choice([None, rich.texts(rng, rows, spoiled=spoiled and rng.random() < 0.5)])
    properties = rng.choice([None, rich.maps(rng, rows, spoiled=spoiled)])
    order = array("q", rng.sample(range(rows), rows)) if rng.random() < 0.5 else None
    if order and rng.random() < 0.1:
        order[rng.randrange(rows)] = rng.choice([-1, rows, 2**62, -(2**63)])
    place, out = 0, bytearray(b"before")
    for _ in range(30):
        (place, size, status), buffers = agreed(
            compiled, "event_batches", body, keys, properties, order, place, rows,
            rng.choice([0, 10, 100, 600, 5000, 2**31 - 1]), rng.choice([b"", legal.annotations({}), bytes(90)]), out,
        )  # fmt: skip
        out = buffers[-1]
        if place == rows or status == columns_contract.ROWS_MALFORMED:
            break
    cut = rng.randrange(rows + 1)
    digest, _ = agreed(compiled, "rows_digest", rng.choice([0, 2**64 - 1]), body, keys, properties, order, 0, cut)
    agreed(compiled, "rows_digest", digest[0], body, keys, properties, order, cut, rows)


@MANY
@given(seed=SEEDS)
def test_rows_by_partition_agrees(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    rows, partitions = rng.choice([0, 1, 5, 40]), rng.choice([1, 4, 32])
    keys = rng.choice([None, rich.texts(rng, rows), rich.texts(rng, rows, spoiled=True)])
    numbers = [rng.choice(["", "0", "1", "3", "31", "03", "32", "x", "-1", "9999999999"]) for _ in range(rows)]
    offsets = array("i", [0])
    for number in numbers:
        offsets.append(offsets[-1] + len(number))
    ids = rng.choice([None, None, (None, offsets.tobytes(), "".join(numbers).encode(), 0)])
    first = rng.randrange(rows + 1)
    answer, (order, starts) = agreed(
        compiled, "rows_by_partition", keys, ids, first, rows, partitions, rng.choice([0, 3, 2**63 - 1]),
        array("q", [0] * rows), array("q", [0] * (partitions + 1)),
    )  # fmt: skip
    if answer[1] == ROWS_OK:
        assert sorted(order[: rows - first]) == list(range(first, rows))
        assert starts[partitions] == rows - first


@settings(MANY, max_examples=200)
@given(noise=st.binary(max_size=120))
def test_noise_is_judged_alike(compiled: SimpleNamespace, noise: bytes) -> None:
    rows = legal.delivery_row(noise, 0, 0)
    agreed(compiled, "event_columns", noise, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, rich.empty_columns())
    agreed(compiled, "capture_block", noise, 0, 0, 0, BIG, BIG, -1, bytearray())
    for count in (0, 1, 100):
        agreed(
            compiled, "read_capture_block", noise, 0, len(noise), count, -BIG, BIG, ALL_COLUMNS, 0,
            rich.empty_columns(),
        )  # fmt: skip


def test_calls_that_break_the_contract_are_refused_by_both(compiled: SimpleNamespace) -> None:
    rows, none = legal.delivery_row(b"1234", 0, 0), rich.empty_columns()
    doubled = rich.empty_columns()
    doubled[3] = doubled[1]
    texts = (None, bytes(8), b"", 0)
    run = legal.stored_batch(b"", 0)
    numbers = array("q", [0, 0])
    calls: list[tuple[Any, ...]] = [
        ("event_columns", b"123", rows, 0, 1, -1, -1, ALL_COLUMNS, 0, none),
        ("event_columns", b"1234", rows, 0, 2, -1, -1, ALL_COLUMNS, 0, none),
        ("event_columns", b"1234", rows, 0, 1, -1, -1, 256, 0, none),
        ("event_columns", b"1234", rows, 0, 1, -1, -1, -1, 0, none),
        ("event_columns", b"1234", rows, 0, 1, -1, -1, ALL_COLUMNS, 1, none),
        ("event_columns", b"1234", rows, 0, 1, -1, -1, ALL_COLUMNS, -1, none),
        ("event_columns", b"1234", rows, 0, 1, -1, -1, ALL_COLUMNS, 0, none[1:]),
        ("event_columns", b"1234", rows, 0, 1, -1, -1, ALL_COLUMNS, 0, none, 2**31),
        ("event_columns", b"1234", rows, 0, 1, -1, -1, ALL_COLUMNS, 0, none, -1),
        ("stored_columns", run, array("q", [0] * BATCH_WIDTH), 0, 1, -1, -1, ALL_COLUMNS, 0, none),
        ("stored_columns", run, legal.table(0, BATCH_WIDTH), 1, 0, -1, -1, ALL_COLUMNS, 0, none),
        ("stored_columns", run, legal.table(0, BATCH_WIDTH), -1, 0, -1, -1, ALL_COLUMNS, 0, none),
        ("read_capture_block", b"1234", 3, 2, 1, 0, 1, ALL_COLUMNS, 0, none),
        ("read_capture_block", b"1234", 0, 5, 1, 0, 1, ALL_COLUMNS, 0, none),
        ("capture_block", run, len(run) + 1, 0, 0, 1, 1, -1, bytearray(b"x")),
        ("capture_block", run, 0, 0, 1, 1, 1, -1, bytearray(b"x")),
        ("event_batches", texts, None, None, None, 1, 0, 99, b"", bytearray(b"x")),
        ("event_batches", texts, None, None, numbers, 0, 3, 99, b"", bytearray(b"x")),
        ("event_batches", texts, None, None, None, 0, 1, -1, b"", bytearray(b"x")),
        ("event_batches", texts, None, None, None, 0, 1, 2**31, b"", bytearray(b"x")),
        ("event_batches", (None, bytes(7), b"", 0), None, None, None, 0, 1, 99, b"", bytearray(b"x")),
        ("event_batches", (None, bytes(8), b"", -1), None, None, None, 0, 1, 99, b"", bytearray(b"x")),
        ("event_batches", (None, bytes(8), b"", 2**31), None, None, None, 0, 1, 99, b"", bytearray(b"x")),
        ("rows_digest", -1, texts, None, None, None, 0, 1),
        ("rows_digest", 2**64, texts, None, None, None, 0, 1),
        ("rows_by_partition", None, None, 0, 3, 1, 0, numbers, numbers),
        ("rows_by_partition", None, None, 0, 1, 2, 0, numbers, numbers),
        ("rows_by_partition", None, None, 0, 1, 0, 0, numbers, numbers),
        ("rows_by_partition", None, None, 0, 1, 1, -1, numbers, numbers),
    ]
    for call in calls:
        answer, buffers = agreed(compiled, *call)
        assert answer == "refused", call
        assert all(buffer == b"x" for buffer in buffers if isinstance(buffer, bytearray)), call
    for twin in (twins, compiled):
        with pytest.raises(KernelRefusal):
            twin.event_columns(b"1234", rows, 0, 1, -1, -1, ALL_COLUMNS, 0, doubled)


@pytest.mark.parametrize("damage", ["offsets", "bytes", "validity", "numbers", "entries"])
def test_columns_that_do_not_hold_their_rows_are_refused(compiled: SimpleNamespace, damage: str) -> None:
    message = rich.message(Random(1), service=True)
    rows, columns = legal.delivery_row(message, 0, 0), rich.empty_columns()
    answer = twins.event_columns(message, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, columns)
    assert answer[0] == 1
    again, _ = agreed(compiled, "event_columns", message, rows, 0, 1, -1, -1, ALL_COLUMNS, 1, columns)
    assert again[0] == 1
    place = {"offsets": 0, "bytes": 1, "validity": 6, "numbers": 4, "entries": 12}[damage]
    columns[place] += b"\x01\x02\x03\x04"
    again, _ = agreed(compiled, "event_columns", message, rows, 0, 1, -1, -1, ALL_COLUMNS, 1, columns)
    assert again == "refused"


@pytest.mark.parametrize("column", [0, 1, 4, 5, 6, 7])
def test_a_column_that_is_nearly_full_takes_no_more_rows(kernels: SimpleNamespace, column: int) -> None:
    message = rich.message(Random(1), service=True)
    data, rows = message * 2, legal.delivery_row(message, 0, 0) + legal.delivery_row(message, len(message), 0)
    mask, wanted, columns = 1 << column, 16 * len(message) + 4096, rich.empty_columns()
    none = kernels.event_columns(data, rows, 0, 2, -1, -1, mask, 0, columns, wanted - 1)
    assert (none[0], none[-1]) == (0, COLUMNS_FULL)
    one = kernels.event_columns(data, rows, 0, 2, -1, -1, mask, 0, columns, wanted)
    # The second row has no room as soon as the first one has left anything in the column.
    held = max(len(columns[buffer]) for buffer in TEXT_BYTES[column])
    assert (one[0], one[-1]) == ((1, COLUMNS_FULL) if held else (2, COLUMNS_OK))
    if held:
        both = kernels.event_columns(data, rows, 1, 2, -1, -1, mask, 1, columns, wanted + held)
        assert (both[0], both[-1]) == (2, COLUMNS_OK)


def test_columns_that_somebody_holds_a_view_of_are_left_as_they_were(kernels: SimpleNamespace) -> None:
    message = legal.annotations({
        "x-opt-sequence-number": struct.pack(">Bq", 0x81, 1), "x-opt-offset": legal.string("1"),
        "x-opt-enqueued-time": struct.pack(">Bq", 0x83, 1),
    }) + legal.data_section(bytes(100_000))  # fmt: skip
    rows, columns = legal.delivery_row(message, 0, 0), rich.empty_columns()
    held = memoryview(columns[columns_contract.SYSTEM_VALUE_BYTES])
    with pytest.raises(BufferError):
        kernels.event_columns(message, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, columns)
    assert columns == rich.empty_columns()
    # A column that is not asked for may be held.
    assert kernels.event_columns(message, rows, 0, 1, -1, -1, 1, 0, columns)[0] == 1
    held.release()
    columns = rich.empty_columns()
    assert kernels.event_columns(message, rows, 0, 1, -1, -1, ALL_COLUMNS, 0, columns)[0] == 1


def planted(kernel: Callable[..., Any], position: int) -> Callable[..., Any]:
    """A kernel that writes one wrong byte into what it appends."""

    def wrong(*arguments: Any) -> Any:
        result = kernel(*arguments)
        arguments[-1][position] ^= 0x10
        return result

    return wrong


@pytest.mark.parametrize("position", [0, 1, 30, -1])
def test_a_planted_wrong_byte_is_found(compiled: SimpleNamespace, position: int) -> None:
    arguments = (run_of_batches(Random(3)), 0, 0, 0, BIG, BIG, -1, bytearray())
    assert agreed(compiled, "capture_block", *arguments)[0][0] > 0
    wrong = SimpleNamespace(capture_block=planted(compiled.capture_block, position))
    with pytest.raises(AssertionError, match="capture_block"):
        agreed(wrong, "capture_block", *arguments)
