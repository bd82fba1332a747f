"""What every engine behind Log promises, held against each of them: the segment files, and a log that cannot fence.

An engine that is added gets a class here, with what starts it, ends it and lets a second owner come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from hubweir.errors import KernelRefusal, LogFenced, LogOffline
from hubweir.messaging_store.log import Appended, Durability, Log, Note, Refused, Run
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.tests.conftest import LOG_ID, SMALL, events, messages_of
from hubweir.testing.replicated_log import DELAY_MS, ReplicatedLog
from hubweir.testing.shared_log import SharedLog
from hubweir.testing.simulated_env import SimulatedEnv

HOUR_MS = 3_600_000


class Engine(Protocol):
    """One log of an engine, in a process that may end, and a second one that takes it over."""

    env: SimulatedEnv

    def open(self) -> Log: ...

    def end(self, *, power_cut: bool = False) -> None:
        """The process ends, or the machine."""

    def second_owner(self) -> Log:
        """Another process opens the same log, while the first one goes on."""

    def run_for(self, ms: int) -> None:
        """Let time pass in all processes."""


class Segments:
    """segment_log.py, in one store folder."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(1)
        self._others: list[SimulatedEnv] = []

    def open(self) -> Log:
        return MessagingStore.open(self.env, "store-0", settings=SMALL).create_log(LOG_ID)

    def end(self, *, power_cut: bool = False) -> None:
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()

    def second_owner(self) -> Log:
        self.env.files.locks.clear()  # as if the lock was lost
        other = SimulatedEnv(2, files=self.env.files)
        self._others.append(other)
        return MessagingStore.open(other, "store-0", settings=SMALL).create_log(LOG_ID)

    def run_for(self, ms: int) -> None:
        for env in (self.env, *self._others):
            env.run_for(ms)


