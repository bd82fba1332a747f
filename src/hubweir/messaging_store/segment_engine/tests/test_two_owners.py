"""Two processes write one store, for its lock was lost: nothing that the first one accepts is missing from the second.

The second one takes the store over at a named point of the first one's work, in the middle of its calls away from the
loop too, and the whole of its opening happens there.
"""

from __future__ import annotations

import errno
from typing import Any

import pytest

from hubweir.alarms import STORE_TAKEN_OVER
from hubweir.errors import LogFenced
from hubweir.messaging_store.disk.segment import ActiveSegment
from hubweir.messaging_store.log import Appended, Refused
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine import group_commit, log_notes, write_round
from hubweir.messaging_store.segment_engine.write_round import WriteRound
from hubweir.testing.answers import made_log
from hubweir.testing.memory_faults import Fault
from hubweir.testing.memory_files import MemoryFile
from hubweir.testing.simulated_env import SimulatedEnv

ROUND = ["log.before_round", "log.before_new_segment", "log.before_write", "log.after_sync"]
RELAXED = ["log.before_relaxed_write", "log.before_relaxed_sync"]


class Pair:
    """The first owner on a bench, and the second one, which comes at a point of the first one's work."""

    def __init__(self, bench: Any, make_events: Any, *, writes: bool = True) -> None:
        self.first, self.make_events, self.writes = bench, make_events, writes
        self.second: Any = None
        self.fault = bench.env.fault

    def second_comes(self) -> None:
        self.first.env.files.locks.clear()
        env = SimulatedEnv(77, files=self.first.env.files)
        self.second = type(self.first)(durability=self.first.durability, env=env)
        if self.writes:
            self.second.append(b"of the second", wait_ms=500)

    def second_comes_at(self, point: str, nth: int = 1) -> None:
        left = [nth]

        def fault(name: str) -> None:
            self.fault(name)
            left[0] -= name == point
            if left == [0] and self.second is None:
                self.second_comes()

        self.first.env.fault = fault

    def check(self, *, cut: bool) -> dict[int, bytes]:
        """End both, open the store again, and hold what is there against what the first one answered."""
        self.first.env.crash()
        found = self.second.everything()
        self.second.reopen(power_cut=cut)
        stored = self.second.everything()
        assert found.items() <= stored.items()
        return stored


@pytest.mark.parametrize("writes", [True, False], ids=["writes", "only reads"])
@pytest.mark.parametrize("cut", [False, True], ids=["kill", "power cut"])
@pytest.mark.parametrize("is_first_round", [True, False])
@pytest.mark.parametrize("point", ROUND)
def test_what_the_first_owner_accepts_the_second_one_has(
    bench, make_events, point: str, is_first_round: bool, cut: bool, writes: bool
) -> None:
    if not is_first_round:
        bench.append(b"kept")
    pair = Pair(bench, make_events, writes=writes)
    pair.second_comes_at(point)
    for number in range(4):
        try:
            bench.append(b"%d" % number, wait_ms=100)
        except LogFenced:
            break
    if pair.second is None:
        assert point == "log.before_new_segment" and not is_first_round
        return
    assert sum(isinstance(outcome, Appended) for outcome in bench.outcomes) <= 4
    stored = pair.check(cut=cut)
    for number, outcome in enumerate(bench.outcomes):
        message = b"kept" if not is_first_round and not number else b"%d" % (number - (not is_first_round))
        if isinstance(outcome, Appended):
            assert stored[outcome.first_index] == message, "accepted, and superseded"
        elif outcome.known:
            assert message not in stored.values(), "refused, and stored"


