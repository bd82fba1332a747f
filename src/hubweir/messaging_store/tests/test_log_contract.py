"""What every engine behind Log promises of appends, reads and leases, held against each of them (log_engines.py)."""

from __future__ import annotations

import pytest

from hubweir.errors import KernelRefusal, LogFenced, LogOffline
from hubweir.messaging_store.log import Appended, Refused
from hubweir.messaging_store.tests.conftest import events
from hubweir.messaging_store.tests.log_engines import ENGINES, Engine, Owner, again


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.param()
    return made


@pytest.fixture
def owner(engine: Engine) -> Owner:
    return Owner(engine, engine.open())


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


@pytest.mark.parametrize("wait_ms", range(0, 12, 3))
def test_what_a_stop_finds_on_its_way_is_answered_and_what_is_refused_for_certain_never_comes(
    owner: Owner, wait_ms: int
) -> None:
    owner.append(b"a")
    appended = [owner.append(b"%d" % number, wait_ms=0) for number in range(3)]
    owner.engine.run_for(wait_ms)
    owner.log.stop(RuntimeError("planted"))
    owner.engine.run_for(10_000)
    outcomes = owner.outcomes[1:]
    assert len(outcomes) == 3
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, Appended):
            assert outcome == appended[number]
        is_there = b"%d" % number in owner.everything().values()
        assert is_there if isinstance(outcome, Appended) else not (outcome.known and is_there)
    owner.append(b"more")
    assert list(owner.everything().values())[-1] == b"more" == list(again(owner).everything().values())[-1]


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("wait_ms", range(0, 12, 3))
def test_what_ended_unknown_is_never_visible_to_its_owner_and_dropped_before_the_next_append(
    owner: Owner, wait_ms: int, power_cut: bool
) -> None:
    owner.append(b"a")
    for number in range(3):
        owner.append(b"%d" % number, wait_ms=0)
    owner.engine.run_for(wait_ms)
    for _ in range(2):
        owner.log.stop(RuntimeError("planted"))
    owner.engine.run_for(10_000)
    accepted = [b"%d" % number for number, outcome in enumerate(owner.outcomes[1:]) if isinstance(outcome, Appended)]
    assert list(owner.everything().values()) == [b"a", *accepted]
    assert owner.append(b"more", wait_ms=1).first_index == 1 + len(accepted)
    owner.append(b"still more")
    assert len(owner.outcomes) == 6 and all(isinstance(outcome, Appended) for outcome in owner.outcomes[4:])
    for _ in range(2):
        assert list(owner.everything().values()) == [b"a", *accepted, b"more", b"still more"]
        owner = again(owner, power_cut=power_cut)


def test_an_empty_run_is_refused(owner: Owner) -> None:
    with pytest.raises(KernelRefusal):
        owner.log.append(bytearray(), now_ms=0, on_done=owner.outcomes.append)
