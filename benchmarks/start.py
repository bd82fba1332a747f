"""What a start costs that reads the newest segment of a log, as a ratio to reading and checking the same bytes once.

    ./run bench start [MiB]                 segments of this size; 32 when none is named

The floor is one read of the file in pieces and one CRC-32C over each: less than any start can do, since a checksum
stands in the header of every batch and another behind it. The start judges every batch (both checksums, whether it
continues the one before), finds where the log ends and what was durable, and builds the sparse index. Both are
processor time, in turns, the median of all rounds. The file is in the page cache.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Callable

from hubweir.kernels import crc32c, ingest, which
from hubweir.kernels.stored_batch import CRC_SEED
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.disk.batch_scan import PIECE_BYTES
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.recovery import recover
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, SegmentHeader
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import begin_batch, seal_batch

LOG_ID, FOLDER, NONCE = "ab" * 16, "log", 7
ROUNDS = 15
# Events of a batch, bytes of a body: about what one event alone, a small sender's batch and a full batch have.
SHAPES = (("tiny", 1, 8), ("middle", 20, 200), ("large", 300, 200))


def a_batch(events: int, body_bytes: int) -> bytes:
    """A sealed run of one batch."""
    message = b"\x00\x53\x75\xb0" + body_bytes.to_bytes(4, "big") + bytes(body_bytes)
    rows = array("q", [number for at in range(events) for number in (at, at * len(message), len(message), 0, 0)])
    run = bytearray()
    start = begin_batch(run)
    ingest(message * events, rows, 0, events, 0, None, run, 1 << 30)
    seal_batch(run, start, count=events)
    return bytes(run)


def write_segment(files: SystemFiles, events: int, body_bytes: int, size: int) -> int:
    """A log of one segment, as a kill leaves it; return how many batches it has."""
    one, number, index, offset = a_batch(events, body_bytes), 0, 0, 0
    header = SegmentHeader(LOG_ID, NONCE, 1, 0, 0, -1, -1, 1, Durability.DURABLE)
    files.make_folder(FOLDER)
    file = files.open(f"{FOLDER}/{header.name.file_name}", create=True)
    file.write(0, [header.pack()])
    at = SEGMENT_HEADER_SIZE
    while at < size:
        run = bytearray(one * max(1, PIECE_BYTES // len(one)))
        end = complete_run(
            run,
            LogEnd(index, offset, number=number),
            nonce=NONCE,
            enqueued_time_ms=1,
            durable_upto=number,
            writer_epoch=1,
        )
        file.write(at, [run])
        at += len(run)
        index, offset, number = end.index, end.offset, end.number
    file.close()
    return number


def seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def measure(shape: str, events: int, body_bytes: int, size: int) -> None:
    """Print a line of one shape of batches."""
    with tempfile.TemporaryDirectory(prefix="hubweir-start-") as folder:
        files = SystemFiles(folder)
        batches = write_segment(files, events, body_bytes, size)
        [name] = files.list(FOLDER)

        def floor() -> None:
            file = files.open_to_read(f"{FOLDER}/{name}")
            for at in range(SEGMENT_HEADER_SIZE, file.size(), PIECE_BYTES):
                crc32c(file.read(at, PIECE_BYTES), CRC_SEED)
            file.close()

        def start() -> None:
            assert recover(files, FOLDER, LOG_ID).end.number == batches

        times = [(seconds(floor), seconds(start)) for _ in range(ROUNDS)]
    floor_ms, start_ms = (1000 * statistics.median(each) for each in zip(*times, strict=True))
    per_batch = 1_000_000 * start_ms / batches
    ratio = statistics.median(start / floor for floor, start in times)
    print(f"{shape:8} {events:6} {batches:9} {floor_ms:10.1f} {start_ms:10.1f} {per_batch:10.0f} {ratio:7.2f}")


def main() -> int:
    size = int(sys.argv[1] if len(sys.argv) > 1 else 32) << 20
    print(f"{size >> 20} MiB, kernels: {which()}")
    print(
        f"{'batches':8} {'events':>6} {'number':>9} {'floor, ms':>10} {'start, ms':>10} {'ns/batch':>10} {'ratio':>7}"
    )
    for shape, events, body_bytes in SHAPES:
        measure(shape, events, body_bytes, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
