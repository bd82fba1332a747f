"""log_snapshots.py: a snapshot covers what is synced, and trimming waits for the older of two."""

from __future__ import annotations

import pytest

from hubweir.errors import LogFenced, LogOffline
from hubweir.messaging_store.disk.snapshot import Snapshot, save_snapshot
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.segment_engine.log_snapshots import LogSnapshots
from hubweir.testing.memory_faults import Fault

FOLDER = "store-0/logs/" + "ab" * 16


def test_a_snapshot_comes_back_with_the_index_it_covers(bench) -> None:
    bench.append(b"a", b"b")
    done: list[object] = []
    bench.log.save_snapshot(b"state of two", done.append)
    bench.env.run_for(100)
    assert done == [None] and bench.snapshot() == (2, b"state of two")
    bench.reopen(power_cut=True)
    assert bench.snapshot() == (2, b"state of two")


def test_a_relaxed_snapshot_covers_only_what_is_synced(relaxed) -> None:
    relaxed.append(b"a")
    relaxed.append(b"b", wait_ms=0)
    relaxed.env.turn()
    relaxed.log.save_snapshot(b"two", lambda outcome: None)
    relaxed.env.run_for(100)
    relaxed.reopen(power_cut=True)
    assert relaxed.snapshot() == (2, b"two") and relaxed.log.bounds.next_index >= 2


def test_trimming_goes_to_the_older_of_two_snapshots(bench) -> None:
    def limit(*indexes: int) -> int | None:
        found = [Snapshot(index, 0, b"") for index in indexes]
        return LogSnapshots(bench.log._state, lambda callback: None, found).covered()

    assert limit() is None  # nobody takes any
    assert limit(31) == 0
    assert limit(31, 21) == 21


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
    assert bench.snapshot() == (1, b"first")


def test_a_snapshot_that_cannot_be_written_leaves_the_one_before_and_may_be_taken_again(bench) -> None:
    bench.append(b"a")
    answers: list[object] = []
    bench.log.save_snapshot(b"first", answers.append)
    bench.env.run_for(200)
    bench.env.run_for(2_000)  # the idle mark is written: from here on only the snapshot touches files
    bench.env.files.plan(Fault.ENOSPC, forever=True)
    bench.log.save_snapshot(b"second", answers.append)
    bench.env.run_for(200)
    bench.env.files.heal()
    assert answers[0] is None and isinstance(answers[1], Refused) and not answers[1].known
    assert bench.snapshot() == (1, b"first")
    bench.log.save_snapshot(b"third", answers.append)
    bench.env.run_for(200)
    assert answers[2] is None and bench.snapshot() == (1, b"third")


def test_a_snapshot_beyond_the_end_of_the_log_is_passed_over_with_an_alarm(bench) -> None:
    bench.append(b"a")
    bench.log.save_snapshot(b"sound", lambda outcome: None)
    bench.env.run_for(200)
    save_snapshot(bench.env.files, FOLDER, Snapshot(7, 0, b"of records that are not there"))
    assert bench.snapshot() == (1, b"sound")
    (text,) = [alarm.text for alarm in bench.store.alarms.current() if "snapshot" in alarm.text]
    assert "covers records up to 6, and the log ends at 0" in text


def test_a_snapshot_that_finds_another_owner_is_not_written_and_ends_writing_for_good(bench) -> None:
    bench.append(b"a")
    bench.take_over()
    done: list[object] = []
    bench.log.save_snapshot(b"state", done.append)
    bench.env.run_for(200)
    assert isinstance(done[0], Refused) and isinstance(done[0].error, LogFenced)
    assert bench.snapshot() is None
    with pytest.raises(LogFenced):
        bench.append(b"b")


def test_a_snapshot_whose_log_goes_offline_is_refused_and_later_ones_are_taken(relaxed) -> None:
    """One that never comes again would keep retention from trimming, for good."""
    relaxed.append(b"a", wait_ms=200)
    relaxed.append(b"b", wait_ms=0)
    relaxed.env.turn()
    answers: list[object] = []
    relaxed.env.files.plan(Fault.SYNC_EIO, forever=True)
    relaxed.log.save_snapshot(b"while it fails", answers.append)
    relaxed.env.run_for(400)
    assert isinstance(answers[0], Refused) and isinstance(answers[0].error, LogOffline)
    assert "was not saved" in str(answers[0].error) and relaxed.log.log_id in str(answers[0].error)
    relaxed.env.files.heal()
    relaxed.env.run_for(40_000)
    relaxed.log.save_snapshot(b"later", answers.append)
    relaxed.env.run_for(400)
    assert answers[1] is None and relaxed.snapshot() == (2, b"later")


def test_a_log_that_closes_saves_no_snapshot(bench) -> None:
    bench.append(b"a")
    answers: list[object] = []
    bench.log.close(lambda: None)
    bench.log.save_snapshot(b"too late", answers.append)
    bench.env.run_for(2_000)
    assert len(answers) == 1 and isinstance(answers[0], Refused)
    assert f"{FOLDER}/snapshot" not in bench.env.files.paths()


def test_whoever_is_told_of_a_snapshot_may_count_on_it(bench) -> None:
    """It is what retention goes by, and the next one may be taken, in the call that tells of it."""
    bench.append(b"a")
    limits: list[object] = []

    def saved(outcome: object) -> None:
        limits.append(bench.log._snapshots.covered())
        if len(limits) < 3:
            bench.append(b"%d" % len(limits), wait_ms=0)
            bench.log.save_snapshot(b"state", saved)

    bench.log.save_snapshot(b"state", saved)
    bench.env.run_for(1_000)
    assert limits == [0, 1, 1]


@pytest.mark.parametrize("is_taken_over", [False, True])
def test_whoever_is_refused_a_snapshot_finds_the_log_as_the_refusal_says(relaxed, is_taken_over: bool) -> None:
    relaxed.append(b"a", wait_ms=2_000)
    appended: list[object] = []

    def refused(outcome: object) -> None:
        assert isinstance(outcome, Refused)
        with pytest.raises(type(outcome.error)):
            relaxed.append(b"no", wait_ms=0)
        relaxed.log.save_snapshot(b"again", appended.append)

    if is_taken_over:
        relaxed.take_over()
    else:
        relaxed.append(b"b", wait_ms=0)
        relaxed.env.turn()
        relaxed.env.files.plan(Fault.SYNC_EIO, forever=True)
    relaxed.log.save_snapshot(b"state", refused)
    relaxed.env.run_for(400)
    assert len(appended) == 1
    assert "is being saved" not in str(appended[0])
