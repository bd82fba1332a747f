from __future__ import annotations

from typing import Any

import pytest

from hubweir.messaging_store.carried_over import carried_over, superseded_whole
from hubweir.messaging_store.control_batch import CONTROL_EXPIRED_PRODUCERS, CONTROL_PRODUCER_FENCE, control_of
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import headers_of
from hubweir.testing.memory_files import Fault

FENCE = (CONTROL_PRODUCER_FENCE, b"fence")


def controls(bench: Any) -> list[tuple[int, bytes]]:
    """What the control batches of the log say, but for marks and skips."""
    found = [control_of(run.data, header) for run in bench.log.replay() for header in headers_of(run.data)
             if not header.count]  # fmt: skip
    return [entry for entry in found if entry[0] in (CONTROL_PRODUCER_FENCE, CONTROL_EXPIRED_PRODUCERS)]


def write(bench: Any, control: int = CONTROL_PRODUCER_FENCE, body: bytes = b"fence") -> None:
    answers: list[object] = []
    bench.log.append_control(control, body, now_ms=bench.env.now_ms(), on_done=answers.append)
    bench.env.run_for(50)
    assert len(answers) == 1


@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("records", [0, 2])
def test_controls_before_the_first_record_of_a_segment_outlive_any_number_of_starts(
    make_bench: Any, records: int, power_cut: bool, durability: Durability
) -> None:
    bench = make_bench(durability=durability)
    for number in range(records):
        bench.append(b"%d" % number)
    bench.reopen()
    write(bench)
    bench.env.run_for(2_000)
    for starts in range(1, 4):
        bench.reopen(power_cut=power_cut)
        write(bench, CONTROL_EXPIRED_PRODUCERS, b"%d" % starts)
        bench.env.run_for(2_000)
        assert controls(bench) == [FENCE, *((CONTROL_EXPIRED_PRODUCERS, b"%d" % n) for n in range(1, starts + 1))]
    bench.append(b"record", wait_ms=2_000)
    bench.reopen(power_cut=power_cut)
    assert FENCE in controls(bench) and len(bench.everything()) == records + 1


def test_a_new_segment_of_the_same_process_takes_them_over_too(bench: Any) -> None:
    write(bench)
    bench.log.set_durability(Durability.RELAXED)
    write(bench, CONTROL_EXPIRED_PRODUCERS, b"x")
    assert controls(bench) == [FENCE, (CONTROL_EXPIRED_PRODUCERS, b"x")]
    bench.reopen()
    assert FENCE in controls(bench)


def test_a_failed_sync_takes_none_of_those_that_were_durable(bench: Any) -> None:
    write(bench)
    bench.env.files.plan(bench.env.files.calls + 2, Fault.SYNC_EIO)
    bench.append(b"refused", wait_ms=300)
    assert bench.log.lease.writer_epoch == 2, "the sync failed, and a new segment was made"
    assert controls(bench) == [FENCE]
    bench.append(b"a")
    bench.reopen(power_cut=True)
    assert controls(bench) == [FENCE] and bench.everything() == {0: b"a"}


def test_what_stands_behind_records_stays_where_it_is(bench: Any) -> None:
    bench.append(b"a")
    write(bench)
    segment = bench.log._state.segments[-1]
    assert carried_over(bench.env.files, segment) == [] == carried_over(bench.env.files, None)
    assert superseded_whole(bench.log._state.segments, 0) is segment
    assert superseded_whole(bench.log._state.segments, 1) is superseded_whole([], 0) is None
    bench.reopen()
    bench.append(b"b")
    assert controls(bench) == [FENCE] and len(bench.segments()) == 2


@pytest.mark.parametrize("records", [0, 1])
def test_a_relaxed_log_writes_controls_again_that_it_has_shown_when_their_sync_fails(
    make_bench: Any, records: int
) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    for number in range(records):
        bench.append(b"%d" % number)
    write(bench, CONTROL_EXPIRED_PRODUCERS, b"a segment is there")
    bench.env.run_for(2_000)
    answers: list[object] = []
    bench.log.append_control(*FENCE, now_ms=bench.env.now_ms(), on_done=answers.append)
    bench.env.turn()
    assert len(answers) == 1, "shown before any sync"
    bench.env.files.plan(bench.env.files.calls + 1, Fault.SYNC_EIO)
    bench.env.run_for(1_000)
    assert bench.log.lease.writer_epoch == 2, "the sync failed, and a new segment was made"
    bench.reopen(power_cut=True)
    assert FENCE in controls(bench)


def fence(producer: int, says: bytes) -> bytes:
    return producer.to_bytes(8, "big", signed=True) + says


@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("power_cut", [False, True])
def test_of_the_fences_of_one_producer_the_newest_is_carried_over_where_it_stood(
    make_bench: Any, power_cut: bool, durability: Durability
) -> None:
    bench = make_bench(durability=durability)
    expired = (CONTROL_EXPIRED_PRODUCERS, b"gone")
    for control, body in (
        (CONTROL_PRODUCER_FENCE, fence(1, b"old")),
        (CONTROL_PRODUCER_FENCE, fence(-2, b"only")),
        expired,
        (CONTROL_PRODUCER_FENCE, fence(1, b"new")),
        expired,
    ):
        write(bench, control, body)
    bench.env.run_for(2_000)
    bench.reopen(power_cut=power_cut)
    left = [(CONTROL_PRODUCER_FENCE, fence(-2, b"only")), expired, (CONTROL_PRODUCER_FENCE, fence(1, b"new")), expired]
    write(bench, CONTROL_EXPIRED_PRODUCERS, b"a segment is there")
    assert controls(bench) == [*left, (CONTROL_EXPIRED_PRODUCERS, b"a segment is there")]


def test_a_log_that_gets_fences_at_every_start_and_no_record_does_not_grow(bench: Any) -> None:
    sizes = []
    for start in range(30):
        for producer in (7, 8):
            write(bench, CONTROL_PRODUCER_FENCE, fence(producer, b"%2d" % start))
        sizes.append(sum(segment.end_position for segment in bench.log._state.segments))
        bench.reopen()
    assert set(sizes[1:]) == {sizes[1]}, sizes
    carried, last = (
        [(CONTROL_PRODUCER_FENCE, fence(producer, says)) for producer in (7, 8)] for says in (b"28", b"29")
    )
    assert controls(bench) == carried + last
