"""R4: an exception that nobody expected, in any step of a log: that log stops loudly, no other, and it comes back.

A fault is planted at the n-th use of a part, n = 1, 2, ... until the script no longer reaches it, before or behind what
the part does. Each time: every send is answered, what was accepted is there and nothing else than what was sent, the
other log notices nothing, the operator is told, and the log takes sends again without a restart, and after one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Thread, get_ident
from typing import Any

import pytest

from hubweir.counters import Counters
from hubweir.errors import LogOffline, StoreError
from hubweir.messaging_store.log import Appended, Durability, Refused, Run
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine import failed_sync, group_commit, log_snapshots, roll, trimming
from hubweir.messaging_store.segment_engine.group_commit import GroupCommit
from hubweir.messaging_store.segment_engine.idle_mark import IdleMark
from hubweir.messaging_store.segment_engine.log_segments import LogSegments
from hubweir.messaging_store.segment_engine.log_snapshots import LogSnapshots
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.messaging_store.segment_engine.steps import Steps
from hubweir.messaging_store.segment_engine.waiting import SyncWaiters
from hubweir.messaging_store.segment_engine.write_round import WriteRound
from hubweir.messaging_store.tail import Tail
from hubweir.testing.answers import made_log
from hubweir.testing.simulated_env import SimulatedEnv
from tests.simulation.log_world import SETTINGS, STORE, events_run, records_of

LOG_ID, OTHER_ID = "ab" * 16, "cd" * 16
USES_MAX = 60

# Where faults are planted: (owner, name). All run on the loop but write, create_segment and those of failed_sync.
PARTS: list[tuple[Any, str]] = [
    (GroupCommit, "_flush"), (GroupCommit, "_take"), (GroupCommit, "_start_round"), (GroupCommit, "_round_done"),
    (GroupCommit, "_write_now"), (GroupCommit, "_answer"), (GroupCommit, "_sync_soon"), (GroupCommit, "_after_round"),
    (GroupCommit, "_refuse"), (GroupCommit, "_show"), (LogSegments, "started"), (LogState, "new_header"), (Tail, "add"),
    (Tail, "shrink"), (IdleMark, "_append_if_idle"), (IdleMark, "arm"), (SyncWaiters, "release"),
    (group_commit, "save_indexes"), (WriteRound, "write"), (LogState, "create_segment"),
    (failed_sync, "_make_segment"), (failed_sync, "_note_shown"), (trimming, "remove_segments"),
    (log_snapshots, "save_snapshot"), (LogSnapshots, "covered"),
]  # fmt: skip


class Planted(RuntimeError):
    """Nobody expects this one."""


class Plant:
    """Raises at the n-th use of a part in this thread, before or behind what the part does.

    A service that other tests of this process use has a thread of its own, and is left alone.
    """

    def __init__(self, patch: pytest.MonkeyPatch, owner: Any, name: str, nth: int, *, behind: bool) -> None:
        self.uses = 0
        self.armed = True
        thread = get_ident()
        original: Callable[..., Any] = getattr(owner, name)

        def planted(*args: Any, **kwargs: Any) -> Any:
            if get_ident() != thread or not self.armed:
                return original(*args, **kwargs)
            self.uses += 1
            here = self.uses == nth
            if here and not behind:
                raise Planted(f"{name}, use {nth}")
            result = original(*args, **kwargs)
            if here:
                raise Planted(f"behind {name}, use {nth}")
            return result

        patch.setattr(owner, name, planted)


class Script:
    """Two logs, one with a fault: sends, silence, a roll, a snapshot, retention, cold reads."""

    def __init__(self, durability: Durability) -> None:
        self.durability = durability
        self.env = SimulatedEnv(9)
        self.counters = Counters()
        self.sent: dict[bytes, str] = {}
        self.answers: Counter[bytes] = Counter()
        self.wrong = 0
        self.open()

    def open(self) -> None:
        self.store = MessagingStore.open(self.env, STORE, settings=SETTINGS, counters=self.counters)
        self.log = made_log(self.env, self.store, LOG_ID, durability=self.durability)
        self.log.on_visible(lambda: self.seen())
        self.other = made_log(self.env, self.store, OTHER_ID)
        self.send(b"other", self.other)
        self.env.run_for(2_000)  # it has its mark, and nothing more to do

    def send(self, message: bytes, log: SegmentLog | None = None) -> None:
        def done(outcome: Appended | Refused) -> None:
            self.answers[message] += 1
            known = isinstance(outcome, Refused) and outcome.known
            self.sent[message] = "accepted" if isinstance(outcome, Appended) else "refused" if known else "unknown"
            if isinstance(outcome, Refused):
                self.wrong += not isinstance(outcome.error, LogOffline)

        self.sent[message] = "unanswered"
        try:
            (log or self.log).append(events_run([[message]]), now_ms=self.env.now_ms(), on_done=done)
        except StoreError as refused:
            assert isinstance(refused, LogOffline)
            self.sent[message], self.answers[message] = "refused", 1

    def seen(self) -> None:
        """The owner's part of a round: readers are woken."""

    def play(self) -> None:
        for turn in range(6):
            for number in range(2):
                self.send(b"%d.%d " % (turn, number) + bytes(900))
            self.env.run_for(30 if turn % 2 else 250)
            if turn == 2:
                self.log.save_snapshot(b"state", lambda outcome: None)
            self.env.run_for(1)
        self.env.run_for(10_000)
        try:
            expire(self.log, now_ms=self.env.now_ms(), retention_ms=3_600_000)
        except Planted as fault:
            self.log.stop(fault)  # as the sweep of a broker does
        self.env.run_for(30_000)

    def everything(self) -> list[bytes]:
        found: list[bytes] = []
        index = self.log.bounds.first_index
        while index < self.log.bounds.next_index:
            answers: list[Run | Refused] = []
            run = self.log.read(index, max_bytes=2_000, on_done=answers.append)
            self.env.run_for(0 if isinstance(run, Run) else 100)
            run = run if isinstance(run, Run) else answers[0]
            assert isinstance(run, Run), run
            found += [record.message for record in records_of(run.data) if record.index >= index]
            index = run.next_index
        return found

    def alarms_of(self, log: SegmentLog) -> list[str]:
        return [alarm.text for alarm in self.store.alarms.current() if log.log_id in alarm.about]

    def check(self) -> None:
        stored = Counter(self.everything())
        assert max(stored.values(), default=1) == 1 and not self.wrong
        for message, state in self.sent.items():
            if message != b"other":
                assert (state, self.answers[message]) != ("unanswered", 0), f"nobody was told about {message[:4]!r}"
                assert self.answers[message] == 1
                assert stored[message] == 1 if state == "accepted" else state == "unknown" or not stored[message]
        assert self.sent[b"other"] == "accepted" and self.alarms_of(self.other) == []


