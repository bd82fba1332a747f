"""What every engine behind Log promises of notes, snapshots, ages and trimming, held against each (log_engines.py)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from hubweir.errors import LogFenced, NewerFormat
from hubweir.messaging_store.log import Note, Refused, Replayed, Run, Snapshot
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.tests.conftest import messages_of
from hubweir.messaging_store.tests.log_engines import ENGINES, HOUR_MS, Engine, Owner, again


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.param()
    return made


@pytest.fixture
def owner(engine: Engine) -> Owner:
    return Owner(engine, engine.open())


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
    assert owner.snapshot() is None
    done: list[object] = []
    owner.log.save_snapshot(b"first", done.append)
    owner.engine.run_for(200)
    assert done == [None] and owner.snapshot() == (1, b"first")
    for number in range(5):
        owner.append(b"%d" % number * 2_000)
    now_ms = owner.engine.env.now_ms() + 3 * HOUR_MS
    assert expire(owner.log, now_ms=now_ms, retention_ms=1) == 0
    owner.log.save_snapshot(b"second", done.append)
    owner.engine.run_for(200)
    assert expire(owner.log, now_ms=now_ms, retention_ms=1) == 1
    owner.engine.run_for(200)
    owner = again(owner)
    assert owner.snapshot() == (6, b"second")


def test_a_replay_begins_with_the_batch_that_holds_its_index(owner: Owner) -> None:
    for number in range(6):
        owner.append(b"%d" % number, b"x")
    found = {index: each for run in owner.runs(5) for index, each in messages_of(run.data).items()}
    assert max(found) == 11 and min(index for index in found if index >= 5) == 5 and 3 not in found


def asked(owner: Owner, ask: Callable[[Callable[[Any], None]], object]) -> Any:
    """What a completion says, which comes once and never inside the call."""
    answers: list[Any] = []
    ask(answers.append)
    assert answers == []
    owner.engine.run_for(200)
    (answer,) = answers
    return answer


def test_a_replay_hands_over_all_that_is_visible_once_and_in_order_and_then_ends(owner: Owner) -> None:
    owner.append(b"a", b"b")
    owner.append(b"c" * 3_000)
    owner.append(b"not visible", wait_ms=0)
    found: list[int] = []
    outcome = asked(owner, lambda done: owner.log.replay(0, lambda run: found.extend(messages_of(run.data)), done))
    assert outcome == Replayed() and found == [0, 1, 2]
    for index in (4, 99):
        assert asked(owner, partial(owner.log.replay, index, lambda run: pytest.fail("nothing is there"))) == Replayed()


def test_a_replay_that_its_owner_cannot_use_is_refused_with_what_he_said(owner: Owner) -> None:
    for number in range(30):
        owner.append(b"%d" % number * 200)
    visited: list[int] = []

    def visit(run: Run) -> None:
        visited.append(run.first_index)
        if run.next_index > 10:
            raise NewerFormat("of tomorrow")

    outcome = asked(owner, partial(owner.log.replay, 0, visit))
    assert isinstance(outcome, Refused) and type(outcome.error) is NewerFormat
    assert visited == sorted(visited) and visited[0] == 0 and visited[-1] <= 10
    assert owner.append(b"more").first_index == 30, "the log goes on"


def test_a_snapshot_that_its_owner_cannot_use_is_refused_with_what_he_said(owner: Owner) -> None:
    def read(snapshot: Snapshot) -> None:
        raise NewerFormat("of tomorrow")

    assert asked(owner, partial(owner.log.load_snapshot, read)) is None
    owner.append(b"a")
    assert asked(owner, partial(owner.log.save_snapshot, b"state")) is None
    outcome = asked(owner, partial(owner.log.load_snapshot, read))
    assert isinstance(outcome, Refused) and type(outcome.error) is NewerFormat
    assert owner.snapshot() == (1, b"state")
    found = asked(owner, partial(owner.log.load_snapshot, lambda snapshot: snapshot.offset))
    assert found == owner.log.bounds.next_offset


def test_a_log_whose_lease_is_over_replays_nothing(owner: Owner) -> None:
    owner.append(b"kept")
    second = Owner(owner.engine, owner.engine.second_owner())
    second.append(b"of the second")
    with suppress(LogFenced):
        owner.append(b"late")
    outcome = asked(owner, partial(owner.log.replay, 0, lambda run: pytest.fail("it may be another's by now")))
    assert isinstance(outcome, Refused) and isinstance(outcome.error, LogFenced)