def test_the_first_owner_goes_offline_for_good_and_says_so(bench, make_events, caplog) -> None:
    bench.append(b"kept")
    other = made_log(bench.env, bench.store, "cd" * 16)
    pair = Pair(bench, make_events)
    pair.second_comes()
    bench.append(b"unknown", wait_ms=0)
    bench.env.turn()
    bench.append(b"waits")
    assert [(outcome.known, type(outcome.error)) for outcome in bench.outcomes[1:]] == [
        (False, write_round.FencedBehindWrite),
        (True, write_round.FencedBehindWrite),
    ]
    for log in (bench.log, other):
        with pytest.raises(LogFenced, match="another process took it over"):
            log.append(make_events([b"no"]), now_ms=bench.env.now_ms(), on_done=lambda _: None)
    (alarm,) = bench.store.alarms.current()
    assert alarm.kind is STORE_TAKEN_OVER and "Stop one of the two" in alarm.text
    assert sum("took it over" in record.message for record in caplog.records) == 1
    answer = bench.read(0)
    assert isinstance(answer, Refused) and isinstance(answer.error, LogFenced)
    with pytest.raises(LogFenced):
        made_log(bench.env, bench.store, "ef" * 16)
    bench.env.run_for(50)
    calls = bench.env.files.calls
    bench.store.keep_clock()
    bench.env.run_for(100_000)
    assert bench.env.files.calls == calls
    bench.store.close(lambda: None)
    bench.env.run()
    assert pair.check(cut=True) == {0: b"kept", 1: b"of the second"}


def test_a_first_owner_that_is_idle_learns_it_when_it_looks(bench, make_events) -> None:
    bench.append(b"kept", wait_ms=5000)
    told: list[int] = []
    bench.log.on_visible(lambda: told.append(1))
    pair = Pair(bench, make_events)
    bench.store.look_for_owner()
    bench.env.run_for(100)
    assert not bench.store.alarms.current() and not told
    pair.second_comes()
    bench.store.look_for_owner()
    bench.env.run_for(100)
    assert bench.store.alarms.current() and told, "readers that wait must ask again"


@pytest.mark.parametrize("point", RELAXED)
def test_a_relaxed_first_owner_notices_at_its_next_sync(relaxed, make_events, point: str) -> None:
    relaxed.append(b"kept", wait_ms=500)
    pair = Pair(relaxed, make_events)
    pair.second_comes_at(point)
    relaxed.append(b"in the window", wait_ms=0)
    relaxed.env.run_for(100)
    assert pair.second is not None
    with pytest.raises(LogFenced):
        relaxed.append(b"behind it")
    assert pair.check(cut=False)[0] == b"kept"


def test_the_first_owner_touches_none_of_the_second_ones_files(bench, make_events) -> None:
    for number in range(12):
        bench.append(b"%d" % number * 400)
    bench.env.run_for(10_000)
    pair = Pair(bench, make_events)
    pair.second_comes()
    pair.second.log.save_snapshot(b"of the second", lambda _: None)
    pair.second.env.run_for(500)
    files, before = bench.env.files, bench.env.files.paths()
    saved: list[Any] = []
    bench.log.save_snapshot(b"of the first", saved.append)
    bench.env.run_for(100)
    assert isinstance(saved[0].error, LogFenced)
    assert files.paths() == before and pair.second.snapshot() == (13, b"of the second")


def test_a_note_that_the_second_owner_has_not_found_is_unknown(bench, make_events, monkeypatch) -> None:
    """It comes between the first one's look at the epoch and the file of its notes, and has read the notes by then."""
    pair, save = Pair(bench, make_events, writes=False), log_notes.save_notes

    def saves_late(*given: Any) -> None:
        pair.second_comes()
        save(*given)

    monkeypatch.setattr(log_notes, "save_notes", saves_late)
    (outcome,) = bench.note(b"key", b"body")
    assert pair.second.noted() == {}
    assert isinstance(outcome, Refused) and isinstance(outcome.error, LogFenced) and not outcome.known
    assert bench.noted() == {}
    pair.first.env.crash()
    pair.second.env.run_for(100)


def test_retention_of_the_first_owner_removes_nothing(bench, make_events) -> None:
    for number in range(12):
        bench.append(b"%d" % number * 400)
    bench.env.run_for(10_000)
    Pair(bench, make_events).second_comes()
    before = bench.env.files.paths()
    expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=1)
    bench.env.run_for(500)
    assert bench.env.files.paths() == before and bench.store.alarms.current()


def test_a_deletion_of_the_first_owner_removes_nothing(bench, make_events) -> None:
    bench.append(b"kept")
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run_for(500)
    pair = Pair(bench, make_events)
    pair.second_comes()
    results: list[Any] = []
    bench.store.delete_log(bench.log.log_id, results.append)
    bench.env.run_for(500)
    with pytest.raises(LogFenced):
        results[0].value()
    assert pair.check(cut=False)[0] == b"kept"


