"""What an event costs in the kernels: ns each, and as a ratio to copying the same bytes in the same run.

Run it with the package installed (or PYTHONPATH=src): python benchmarks/kernels.py. Takes under 20 seconds. Ratios
travel between machines better than nanoseconds do: memcpy is the floor, since a record must be copied once.
"""

from __future__ import annotations

import struct
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

from hubweir import kernels
from hubweir.kernels import twins, which
from hubweir.kernels.columns_contract import (
    ALL_COLUMNS,
    BODY_BYTES,
    BODY_OFFSETS,
    COLUMN_BODY,
    COLUMN_BUFFERS,
    COLUMN_SEQUENCE_NUMBER,
    OFFSET_BYTES,
    OFFSET_OFFSETS,
    PROPERTIES_KEY_BYTES,
    PROPERTIES_KEY_OFFSETS,
    PROPERTIES_OFFSETS,
    PROPERTIES_VALUE_BYTES,
    PROPERTIES_VALUE_OFFSETS,
)
from hubweir.kernels.contract import (
    BATCH_FORMAT,
    BATCH_WIDTH,
    DELIVERY_WIDTH,
    FRAME_WIDTH,
    KEY_WIDTH,
    RunCursor,
    SendRoom,
    TransferForm,
)
from hubweir.kernels.stored_batch import CRC_SEED, HEADER_SIZE, HEADER_STRUCT, KIND_EVENTS, MAGIC, VERSION

TWINS: dict[str, Any] = {}
if which() == "compiled":
    TWINS["compiled"] = kernels
TWINS["pure"] = twins

KEY = b"\x00\x53\x72\xc1\x1b\x02\xa3\x13x-opt-partition-key\xa1\x03pk1"
ROUNDS = 9
FORM = TransferForm(channel=1, handle=0, max_frame_size=65536, settled=True)
ROOM = SendRoom(1 << 30, 1 << 30, 1 << 30)
ROUND_SECONDS = {"compiled": 0.02, "pure": 0.08}
Work = tuple[str, Callable[[], object], bytes]


def message(size: int, *, keyed: bool) -> bytes:
    """One encoded message whose body has `size` bytes; keyed ones carry the key as the Python client repeats it."""
    body = struct.pack(">I", size) + bytes(index % 251 for index in range(size))
    return (KEY if keyed else b"") + b"\x00\x53\x75\xb0" + body


def envelope(one: bytes, count: int, *, keyed: bool) -> bytes:
    return (KEY if keyed else b"") + (b"\x00\x53\x75\xb0" + struct.pack(">I", len(one)) + one) * count


def sealed(records: bytes, count: int, crc32c: Callable[..., int]) -> bytes:
    """A complete stored batch of these records."""
    payload_crc = crc32c(records, CRC_SEED)
    fields = (MAGIC, VERSION, KIND_EVENTS, 0, HEADER_SIZE + len(records), count, 0, 0, payload_crc, 1, 7, 0, 0, 1, 0, 0)
    header = struct.pack(HEADER_STRUCT, *fields, 0)
    return header[:76] + struct.pack(">I", crc32c(header[:76], CRC_SEED)) + records


