"""Stored batches go out with what a reader needs and nothing else: what is blanked, where deliveries end."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels import twins
from hubweir.kernels.contract import (
    B_COUNT,
    B_FIRST_INDEX,
    BATCH_WIDTH,
    BATCHES_OK,
    D_FORMAT,
    D_LENGTH,
    D_SETTLED,
    D_START,
    DELIVERY_WIDTH,
    FRAME_WIDTH,
    STORED_FORMAT,
    RunCursor,
    SendRoom,
    TransferForm,
)
from hubweir.kernels.stored_batch import (
    AT_BATCH_NUMBER,
    AT_FIRST_INDEX,
    AT_FLAGS,
    AT_HEADER_CRC,
    AT_PAYLOAD_CRC,
    AT_PRODUCER_LENGTH,
    AT_WRITER_EPOCH,
    CRC_SEED,
    FLAG_CONTINUES,
    FLAG_NAME_IS_KEY,
    HEADER_SIZE,
)
from hubweir.kernels.tests import legal_bytes as legal

MANY = 1 << 30
ALL = SendRoom(MANY, MANY, MANY)
START = RunCursor()
FRAME_BYTES = 65_536
PREFIX_BYTES = 39  # of a frame of a link whose handle is small


def records_of(*messages: bytes) -> bytes:
    records = bytearray()
    for message in messages:
        assert twins.ingest(message, legal.delivery_row(message, 0, 0), 0, 1, 0, None, records, MANY)[3] == 0
    return bytes(records)


def run_of(*messages: bytes, **batch: Any) -> bytes:
    return legal.stored_batch(records_of(*messages), len(messages), **batch)


def sent(
    kernels: SimpleNamespace,
    run: bytes,
    cursor: RunCursor = START,
    *,
    frame_bytes: int = FRAME_BYTES,
    events: int = MANY,
    limits: tuple[int, int, int] = (MANY, MANY, MANY),
) -> tuple[tuple[int, int, int, RunCursor], list[bytes]]:
    """What the kernel answers, and the payload of each delivery; limits: deliveries, frames, bytes."""
    out, form = bytearray(), TransferForm(1, 3, frame_bytes, True)
    answer = kernels.deliver_batches(run, cursor, form, 9, SendRoom(*limits), events, out)
    return answer, payloads(bytes(out))


def payloads(frames: bytes) -> list[bytes]:
    """The payload of each delivery; all are settled and of our format."""
    table, rows = legal.table(1000, FRAME_WIDTH), legal.table(1000, DELIVERY_WIDTH)
    count, position, _ = twins.scan_frames(frames, 0, len(frames), FRAME_BYTES, table)
    assert position == len(frames)
    taken = twins.collect_deliveries(table, 0, count, rows)
    assert taken == count
    for at in range(0, taken * DELIVERY_WIDTH, DELIVERY_WIDTH):
        assert (rows[at + D_FORMAT], rows[at + D_SETTLED]) == (STORED_FORMAT, 1)
    spans = [(rows[at + D_START], rows[at + D_LENGTH]) for at in range(0, taken * DELIVERY_WIDTH, DELIVERY_WIDTH)]
    return [frames[start : start + length] for start, length in spans]


def batches(payload: bytes) -> list[tuple[int, int]]:
    """First sequence number and count of each batch of a payload, which has to be sound."""
    table = legal.table(100, BATCH_WIDTH)
    count, position, status = twins.scan_batches(payload, 0, len(payload), 0, table)
    assert (status, position) == (BATCHES_OK, len(payload))
    starts = range(0, count * BATCH_WIDTH, BATCH_WIDTH)
    return [(table[at + B_FIRST_INDEX], table[at + B_COUNT]) for at in starts]


def single_deliveries(run: bytes) -> bytes:
    out = bytearray()
    twins.deliver(run, START, TransferForm(0, 0, FRAME_BYTES, True), 0, ALL, out)
    return bytes(out)


def test_what_is_the_services_own_does_not_go_out(kernels: SimpleNamespace) -> None:
    producer = b"\xaa" * 40
    run = run_of(
        legal.data_section(b"one"), legal.data_section(b"two"), name=b"key", producer=producer,
        flags=FLAG_CONTINUES | FLAG_NAME_IS_KEY, nonce=0x5EC2E75EC2E75EC2,
    )  # fmt: skip
    _, (payload,) = sent(kernels, run)
    assert payload[AT_WRITER_EPOCH:AT_FIRST_INDEX] == bytes(12)  # and the nonce
    assert payload[AT_BATCH_NUMBER : AT_HEADER_CRC + 4] == bytes(16)
    assert payload[AT_PRODUCER_LENGTH:AT_PAYLOAD_CRC] == bytes(4)
    assert int.from_bytes(payload[AT_FLAGS : AT_FLAGS + 2]) == FLAG_NAME_IS_KEY
    assert producer not in payload
    assert b"\x5e\xc2\xe7\x5e" not in payload
    assert len(payload) == len(run) - 40
    assert batches(payload) == [(7, 2)]  # with a checksum that is right


def test_a_whole_batch_keeps_the_checksum_of_its_owner(kernels: SimpleNamespace) -> None:
    run = run_of(legal.data_section(b"one"))
    damaged = run[:-1] + b"E"
    _, (payload,) = sent(kernels, damaged)
    assert payload[AT_PAYLOAD_CRC : AT_PAYLOAD_CRC + 4] == run[AT_PAYLOAD_CRC : AT_PAYLOAD_CRC + 4]
    assert twins.crc32c(payload[HEADER_SIZE:], CRC_SEED) != int.from_bytes(run[AT_PAYLOAD_CRC : AT_PAYLOAD_CRC + 4])


def test_batches_that_hold_no_events_stay_behind(kernels: SimpleNamespace) -> None:
    control = legal.stored_batch(b"\x07control", 0, kind=3)
    first = run_of(legal.data_section(b"one"))
    second = run_of(legal.data_section(b"two"), first_index=8)
    run = control + first + control + second + control
    answer, found = sent(kernels, run)
    assert answer == (2, 1, 1, RunCursor(len(run)))
    assert batches(found[0]) == [(7, 1), (8, 1)]
    assert b"control" not in found[0]
    assert sent(kernels, control) == ((0, 0, 0, RunCursor(len(control))), [])


@pytest.mark.parametrize("frame_bytes", [512, 700, 2_000, FRAME_BYTES])
def test_the_events_are_those_of_single_deliveries(kernels: SimpleNamespace, frame_bytes: int) -> None:
    rng = Random(frame_bytes)
    run, index, offset = b"", 7, 1_000
    for _ in range(6):
        bodies = [legal.data_section(rng.randbytes(rng.choice([3, 80, 200]))) for _ in range(rng.choice([1, 4, 9]))]
        records = records_of(*bodies)
        run += legal.stored_batch(
            records, len(bodies), name=b"key", flags=FLAG_NAME_IS_KEY, first_index=index, first_offset=offset,
            producer=rng.choice([b"", bytes(40)]),
        )  # fmt: skip
        index, offset = index + len(bodies), offset + len(records)
    (events, deliveries, frames, *_), found = sent(kernels, run, frame_bytes=frame_bytes)
    assert (events, deliveries) == (index - 7, len(found))
    assert frames == deliveries
    assert all(len(payload) <= frame_bytes - PREFIX_BYTES for payload in found)
    assert single_deliveries(b"".join(found)) == single_deliveries(run)
    for payload in found:
        assert sum(count for _, count in batches(payload)) > 0


def test_a_batch_that_does_not_fit_begins_the_next_delivery_where_half_of_the_frame_is_used(
    kernels: SimpleNamespace,
) -> None:
    small, large = legal.data_section(bytes(30)), legal.data_section(bytes(200))
    ahead = run_of(large)
    behind = run_of(small, small, large, first_index=8)
    _, found = sent(kernels, ahead + behind, frame_bytes=600)
    assert [batches(payload) for payload in found] == [[(7, 1)], [(8, 3)]]
    # With less in front of it, it is cut.
    ahead = run_of(small)
    _, found = sent(kernels, ahead + behind, frame_bytes=600)
    assert [batches(payload) for payload in found] == [[(7, 1), (8, 2)], [(10, 1)]]


def test_an_event_larger_than_a_frame_takes_as_many_as_it_needs(kernels: SimpleNamespace) -> None:
    run = run_of(legal.data_section(bytes(2_000)), legal.data_section(b"two"))
    out = bytearray()
    answer = kernels.deliver_batches(run, START, TransferForm(1, 3, 600, True), 9, ALL, MANY, out)
    assert answer == (2, 2, 5, RunCursor(len(run)))
    table = legal.table(9, FRAME_WIDTH)
    count, _, _ = twins.scan_frames(out, 0, len(out), 600, table)
    assert count == 5
    more = [table[at + 12] for at in range(0, count * FRAME_WIDTH, FRAME_WIDTH)]
    assert more == [1, 1, 1, 0, 0]


def test_a_call_stops_at_its_limits_and_the_next_goes_on(kernels: SimpleNamespace) -> None:
    run = run_of(*[legal.data_section(bytes([one]) * 100) for one in range(9)])
    whole = single_deliveries(run)
    for limit in (
        {"events": 2},
        {"limits": (1, MANY, MANY)},
        {"limits": (MANY, 1, MANY)},
        {"limits": (MANY, MANY, 99)},
    ):
        cursor, found, calls = START, [], 0
        while cursor.batch_at < len(run):
            answer, brought = sent(kernels, run, cursor, frame_bytes=600, **limit)  # type: ignore[arg-type]
            cursor, calls = answer[3], calls + 1
            assert answer[0] == sum(count for payload in brought for _, count in batches(payload)) > 0
            found += brought
        assert calls > 1
        assert single_deliveries(b"".join(found)) == whole
    assert sent(kernels, run, events=0) == ((0, 0, 0, START), [])


def test_a_full_frame_has_to_be_left_for_a_second_delivery(kernels: SimpleNamespace) -> None:
    run = run_of(*[legal.data_section(bytes(100))] * 9)
    (_, deliveries, *_), _ = sent(kernels, run, frame_bytes=600, limits=(MANY, MANY, 1_100))
    assert deliveries == 1
    (_, deliveries, *_), _ = sent(kernels, run, frame_bytes=600, limits=(MANY, MANY, 1_200))
    assert deliveries == 2


def test_a_damaged_run_is_refused_and_leaves_nothing(kernels: SimpleNamespace) -> None:
    run = run_of(*[legal.data_section(bytes(100))] * 9)
    out = bytearray(b"before")
    cut = bytearray(run)
    cut[HEADER_SIZE : HEADER_SIZE + 4] = (2**31).to_bytes(4)
    # More bytes than records: nothing may be taken for a whole batch that was not counted as one.
    records = records_of(*[legal.data_section(bytes(10))] * 3)
    long = legal.stored_batch(records + bytes(9_000), 3) + legal.stored_batch(records, 3, first_index=10)
    for damaged in (run[:-1], bytes(cut), long):
        with pytest.raises(KernelRefusal):
            kernels.deliver_batches(damaged, START, TransferForm(1, 3, 600, True), 9, ALL, MANY, out)
        assert out == b"before"
