"""log_notes.py: when a note is answered it is durable, with all that was appended before it; refused ones say so."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.alarms import DAMAGED_FILE
from hubweir.env import Lane
from hubweir.errors import DiskFull, LogFenced, LogOffline
from hubweir.messaging_store.control_batch import pack_control
from hubweir.messaging_store.disk.notes import BODY_LIMIT, KEY_LIMIT, notes_name
from hubweir.messaging_store.log import Durability, Note, Refused
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.tests.conftest import SOME_CONTROL
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

FOLDER = "store-0/logs/" + "ab" * 16


def bench_outcomes(bench: Any, key: bytes, body: bytes | None) -> list[Any]:
    outcomes: list[Any] = []
    bench.log.note(key, body, now_ms=bench.env.now_ms(), on_done=outcomes.append)
    return outcomes


@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("power_cut", [False, True])
def test_the_newest_note_of_each_key_is_there_after_any_end(make_bench, power_cut: bool, durability) -> None:
    bench = make_bench(durability=durability)
    bench.append(b"a")
    for key, body in ((b"x", b"1"), (b"y", b""), (b"x", b"2"), (b"z", b"3"), (b"z", None)):
        (outcome,) = bench.note(key, body)
        assert isinstance(outcome, Note) and (outcome.key, outcome.index) == (key, 1)
    for _ in range(3):
        assert bench.noted() == {b"x": b"2", b"y": b""}
        bench.reopen(power_cut=power_cut)
    assert bench.log.notes_damage is None


@pytest.mark.parametrize("durability", Durability)
def test_what_was_appended_before_a_note_is_durable_with_it_and_stands_before_it(make_bench, durability) -> None:
    bench = make_bench(durability=durability)
    bench.append(b"a", b"b")
    bench.append(b"c", wait_ms=0)
    outcomes = bench_outcomes(bench, b"x", b"1")
    bench.append(b"d", wait_ms=0)
    assert outcomes == [], "never inside the call"
    while not outcomes:
        bench.env.run_for(1)
    bench.reopen(power_cut=True)
    note = bench.log.notes[b"x"]
    assert (note.index, bench.everything()[2]) == (3, b"c") and note.offset > 0


def test_notes_are_kept_in_the_order_of_the_calls(bench) -> None:
    bench.append(b"a", wait_ms=0)
    answers: list[tuple[bytes, int]] = []

    def later(outcome: Any) -> None:
        answers.append((outcome.body, outcome.index))

    def visible() -> None:
        bench.log.note(b"x", b"third", now_ms=0, on_done=later)

    bench.log.on_visible(visible)
    for body in (b"first", b"second"):
        bench.log.note(b"x", body, now_ms=0, on_done=later)
    bench.env.run_for(200)
    assert [body for body, _ in answers[:3]] == [b"first", b"second", b"third"]
    assert bench.noted() == {b"x": b"third"}


def test_a_thousand_notes_at_once_are_a_few_writes(bench) -> None:
    bench.append(b"a")
    saved = count_saves(bench)
    outcomes = [bench_outcomes(bench, b"%d" % number, b"body") for number in range(1_000)]
    bench.env.run_for(1_000)
    assert all(isinstance(outcome, Note) for (outcome,) in outcomes)
    assert len(bench.log.notes) == 1_000 and saved() <= 2


def count_saves(bench: Any) -> Any:
    saves, fault = [0], bench.env.fault

    def counted(name: str) -> None:
        saves[0] += name == "log.before_notes"
        fault(name)

    bench.env.fault = counted
    return lambda: saves[0]


def test_a_note_behind_an_append_that_is_refused_is_refused(bench) -> None:
    bench.append(b"a")
    bench.env.run_for(2_000)
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.append(b"refused", wait_ms=0)
    outcomes = bench_outcomes(bench, b"x", b"behind it")
    bench.env.run_for(300)
    (outcome,) = outcomes
    assert isinstance(outcome, Refused) and outcome.known and isinstance(outcome.error, LogOffline)
    bench.append(b"b")
    bench.note(b"y", b"1")
    bench.reopen(power_cut=True)
    assert bench.noted() == {b"y": b"1"} and bench.everything() == {0: b"a", 1: b"b"}


@pytest.mark.parametrize("seed", range(6))
def test_a_note_is_answered_behind_a_control_batch_that_takes_no_number(make_bench, seed: int) -> None:
    bench = make_bench(env=SimulatedEnv(seed))
    bench.append(b"a")
    told: list[str] = []
    run = pack_control(SOME_CONTROL, b"")
    bench.log.append(run, now_ms=bench.env.now_ms(), on_done=lambda outcome: told.append("control"))
    bench.log.note(b"x", b"1", now_ms=bench.env.now_ms(), on_done=lambda outcome: told.append("note"))
    bench.env.run_for(300)
    assert told == ["control", "note"]


@pytest.mark.parametrize(("fault", "kind"), [(Fault.ENOSPC, DiskFull), (Fault.EIO, LogOffline)])
def test_a_note_that_cannot_be_written_is_refused_and_the_log_goes_on(bench, fault: Fault, kind: type) -> None:
    bench.append(b"a")
    bench.note(b"x", b"1")
    bench.env.run_for(2_000)
    bench.env.files.plan(fault, forever=True)
    (outcome,) = bench.note(b"x", b"2")
    bench.env.files.heal()
    assert isinstance(outcome, Refused) and isinstance(outcome.error, kind) and not outcome.known
    assert bench.noted() == {b"x": b"1"}
    bench.append(b"b")
    (outcome,) = bench.note(b"y", b"3")
    bench.reopen(power_cut=True)
    assert bench.noted() == {b"x": b"1", b"y": b"3"} and len(bench.everything()) == 2


def test_a_fault_of_the_service_while_notes_are_written_answers_them_and_stops_the_log_for_a_moment(bench) -> None:
    bench.append(b"a")
    fault = bench.env.fault

    def planted(name: str) -> None:
        if name == "log.before_notes":
            raise RuntimeError("planted")
        fault(name)

    bench.env.fault = planted
    (outcome,) = bench.note(b"x", b"1")
    assert isinstance(outcome, Refused) and not outcome.known
    bench.env.fault = fault
    bench.env.run_for(5_000)
    assert bench.counters["log.faults"]
    assert isinstance(bench.note(b"x", b"2")[0], Note)


def test_an_owner_that_faults_when_it_is_told_keeps_no_other_from_being_told(bench) -> None:
    bench.append(b"a")
    bench.log.note(b"x", b"1", now_ms=0, on_done=lambda outcome: 1 // 0)  # type: ignore[arg-type,return-value]
    outcomes = bench_outcomes(bench, b"y", b"2")
    bench.env.run_for(300)
    assert len(outcomes) == 1 and bench.counters["log.faults"]
    assert bench.noted() == {b"x": b"1", b"y": b"2"}


def test_a_note_that_finds_another_owner_ends_writing_for_good(bench) -> None:
    bench.append(b"a")
    bench.take_over()
    (outcome,) = bench.note(b"x", b"1")
    assert isinstance(outcome, Refused) and isinstance(outcome.error, LogFenced)
    with pytest.raises(LogFenced):
        bench.note(b"x", b"2")


def test_what_another_owner_noted_is_not_overwritten_by_the_one_before(bench) -> None:
    bench.append(b"a")
    bench.note(b"x", b"of the first")
    bench.env.stall(Lane.WRITES)
    outcomes = bench_outcomes(bench, b"x", b"late")
    bench.env.run_for(50)
    files = bench.env.files
    files.locks.clear()
    second = type(bench)(env=type(bench.env)(77, files=files))
    second.append(b"b", wait_ms=500)
    second.note(b"x", b"of the second")
    bench.env.go_on(Lane.WRITES)
    bench.env.run_for(500)
    assert isinstance(outcomes[0], Refused)
    second.reopen(power_cut=True)
    assert second.noted() == {b"x": b"of the second"}


def test_a_new_epoch_removes_the_file_of_the_one_before(bench) -> None:
    bench.note(b"x", b"1")
    bench.reopen()
    bench.note(b"y", b"2")
    names = [path.rpartition("/")[2] for path in bench.env.files.paths() if "/notes-" in path]
    assert names == [notes_name(bench.log.lease.writer_epoch)]
    assert bench.noted() == {b"x": b"1", b"y": b"2"}


def test_retention_and_new_segments_take_no_note(bench) -> None:
    bench.note(b"x", b"1")
    for number in range(12):
        bench.append(b"%d" % number * 600)
    for _ in range(3):
        expire(bench.log, now_ms=bench.env.now_ms() + 10_000_000, retention_ms=1)
        bench.env.run_for(200)
    assert bench.log.bounds.first_index == 12
    bench.reopen(power_cut=True)
    assert bench.noted() == {b"x": b"1"} and bench.everything() == {}


def test_a_log_that_ends_before_a_note_goes_on_behind_it(bench) -> None:
    bench.append(b"a", b"b", b"c", wait_ms=2_000)
    path, end = bench.log._state.segments.active.path, bench.log._state.segments.kept[-1].start.position
    bench.note(b"x", b"1")
    bench.env.crash()
    bench.env.files.set_bytes(path, bytes(bench.env.files.bytes_of(path)[:end]))
    bench.env = bench.env.restart()
    bench.open()
    assert bench.append(b"d").first_index > 3
    assert any("which was read or saved" in alarm.text for alarm in bench.store.alarms.current())


def test_damaged_notes_are_told_to_the_owner_and_by_an_alarm(bench) -> None:
    bench.note(b"x", b"1")
    bench.env.crash()
    for at in (30, -1):  # one byte of each copy
        bench.env.files.bytes_of(f"{FOLDER}/{notes_name(1)}")[at] ^= 1
    bench.env = bench.env.restart()
    bench.open()
    assert bench.noted() == {} and "checksums do not fit" in (bench.log.notes_damage or "")
    assert [alarm.kind for alarm in bench.store.alarms.current()] == [DAMAGED_FILE]


def test_one_damaged_copy_of_the_notes_loses_none_and_has_its_alarm(bench) -> None:
    bench.note(b"x", b"1")
    bench.env.crash()
    bench.env.files.bytes_of(f"{FOLDER}/{notes_name(1)}")[30] ^= 1
    bench.env = bench.env.restart()
    bench.open()
    assert bench.noted() == {b"x": b"1"} and bench.log.notes_damage is None
    (alarm,) = bench.store.alarms.current()
    assert alarm.kind is DAMAGED_FILE and "one of its two copies is damaged" in alarm.text


def test_a_close_waits_for_the_notes_under_way_and_takes_no_more(bench) -> None:
    bench.append(b"a", wait_ms=0)
    outcomes = bench_outcomes(bench, b"x", b"1")
    closed: list[int] = []
    bench.log.close(lambda: closed.append(len(outcomes)))
    with pytest.raises(LogOffline, match="closed"):
        bench.note(b"x", b"2")
    bench.env.run_for(500)
    assert closed == [1] and isinstance(outcomes[0], Note)


def test_a_note_that_is_too_large_is_refused_at_once(bench) -> None:
    for key, body in ((b"k" * (KEY_LIMIT + 1), b""), (b"k", b"b" * (BODY_LIMIT + 1))):
        with pytest.raises(ValueError, match="are allowed"):
            bench.note(key, body)
    assert isinstance(bench.note(b"k" * KEY_LIMIT, b"b" * BODY_LIMIT)[0], Note)
