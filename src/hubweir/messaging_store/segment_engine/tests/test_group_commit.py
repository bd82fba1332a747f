"""Which runs a round carries, in both modes, and what becomes of them when it fails.

Long because the machine of rounds has both modes, failures and a close in each of its states.
"""

from __future__ import annotations

import errno
from typing import Any

import pytest

from hubweir.env import Lane
from hubweir.errors import DiskFull, LogFenced, LogOffline, OutOfFiles
from hubweir.messaging_store.log import Appended, Durability, Refused
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.tests.conftest import events
from hubweir.testing.memory_faults import Fault
from hubweir.testing.memory_files import MemoryFile


def test_one_sync_serves_every_append_of_a_turn(bench) -> None:
    bench.append(b"makes the segment")
    before = bench.counters["log.syncs"]
    for number in range(10):
        bench.append(b"%d" % number, wait_ms=0)
    bench.env.run_for(50)
    assert len(bench.outcomes) == 11 and bench.counters["log.syncs"] == before + 1


def test_what_comes_during_a_round_is_the_next_round(bench) -> None:
    bench.append(b"makes the segment")
    before = bench.counters["log.syncs"]
    bench.append(b"a", wait_ms=0)
    bench.env.turn()
    for _ in range(5):
        bench.append(b"b", wait_ms=0)
        bench.env.turn()
    bench.env.run_for(100)
    assert len(bench.outcomes) == 7 and bench.counters["log.syncs"] == before + 2


def rounds_of(make_bench, *messages: bytes) -> list[int]:
    """How many of these messages each round carries, when all of them wait for the end of one, bounded by 1,000 B."""
    bench = make_bench(settings=LogSettings(round_bytes=1000))
    bench.append(b"makes the segment")
    bench.env.stall(Lane.WRITES)
    bench.append(b"a", wait_ms=1)
    before = bench.counters["log.syncs"]
    for message in messages:
        bench.append(message, wait_ms=0)
    rounds, ended = [], len(bench.outcomes)
    bench.env.go_on(Lane.WRITES)
    for _ in range(500):
        bench.env.run_for(1)
        if len(bench.outcomes) > ended:
            rounds.append(len(bench.outcomes) - ended)
            ended = len(bench.outcomes)
    assert list(bench.everything().values())[2:] == list(messages)
    assert rounds[0] == 1 and bench.counters["log.syncs"] == before + len(rounds)
    return rounds[1:]


def test_a_round_has_a_bound_so_that_its_publishers_are_answered_while_the_next_is_written(make_bench) -> None:
    assert rounds_of(make_bench, *[b"b" * 300] * 3) == [2, 1]


def test_a_run_that_is_larger_than_the_bound_of_a_round_goes_alone(make_bench) -> None:
    assert rounds_of(make_bench, b"b" * 1500, b"c" * 100) == [1, 1]


def test_where_more_is_under_way_than_two_bounds_of_a_round_half_of_it_is_the_next(make_bench) -> None:
    assert rounds_of(make_bench, *[b"b" * 300] * 12) == [6, 6]


