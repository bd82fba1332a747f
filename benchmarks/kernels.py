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
from types import SimpleNamespace
from typing import Any

from hubweir.kernels import pure
from hubweir.kernels.contract import BATCH_FORMAT, BATCH_WIDTH, FRAME_WIDTH, KEY_WIDTH
from hubweir.kernels.stored_batch import CRC_SEED, HEADER_SIZE, HEADER_STRUCT, KIND_EVENTS, MAGIC, VERSION

try:
    from hubweir.kernels import _amqp, _keys, _record

    TWINS: dict[str, Any] = {
        "compiled": SimpleNamespace(**{**vars(_record), **vars(_amqp), **vars(_keys)}),
        "pure": pure,
    }
except ImportError:
    TWINS = {"pure": pure}

KEY = b"\x00\x53\x72\xc1\x1b\x02\xa3\x13x-opt-partition-key\xa1\x03pk1"
ROUNDS = 9
ROUND_SECONDS = {"compiled": 0.02, "pure": 0.08}


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
    kernels, seconds = TWINS[twin], ROUND_SECONDS[twin]
    one = message(size, keyed=keyed)
    count = 60_000 // (len(one) + 32)
    payload = envelope(one, count, keyed=keyed)
    rows = array("q", [0, 0, len(payload), 0, BATCH_FORMAT])
    out = bytearray()
    kernels.ingest(payload, rows, 0, 1, 0, None, out, 1 << 20)
    records = bytes(out)
    run = sealed(records, count, kernels.crc32c)
    frames, batches, big = bytearray(), array("q", bytes(8 * BATCH_WIDTH)), 1 << 30
    kernels.deliver(run, 0, 0, 0, 1, 0, 0, True, 65536, big, big, big, frames)
    wire, table = bytes(frames), array("q", bytes(8 * FRAME_WIDTH * count))
    target = memoryview(bytearray(max(len(wire), len(run))))

    def copy(source: bytes) -> Callable[[], object]:
        return lambda: target.__setitem__(slice(0, len(source)), source)

    def ingest() -> None:
        out.clear()
        kernels.ingest(payload, rows, 0, 1, 0, None, out, 1 << 20)

    def deliver() -> None:
        frames.clear()
        kernels.deliver(run, 0, 0, 0, 1, 0, 0, True, 65536, big, big, big, frames)

    # The same events one by one, as a sender of single events has them: where each goes.
    single_data = one * count
    singles = array("q", [number for at in range(count) for number in (at, at * len(one), len(one), 0, 0)])
    keys, turns = array("q", bytes(8 * KEY_WIDTH * count)), array("q", [at % 32 for at in range(count)])
    grouped, ends = array("q", bytes(8 * len(singles))), array("q", bytes(8 * 33))

    def route() -> None:
        kernels.find_keys(single_data, singles, 0, count, 128, keys)
        kernels.group_deliveries(singles, 0, count, keys, turns, grouped, ends)

    work: list[tuple[str, Callable[[], object], bytes]] = [
        ("ingest", ingest, records),
        ("find + group", route, single_data),
        ("crc32c", lambda: kernels.crc32c(records, CRC_SEED), records),
        ("deliver", deliver, wire),
        ("scan_frames", lambda: kernels.scan_frames(wire, 0, len(wire), 65536, table), wire),
        ("scan_batches", lambda: kernels.scan_batches(run, 0, len(run), 7, batches), run),
    ]
    for name, call, moved in work:
        cost = nanoseconds(call, count, seconds)
        floor = nanoseconds(copy(moved), count, ROUND_SECONDS["compiled"])
        what = f"{size} B{' keyed' if keyed else ''}"
        print(f"{twin:9} {name:13} {what:12} {cost:10.1f} {floor:8.1f} {cost / floor:8.1f}")


def main() -> int:
    print(f"{'twin':9} {'kernel':13} {'event':12} {'ns/event':>10} {'memcpy':>8} {'ratio':>8}")
    for twin in TWINS:
        for size, keyed in ((200, False), (200, True), (1024, False)):
            measure(twin, size, keyed=keyed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
