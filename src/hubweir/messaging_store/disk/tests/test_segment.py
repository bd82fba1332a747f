from __future__ import annotations

import errno
import struct

import pytest

from hubweir.env import File
from hubweir.errors import NewerFormat
from hubweir.kernels import crc32c
from hubweir.kernels.stored_batch import CRC_SEED
from hubweir.messaging_store.disk import segment
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, SegmentHeader, create, unpack_header
from hubweir.messaging_store.log import Durability
from hubweir.testing.memory_faults import Fault
from hubweir.testing.memory_files import MemoryFiles

HEADER = SegmentHeader("0f" * 16, 77, 3, 100, 5000, 4990, 1234, 1300, Durability.RELAXED)


def test_a_header_comes_back_whole() -> None:
    data = HEADER.pack()
    assert len(data) == SEGMENT_HEADER_SIZE and unpack_header(data) == HEADER
    assert unpack_header(data + b"batches") == HEADER


def test_a_header_that_never_saw_a_record_says_so() -> None:
    fresh = SegmentHeader("00" * 16, 1, 1, 0, 0, -1, -1, 0, Durability.DURABLE)
    assert unpack_header(fresh.pack()) == fresh


def test_every_flipped_bit_and_every_cut_is_noticed() -> None:
    data = HEADER.pack()
    assert all(unpack_header(data[:cut]) is None for cut in range(len(data)))
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        assert unpack_header(bytes(damaged)) is None


def test_a_newer_version_is_refused_by_name() -> None:
    data = bytearray(HEADER.pack())
    data[4:6] = b"\0\2"
    data[124:] = struct.pack(">I", crc32c(bytes(data[:124]), CRC_SEED))
    with pytest.raises(NewerFormat, match="format 2"):
        unpack_header(bytes(data))


def test_a_new_segment_is_durable_with_what_it_was_given() -> None:
    files = MemoryFiles()
    made = create(files, "", HEADER, [[b"ab", b"c"], [b"def"]])
    assert made.end == SEGMENT_HEADER_SIZE + 6
    files.power_cut()
    assert files.paths() == [HEADER.name.file_name]
    data = files.bytes_of(HEADER.name.file_name)
    assert unpack_header(bytes(data)) == HEADER and data[SEGMENT_HEADER_SIZE : made.end] == b"abcdef"


def test_a_segment_that_could_not_be_made_has_no_name() -> None:
    files = MemoryFiles()
    files.plan(Fault.SYNC_EIO)
    with pytest.raises(OSError):
        create(files, "", HEADER)
    assert HEADER.name.file_name not in files.paths()


def test_space_is_set_aside_in_steps_that_double() -> None:
    files = MemoryFiles()
    made = create(files, "", HEADER)
    steps = [made.reserved]
    for _ in range(3):
        made.end = made.reserved
        made.set_aside(1)
        steps.append(made.reserved)
    assert steps[0] == segment.FIRST_STEP_BYTES
    assert steps[1:] == [2 * steps[0], 4 * steps[0], 8 * steps[0]]


def test_when_the_big_step_does_not_fit_the_small_one_is_taken() -> None:
    files = MemoryFiles()
    made = create(files, "", HEADER)
    made.end = made.reserved
    made._files = MemoryFiles()  # asked for free space a moment before others took it
    files.capacity_bytes = made.end + 10_000
    made.set_aside(100)
    assert made.reserved == made.end + 100 + segment.MARK_ROOM_BYTES
    with pytest.raises(OSError) as caught:
        made.set_aside(10_000)
    assert caught.value.errno == errno.ENOSPC


def test_a_finished_segment_gives_the_spare_space_back() -> None:
    files = MemoryFiles()
    made = create(files, "", HEADER, [[b"x" * 10]])
    made.finish()
    assert made.file.size() == SEGMENT_HEADER_SIZE + 10


def test_what_a_failed_write_left_is_cut_off_durably() -> None:
    files = MemoryFiles()
    made = create(files, "", HEADER, [[b"good"]])
    made.file.write(made.end, [b"bad" * 1000])
    made.forget_behind()
    files.power_cut()
    assert bytes(files.bytes_of(HEADER.name.file_name)[SEGMENT_HEADER_SIZE:]) == b"good"


def test_on_a_nearly_full_disk_a_step_takes_a_small_share_of_what_is_free() -> None:
    files = MemoryFiles()
    made = create(files, "", HEADER)
    made.end = made.reserved = 8 << 20
    made.file.reserve(made.reserved)
    files.capacity_bytes = made.reserved + (9 << 20)
    made.set_aside(1000)
    assert made.reserved - made.end <= 1 << 20 and files.free_bytes() >= 8 << 20


class TakesAPart:
    """A file of a system that sets a part aside before it finds that there is no space."""

    def __init__(self, file: File) -> None:
        self.truncate, self.size = file.truncate, file.size

    def reserve(self, size: int) -> None:
        self.truncate(size - 100)
        raise OSError(errno.ENOSPC, "no space")


def test_a_step_that_does_not_fit_gives_back_what_it_got() -> None:
    made = create(MemoryFiles(), "", HEADER)
    made.end = before = made.reserved
    made.file = TakesAPart(made.file)
    with pytest.raises(OSError):
        made.set_aside(5000)
    assert made.file.size() == before == made.reserved


def test_a_finished_segment_is_durable_also_when_it_is_full_to_the_last_byte() -> None:
    for seed in range(10):
        files = MemoryFiles(seed)
        made = create(files, "", HEADER)
        content = b"x" * (made.reserved - made.end)
        made.file.write(made.end, [content])
        made.end = made.reserved
        made.finish()
        files.power_cut()
        assert bytes(files.bytes_of(HEADER.name.file_name)[SEGMENT_HEADER_SIZE:]) == content