def test_publishers_who_send_again_when_they_are_answered_are_parted_into_two_halves(make_bench) -> None:
    """Also where one of them was alone in the first round, with all others in the next."""
    bench = make_bench(settings=LogSettings(round_bytes=1000))
    bench.append(b"makes the segment")
    rounds, publishers, answered = list[int](), 12, 0

    def send() -> None:
        now_ms = bench.store.clock.stamp_ms()
        bench.log.append(events([b"b" * 300]), now_ms=now_ms, on_done=sent_again)

    def sent_again(_: object) -> None:
        nonlocal answered
        answered += 1
        bench.env.call_soon(send)

    send()
    bench.env.run_for(0)
    for _ in range(publishers - 1):
        send()
    for _ in range(2000):
        before = answered
        bench.env.run_for(1)
        if answered > before:
            rounds.append(answered - before)
    assert rounds[0] == 1 and set(rounds[4:20]) == {publishers // 2}, rounds[:20]


def sizes_of_segments(bench) -> list[int]:
    return [bench.env.files.open(f"store-0/logs/{bench.log.log_id}/{name}").size() for name in bench.segments()]


def test_a_segment_rolls_by_size(bench) -> None:
    for number in range(30):
        bench.append(b"%d" % number * 200)
    sizes = sizes_of_segments(bench)
    assert len(sizes) >= 3 and all(size <= 4000 for size in sizes[:-1])


def test_a_round_ends_where_its_segment_is_full(make_bench) -> None:
    bench = make_bench(settings=LogSettings(segment_bytes=2000))
    for number in range(30):
        bench.append(b"%d" % number * 200, wait_ms=0)
    bench.env.run_for(500)
    sizes = sizes_of_segments(bench)
    assert len(sizes) >= 3 and all(size <= 2000 for size in sizes[:-1])
    assert list(bench.everything().values()) == [b"%d" % number * 200 for number in range(30)]


def test_a_run_larger_than_a_segment_is_still_stored(bench) -> None:
    bench.append(b"x" * 9000)
    bench.append(b"y")
    assert bench.everything() == {0: b"x" * 9000, 1: b"y"} and len(bench.segments()) == 2


def test_a_segment_rolls_by_age(bench) -> None:
    bench.log.set_roll_age(1000)
    bench.append(b"a")
    bench.append(b"b")
    bench.env.run_for(2000)
    bench.append(b"c")
    assert len(bench.segments()) == 2


def test_a_relaxed_log_syncs_after_50_ms(relaxed) -> None:
    relaxed.append(b"makes the segment")
    relaxed.append(b"a", wait_ms=0)
    relaxed.env.run_for(40)
    assert relaxed.log._state.synced.index == 1
    relaxed.env.run_for(60)
    assert relaxed.log._state.synced.index == 2


def test_a_relaxed_log_syncs_early_when_much_is_unsynced(relaxed) -> None:
    relaxed.append(b"makes the segment")
    relaxed.append(b"a" * 1100, wait_ms=0)
    relaxed.env.run_for(41)
    assert relaxed.log._state.synced.index == 2


def test_too_much_unsynced_waits_for_the_sync(make_bench) -> None:
    settings = LogSettings(relaxed_sync_bytes=10**9, relaxed_sync_ms=10**6, relaxed_unsynced_bytes=2000)
    bench = make_bench(durability=Durability.RELAXED, settings=settings)
    bench.append(b"makes the segment")
    bench.append(b"a" * 1500, wait_ms=0)
    bench.env.turn()
    bench.append(b"b" * 1500, wait_ms=0)
    bench.env.turn()
    assert bench.log.bounds.next_index == 2
    bench.env.run_for(50)
    assert bench.log.bounds.next_index == 3 and bench.log._state.synced.index == 3


def test_the_queue_has_a_bound(make_bench, make_events) -> None:
    bench = make_bench(settings=LogSettings(queue_bytes=1000))
    bench.append(b"a" * 600, wait_ms=0)
    with pytest.raises(LogOffline, match="wait for the disk"):
        bench.append(b"b" * 600)
    bench.env.run_for(100)
    assert bench.append(b"c").first_index == 1


def test_a_refused_roll_on_a_full_disk_does_not_go_round(bench) -> None:
    bench.append(b"a")
    bench.env.files.capacity_bytes = 0
    bench.log._commit.roll()
    calls = bench.env.files.calls
    bench.env.run_for(10_000)
    assert bench.env.files.calls - calls < 40


@pytest.mark.parametrize("durability", Durability)
def test_a_clean_close_leaves_a_clean_log(make_bench, durability: Durability) -> None:
    bench = make_bench(durability=durability)
    for number in range(5):
        bench.append(b"%d" % number, wait_ms=0)
    bench.reopen(close=True, power_cut=True)
    assert len(bench.outcomes) == 5 and bench.log.bounds.next_index == 5 and not bench.store.alarms.current()


def test_closing_an_offline_log_ends(bench) -> None:
    bench.append(b"a")
    bench.log._state.health.offline = "for the test"
    bench.log._commit.roll()
    closed: list[bool] = []
    bench.log.close(lambda: closed.append(True))
    bench.env.run_for(1000)
    assert closed == [True]


@pytest.mark.parametrize("durability", Durability)
def test_without_file_descriptors_sends_are_refused_and_the_log_heals_by_itself(make_bench, durability) -> None:
    bench = make_bench(durability=durability)
    bench.append(b"kept")
    bench.log._commit.roll()
    bench.env.files.plan(Fault.EMFILE, forever=True)
    bench.append(b"refused", wait_ms=400)
    refused = bench.outcomes[-1]
    assert isinstance(refused.error, OutOfFiles) and refused.known and "ulimit" in str(refused.error)
    bench.env.files.heal()
    assert bench.append(b"after").first_index == 1 and bench.log.lease.writer_epoch == 1
    assert not bench.store.alarms.current() and bench.counters["log.failed_syncs"] == 0
    bench.reopen(power_cut=durability is Durability.DURABLE)
    assert list(bench.everything().values()) == [b"kept", b"after"]


class HalfWrites:
    """Writes on a file system that sets space aside and has none all the same: the next one leaves its first buffer."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left = 1
        whole = MemoryFile.write

        def write(file: MemoryFile, position: int, buffers: Any) -> None:
            if not self.left:
                return whole(file, position, buffers)
            self.left -= 1
            whole(file, position, buffers[:1])
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr(MemoryFile, "write", write)


NO_ROUND = "log.before_round"  # rounds end before their write


@pytest.mark.parametrize("roll", [False, True], ids=["same segment", "new segment"])
@pytest.mark.parametrize("error", [DiskFull("none left"), OSError(errno.EMFILE, "none left")])
def test_what_a_torn_write_left_is_cut_off_before_it_is_refused(relaxed, monkeypatch, error, roll: bool) -> None:
    relaxed.append(b"kept")
    HalfWrites(monkeypatch)
    relaxed.env.faults[NO_ROUND] = error
    relaxed.append(b"refused", wait_ms=0)
    if roll:
        relaxed.log._commit.roll()
    relaxed.append(b"refused, too")
    assert [outcome.known for outcome in relaxed.outcomes[1:]] == [True, True]
    assert relaxed.log.lease.writer_epoch == 1
    relaxed.reopen()
    assert list(relaxed.everything().values()) == [b"kept"]


def test_a_torn_write_that_cannot_be_cut_off_is_superseded_before_it_is_refused(relaxed, monkeypatch) -> None:
    relaxed.append(b"kept", wait_ms=200)
    HalfWrites(monkeypatch)
    relaxed.env.faults[NO_ROUND] = DiskFull("none left")
    truncate, failures = MemoryFile.truncate, [OSError(errno.EIO, "Input/output error")]

    def fail_once(file: MemoryFile, size: int) -> None:
        if failures:
            raise failures.pop()
        truncate(file, size)

    monkeypatch.setattr(MemoryFile, "truncate", fail_once)
    relaxed.append(b"refused", wait_ms=0)
    while len(relaxed.outcomes) < 2:
        relaxed.env.run_for(1)
    assert not failures and relaxed.outcomes[-1].known and relaxed.log.lease.writer_epoch == 2
    relaxed.reopen()
    assert list(relaxed.everything().values()) == [b"kept"]


def test_what_a_torn_write_left_is_unknown_when_a_fault_stops_the_log(relaxed, monkeypatch) -> None:
    relaxed.append(b"kept", wait_ms=200)
    relaxed.append(b"kept, too", wait_ms=51)
    assert relaxed.log._commit._syncing, "what fails now waits for the end of the sync"
    HalfWrites(monkeypatch)
    relaxed.append(b"half there", wait_ms=0)
    relaxed.env.turn()
    relaxed.append(b"only waits", wait_ms=0)
    relaxed.log.stop(ZeroDivisionError())
    relaxed.env.run_for(100)
    assert [outcome.known for outcome in relaxed.outcomes[2:]] == [True, False]
    relaxed.reopen()
    assert b"only waits" not in relaxed.everything().values()


def test_a_torn_write_is_cut_off_by_a_clean_close(relaxed) -> None:
    relaxed.append(b"kept")
    active = relaxed.log._state.segments.active
    with pytest.MonkeyPatch.context() as patch:
        HalfWrites(patch)
        with pytest.raises(OSError, match="No space"):
            active.write([b"half"], is_synced=False)
    active.reserved = active.end
    active.finish()
    assert active.file.size() == active.end and not active.is_torn


def test_what_a_relaxed_log_writes_during_a_sync_is_synced_by_the_next(relaxed) -> None:
    relaxed.append(b"a")
    relaxed.env.stall(Lane.WRITES)
    relaxed.append(b"b", wait_ms=90)
    assert relaxed.env.stalled_calls(Lane.WRITES) == 1, "the sync of b is under way"
    relaxed.append(b"c", wait_ms=1)
    assert relaxed.log.bounds.next_index == 3, "c is written beside it"
    relaxed.env.go_on(Lane.WRITES)
    relaxed.env.run_for(200)  # no idle mark comes so early
    assert relaxed.log._state.synced.index == 3


def test_a_segment_that_was_made_while_the_clock_was_ahead_is_left_at_the_next_append(bench) -> None:
    """Its time would keep what is appended to it for longer than all the rest."""
    bench.env.jump(30 * 24 * 3_600_000)
    bench.append(b"made ahead")
    bench.env.jump(-30 * 24 * 3_600_000)
    for text in (b"right", b"and the next"):
        bench.append(text)
        assert len(bench.segments()) == 2


def test_the_next_round_is_under_way_before_publishers_are_answered_and_readers_woken(
    bench, make_events, monkeypatch
) -> None:
    begun: list[str] = []
    offload = bench.env.offload
    monkeypatch.setattr(bench.env, "offload", lambda *args: (begun.append("round"), offload(*args)))
    bench.log.on_visible(lambda: begun.append("visible"))
    bench.append(b"a", wait_ms=0)
    while not begun:
        bench.env.turn()
    bench.log.append(make_events([b"b"]), now_ms=1, on_done=lambda outcome: begun.append("answered b"))
    bench.env.run_for(300)
    assert begun[:3] == ["round", "round", "visible"]
    assert begun[3:5] == ["answered b", "visible"] and bench.log.bounds.next_index == 2


def test_a_fault_while_readers_are_woken_beside_the_next_round_loses_no_answer(bench) -> None:
    woken: list[int] = []

    def wake() -> None:
        woken.append(1)
        if len(woken) == 1:
            bench.append(b"c", wait_ms=0)
            raise RuntimeError("planted")

    bench.log.on_visible(wake)
    bench.append(b"a", wait_ms=0)
    bench.env.turn()
    bench.append(b"b", wait_ms=0)
    bench.env.run_for(10_000)
    kept = sum(isinstance(outcome, Appended) for outcome in bench.outcomes)
    assert len(bench.outcomes) == 3 and kept >= 2, "each append is answered, with a fault or without"
    bench.reopen(power_cut=True)
    assert len(bench.everything()) >= kept


def test_a_fence_refuses_all_that_waits_whatever_happens_to_one_that_hears_of_it(bench, make_events) -> None:
    """One that a failed write may have left in the file, whose ticket has a fault, and one behind it."""
    bench.append(b"kept")
    heard: list[bool] = []

    def faulty(outcome: Appended | Refused) -> None:
        assert isinstance(outcome, Refused)
        heard.append(outcome.known)
        raise ZeroDivisionError("planted")

    now_ms = bench.store.clock.stamp_ms()
    bench.log.append(make_events([b"tried"]), now_ms=now_ms, on_done=faulty)
    bench.log._commit._queue.entries[0].is_tried = True
    bench.append(b"waits", wait_ms=0)
    with pytest.raises(ZeroDivisionError, match="planted"):
        bench.log.fence(LogFenced("another process owns the store"))
    assert heard == [False]
    assert [outcome.known for outcome in bench.outcomes[1:]] == [True], "it is told, too, and nothing of it is stored"


def test_what_a_failed_write_may_have_left_in_the_file_ends_unknown_behind_a_fence(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"before", wait_ms=500)
    bench.env.files.plan(Fault.ENOSPC, call="write")
    bench.append(b"a" * 200, wait_ms=0)
    # Behind the write on the loop, which fails, and before the round that is to try again.
    bench.env.call_soon(lambda: bench.log.fence(LogFenced("another process owns the store")))
    bench.env.run_for(50)
    assert isinstance(bench.outcomes[1], Refused) and not bench.outcomes[1].known
