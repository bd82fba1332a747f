"""What every engine behind LogStore promises, held against the store of segment files and against replicated logs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import pytest

from hubweir.errors import LogFenced, LogLost, LogOffline, StoreError
from hubweir.messaging_store.log import Durability, Log
from hubweir.messaging_store.log_store import LogStore, NotOpened
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.tests.conftest import events, messages_of
from hubweir.testing.answers import answered, runs_of
from hubweir.testing.replicated_store import ReplicatedStores
from hubweir.testing.simulated_env import SimulatedEnv

IDS = [f"{number:032x}" for number in range(1, 4)]


class StoreEngine(Protocol):
    """A store in a process that may end, and a second process that opens the same one."""

    env: SimulatedEnv

    def open(self) -> LogStore: ...

    def end(self) -> None:
        """The machine loses its power."""

    def second_owner(self) -> LogStore:
        """Another process opens the store, while the first one goes on."""


class Segments:
    def __init__(self) -> None:
        self.env = SimulatedEnv(1)

    def open(self) -> LogStore:
        return MessagingStore.open(self.env, "store-0")

    def end(self) -> None:
        self.env.crash(power_cut=True)
        self.env = self.env.restart()

    def second_owner(self) -> LogStore:
        self.env.files.locks.clear()  # as if the lock was lost
        return self.open()


class Replicated:
    def __init__(self) -> None:
        self.env = SimulatedEnv(1)
        self._stores = ReplicatedStores()

    def open(self) -> LogStore:
        return self._stores.open(self.env, "store-0")

    def end(self) -> None:
        self.env.crash(power_cut=True)
        self.env = self.env.restart()

    def second_owner(self) -> LogStore:
        return self.open()


class Owner:
    """A store and whoever opens its logs."""

    def __init__(self, engine: StoreEngine) -> None:
        self.engine = engine
        self.store = engine.open()

    def opening(self, log_id: str, *, makes: bool = False, name: str = "") -> list[Log | NotOpened]:
        """The answer, once it is there."""
        answers: list[Log | NotOpened] = []
        self.store.open_log(log_id, answers.append, durability=Durability.DURABLE, name=name, makes=makes)
        assert answers == [], "an answer came inside the call"
        return answers

    def open(self, log_id: str, *, makes: bool = False) -> Log:
        answers = self.opening(log_id, makes=makes)
        self.engine.env.run_for(200)
        (log,) = answers
        if isinstance(log, NotOpened):
            raise log.error
        return log

    def append(self, log: Log, message: bytes) -> None:
        outcomes: list[Any] = []
        log.append(events([message]), now_ms=self.engine.env.now_ms(), on_done=outcomes.append)
        self.engine.env.run_for(200)
        assert len(outcomes) == 1

    def everything(self, log: Log) -> list[bytes]:
        return [message for run in runs_of(self.engine.env, log) for message in messages_of(run.data).values()]

    def delete(self, log_id: str) -> None:
        answered(self.engine.env, partial(self.store.delete_log, log_id)).value()

    def close(self, step: Callable[[Callable[[], None]], None]) -> None:
        closed: list[bool] = []
        step(lambda: closed.append(True))
        assert closed == []
        self.engine.env.run_for(2_000)
        assert closed == [True]


@pytest.fixture(params=[Segments, Replicated])
def owner(request: pytest.FixtureRequest) -> Owner:
    return Owner(request.param())


def test_a_log_that_is_being_closed_is_not_given_out_and_can_be_opened_behind_that(owner: Owner) -> None:
    log = owner.open(IDS[0], makes=True)
    owner.append(log, b"a")
    answers: list[list[Log | NotOpened]] = []
    closed: list[bool] = []

    def has_closed() -> None:
        closed.append(True)
        answers.append(owner.opening(IDS[0]))

    owner.store.close_log(IDS[0], has_closed)
    for _ in range(200):
        if not closed:
            answers.append(owner.opening(IDS[0]))
        owner.engine.env.run_for(1)
    assert len(answers) > 1 and all(len(each) == 1 for each in answers)
    *refused, opened = [each[0] for each in answers]
    for each in refused:
        assert isinstance(each, NotOpened) and isinstance(each.error, LogOffline) and "closed" in str(each.error)
    assert not isinstance(opened, NotOpened) and opened is not log
    owner.append(opened, b"b")
    assert owner.everything(opened) == [b"a", b"b"]


def test_a_log_is_made_once_and_found_again_by_every_process(owner: Owner) -> None:
    for number in range(3):
        log = owner.open(IDS[0], makes=number < 2)
        assert log.log_id == IDS[0] and log.durability is Durability.DURABLE
        owner.append(log, b"%d" % number)
        owner.engine.end()
        owner = Owner(owner.engine)
    log = owner.open(IDS[0])
    assert owner.everything(log) == [b"0", b"1", b"2"]
    assert list(owner.store.log_ids()) == [IDS[0]]


def test_an_open_log_is_given_again_and_one_that_was_closed_comes_under_a_new_lease(owner: Owner) -> None:
    log = owner.open(IDS[0], makes=True)
    owner.append(log, b"a")
    assert owner.open(IDS[0]) is owner.open(IDS[0], makes=True) is log
    owner.close(partial(owner.store.close_log, IDS[0]))
    with pytest.raises(LogOffline):
        log.append(events([b"late"]), now_ms=0, on_done=lambda outcome: None)
    later = owner.open(IDS[0])
    assert later is not log and later.lease.writer_epoch >= log.lease.writer_epoch
    owner.append(later, b"b")
    assert owner.everything(later) == [b"a", b"b"]
    owner.close(partial(owner.store.close_log, IDS[1]))


def test_a_log_that_nobody_made_is_lost_and_its_loss_makes_none(owner: Owner) -> None:
    owner.open(IDS[0], makes=True)
    for _ in range(2):
        with pytest.raises(LogLost, match=IDS[1]):
            owner.open(IDS[1])
    assert list(owner.store.log_ids()) == [IDS[0]]


def test_logs_are_opened_beside_each_other_and_one_of_them_once_at_a_time(owner: Owner) -> None:
    answers = [owner.opening(log_id, makes=True) for log_id in (*IDS, IDS[0])]
    owner.engine.env.run_for(500)
    *logs, refused = [answer[0] for answer in answers]
    assert [getattr(log, "log_id", None) for log in logs] == IDS == list(owner.store.log_ids())
    assert isinstance(refused, NotOpened) and "is being opened" in str(refused.error)
    assert [len(answer) for answer in answers] == [1] * 4


def test_a_deleted_log_is_gone_and_another_one_may_be_made_in_its_place(owner: Owner) -> None:
    for log_id in IDS[:2]:
        owner.append(owner.open(log_id, makes=True), b"a")
    with pytest.raises(StoreError, match="is open"):
        owner.delete(IDS[0])
    owner.close(partial(owner.store.close_log, IDS[0]))
    for _ in range(2):
        owner.delete(IDS[0])
        assert list(owner.store.log_ids()) == [IDS[1]]
    with pytest.raises(LogLost):
        owner.open(IDS[0])
    owner.engine.end()
    owner = Owner(owner.engine)
    assert list(owner.store.log_ids()) == [IDS[1]]
    assert owner.open(IDS[0], makes=True).bounds.next_index == 0
    assert owner.everything(owner.open(IDS[1])) == [b"a"]


def test_a_log_that_is_being_opened_is_not_deleted(owner: Owner) -> None:
    answers = owner.opening(IDS[0], makes=True)
    with pytest.raises(StoreError, match="open"):
        owner.delete(IDS[0])
    owner.engine.env.run_for(500)
    assert not isinstance(answers[0], NotOpened)
    owner.append(answers[0], b"a")


def test_a_closed_store_has_closed_its_logs_and_opens_none(owner: Owner) -> None:
    logs = [owner.open(log_id, makes=True) for log_id in IDS[:2]]
    for log in logs:
        log.append(events([b"on its way"]), now_ms=0, on_done=lambda outcome: None)
    order: list[object] = []
    owner.store.open_log(IDS[2], order.append, durability=Durability.DURABLE, name="", makes=True)
    owner.store.close(lambda: order.append("closed"))
    owner.engine.env.run_for(2_000)
    refused, closed = order
    assert isinstance(refused, NotOpened), "a log came when its store was closed"
    assert closed == "closed"
    for log in logs:
        with pytest.raises(LogOffline, match="closed"):
            log.append(events([b"late"]), now_ms=0, on_done=lambda outcome: None)
    with pytest.raises(LogOffline, match="store is closed"):
        owner.open(IDS[0])
    owner.close(owner.store.close)
    later = Owner(owner.engine)
    assert [later.everything(later.open(log_id)) for log_id in IDS[:2]] == [[b"on its way"]] * 2


def test_a_second_owner_takes_over_and_the_first_one_stores_nothing_more(owner: Owner) -> None:
    log = owner.open(IDS[0], makes=True)
    owner.append(log, b"a")
    second = Owner.__new__(Owner)
    second.engine, second.store = owner.engine, owner.engine.second_owner()
    taken = second.open(IDS[0])
    second.append(taken, b"b")
    owner.store.look_for_owner()
    owner.engine.env.run_for(500)
    with pytest.raises(LogFenced):
        log.append(events([b"late"]), now_ms=0, on_done=lambda outcome: None)
    assert second.everything(taken) == [b"a", b"b"]


def test_a_store_has_a_clock(owner: Owner) -> None:
    owner.store.keep_clock()
    owner.engine.env.run_for(100)
    assert owner.store.clock.stamp_ms() == owner.store.clock.now_ms() == owner.engine.env.now_ms()
