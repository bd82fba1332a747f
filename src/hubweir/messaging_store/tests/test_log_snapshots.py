"""log_snapshots.py: a snapshot covers what is synced, and trimming waits for the older of two."""

from __future__ import annotations

from hubweir.errors import LogOffline
from hubweir.messaging_store.control_batch import CONTROL_PRODUCER_FENCE
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.log_snapshots import LogSnapshots
from hubweir.messaging_store.snapshot import Snapshot
from hubweir.testing.memory_files import Fault


def test_a_snapshot_comes_back_with_the_index_it_covers(bench) -> None:
    bench.append(b"a", b"b")
    done: list[object] = []
    bench.log.save_snapshot(b"state of two", done.append)
    bench.env.run_for(100)
    assert done == [None] and bench.log.load_snapshot() == (2, b"state of two")
    bench.reopen(power_cut=True)
    assert bench.log.load_snapshot() == (2, b"state of two")


def test_a_relaxed_snapshot_covers_only_what_is_synced(relaxed) -> None:
    relaxed.append(b"a")
    relaxed.append(b"b", wait_ms=0)
    relaxed.env.turn()
    relaxed.log.save_snapshot(b"two", lambda outcome: None)
    relaxed.env.run_for(100)
    relaxed.reopen(power_cut=True)
    assert relaxed.log.load_snapshot() == (2, b"two") and relaxed.log.bounds.next_index >= 2


def test_a_control_batch_behind_the_last_record_is_trimmed_only_when_two_later_snapshots_have_it(bench) -> None:
    def snapshot() -> None:
        bench.log.save_snapshot(b"state", lambda outcome: None)
        bench.env.run_for(200)

    def expire() -> int:
        for _ in range(3):
            first = bench.log.expire(now_ms=bench.env.now_ms() + 10_000_000, retention_ms=1)
            bench.env.run_for(200)
        return first

    bench.append(b"a")
    snapshot()
    snapshot()
    bench.log.append_control(CONTROL_PRODUCER_FENCE, b"fence", now_ms=bench.env.now_ms())
    assert expire() == 0
    snapshot()
    assert expire() == 0
    snapshot()
    assert expire() == 1


def test_snapshots_of_an_earlier_process_may_miss_control_batches(bench) -> None:
    bench.append(b"a")
    for _ in range(2):
        bench.log.save_snapshot(b"state", lambda outcome: None)
        bench.env.run_for(200)
    bench.env.run_for(2_000)
    bench.reopen()
    for _ in range(3):
        assert bench.log.expire(now_ms=bench.env.now_ms() + 10_000_000, retention_ms=1) == 0
        bench.env.run_for(200)


def test_trimming_goes_to_the_older_of_two_snapshots(bench) -> None:
    def limit(*indexes: int) -> int | None:
        found = [Snapshot(index, b"") for index in indexes]
        return LogSnapshots(bench.log._state, lambda callback: None, found).trim_limit()

    assert limit() is None  # nobody takes any
    assert limit(31) == 0
    assert limit(31, 21) == 20


def test_a_second_snapshot_is_refused_while_the_first_is_saved(bench) -> None:
    bench.append(b"a")
    first: list[object] = []
    second: list[object] = []
    bench.log.save_snapshot(b"first", first.append)
    bench.log.save_snapshot(b"second", second.append)
    assert second == []  # never inside the call
    bench.env.run_for(200)
    (refused,) = second
    assert first == [None] and isinstance(refused, Refused) and isinstance(refused.error, LogOffline)
    assert bench.log.load_snapshot() == (1, b"first")


def test_a_snapshot_that_cannot_be_written_leaves_the_one_before_and_may_be_taken_again(bench) -> None:
    bench.append(b"a")
    answers: list[object] = []
    bench.log.save_snapshot(b"first", answers.append)
    bench.env.run_for(200)
    bench.env.run_for(2_000)  # the idle mark is written: from here on only the snapshot touches files
    bench.env.files.plan(1, Fault.ENOSPC, forever=True)
    bench.log.save_snapshot(b"second", answers.append)
    bench.env.run_for(200)
    bench.env.files.heal()
    assert answers[0] is None and isinstance(answers[1], Refused) and not answers[1].known
    assert bench.log.load_snapshot() == (1, b"first")
    bench.log.save_snapshot(b"third", answers.append)
    bench.env.run_for(200)
    assert answers[2] is None and bench.log.load_snapshot() == (1, b"third")
