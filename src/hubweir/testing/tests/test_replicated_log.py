"""replicated_log.py, what is only its own: nobody is kept from appending, so what counts is found out by reading back.

What it promises as every engine does is held by the tests of the contract (messaging_store/tests).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.errors import LogFenced
from hubweir.messaging_store.log import Appended, Durability, Note, Refused
from hubweir.messaging_store.tests.conftest import events, messages_of
from hubweir.testing.answers import runs_of
from hubweir.testing.replicated_log import ReplicatedLog
from hubweir.testing.shared_log import SharedLog
from hubweir.testing.simulated_env import SimulatedEnv

ID = "ab" * 16


class Owner:
    """One who opened the log, with so much delay to the service."""

    def __init__(self, env: SimulatedEnv, shared: SharedLog, delay_ms: int = 3) -> None:
        self.env = env
        self.opened: list[Refused | None] = []
        self.outcomes: list[Any] = []
        self.log = ReplicatedLog(env, shared, ID, Durability.DURABLE, self.opened.append, delay_ms=delay_ms)

    def append(self, message: bytes) -> Appended:
        return self.log.append(events([message]), now_ms=self.env.now_ms(), on_done=self.outcomes.append)

    def note(self, key: bytes, body: bytes | None) -> None:
        self.log.note(key, body, now_ms=self.env.now_ms(), on_done=self.outcomes.append)

    def everything(self) -> list[bytes]:
        return [message for run in runs_of(self.env, self.log) for message in messages_of(run.data).values()]


@pytest.fixture
def env() -> SimulatedEnv:
    return SimulatedEnv(1)


@pytest.fixture
def shared() -> SharedLog:
    return SharedLog()


@pytest.fixture
def owner(env: SimulatedEnv, shared: SharedLog) -> Owner:
    made = Owner(env, shared)
    env.run_for(10)
    return made


def test_an_owner_writes_when_it_has_read_its_own_epoch_back_and_not_before(
    env: SimulatedEnv, shared: SharedLog
) -> None:
    owner = Owner(env, shared, delay_ms=5)
    env.run_for(4)
    assert owner.opened == []
    env.run_for(1)
    assert owner.opened == [None] and owner.log.lease.writer_epoch == 1


def test_of_two_that_take_the_same_epoch_at_once_the_one_that_is_read_first_has_it(
    env: SimulatedEnv, shared: SharedLog
) -> None:
    slow, fast = Owner(env, shared, delay_ms=5), Owner(env, shared, delay_ms=3)
    env.run_for(10)
    (refused,) = slow.opened
    assert fast.opened == [None] and isinstance(refused, Refused) and isinstance(refused.error, LogFenced)
    with pytest.raises(LogFenced):
        slow.append(b"late")
    fast.append(b"kept")
    env.run_for(10)
    assert fast.everything() == [b"kept"]


def test_what_arrives_behind_a_newer_epoch_is_refused_for_certain_and_passed_over_by_everybody(
    env: SimulatedEnv, shared: SharedLog, owner: Owner
) -> None:
    owner.append(b"kept")
    env.run_for(10)
    slow = Owner(env, shared, delay_ms=20)
    env.run_for(30)
    slow.append(b"too late")
    second = Owner(env, shared, delay_ms=1)
    env.run_for(5)
    second.append(b"of the second")
    env.run_for(50)
    (refused,) = slow.outcomes
    assert isinstance(refused, Refused) and isinstance(refused.error, LogFenced) and refused.known
    assert any(b"too late" in each.run for each in shared.entries.values()), "the service fences nobody"
    assert second.everything() == [b"kept", b"of the second"]
    follower = Owner(env, shared)
    env.run_for(10)
    assert follower.everything() == [b"kept", b"of the second"]


def test_entries_arrive_in_the_order_in_which_they_were_put_whichever_timer_rings_first(
    env: SimulatedEnv, shared: SharedLog, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[Callable[[], None]] = []
    monkeypatch.setattr(env, "call_later", lambda delay_ms, callback: timers.append(callback))
    for number in range(3):
        owner.append(b"%d" % number)
    for callback in reversed(timers):
        callback()
    assert [each.next_index for each in owner.outcomes] == [1, 2, 3] and owner.everything() == [b"0", b"1", b"2"]


def test_before_a_prefix_goes_what_is_needed_of_it_is_put_again_behind_it(
    env: SimulatedEnv, shared: SharedLog, owner: Owner
) -> None:
    owner.note(b"old", b"1")
    owner.note(b"forgotten", b"2")
    owner.note(b"forgotten", None)
    for number in range(5):
        owner.append(b"%d" % number)
    env.run_for(10)
    owner.note(b"young", b"3")
    env.run_for(10)
    puts, before = len(shared.entries), max(shared.entries)
    assert owner.log.trim(3) == 3
    env.run_for(10)
    again = [each for position, each in shared.entries.items() if position > before]
    assert [(each.key, each.end is not None) for each in again] == [(b"old", False), (None, True)]
    assert len(shared.entries) < puts and not any(b"2" in each.run[-8:] for each in shared.entries.values())
    later = Owner(env, shared)
    env.run_for(10)
    assert later.everything() == [b"3", b"4"] and later.log.bounds == owner.log.bounds
    assert {key: note.body for key, note in later.log.notes.items()} == {b"old": b"1", b"young": b"3"}
    assert later.log.notes == owner.log.notes


@pytest.mark.parametrize("is_all", [False, True])
def test_what_was_refused_stays_refused_for_those_who_come_behind_a_trim(
    env: SimulatedEnv, shared: SharedLog, is_all: bool
) -> None:
    """The epoch that it stood behind is trimmed away, and the entry itself is not."""
    slow = Owner(env, shared, delay_ms=20)
    env.run_for(30)
    slow.append(b"refused")
    second = Owner(env, shared, delay_ms=1)
    env.run_for(5)
    second.append(b"kept")
    env.run_for(50)
    assert isinstance(slow.outcomes[0], Refused)
    second.note(b"key", b"body")
    if not is_all:
        second.append(b"left")
        env.run_for(5)
        second.append(b"more")
    env.run_for(50)
    second.log.trim(1)
    env.run_for(50)
    later = Owner(env, shared)
    env.run_for(10)
    assert later.opened == [None] and later.log.lease.writer_epoch > second.log.lease.writer_epoch
    assert later.everything() == ([] if is_all else [b"left", b"more"])
    assert later.log.bounds == second.log.bounds and later.log.notes[b"key"].body == b"body"


def test_nothing_is_trimmed_while_anything_is_on_its_way(env: SimulatedEnv, shared: SharedLog, owner: Owner) -> None:
    owner.note(b"key", b"old")
    for number in range(3):
        owner.append(b"%d" % number)
        env.run_for(10)
    for act in (lambda: owner.append(b"on its way"), lambda: owner.note(b"key", b"new")):
        act()
        assert owner.log.trim(2) == 0
        env.run_for(10)
    assert owner.log.trim(2) == 2 and owner.everything() == [b"2", b"on its way"]
    env.run_for(10)
    assert owner.log.notes[b"key"].body == b"new"


def test_a_trim_that_arrives_behind_a_newer_epoch_takes_nothing(env: SimulatedEnv, shared: SharedLog) -> None:
    owner = Owner(env, shared, delay_ms=20)
    env.run_for(30)
    for number in range(3):
        owner.append(b"%d" % number)
    env.run_for(50)
    kept = set(shared.entries)
    assert owner.log.trim(2) == 2
    second = Owner(env, shared, delay_ms=1)
    env.run_for(50)
    assert kept <= set(shared.entries) and second.everything() == [b"0", b"1", b"2"]
    assert second.log.bounds.first_index == 0


def test_a_note_names_the_end_behind_what_is_on_its_way(env: SimulatedEnv, shared: SharedLog, owner: Owner) -> None:
    owner.append(b"a")
    owner.note(b"key", b"body")
    env.run_for(10)
    _, note = owner.outcomes
    assert isinstance(note, Note) and (note.index, note.offset) == (1, owner.log.bounds.next_offset)


def test_a_closed_log_follows_no_more_once_all_that_was_on_its_way_is_answered(
    env: SimulatedEnv, shared: SharedLog, owner: Owner
) -> None:
    owner.append(b"a")
    closed: list[int] = []
    owner.log.close(lambda: closed.append(len(owner.outcomes)))
    env.run_for(10)
    assert closed == [1]
    second = Owner(env, shared)
    env.run_for(10)
    second.append(b"b")
    env.run_for(10)
    assert owner.log.bounds.next_index == 1 and second.log.bounds.next_index == 2
