"""The two twins give the same results and write the same bytes, on legal bytes, on damaged ones and on noise."""

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
from hubweir.kernels import twins
from hubweir.kernels.contract import (
    BATCH_FORMAT,
    BATCH_WIDTH,
    DELIVERY_WIDTH,
    EVENT_WIDTH,
    FRAME_WIDTH,
    INGEST_DONE,
    KEY_WIDTH,
    MESSAGE_WIDTH,
    PROPERTIES_LIMIT,
    PROPERTY_LIMIT,
    RECORD_WIDTH,
    SPARSE_WIDTH,
    WALK_WIDTH,
    RunCursor,
    SendRoom,
    TransferForm,
)
from hubweir.kernels.tests import legal_bytes as legal

SEEDS = st.integers(0, 2**48)
FORM, ROOM = TransferForm(0, 0, 512, False), SendRoom(1, 1, 99)
MANY = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def agreed(compiled: SimpleNamespace, kernel: str, *arguments: Any) -> tuple[Any, list[Any]]:
    """Call both twins with copies of the arguments; return what they both answered and left in their buffers."""
    answers = []
    for twin in (twins, compiled):
        copies = [value[:] if isinstance(value, (bytearray, array)) else value for value in arguments]
        try:
            result = getattr(twin, kernel)(*copies)
        except KernelRefusal:
            result = "refused"
        answers.append((result, [value for value in copies if isinstance(value, (bytearray, array))]))
    assert answers[0] == answers[1], kernel
    return answers[1]


def deliveries(rng: Random) -> tuple[bytes, array[int]]:
    """A few deliveries, some damaged, some with noise before and behind them."""
    data, rows = b"", array("q")
    for index in range(rng.choice([1, 1, 2, 4])):
        message_format = rng.choice([0, BATCH_FORMAT, BATCH_FORMAT])
        payload = legal.random_message(rng) if message_format == 0 else legal.random_envelope(rng)
        if rng.random() < 0.4:
            payload = legal.mutated(rng, payload)
        if rng.random() < 0.02:
            payload, message_format = rng.randbytes(30), rng.choice([0, 1, -1, BATCH_FORMAT])
        data += rng.randbytes(rng.randrange(3))
        rows += array("q", [index, len(data), len(payload), 0, message_format])
        data += payload
    return data, rows


def run_of_batches(rng: Random) -> bytes:
    """A run whose events came through ingest, with other batches between them."""
    run = b""
    for _ in range(rng.choice([1, 1, 2, 3])):
        records, count = bytearray(), 0
        while count < rng.choice([1, 3]):
            message = legal.random_message(rng)
            result = twins.ingest(message, legal.delivery_row(message, 0, 0), 0, 1, 0, None, records, 10**6)
            count += result[2]
        name = rng.choice([b"", b"", b"key of all", b"n" * 300])
        run += legal.stored_batch(
            bytes(records), count, name=name, flags=rng.choice([0, 2, 4]), checked=False,
            first_index=rng.choice([0, 12, 2**40, 2**64 - 1]), first_offset=rng.choice([0, 9, 10, 2**63, 2**64 - 5]),
            time=rng.choice([0, -1, legal.TIME]), producer=rng.choice([b"", bytes(40)]),
        )  # fmt: skip
        if rng.random() < 0.3:
            run += legal.stored_batch(b"\x07control", 0, kind=3, checked=False)
        if rng.random() < 0.2:
            run += legal.stored_batch(struct.pack(">I", 9) + b"12345", 1, kind=2, checked=False)
    return run


