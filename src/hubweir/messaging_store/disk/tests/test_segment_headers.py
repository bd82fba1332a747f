"""segment_headers.py: what can be proved of a damaged header is made again, what cannot is told or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.errors import CorruptStore
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.disk.layout import parse_segment_name
from hubweir.messaging_store.disk.segment_headers import SegmentHeaders, read_headers
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.tests.batches import sealed
from hubweir.testing.answers import made_log

LOG_ID = "ab" * 16
FOLDER = f"store-0/logs/{LOG_ID}"
HEADER_AND_BATCH = 300  # bytes: more than a segment's header and the header of its first batch


def newest(bench) -> bytearray:
    data: bytearray = bench.env.files.bytes_of(f"{FOLDER}/{bench.segments()[-1]}")
    return data


@pytest.fixture
def three(bench):  # type: ignore[no-untyped-def]
    """A bench whose log has three segments with one record each."""
    for message in (b"a" * 300, b"b" * 300, b"c" * 300):
        bench.append(message)
        bench.reopen(close=True)
    assert len(bench.segments()) == 3
    return bench


def headers(bench) -> SegmentHeaders:
    names = [parsed for name in bench.segments() if (parsed := parse_segment_name(name)) is not None]
    return read_headers(bench.env.files, FOLDER, LOG_ID, names)


def damage(bench, number: int, start: int, end: int) -> None:
    data = bench.env.files.bytes_of(f"{FOLDER}/{bench.segments()[number]}")
    data[start:end] = bytes(byte ^ 0xFF for byte in data[start:end])


def test_sound_headers_come_as_they_are_with_the_size_of_their_files(three) -> None:
    found = headers(three)
    assert [each.header.first_index for each in found.files] == [0, 1, 2] and found.damaged == []
    assert {each.header.nonce for each in found.files} == {found.nonce}
    assert [each.size for each in found.files] == [
        len(three.env.files.bytes_of(f"{FOLDER}/{name}")) for name in three.segments()
    ]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_damaged_header_is_made_again_from_the_batch_behind_it(three, number: int) -> None:
    before = headers(three)
    damage(three, number, 30, 31)
    after = headers(three)
    assert after.nonce == before.nonce and len(after.damaged) == 1 and "rebuilt" in after.damaged[0]
    rebuilt, whole = after.files[number].header, before.files[number].header
    assert (rebuilt.name, rebuilt.nonce, rebuilt.first_offset) == (whole.name, whole.nonce, whole.first_offset)
    assert rebuilt.durability is Durability.RELAXED  # careful: numbers are skipped after an unclean stop


def test_when_all_headers_are_damaged_the_batches_tell_the_nonce(three) -> None:
    before = headers(three)
    for number in range(3):
        damage(three, number, 30, 31)
    after = headers(three)
    assert after.nonce == before.nonce and len(after.damaged) == 3


@pytest.mark.parametrize("number", [0, 1])
def test_an_older_segment_that_lost_its_batch_too_keeps_its_place(three, number: int) -> None:
    before = headers(three)
    damage(three, number, 0, HEADER_AND_BATCH)
    after = headers(three)
    assert [each.header.name for each in after.files] == [each.header.name for each in before.files]
    assert after.files[number].header.nonce == before.nonce and "behind it are damaged" in after.damaged[0]


def test_searches_before_an_older_segment_that_lost_both_find_what_stands_before_it(bench) -> None:
    """A reader that begins by an offset or a time would else begin behind events that are sound."""
    offsets, times = [], []
    for number in range(6):
        bench.env.run_for(2_000)
        if number in (2, 4):
            bench.reopen()
        appended = bench.append(b"%d" % number)
        offsets.append(appended.first_offset)
        times.append(appended.enqueued_time_ms)
    bench.env.run_for(2_000)
    damage(bench, 1, 0, HEADER_AND_BATCH)
    bench.reopen()
    damaged = [2, 3]
    for number in (0, 1, 4, 5):
        assert bench.answer(bench.log.find_offset, offsets[number]) == number
        assert bench.answer(bench.log.find_time, times[number]) == number
    for number in damaged:  # who reads there is told what is lost
        assert bench.answer(bench.log.find_offset, offsets[number]) in damaged
        assert bench.answer(bench.log.find_time, times[number]) in damaged


def test_the_newest_segment_that_lost_its_batch_too_is_refused(three) -> None:
    damage(three, 2, 0, HEADER_AND_BATCH)
    with pytest.raises(CorruptStore, match="nothing can be proved"):
        headers(three)


def test_a_file_of_another_log_in_a_segments_place_is_never_taken_for_it(three, make_events) -> None:
    before = headers(three)
    other = made_log(three.env, three.store, "cd" * 16)
    other.append(make_events([b"theirs"]), now_ms=three.env.now_ms(), on_done=lambda outcome: None)
    three.env.run_for(100)
    (stranger,) = three.env.files.list(f"store-0/logs/{'cd' * 16}")
    content = bytes(three.env.files.bytes_of(f"store-0/logs/{'cd' * 16}/{stranger}"))
    assert b"theirs" in content
    three.env.files.set_bytes(f"{FOLDER}/{three.segments()[0]}", content)
    after = headers(three)
    assert "behind it are damaged" in after.damaged[0]
    assert after.nonce == before.nonce == after.files[0].header.nonce  # so that no batch of it is ever read


@pytest.mark.parametrize("what", ["of another log", "of another index"])
def test_a_whole_segment_under_a_name_that_is_not_its_own_is_never_taken_for_it(three, what: str) -> None:
    before = headers(three)
    data = three.env.files.bytes_of(f"{FOLDER}/{three.segments()[1]}")
    if what == "of another log":
        data[:128] = replace(before.files[1].header, log_id="cd" * 16).pack()
        data[200] ^= 1
    else:
        data[:] = three.env.files.bytes_of(f"{FOLDER}/{three.segments()[0]}")
    after = headers(three)
    assert after.files[1].header.name == before.files[1].header.name
    assert "behind it are damaged" in after.damaged[0] and after.nonce == before.nonce


def test_a_header_is_not_made_again_from_a_batch_whose_records_are_damaged(three) -> None:
    damage(three, 1, 30, 31)
    damage(three, 1, HEADER_AND_BATCH, HEADER_AND_BATCH + 1)
    assert "behind it are damaged" in headers(three).damaged[0]
    damage(three, 2, 30, 31)
    damage(three, 2, HEADER_AND_BATCH, HEADER_AND_BATCH + 1)
    with pytest.raises(CorruptStore, match="nothing can be proved"):
        headers(three)


def test_a_header_is_not_made_again_from_a_batch_that_no_log_completed(bench) -> None:
    """Whole by its checksums, as a client's run is before it has the log's secret."""
    bench.append(b"a")
    run = sealed(b"x" * 300)
    complete_run(run, LogEnd(), nonce=0, enqueued_time_ms=5, durable_upto=0, writer_epoch=1)
    bench.env.files.set_bytes(f"{FOLDER}/{bench.segments()[0]}", bytes(128) + run)
    with pytest.raises(CorruptStore, match="nothing can be proved"):
        headers(bench)


def test_a_segment_of_zeros_is_an_empty_log_only_where_it_is_the_first_and_the_only_one(three) -> None:
    files, (first, second, third) = three.env.files, three.segments()
    data = files.bytes_of(f"{FOLDER}/{first}")
    data[:] = bytes(len(data))
    found = headers(three)
    assert [each.header.first_index for each in found.files] == [0, 1, 2], "its records are lost, not never written"
    files.remove(f"{FOLDER}/{first}")
    files.remove(f"{FOLDER}/{third}")
    data = files.bytes_of(f"{FOLDER}/{second}")
    data[:] = bytes(len(data))
    with pytest.raises(CorruptStore, match="nothing can be proved"):
        headers(three)


def test_a_first_segment_without_a_byte_behind_its_damaged_header_was_an_empty_log(bench) -> None:
    bench.append(b"a")
    data = newest(bench)
    data[:] = bytes(len(data))
    found = headers(bench)
    assert (found.files, found.nonce) == ([], None) and "the log was empty" in found.damaged[0]


def test_a_damaged_header_of_the_newest_segment_is_rebuilt_with_an_alarm(bench) -> None:
    bench.append(b"a")
    bench.env.run_for(2000)
    newest(bench)[30] ^= 1
    bench.reopen()
    assert bench.everything() == {0: b"a"} and "header" in str(bench.store.alarms.current()[0])


def test_when_nothing_can_be_proved_the_log_does_not_open(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    data = newest(bench)
    data[:300] = bytes(300)
    with pytest.raises(CorruptStore):
        bench.reopen()