class Replicated:
    """testing/replicated_log.py, on one shared log."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(1)
        self._shared = SharedLog()
        self._log: ReplicatedLog | None = None

    def open(self) -> Log:
        # Slower than the second owner: so its appends come behind the epoch of whoever took the log over meanwhile.
        self._log = self._opened(delay_ms=3 * DELAY_MS)
        return self._log

    def end(self, *, power_cut: bool = False) -> None:
        assert self._log is not None
        self._shared.leave(self._log._read_entry)
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()

    def second_owner(self) -> Log:
        return self._opened(delay_ms=DELAY_MS)

    def _opened(self, *, delay_ms: int) -> ReplicatedLog:
        log = ReplicatedLog(self.env, self._shared, LOG_ID, Durability.DURABLE, delay_ms=delay_ms)
        while not log.is_open:
            self.env.run_for(DELAY_MS)
        return log

    def run_for(self, ms: int) -> None:
        self.env.run_for(ms)


@pytest.fixture(params=[Segments, Replicated])
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.param()
    return made


class Owner:
    """A log and whoever appends to it."""

    def __init__(self, engine: Engine, log: Log) -> None:
        self.engine = engine
        self.log = log
        self.outcomes: list[Appended | Refused] = []

    def append(self, *messages: bytes, at_ms: int | None = None, wait_ms: int = 100) -> Appended:
        now_ms = self.engine.env.now_ms() if at_ms is None else at_ms
        appended = self.log.append(events(list(messages)), now_ms=now_ms, on_done=self.outcomes.append)
        self.engine.run_for(wait_ms)
        return appended

    def note(self, key: bytes, body: bytes | None, *, wait_ms: int = 100) -> list[Note | Refused]:
        outcomes: list[Note | Refused] = []
        self.log.note(key, body, now_ms=self.engine.env.now_ms(), on_done=outcomes.append)
        self.engine.run_for(wait_ms)
        return outcomes

    def noted(self) -> dict[bytes, bytes]:
        return {key: note.body for key, note in self.log.notes.items()}

    def answer(self, ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        answers: list[Any] = []
        found = ask(*args, on_done=answers.append, **kwargs)
        if isinstance(found, Run | int):
            return found
        self.engine.run_for(200)
        (answer,) = answers
        return answer

    def read(self, index: int, max_bytes: int = 1 << 20) -> Run:
        run = self.answer(self.log.read, index, max_bytes=max_bytes)
        assert isinstance(run, Run), run
        return run

    def everything(self) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        index = self.log.bounds.first_index
        while index < self.log.bounds.next_index:
            run = self.read(index, 500)
            found |= messages_of(run.data)
            index = run.next_index
        return found


@pytest.fixture
def owner(engine: Engine) -> Owner:
    return Owner(engine, engine.open())


def again(owner: Owner, *, power_cut: bool = True) -> Owner:
    """The next process on the same log."""
    owner.engine.end(power_cut=power_cut)
    return Owner(owner.engine, owner.engine.open())


def test_runs_are_read_back_in_order_with_dense_indexes_and_offsets(owner: Owner) -> None:
    ends = [owner.append(b"%d" % number, b"second") for number in range(5)]
    assert [(each.first_index, each.next_index) for each in ends] == [(n, n + 2) for n in range(0, 10, 2)]
    assert all(before.next_offset == after.first_offset for before, after in zip(ends, ends[1:], strict=False))
    assert owner.outcomes == ends
    assert list(owner.everything()) == list(range(10)) and owner.everything()[4] == b"2"
    bounds = owner.log.bounds
    assert (bounds.first_index, bounds.next_index, bounds.last_index) == (0, 10, 9)
    assert (bounds.next_offset, bounds.last_time_ms) == (ends[-1].next_offset, ends[-1].enqueued_time_ms)


def test_nothing_is_visible_or_answered_inside_the_call_and_answers_come_in_order(owner: Owner) -> None:
    moves: list[int] = []
    owner.log.on_visible(lambda: moves.append(owner.log.bounds.next_index))
    ends = [owner.append(b"%d" % number, wait_ms=0) for number in range(20)]
    assert owner.outcomes == [] and owner.log.bounds.next_index == 0
    assert owner.read(0).data == b""
    owner.engine.run_for(200)
    assert owner.outcomes == ends and moves == sorted(moves) and moves[-1] == 20


@pytest.mark.parametrize("power_cut", [False, True])
def test_what_was_answered_is_there_after_any_end_and_numbers_go_on(owner: Owner, power_cut: bool) -> None:
    for number in range(3):
        owner.append(b"%d" % number)
        epoch, bounds = owner.log.lease.writer_epoch, owner.log.bounds
        owner = again(owner, power_cut=power_cut)
        assert owner.log.bounds == bounds and owner.log.lease.writer_epoch > epoch
    assert owner.append(b"3").first_index == 3
    assert list(owner.everything().values()) == [b"0", b"1", b"2", b"3"]


def test_a_chain_that_was_not_answered_is_there_whole_or_not_at_all(owner: Owner) -> None:
    run = events([b"a"], [b"b"], [b"c"])
    owner.log.append(run, now_ms=0, on_done=owner.outcomes.append)
    owner.engine.run_for(2)
    owner = again(owner, power_cut=False)
    assert owner.log.bounds.next_index in (0, 3)


def test_a_read_holds_its_index_and_at_least_one_batch(owner: Owner) -> None:
    owner.append(b"a", b"b" * 300)
    owner.append(b"c" * 300)
    assert owner.read(1, 1).first_index == 0 and owner.read(1, 1).next_index == 2
    assert owner.read(0, 10_000).next_index == 3 and owner.read(0, 500).next_index == 2
    assert owner.read(3).data == b"" == owner.read(99).data


def test_offsets_and_times_are_found(owner: Owner) -> None:
    ends = [owner.append(b"%d" % number, b"x", at_ms=1_000 * number) for number in range(4)]
    log = owner.log
    assert owner.answer(log.find_offset, 0) == 0
    assert owner.answer(log.find_offset, ends[1].first_offset + 1) == 3
    assert owner.answer(log.find_offset, ends[-1].next_offset) == 8
    assert [owner.answer(log.find_time, at) for at in (0, 1, 1_000, 3_000, 3_001)] == [0, 2, 2, 6, 8]


def test_enqueued_time_never_goes_back(owner: Owner) -> None:
    assert [owner.append(b"x", at_ms=at).enqueued_time_ms for at in (5_000, 4_000, 6_000)] == [5_000, 5_000, 6_000]
    owner = again(owner)
    assert owner.append(b"x", at_ms=1).enqueued_time_ms == 6_000


def test_the_newest_note_of_each_key_is_kept_behind_what_was_appended_before_it(owner: Owner) -> None:
    owner.append(b"a", wait_ms=0)
    outcomes = [owner.note(key, body, wait_ms=0) for key, body in ((b"x", b"1"), (b"y", b"2"), (b"x", b"3"))]
    owner.engine.run_for(200)
    assert all(isinstance(outcome, Note) for (outcome,) in outcomes) and owner.noted() == {b"x": b"3", b"y": b"2"}
    (note,) = owner.note(b"z", b"4")
    assert isinstance(note, Note) and (note.index, note.offset) == (1, owner.log.bounds.next_offset)
    owner.note(b"y", None)
    owner = again(owner)
    assert owner.noted() == {b"x": b"3", b"z": b"4"} and owner.everything() == {0: b"a"}
    assert owner.log.notes[b"z"] == note and owner.log.notes_damage is None


def test_old_records_go_and_notes_and_last_values_stay(owner: Owner) -> None:
    owner.note(b"x", b"1")
    for number in range(30):
        owner.append(b"%d" % number * 200)
    before, now_ms = owner.log.bounds, owner.engine.env.now_ms()
    for _ in range(4):
        expire(owner.log, now_ms=now_ms + 3 * HOUR_MS, retention_ms=HOUR_MS)
        owner.engine.run_for(200)
    after = owner.log.bounds
    assert after.first_index == after.next_index == 30 and after.last_time_ms == before.last_time_ms
    assert owner.everything() == {} and owner.noted() == {b"x": b"1"}
    owner = again(owner)
    assert owner.log.bounds == after and owner.noted() == {b"x": b"1"}
    assert owner.append(b"more").first_index == 30


def test_a_trim_drops_no_record_from_its_index_on_and_a_prefix_before_it(owner: Owner) -> None:
    for number in range(30):
        owner.append(b"%d" % number * 200)
    stored = owner.everything()
    first = owner.log.trim(17)
    assert 0 < first <= 17 and owner.log.bounds.first_index == first
    for index in (0, 16, 17, 5):
        assert owner.log.trim(min(index, first)) == first, "a smaller index changes nothing"
        owner.engine.run_for(200)
    assert owner.everything() == {index: message for index, message in stored.items() if index >= first}
    assert owner.read(0).first_index == first
    owner = again(owner)
    kept = owner.everything()
    assert set(range(17, 30)) <= set(kept) and sorted(kept) == list(range(min(kept), 30))
    assert owner.append(b"more").first_index == 30


def test_a_trim_of_everything_keeps_the_numbers(owner: Owner) -> None:
    for number in range(10):
        owner.append(b"%d" % number * 200)
    before = owner.log.bounds
    for _ in range(3):
        owner.log.trim(99)
        owner.engine.run_for(200)
    after = owner.log.bounds
    assert (after.first_index, after.next_index, after.first_offset) == (10, 10, before.next_offset)
    assert (after.last_index, after.last_offset, after.last_time_ms) == (9, before.last_offset, before.last_time_ms)
    assert owner.append(b"more").first_index == 10 and owner.everything() == {10: b"more"}


def test_a_log_whose_lease_is_over_trims_nothing(owner: Owner) -> None:
    for number in range(30):
        owner.append(b"%d" % number * 200)
    second = Owner(owner.engine, owner.engine.second_owner())
    second.append(b"of the second")
    for _ in range(2):
        owner.log.trim(30)
        owner.engine.run_for(200)
    assert list(second.everything()) == list(range(31))
    second = again(second)
    assert list(second.everything()) == list(range(31))


def test_a_log_tells_how_old_its_records_are(owner: Owner) -> None:
    start_ms = owner.engine.env.now_ms()
    times = [owner.append(b"%d" % number * 200).enqueued_time_ms for number in range(30)]
    told = [owner.log.older_than(time_ms) for time_ms in (start_ms, *times, times[-1] + 1)]
    assert told == sorted(told) and (told[0], told[-1]) == (0, 30)
    assert all(index <= number for number, index in enumerate(told[1:-1])) and len(set(told)) > 3
    owner.log.trim(30)
    assert owner.log.older_than(start_ms) == owner.log.bounds.first_index
    owner = again(owner)
    assert owner.log.older_than(times[-1] + 1) == 30 >= owner.log.older_than(times[-1])


def test_what_somebody_must_read_yet_stays_for_longer(owner: Owner) -> None:
    for number in range(30):
        owner.append(b"%d" % number * 200)
    now_ms = owner.engine.env.now_ms() + 3 * HOUR_MS
    first = expire(owner.log, now_ms=now_ms, retention_ms=HOUR_MS, keep_from=20, kept_longer_ms=24 * HOUR_MS)
    assert 0 < first <= 20
    owner.engine.run_for(200)
    assert min(owner.everything()) == first and owner.read(0).first_index == first


def test_snapshots_come_back_and_hold_back_what_they_do_not_cover(owner: Owner) -> None:
    owner.append(b"0" * 3_000)
    assert owner.log.load_snapshot() is None
    done: list[object] = []
    owner.log.save_snapshot(b"first", done.append)
    owner.engine.run_for(200)
    assert done == [None] and owner.log.load_snapshot() == (1, b"first")
    for number in range(5):
        owner.append(b"%d" % number * 2_000)
    now_ms = owner.engine.env.now_ms() + 3 * HOUR_MS
    assert expire(owner.log, now_ms=now_ms, retention_ms=1) == 0
    owner.log.save_snapshot(b"second", done.append)
    owner.engine.run_for(200)
    assert expire(owner.log, now_ms=now_ms, retention_ms=1) == 1
    owner.engine.run_for(200)
    owner = again(owner)
    assert owner.log.load_snapshot() == (6, b"second")


def test_a_replay_begins_with_the_batch_that_holds_its_index(owner: Owner) -> None:
    for number in range(6):
        owner.append(b"%d" % number, b"x")
    found = {index: each for run in owner.log.replay(5) for index, each in messages_of(run.data).items()}
    assert max(found) == 11 and min(index for index in found if index >= 5) == 5 and 3 not in found


def test_who_lost_the_log_to_another_owner_stores_nothing_more(owner: Owner) -> None:
    owner.append(b"kept")
    second = Owner(owner.engine, owner.engine.second_owner())
    assert second.log.lease.writer_epoch > owner.log.lease.writer_epoch
    try:
        owner.append(b"late")
    except LogFenced as error:
        owner.outcomes.append(Refused(error))
    assert isinstance(owner.outcomes[-1], Refused) and isinstance(owner.outcomes[-1].error, LogFenced)
    second.append(b"of the second")
    assert second.everything() == {0: b"kept", 1: b"of the second"}
    for write in (lambda: owner.append(b"more"), lambda: owner.note(b"x", b"1")):
        with pytest.raises(LogFenced):
            write()
    refused = owner.answer(owner.log.read, 0, max_bytes=1)
    assert isinstance(refused, Refused) and isinstance(refused.error, LogFenced)
    second = again(second)
    assert second.everything() == {0: b"kept", 1: b"of the second"} and second.noted() == {}


@pytest.mark.parametrize("wait_ms", range(0, 12, 2))
def test_whatever_is_on_its_way_when_another_owner_comes_is_accepted_and_there_or_refused_and_not(
    owner: Owner, wait_ms: int
) -> None:
    owner.append(b"kept")
    owner.append(b"on its way", wait_ms=wait_ms)
    second = Owner(owner.engine, owner.engine.second_owner())
    second.append(b"of the second", wait_ms=500)
    outcome = owner.outcomes[-1]
    is_there = b"on its way" in second.everything().values()
    assert len(second.everything()) == 2 + is_there
    if isinstance(outcome, Appended):
        assert is_there
    elif outcome.known:
        assert not is_there


def test_a_closed_log_takes_nothing_and_answers_what_was_on_its_way(owner: Owner) -> None:
    owner.append(b"a", wait_ms=0)
    closed: list[int] = []
    for _ in range(2):
        owner.log.close(lambda: closed.append(len(owner.outcomes)))
    for write in (lambda: owner.append(b"b"), lambda: owner.note(b"x", b"1")):
        with pytest.raises(LogOffline, match="closed"):
            write()
    owner.engine.run_for(1_000)
    assert closed == [1, 1] and isinstance(owner.outcomes[0], Appended)


def test_a_fault_of_the_owners_code_stops_the_log_for_a_moment(owner: Owner) -> None:
    owner.append(b"a")
    owner.log.stop(RuntimeError("planted"))
    with pytest.raises(LogOffline):
        owner.append(b"b")
    owner.engine.run_for(10_000)
    assert owner.append(b"c").first_index == 1 and owner.everything() == {0: b"a", 1: b"c"}


def test_an_empty_run_is_refused(owner: Owner) -> None:
    with pytest.raises(KernelRefusal):
        owner.log.append(bytearray(), now_ms=0, on_done=owner.outcomes.append)