PARTS.append((Script, "seen"))


@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize(("owner", "name"), PARTS, ids=[name for _, name in PARTS])
def test_a_fault_in_a_step_stops_one_log_loudly_and_it_comes_back(
    owner: Any, name: str, behind: bool, durability: Durability
) -> None:
    hits = 0
    for nth in range(1, USES_MAX):
        script = Script(durability)
        with pytest.MonkeyPatch.context() as patch:
            plant = Plant(patch, owner, name, nth, behind=behind)
            script.play()
            plant.armed = False
            if plant.uses < nth:
                break
            hits += 1
            assert script.counters["log.faults"] >= 1
            script.env.run_for(40_000)
            script.send(b"after")
            script.env.run_for(2_000)
            assert script.sent[b"after"] == "accepted", script.alarms_of(script.log)
            script.check()
            script.env.crash(power_cut=durability is Durability.DURABLE)
            script.env = script.env.restart()
            script.open()
            script.check()
    assert hits or name in ("_write_now", "_sync_soon", "_refuse", "_make_segment", "_note_shown", "remove_segments")


def test_a_planted_fault_leaves_the_services_of_other_threads_alone() -> None:
    def work() -> str:
        return "done"

    class Part:
        step = staticmethod(work)

    with pytest.MonkeyPatch.context() as patch:
        plant = Plant(patch, Part, "step", 1, behind=False)
        said: list[str] = []
        other = Thread(target=lambda: said.append(Part.step()))
        other.start()
        other.join()
        assert (said, plant.uses) == (["done"], 0)
        with pytest.raises(Planted, match="step, use 1"):
            Part.step()


@pytest.mark.parametrize("durability", Durability)
def test_a_fault_that_stays_keeps_the_log_offline_with_an_alarm_until_a_restart(durability: Durability) -> None:
    script = Script(durability)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GroupCommit, "_show", lambda self, entries, segment: 1 // 0)
        for turn in range(3):
            script.send(b"%d" % turn)
            script.env.run_for(100)
        [alarm] = script.alarms_of(script.log)
        assert "fault of the service" in alarm
        assert script.sent[b"0"] == "unknown" and script.sent[b"1"] == script.sent[b"2"] == "refused"
    script.env.crash()
    script.env = script.env.restart()
    script.open()
    script.send(b"after")
    script.env.run_for(500)
    assert script.sent[b"after"] == "accepted" and not any("fault" in text for text in script.alarms_of(script.log))


def test_without_containment_senders_wait_for_ever() -> None:
    """The control arm: steps that only run."""
    script = Script(Durability.DURABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "run", lambda self, step: _swallowed(step))
        plant = Plant(patch, GroupCommit, "_round_done", 1, behind=False)
        script.play()
        assert plant.uses == 1
        with pytest.raises(AssertionError, match="nobody was told"):
            script.check()


def _swallowed(step: Callable[[], None]) -> None:
    """As a pool of threads that only logs what a completion raised."""
    try:
        step()
    except Planted:
        return


def test_a_close_ends_also_when_its_last_step_faults() -> None:
    script = Script(Durability.DURABLE)
    script.send(b"a")
    script.env.run_for(100)
    closed: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roll, "_ignore_failure", lambda result: 1 // 0)
        script.store.close(lambda: closed.append(True))
        script.env.run_for(5_000)
    assert closed == [True]