def test_a_repair_of_the_first_owner_refuses_nothing_that_the_second_one_may_have(bench, make_events) -> None:
    bench.append(b"kept")
    pair = Pair(bench, make_events)
    taken = bench.store.epochs.take_epoch

    def then_the_second_comes(on_done: Any) -> None:
        def done(result: Any) -> None:
            pair.second_comes()
            on_done(result)

        taken(done)

    bench.log._repair._epochs = type("Epochs", (), {"take_epoch": staticmethod(then_the_second_comes)})
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.append(b"half there", wait_ms=500)
    assert isinstance(bench.outcomes[-1], Refused) and not bench.outcomes[-1].known
    active = pair.second.log._state.segments.active
    assert list(bench.env.files.open_files.values()) == [active.path], "none of the first one's"
    assert b"of the second" in pair.check(cut=True).values()


@pytest.fixture
def torn(relaxed, make_events, monkeypatch) -> Pair:
    """A relaxed log whose write on the loop fails behind its last byte, and a second owner that only reads."""
    relaxed.append(b"kept", wait_ms=500)
    whole, left = MemoryFile.write, [1]

    def tear(file: MemoryFile, position: int, buffers: Any) -> None:
        whole(file, position, buffers)
        if left:
            left.pop()
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(MemoryFile, "write", tear)
    return Pair(relaxed, make_events, writes=False)


def append_torn(pair: Pair) -> None:
    """The second owner finds it in the file, so nobody may be told that it was refused."""
    pair.first.append(b"torn", wait_ms=500)
    assert pair.second is not None
    assert isinstance(pair.first.outcomes[-1], Refused) and not pair.first.outcomes[-1].known
    assert b"torn" in pair.check(cut=False).values()


def test_a_torn_write_is_not_cut_off_under_the_second_owner(torn: Pair) -> None:
    torn.first.env.faults["log.before_write"] = OSError(errno.ENOSPC, "No space left on device")
    torn.second_comes_at("log.before_round")
    active = torn.first.log._state.segments.active
    append_torn(torn)
    assert len(torn.first.env.files.bytes_of(active.path)) > active.end


def test_a_second_owner_that_comes_while_a_torn_write_is_cut_off_may_have_it(torn: Pair, monkeypatch) -> None:
    torn.first.env.faults["log.before_write"] = OSError(errno.ENOSPC, "No space left on device")
    cut_off = ActiveSegment.forget_behind

    def then_cut_off(segment: ActiveSegment) -> None:
        torn.second_comes()
        cut_off(segment)

    monkeypatch.setattr(ActiveSegment, "forget_behind", then_cut_off)
    append_torn(torn)


def test_a_torn_write_before_a_new_segment_may_be_the_second_owners(torn: Pair) -> None:
    def roll(name: str) -> None:
        if name == "log.before_relaxed_write":
            torn.first.log._commit.roll()

    torn.fault = roll
    torn.second_comes_at("log.before_round")
    append_torn(torn)


def test_an_epoch_that_cannot_be_read_behind_a_sync_is_a_failed_sync(bench) -> None:
    bench.append(b"kept")
    checked = bench.store.epochs.check

    def fail_once() -> None:
        bench.log._state.check_epoch = checked
        raise OSError(24, "Too many open files")

    bench.log._state.check_epoch = fail_once
    bench.append(b"refused", wait_ms=300)
    assert bench.outcomes[-1].known and bench.log.lease.writer_epoch == 2
    bench.reopen()
    assert bench.everything() == {0: b"kept"}


def test_control_a_check_before_the_sync_loses_what_was_accepted(bench, make_events, monkeypatch) -> None:
    def early(round_: WriteRound, segment: Any) -> None:
        round_.state.check_epoch()
        append_to(round_, segment)

    append_to = WriteRound._append_to
    monkeypatch.setattr(WriteRound, "_append_to", early)
    monkeypatch.setattr(write_round, "check_behind_write", lambda state: None)
    monkeypatch.setattr(group_commit, "check_behind_write", lambda state: None)
    bench.append(b"kept")
    pair = Pair(bench, make_events)
    pair.second_comes_at("log.before_write")
    bench.append(b"accepted", wait_ms=100)
    assert isinstance(bench.outcomes[-1], Appended)
    assert b"accepted" not in pair.check(cut=False).values()
