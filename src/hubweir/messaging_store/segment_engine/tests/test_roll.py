"""roll.py: which segment a new one takes the place of, what it begins with, and what the old one leaves."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from hubweir.kernels.stored_batch import read_header
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine import failed_sync, open_log, write_round
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.roll import begins_with, superseded_whole
from hubweir.service_log import RETENTION, ROLL, SLOW_SYNC, Line, LineKind
from hubweir.testing.memory_faults import Fault, Killed
from hubweir.testing.simulated_env import SimulatedEnv


def test_a_segment_is_superseded_whole_by_one_that_begins_where_it_begins(bench: Any) -> None:
    bench.append(b"a")
    segments = bench.log._state.segments.kept
    assert superseded_whole(segments, 0) is segments[-1]
    assert superseded_whole(segments, 1) is superseded_whole([], 0) is None


def test_a_roll_is_a_line_of_the_log_and_the_first_segment_is_none(
    make_bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench = make_bench(settings=LogSettings(segment_bytes=1_000))
    bench.append(b"a" * 600)
    assert not lines(caplog, ROLL)
    bench.append(b"b" * 600)
    [line] = lines(caplog, ROLL)
    assert (line.fields["first"], line.fields["epoch"]) == (1, bench.log.lease.writer_epoch)
    bench.log.trim(1)
    [line] = lines(caplog, RETENTION)
    assert (line.fields["segments"], line.fields["first"]) == (1, 1)


@pytest.mark.parametrize(("slowest_ms", "is_told"), [(2_500, True), (20, False)])
def test_a_sync_of_a_second_or_more_is_a_line_of_the_log(
    make_bench: Any, caplog: pytest.LogCaptureFixture, slowest_ms: int, is_told: bool
) -> None:
    bench = make_bench(env=SimulatedEnv(3, slowest_ms=slowest_ms))
    for _ in range(5):
        bench.append(b"a", wait_ms=6_000)
    told = lines(caplog, SLOW_SYNC)
    assert bool(told) is is_told and len(told) == bench.counters["log.slow_syncs"]
    assert all(1_000 <= line.fields["ms"] <= 2 * slowest_ms for line in told)


def lines(caplog: pytest.LogCaptureFixture, kind: LineKind) -> list[Any]:
    found = (record.msg for record in caplog.records if isinstance(record.msg, Line))
    return [line for line in found if line.kind is kind]


@pytest.mark.parametrize("last_time_ms", [-1, 7])
def test_it_begins_with_a_mark_right_below_the_number_that_it_goes_on_with(bench: Any, last_time_ms: int) -> None:
    bench.append(b"a")
    header = bench.log._state.segments.kept[-1].header
    assert begins_with(header, number=header.first_number, last_time_ms=last_time_ms) == []
    (mark,) = begins_with(header, number=9, last_time_ms=last_time_ms)
    found = read_header(mark)
    assert (found.number, found.durable_upto, found.count) == (8, 8, 0)
    assert (found.first_index, found.first_offset) == (header.first_index, header.first_offset)
    assert (found.writer_epoch, found.nonce) == (header.writer_epoch, header.nonce)
    assert found.enqueued_time_ms == max(0, last_time_ms)


def test_a_log_that_is_opened_again_and_again_without_a_record_does_not_grow(bench: Any) -> None:
    sizes = []
    for _ in range(10):
        bench.control()
        sizes.append(sum(segment.end_position for segment in bench.log._state.segments.kept))
        bench.reopen()
    assert len(set(sizes[2:])) == 1, sizes


def damage_behind_a_torn_write(bench: Any, *, closed: bool) -> int:
    """A log without a record whose next segment's first write is torn; how much of it is told as damage."""
    bench.control()
    bench.env.run_for(5_000)  # an idle mark is the last batch, or one of a clean close
    if closed:
        bench.reopen(close=True)
    bench.log.set_durability(Durability.RELAXED)
    # The new segment, what the store remembers of it, the round; and before, when it is open, the old segment.
    syncs = bench.env.files.plan(Fault.KILL, 4 - closed, call="sync")
    for message in (b"a" * 600, b"b"):
        bench.append(message, wait_ms=0)
    with pytest.raises(Killed):
        bench.env.run_for(50)
    assert syncs.fired and not bench.outcomes
    (path,) = [path for path in bench.env.files.paths() if b"a" * 600 in bench.env.files.bytes_of(path)]
    data = bench.env.files.bytes_of(path)
    at = data.index(b"a" * 600)
    data[at : at + 512] = bytes(512)  # of two batches that no sync covers, a power cut took a part of the first
    bench.reopen()
    assert bench.log.bounds.next_index > 2, "readers may have seen numbers that are used again"
    return int(bench.counters["log.corrupt_records"])


@pytest.mark.parametrize("closed", [False, True])
def test_a_torn_write_behind_missing_numbers_is_no_damage(bench: Any, closed: bool) -> None:
    assert not damage_behind_a_torn_write(bench, closed=closed)
    assert bench.everything() == {}


@pytest.mark.parametrize("closed", [False, True])
def test_control_without_the_mark_it_would_be(bench: Any, closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (open_log, failed_sync, write_round):
        monkeypatch.setattr(module, "begins_with", lambda *args, **kwargs: [])
    assert damage_behind_a_torn_write(bench, closed=closed)


def test_a_finished_segment_leaves_its_indexes(bench: Any) -> None:
    for number in range(30):
        bench.append(b"%d" % number * 200)
    paths = bench.env.files.paths()
    finished = [name.removesuffix(".log") for name in bench.segments()[:-1]]
    assert finished and all(any(f"{stem}.offsets" in path for path in paths) for stem in finished)


def test_a_closed_log_gives_back_the_spare_space(bench: Any) -> None:
    bench.append(b"a")
    path = bench.log._state.segments.active.path
    assert bench.env.files.size_of(path) >= 1 << 20
    bench.store.close(lambda: None)
    bench.env.run()
    assert bench.env.files.size_of(path) < 1000


def test_closing_ends_even_when_every_call_fails(bench: Any) -> None:
    bench.append(b"a")
    bench.env.files.plan(Fault.EIO, forever=True)
    closed: list[bool] = []
    bench.log.close(lambda: closed.append(True))
    bench.env.run_for(5000)
    assert closed == [True]
    bench.env.files.heal()
    bench.reopen()
    assert bench.everything() == {0: b"a"}