@MANY
@given(seed=SEEDS)
def test_ingest_and_its_kin_agree(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    data, rows = deliveries(rng)
    count = len(rows) // DELIVERY_WIDTH
    row, resume_at, room = 0, 0, rng.choice([0, 1, 100, 400, 5000])
    name = rng.choice([None, None, b"", b"pk1"])
    out = bytearray(rng.randbytes(rng.randrange(4)))
    for _ in range(200):
        (row, resume_at, events, status), buffers = agreed(
            compiled, "ingest", data, rows, row, count, resume_at, name, out, room
        )
        out = buffers[1]
        if status != 1 or not events:
            break
    for index in range(count):
        _, start, length, _, message_format = rows[index * DELIVERY_WIDTH : (index + 1) * DELIVERY_WIDTH]
        agreed(compiled, "find_key", data, start, start + length, message_format)
        agreed(compiled, "count_events", data, start, start + length, message_format)
    keys = legal.table(count, KEY_WIDTH)
    without, buffers = agreed(compiled, "find_keys", data, rows, 0, count, rng.choice([0, 2, 128]), keys)
    keys, partitions = buffers[1], rng.choice([1, 3, 32])
    turns = array("q", [rng.randrange(partitions) for _ in range(without)])
    grouped, ends = legal.table(count, DELIVERY_WIDTH), legal.table(partitions + 1, 1)
    agreed(compiled, "group_deliveries", rows, 0, count, keys, turns, grouped, ends)
    fragments, takes_ids = rng.choice([1, 2, 16]), rng.random() < 0.5
    (without, _), buffers = agreed(
        compiled, "find_message_keys", data, rows, 0, count, takes_ids, fragments, legal.table(count, KEY_WIDTH)
    )
    grouped, ends = legal.table(count, DELIVERY_WIDTH), legal.table(fragments + 1, 1)
    turns = array("q", [rng.randrange(fragments + 1) for _ in range(without)])
    agreed(compiled, "group_deliveries", rows, 0, count, buffers[1], turns, grouped, ends)
    for index in range(count):
        rows[index * DELIVERY_WIDTH + 4] = rng.choice([0, 0, 0, rows[index * DELIVERY_WIDTH + 4]])
    agreed(compiled, "open_events", data, rows, 0, count, legal.table(rng.randrange(5), EVENT_WIDTH))


@settings(MANY, max_examples=100)
@given(seed=SEEDS)
def test_limits_of_properties_agree(compiled: SimpleNamespace, seed: int) -> None:
    """Messages whose sections lie about a limit, some of them damaged."""
    rng = Random(seed)
    parts = [legal.data_section(b"body")]
    for code in rng.sample([0x70, 0x71, 0x72, 0x73, 0x74], rng.choice([1, 2, 3])):
        size = rng.choice([5, PROPERTY_LIMIT // 2, PROPERTY_LIMIT, PROPERTIES_LIMIT // 2]) - rng.randrange(-20, 60)
        value = legal.variable(0xA0, bytes(max(0, size)), wide=True)
        items = [value] if code in (0x70, 0x73) else [legal.symbol("name"), value]
        if rng.random() < 0.3:
            items *= 2
        parts.append(legal.section(code, legal.compound(0xC0 if code in (0x70, 0x73) else 0xC1, items, wide=True)))
    rng.shuffle(parts)
    message = b"".join(parts)
    if rng.random() < 0.2:
        message = legal.mutated(rng, message)
    payload, message_format = rng.choice(
        [(message, 0), (legal.envelope([message, legal.data_section(b"x")]), BATCH_FORMAT)]
    )
    rows = legal.delivery_row(payload, 0, message_format)
    agreed(compiled, "ingest", payload, rows, 0, 1, 0, rng.choice([None, b""]), bytearray(b"before"), 1 << 20)


def form_of(rng: Random, max_frame_size: int) -> TransferForm:
    handle = rng.choice([0, 255, 256, 2**32 - 1])
    return TransferForm(rng.choice([0, 5, 0xFFFF]), handle, max_frame_size, rng.random() < 0.5)


def room_of(rng: Random) -> SendRoom:
    return SendRoom(rng.choice([0, 1, 2, 100]), rng.choice([0, 1, 5, 100]), rng.choice([0, 300, 2000, 10**7]))


@MANY
@given(seed=SEEDS)
def test_deliver_and_the_walks_over_a_run_agree(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    run = run_of_batches(rng)
    if rng.random() < 0.5:
        run = legal.mutated(rng, run)
    cursor, max_frame_size = RunCursor(), rng.choice([512, 513, 600, 65536])
    for _ in range(30):
        result, _ = agreed(
            compiled, "deliver", run, cursor, form_of(rng, max_frame_size), rng.choice([0, 2**32 - 1]), room_of(rng),
            bytearray(b"before"),
            rng.choice([b"", b"", legal.section(0x71, legal.compound(0xC1, [])), rng.randbytes(700)]),
        )  # fmt: skip
        if result == "refused" or result[2].batch_at == len(run):
            break
        cursor = result[2]
    for ordinal in (0, 1, 5):
        agreed(compiled, "find_record", run, 0, ordinal)
    for offset in (0, 1000, 1040, 2**64 - 1):
        agreed(compiled, "find_offset", run, 0, offset)
    agreed(compiled, "scan_records", run, 0, legal.table(rng.randrange(4), RECORD_WIDTH))
    agreed(compiled, "scan_batches", run, 0, len(run), 0, legal.table(3, BATCH_WIDTH))


@MANY
@given(seed=SEEDS)
def test_deliver_batches_agrees(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    run = run_of_batches(rng) * rng.choice([1, 1, 2])
    if rng.random() < 0.5:
        run = legal.mutated(rng, run)
    cursor, max_frame_size = RunCursor(), rng.choice([512, 600, 900, 65536])
    for _ in range(30):
        result, _ = agreed(
            compiled, "deliver_batches", run, cursor, form_of(rng, max_frame_size), rng.choice([0, 2**32 - 1]),
            room_of(rng), rng.choice([0, 1, 2, 100]), bytearray(b"before"),
        )  # fmt: skip
        if result == "refused" or result[3].batch_at == len(run):
            break
        cursor = result[3]


@settings(MANY, max_examples=150)
@given(seed=SEEDS)
def test_scan_batches_agrees(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    run = b"".join(
        legal.stored_batch(
            rng.randbytes(rng.randrange(60)), rng.randrange(3), name=rng.choice([b"", b"name"]),
            kind=rng.choice([1, 2, 3, 3, 4, 0]), version=rng.choice([1, 1, 1, 1, 2, 0]),
        )
        for _ in range(3)
    )  # fmt: skip
    if rng.random() < 0.6:
        run = legal.mutated(rng, run)
    nonce = rng.choice([legal.NONCE, legal.NONCE, 1, 0])
    agreed(compiled, "scan_batches", run, 0, len(run), nonce, legal.table(rng.choice([0, 1, 9]), BATCH_WIDTH))


@MANY
@given(seed=SEEDS)
def test_frames_and_deliveries_agree(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    optional = [b"\x40"]
    stream = b""
    for index in range(rng.choice([1, 2, 5])):
        flags = [b"\x40", b"\x41", b"\x42", b"\x42", b"\x42", b"\x56\x00", b"\x56\x01", b"\x56\x02"]
        fields = [
            rng.choice([b"\x43", b"\x52\x07", legal.uint(7), legal.uint(7)]),
            rng.choice([legal.uint(index), bytes([0x52, index]), legal.uint(2**32 - 1), *optional]),
            rng.choice([legal.variable(0xA0, b"tag"), legal.variable(0xA0, b"wide", wide=True), *optional]),
            rng.choice([b"\x43", legal.uint(BATCH_FORMAT), *optional]),
            *(rng.choice(flags[:-1] if rng.random() < 0.9 else flags) for _ in range(2)),
            rng.choice([b"\x40", b"\x40", b"\x50\x00", b"\x50\x01"]),
            rng.choice([b"\x40", b"\x40", b"\x40", legal.random_value(rng)]),
            *(rng.choice([b"\x40", b"\x42", b"\x42", b"\x41"]) for _ in range(3)),
        ][: rng.choice([11, 11, 11, 6, 4, 1, 0])]
        extended = rng.choice([b"", b"", bytes(4)])
        body = (
            b"\x00\x53\x14" + legal.compound(0xC0, fields, wide=rng.random() < 0.2) + rng.randbytes(rng.choice([0, 9]))
        )
        other = [b"", b"\x00\x53\x13\xc0\x01\x00", b"\x00\x80" + rng.randbytes(8) + b"\x45", rng.randbytes(5)]
        stream += legal.frame(
            rng.choice([0, 0, 0, 3]), rng.choice([body] * 6 + other), kind=rng.choice([0] * 9 + [1]), extended=extended
        )
    if rng.random() < 0.5:
        stream = legal.mutated(rng, stream)
    start = rng.choice([0, 0, 0, len(stream) // 3])
    frames = legal.table(rng.choice([0, 2, 9]), FRAME_WIDTH)
    (rows, _, _), buffers = agreed(
        compiled, "scan_frames", stream, start, len(stream), rng.choice([65536, 40, 512]), frames
    )
    for first in range(rows + 1):
        agreed(compiled, "collect_deliveries", buffers[0], first, rows, legal.table(rng.choice([1, 9]), DELIVERY_WIDTH))


@settings(MANY, max_examples=150)
@given(noise=st.binary(max_size=120))
def test_noise_is_judged_alike(compiled: SimpleNamespace, noise: bytes) -> None:
    for message_format in (0, BATCH_FORMAT):
        rows = legal.delivery_row(noise, 0, message_format)
        agreed(compiled, "ingest", noise, rows, 0, 1, 0, b"", bytearray(), 1000)
        agreed(compiled, "find_key", noise, 0, len(noise), message_format)
        agreed(compiled, "count_events", noise, 0, len(noise), message_format)
        agreed(compiled, "open_events", noise, rows, 0, 1, legal.table(1, EVENT_WIDTH))
    agreed(compiled, "scan_frames", noise, 0, len(noise), 512, legal.table(4, FRAME_WIDTH))
    agreed(compiled, "scan_batches", noise, 0, len(noise), 1, legal.table(2, BATCH_WIDTH))
    agreed(compiled, "follow_batches", noise, 1, legal.table(1, WALK_WIDTH), legal.table(1, SPARSE_WIDTH), None)
    room = SendRoom(9, 9, 9999)
    agreed(compiled, "deliver", noise, RunCursor(), FORM, 0, room, bytearray())
    agreed(compiled, "deliver_batches", noise, RunCursor(), FORM, 0, room, 9, bytearray())
    agreed(compiled, "crc32c", noise, 5)


def test_calls_that_break_the_contract_are_refused_by_both(compiled: SimpleNamespace) -> None:
    run = legal.stored_batch(b"", 0)
    rows = legal.delivery_row(b"1234")
    calls: list[tuple[Any, ...]] = [
        ("crc32c", b"", -1),
        ("scan_frames", b"1234", 0, 5, 512, legal.table(1, FRAME_WIDTH)),
        ("scan_frames", b"1234", -1, 4, 512, legal.table(1, FRAME_WIDTH)),
        ("collect_deliveries", legal.table(1, FRAME_WIDTH), 0, 2, legal.table(1, DELIVERY_WIDTH)),
        ("ingest", b"123", rows, 0, 1, 0, None, bytearray(b"x"), 10),
        ("ingest", b"1234", rows, 0, 2, 0, None, bytearray(b"x"), 10),
        ("ingest", b"1234", rows, 0, 1, 4, None, bytearray(b"x"), 10),
        ("ingest", b"1234", rows, 0, 0, 1, None, bytearray(b"x"), 10),
        ("find_key", b"1234", 3, 2, 0),
        ("count_events", b"1234", 0, 5, 0),
        ("find_keys", b"123", rows, 0, 1, 128, legal.table(1, KEY_WIDTH)),
        ("find_keys", b"1234", rows, 0, 1, 128, legal.table(0, KEY_WIDTH)),
        ("group_deliveries", rows, 0, 2, legal.table(2, KEY_WIDTH), rows, legal.table(2, DELIVERY_WIDTH), rows),
        ("find_record", run, 1, 0),
        ("find_record", run, 0, -1),
        ("find_offset", run, 0, -1),
        ("find_offset", run, 0, 2**64),
        ("scan_batches", run, 0, 80, -1, legal.table(1, BATCH_WIDTH)),
        ("follow_batches", run, -1, legal.table(1, WALK_WIDTH), legal.table(1, SPARSE_WIDTH), None),
        ("follow_batches", run, 2**64, legal.table(1, WALK_WIDTH), legal.table(1, SPARSE_WIDTH), None),
        ("follow_batches", run, 1, legal.table(1, WALK_WIDTH - 1), legal.table(1, SPARSE_WIDTH), None),
        ("scan_records", legal.stored_batch(b"", 0, kind=3), 0, legal.table(1, RECORD_WIDTH)),
        ("open_events", b"123", rows, 0, 1, legal.table(1, EVENT_WIDTH)),
        ("deliver", run, RunCursor(81), FORM, 0, ROOM, bytearray(b"x")),
        ("deliver", run, RunCursor(-1), FORM, 0, ROOM, bytearray(b"x")),
        ("deliver", run, RunCursor(0, -1), FORM, 0, ROOM, bytearray(b"x")),
        ("deliver", run, RunCursor(0, 80, -1), FORM, 0, ROOM, bytearray(b"x")),
        ("deliver", run, RunCursor(0, 0, 1), FORM, 0, ROOM, bytearray(b"x")),
        ("deliver", run, RunCursor(), TransferForm(65536, 0, 512, False), 0, ROOM, bytearray(b"x")),
        ("deliver", run, RunCursor(), TransferForm(0, -1, 512, False), 0, ROOM, bytearray(b"x")),
        ("deliver", run, RunCursor(), TransferForm(0, 0, 511, False), 0, ROOM, bytearray(b"x")),
        ("deliver", run, RunCursor(), FORM, 2**32, ROOM, bytearray(b"x")),
        ("deliver", run[:-1], RunCursor(), FORM, 0, ROOM, bytearray(b"x")),
        ("deliver_batches", run, RunCursor(81), FORM, 0, ROOM, 1, bytearray(b"x")),
        ("deliver_batches", run, RunCursor(), TransferForm(0, 2**32, 512, False), 0, ROOM, 1, bytearray(b"x")),
        ("deliver_batches", run[:-1], RunCursor(), FORM, 0, ROOM, 1, bytearray(b"x")),
        ("deliver_messages", run, legal.table(1, MESSAGE_WIDTH), 2, bytes(16), FORM, 0, ROOM, bytearray(b"x")),
        ("deliver_messages", run, legal.table(1, MESSAGE_WIDTH), 0, bytes(15), FORM, 0, ROOM, bytearray(b"x")),
        ("deliver_messages", run, legal.table(1, MESSAGE_WIDTH), 0, bytes(16), FORM, -1, ROOM, bytearray(b"x")),
    ]
    for call in calls:
        answer, buffers = agreed(compiled, *call)
        assert answer == "refused", call
        assert all(buffer == b"x" for buffer in buffers if isinstance(buffer, bytearray)), call


def planted(kernel: Callable[..., Any], position: int) -> Callable[..., Any]:
    """A kernel that writes one wrong byte into what it appends."""

    def wrong(*arguments: Any) -> Any:
        result = kernel(*arguments)
        arguments[-2][position] ^= 0x10
        return result

    return wrong


@pytest.mark.parametrize("position", [0, 7, 31, 32, 44])
def test_a_planted_wrong_byte_is_found(compiled: SimpleNamespace, position: int) -> None:
    message = legal.annotations({}) + legal.data_section(b"body")
    arguments = (message, legal.delivery_row(message, 0, 0), 0, 1, 0, None, bytearray(), 1000)
    assert agreed(compiled, "ingest", *arguments)[0][3] == INGEST_DONE
    wrong = SimpleNamespace(ingest=planted(compiled.ingest, position))
    with pytest.raises(AssertionError, match="ingest"):
        agreed(wrong, "ingest", *arguments)
