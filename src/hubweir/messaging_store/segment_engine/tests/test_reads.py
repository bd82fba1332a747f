"""reads.py: what is visible is read the same from the tail and from the segments; nothing else is."""

from __future__ import annotations

import re
from functools import partial

import pytest

from hubweir.errors import CorruptStore
from hubweir.kernels.stored_batch import MAGIC
from hubweir.messaging_store.log import Replayed, Run
from hubweir.messaging_store.retention import expire
from hubweir.testing.answers import answered


def test_reads_take_one_batch_at_least_and_no_more_bytes_than_asked(bench) -> None:
    for number in range(6):
        bench.append(b"%d" % number * 20)
    one = bench.read(2, max_bytes=1)
    assert (one.first_index, one.next_index) == (2, 3)
    two = bench.read(2, max_bytes=2 * len(one.data))
    assert (two.first_index, two.next_index) == (2, 4)


def test_a_read_inside_a_batch_gives_the_whole_batch(bench) -> None:
    bench.append(b"a", b"b", b"c")
    run = bench.read(1)
    assert (run.first_index, run.next_index) == (0, 3)


def test_cold_and_live_reads_show_the_same(bench, read_messages) -> None:
    written = {}
    for number in range(60):
        written[number] = b"%d-" % number * 40
        bench.append(written[number], wait_ms=5)
    bench.env.run_for(500)
    assert bench.log._state.tail.start_index > 30 and len(bench.segments()) > 1
    assert bench.everything() == written
    for index in (0, 7, 59):
        assert read_messages(bench.read(index, max_bytes=1).data) == {index: written[index]}
    assert bench.counters["log.cold_reads"] == sum(bench.counters.read.buckets) > 1
    assert bench.counters.read.sum_s > 0


def test_a_cancelled_read_is_not_answered(bench) -> None:
    bench.append(b"a")
    bench.reopen(close=True)
    answers: list[object] = []
    bench.log.read(0, max_bytes=1, on_done=answers.append).cancel()
    bench.env.run_for(100)
    assert answers == []


def test_offsets_and_times_are_found_cold_and_live(bench) -> None:
    appended = [bench.append(b"x" * 50, b"y" * 60, wait_ms=100) for _ in range(30)]
    for close in (False, True):
        for run in appended:
            assert bench.answer(bench.log.find_offset, run.first_offset) == run.first_index
            assert bench.answer(bench.log.find_offset, run.first_offset + 1) == run.first_index + 1
            assert bench.answer(bench.log.find_offset, run.first_offset + 83) == run.next_index
            assert bench.answer(bench.log.find_time, run.enqueued_time_ms) == run.first_index
            assert bench.answer(bench.log.find_time, run.enqueued_time_ms + 1) == run.next_index
        assert bench.answer(bench.log.find_offset, 10**9) == 60
        assert bench.answer(bench.log.find_time, 0) == 0
        if not close:
            bench.reopen(close=True)


def test_a_read_before_the_first_index_starts_there(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    first = expire(bench.log, now_ms=bench.env.now_ms() + 100, retention_ms=1000)
    bench.env.run_for(100)
    assert 0 < first < 40 and bench.read(0, max_bytes=1).first_index == first


@pytest.mark.parametrize("whole", [1, 4])
def test_a_replay_behind_a_lost_end_gives_what_is_there_and_tells_what_is_lost(
    bench, read_messages, whole: int
) -> None:
    """A start asks for it before anything is appended: until then no segment says where numbers begin anew."""
    for number in range(5):
        bench.append(b"%d" % number)
    bench.note(b"key", b"noted behind five events")
    bench.env.crash()
    [name] = bench.segments()
    data = bench.env.files.bytes_of(f"{bench.folder}/{name}")
    del data[[found.start() for found in re.finditer(re.escape(MAGIC), data)][whole] :]
    bench.env = bench.env.restart()
    bench.open()
    behind = bench.log.bounds.next_index
    for _ in range(2):
        runs = list[Run]()
        outcome = answered(bench.env, partial(bench.log.replay, 0, runs.append))
        assert isinstance(outcome, Replayed)
        assert [(lost.first_index, lost.resume_index) for lost in outcome.damage] == [(whole, behind)]
        events = {index: message for run in runs for index, message in read_messages(run.data).items()}
        assert [index for index in events if index < behind] == list(range(whole))
        bench.append(b"goes on")


def test_a_read_whose_file_is_missing_for_good_is_refused_once(bench) -> None:
    for number in range(40):
        bench.append(b"%03d" % number + bytes(200))
    missing = bench.segments()[0]
    bench.env.files.remove(f"store-0/logs/{bench.log.log_id}/{missing}")
    answers: list[object] = []
    bench.log.read(0, max_bytes=100, on_done=answers.append)
    bench.log.find_offset(40, on_done=answers.append)
    bench.env.run_for(2000)
    assert len(answers) == 2 and all(isinstance(answer.error, CorruptStore) for answer in answers)
    assert missing in str(bench.store.alarms.current()[0]) and len(bench.store.alarms.current()) == 1
    with pytest.raises(CorruptStore, match="missing"):
        list(bench.runs())
    behind = int(bench.segments()[0].partition("-")[0])
    assert f"read on from {behind}" in str(answers[0].error)
    assert isinstance(bench.read(behind), Run)


def test_a_search_for_what_the_tail_holds_asks_no_disk(bench) -> None:
    """From the tail's first record on: a disk that is slow would hold every new reader up."""
    appended = [bench.append(b"%d" % number * 20) for number in range(60)]
    first = bench.log._state.tail.first_run()
    assert first is not None and first.first_index > 0
    held = appended[first.first_index]
    assert bench.log.find_offset(held.first_offset, lambda found: None) == first.first_index
    assert bench.log.find_offset(held.first_offset + 1, lambda found: None) == first.first_index + 1


def test_a_search_in_a_log_whose_records_are_all_gone_finds_its_end(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    for _ in range(3):
        expire(bench.log, now_ms=bench.env.now_ms() + 1_000, retention_ms=0)
        bench.env.run_for(500)
    bounds = bench.log.bounds
    assert bounds.first_index == bounds.next_index == 2
    assert bench.log.find_time(0, lambda found: None) == bench.log.find_offset(0, lambda found: None) == 2