def nanoseconds(call: Callable[[], object], events: int, seconds: float) -> float:
    """Median over rounds of the time that one event takes, this thread's processor time only."""
    call()
    begun = time.perf_counter()
    call()
    repeats = max(1, int(seconds / max(1e-7, time.perf_counter() - begun)))
    rounds = []
    for _ in range(ROUNDS):
        begun_ns = time.thread_time_ns()
        for _ in range(repeats):
            call()
        rounds.append((time.thread_time_ns() - begun_ns) / repeats / events)
    return sorted(rounds)[ROUNDS // 2]


def measure(twin: str, size: int, *, keyed: bool) -> None:
    """Print a line for each kernel on events of this size, in batches of about 60 KB."""
    kernels = TWINS[twin]
    one = message(size, keyed=keyed)
    count = 60_000 // (len(one) + 32)
    payload = envelope(one, count, keyed=keyed)
    rows = array("q", [0, 0, len(payload), 0, BATCH_FORMAT])
    out = bytearray()
    kernels.ingest(payload, rows, 0, 1, 0, None, out, 1 << 20)
    records = bytes(out)
    run = sealed(records, count, kernels.crc32c)
    frames, batches, big = bytearray(), array("q", bytes(8 * BATCH_WIDTH)), 1 << 30
    kernels.deliver(run, RunCursor(), FORM, 0, ROOM, frames)
    wire, table = bytes(frames), array("q", bytes(8 * FRAME_WIDTH * count))

    def ingest() -> None:
        out.clear()
        kernels.ingest(payload, rows, 0, 1, 0, None, out, 1 << 20)

    def deliver() -> None:
        frames.clear()
        kernels.deliver(run, RunCursor(), FORM, 0, ROOM, frames)

    def deliver_batches() -> None:
        frames.clear()
        kernels.deliver_batches(run, RunCursor(), FORM, 0, ROOM, big, frames)

    # The same events one by one, as a sender of single events has them: where each goes.
    single_data = one * count
    singles = array("q", [number for at in range(count) for number in (at, at * len(one), len(one), 0, 0)])
    keys, turns = array("q", bytes(8 * KEY_WIDTH * count)), array("q", [at % 32 for at in range(count)])
    grouped, ends = array("q", bytes(8 * len(singles))), array("q", bytes(8 * 33))

    def route() -> None:
        kernels.find_keys(single_data, singles, 0, count, 128, keys)
        kernels.group_deliveries(singles, 0, count, keys, turns, grouped, ends)

    work: list[Work] = [
        ("ingest", ingest, records),
        ("find + group", route, single_data),
        ("crc32c", lambda: kernels.crc32c(records, CRC_SEED), records),
        ("deliver", deliver, wire),
        ("deliver_batches", deliver_batches, run),
        ("scan_frames", lambda: kernels.scan_frames(wire, 0, len(wire), 65536, table), wire),
        ("scan_batches", lambda: kernels.scan_batches(run, 0, len(run), 7, batches), run),
    ]
    report(twin, f"{size} B{' keyed' if keyed else ''}", work, count)


def report(twin: str, what: str, work: list[Work], count: int) -> None:
    """Print what each call costs an event, beside a copy of the bytes that it makes or reads."""
    for name, call, moved in work:
        cost = nanoseconds(call, count, ROUND_SECONDS[twin])
        target = memoryview(bytearray(len(moved)))
        floor = nanoseconds(lambda: target.__setitem__(slice(None), moved), count, ROUND_SECONDS["compiled"])  # noqa: B023
        speed = 1000 / cost
        print(f"{twin:9} {name:18} {what:12} {cost:10.1f} {floor:8.1f} {cost / floor:8.1f} {speed:12.3f}")


def rich_message(number: int) -> bytes:
    """A message like those of a telemetry sender: two application properties, an own annotation, 200 B of body."""
    properties = b"\xa1\x06device\xa1\x0ddevice-%06d\xa1\x04kind\xa1\x09telemetry" % (number % 1000)
    own = b"\xa3\x13x-opt-partition-key\xa1\x0ddevice-%06d" % (number % 1000)
    return (
        b"\x00\x53\x72\xc1" + bytes([len(own) + 1, 2]) + own
        + b"\x00\x53\x74\xc1" + bytes([len(properties) + 1, 4]) + properties
        + message(200, keyed=False)
    )  # fmt: skip


def measure_columns(twin: str) -> None:
    """Print a line for each kernel of columns, on 2,000 events of 200 B with properties: about 1 MB of each form."""
    kernels, count, big = TWINS[twin], 2000, 1 << 30
    records = bytearray()
    for number in range(count):
        one = rich_message(number)
        kernels.ingest(one, array("q", [0, 0, len(one), 0, 0]), 0, 1, 0, None, records, big)
    run = sealed(bytes(records), count, kernels.crc32c)
    frames, table = bytearray(), array("q", bytes(8 * FRAME_WIDTH * count))
    kernels.deliver(run, RunCursor(), FORM, 0, ROOM, frames)
    wire, deliveries = bytes(frames), array("q", bytes(8 * DELIVERY_WIDTH * count))
    kernels.scan_frames(wire, 0, len(wire), 65536, table)
    kernels.collect_deliveries(table, 0, count, deliveries)
    records.clear()
    kernels.capture_block(run, 0, 0, 0, big, big, -1, records)
    block = bytes(records)
    few = 1 << COLUMN_BODY | 1 << COLUMN_SEQUENCE_NUMBER

    def empty() -> list[bytearray]:
        return [bytearray() for _ in range(COLUMN_BUFFERS)]

    batches = array("q", bytes(8 * BATCH_WIDTH))
    kernels.scan_batches(run, 0, len(run), 0, batches)
    columns = empty()
    kernels.event_columns(wire, deliveries, 0, count, 0, -1, ALL_COLUMNS, 0, columns)
    made = b"".join(columns)
    entries = [None, columns[PROPERTIES_KEY_OFFSETS], columns[PROPERTIES_KEY_BYTES], 0]
    values = [None, columns[PROPERTIES_VALUE_OFFSETS], columns[PROPERTIES_VALUE_BYTES], 0]
    rows = (
        (None, bytes(columns[BODY_OFFSETS]), bytes(columns[BODY_BYTES]), 0),
        (None, bytes(columns[OFFSET_OFFSETS]), bytes(columns[OFFSET_BYTES]), 0),
        (None, bytes(columns[PROPERTIES_OFFSETS]), 0, tuple(entries), tuple(values)),
    )
    order, starts = array("q", bytes(8 * count)), array("q", bytes(8 * 5))

    def into_new(call: Callable[..., object], *arguments: object) -> Callable[[], object]:
        # Not one that is emptied: that one gives its pages back to the system each time, and asks for them again.
        return lambda: call(*arguments, bytearray())

    sent = bytearray()
    kernels.event_batches(*rows, None, 0, count, big, b"", sent)
    work: list[Work] = [
        ("capture_block", into_new(kernels.capture_block, run, 0, 0, 0, big, big, -1), block),
        (
            "read_capture_block",
            lambda: kernels.read_capture_block(block, 0, len(block), count, -big, big << 20, ALL_COLUMNS, 0, empty()),
            block,
        ),
        (
            "event_columns",
            lambda: kernels.event_columns(wire, deliveries, 0, count, 0, -1, ALL_COLUMNS, 0, empty()),
            made,
        ),
        (
            "  body and number",
            lambda: kernels.event_columns(wire, deliveries, 0, count, 0, -1, few, 0, empty()),
            bytes(columns[BODY_BYTES]),
        ),
        (
            "stored_columns",
            lambda: kernels.stored_columns(run, batches, 0, count, 0, -1, ALL_COLUMNS, 0, empty()),
            made,
        ),
        ("event_batches", into_new(kernels.event_batches, *rows, None, 0, count, big, b""), bytes(sent)),
        ("rows_digest", lambda: kernels.rows_digest(0, *rows, None, 0, count), rows[0][2]),
        (
            "rows_by_partition",
            lambda: kernels.rows_by_partition(rows[1], None, 0, count, 4, 0, order, starts),
            rows[1][2],
        ),
    ]
    report(twin, "200 B rich", work, count)


def main() -> int:
    print(f"{'twin':9} {'kernel':18} {'event':12} {'ns/event':>10} {'memcpy':>8} {'ratio':>8} {'M events/s':>12}")
    for twin in TWINS:
        for size, keyed in ((200, False), (200, True), (1024, False)):
            measure(twin, size, keyed=keyed)
        measure_columns(twin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
