"""Which lane each offloaded call of a log takes, and that none but writes holds up a send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.env import Lane
from hubweir.messaging_store.log import Appended, Run
from hubweir.messaging_store.retention import expire
from hubweir.testing.answers import made_log
from hubweir.testing.memory_faults import Fault

OTHER = "cd" * 16


def read_the_oldest(bench: Any) -> None:
    assert not isinstance(bench.log.read(0, max_bytes=1, on_done=lambda _: None), Run)


def search_the_oldest_time(bench: Any) -> None:
    bench.log.find_time(bench.first_time_ms + 1, lambda _: None)


def search_the_oldest_offset(bench: Any) -> None:
    bench.log.find_offset(1, lambda _: None)


def let_old_segments_go(bench: Any) -> None:
    expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=0)


def save_a_snapshot(bench: Any) -> None:
    bench.log.save_snapshot(b"state", lambda _: None)


def start_a_segment(bench: Any) -> None:
    bench.log._commit.roll()


def close_the_log(bench: Any) -> None:
    bench.store.close_log(bench.log.log_id, lambda: None)


def delete_a_log(bench: Any) -> None:
    made_log(bench.env, bench.store, "ef" * 16)
    bench.store.close_log("ef" * 16, lambda: None)
    bench.env.run_for(500)
    bench.store.delete_log("ef" * 16, lambda _: None)


def fail_a_sync(bench: Any) -> None:
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.append(b"refused", wait_ms=0)


def take_an_epoch_and_make_a_segment(bench: Any) -> None:
    """The second call of a repair: the epoch is taken before the lane stalls."""
    bench.env.go_on(Lane.RECOVERY)
    fail_a_sync(bench)
    while bench.store.writer_epoch == 1:
        bench.env.run_for(1)
    bench.env.stall(Lane.RECOVERY)


def lose_the_reserve(bench: Any) -> None:
    bench.store._reserve.is_there = False
    bench.store._reserve.watch()


CALLS: list[tuple[Lane, Callable[[Any], None]]] = [
    (Lane.READS, read_the_oldest),
    (Lane.READS, search_the_oldest_time),
    (Lane.READS, search_the_oldest_offset),
    (Lane.RECOVERY, fail_a_sync),
    (Lane.RECOVERY, take_an_epoch_and_make_a_segment),
    (Lane.REMOVALS, let_old_segments_go),
    (Lane.REMOVALS, delete_a_log),
    (Lane.MAINTENANCE, save_a_snapshot),
    (Lane.MAINTENANCE, start_a_segment),
    (Lane.MAINTENANCE, close_the_log),
    (Lane.MAINTENANCE, lose_the_reserve),
]


@pytest.fixture
def full(bench: Any) -> Any:
    """A log of several segments, nearly all of it in files only, and another log."""
    bench.first_time_ms = bench.env.now_ms()
    for _ in range(12):
        bench.append(bytes(900))
    bench.other = made_log(bench.env, bench.store, OTHER)
    bench.env.run_for(5000)
    return bench


@pytest.mark.parametrize("lane, call", CALLS)
def test_a_call_that_hangs_in_another_lane_holds_up_no_send(
    full: Any, make_events: Any, lane: Lane, call: Callable[[Any], None]
) -> None:
    epoch = full.store.writer_epoch
    full.env.stall(lane)
    call(full)
    full.env.run_for(3000)
    assert full.env.stalled_calls(lane) == 1
    assert full.store.writer_epoch == epoch + (call is take_an_epoch_and_make_a_segment)
    answers: list[object] = []
    for _ in range(20):
        full.other.append(make_events([bytes(900)]), now_ms=full.env.now_ms(), on_done=answers.append)
        full.env.run_for(200)
    assert len(answers) == 20 and all(isinstance(answer, Appended) for answer in answers)
    full.env.go_on(lane)
    full.env.run_for(500)
    assert full.append(b"goes on") if call is not close_the_log else True


def test_control_a_lane_of_writes_that_hangs_holds_up_every_send(full: Any, make_events: Any) -> None:
    full.env.stall(Lane.WRITES)
    answers: list[object] = []
    full.other.append(make_events([b"waits"]), now_ms=full.env.now_ms(), on_done=answers.append)
    full.env.run_for(3000)
    assert not answers
    full.env.go_on(Lane.WRITES)
    full.env.run_for(200)
    assert len(answers) == 1
