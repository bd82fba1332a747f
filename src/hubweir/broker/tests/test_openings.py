"""openings.py: partitions are opened beside each other, away from the loop, and again until they are open."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from hubweir.alarms import PARTITION_NOT_OPEN
from hubweir.broker import openings
from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.partition import (
    AppendEvents,
    AskPartitionInfo,
    CreatePartition,
    DeletePartition,
    EventsAppended,
    OpenPartition,
    PartitionInfo,
)
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.openings import LAST_RETRY_MS, OPENINGS_AT_ONCE
from hubweir.counters import Counters
from hubweir.env import Lane
from hubweir.errors import (
    SERVER_BUSY,
)
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

HOUR_MS = 3_600_000
IDS = [f"{number:032x}" for number in range(1, 8)]


class Host:
    """A broker on a real store in virtual time, with partitions that each hold two events, the newest unvouched."""

    def __init__(self, count: int = 1) -> None:
        self.env = SimulatedEnv(4)
        self.ids = IDS[:count]
        self._begin()
        for log_id in self.ids:
            command = CreatePartition(log_id, "orders", "0", Durability.DURABLE, HOUR_MS)
            assert self.ask(command) == [Done()]
        for log_id in self.ids * 2:
            self.ask(self.append(log_id), wait_ms=20)
        self.env.crash()
        self.env = self.env.restart()
        self._begin()

    def _begin(self) -> None:
        self.store = MessagingStore.open(self.env, "store-0")
        self.broker = Broker(self.env, self.store, Counters(), alarms=self.store.alarms)

    def append(self, log_id: str) -> AppendEvents:
        return AppendEvents(log_id, pack_operations([b"event"]))

    def ask(self, command: Command, wait_ms: int = 200) -> list[Answer]:
        answers: list[Answer] = []
        self.broker.submit(command, answers.append)
        self.env.run_for(wait_ms)
        return answers

    def open(self, log_id: str, wait_ms: int = 200) -> list[Answer]:
        return self.ask(OpenPartition(log_id, "orders", "0", Durability.DURABLE, HOUR_MS), wait_ms)

    @property
    def alarms(self) -> list[str]:
        return [str(alarm) for alarm in self.store.alarms.current() if alarm.kind is PARTITION_NOT_OPEN]


@pytest.mark.parametrize("fault", [Fault.ENOSPC, Fault.EIO, Fault.SYNC_EIO])
def test_a_partition_that_cannot_be_opened_now_is_opened_by_itself_when_it_can_be(fault: Fault) -> None:
    host = Host()
    (log_id,) = host.ids
    host.env.files.plan(fault, forever=True)
    (refused,) = host.open(log_id)
    assert isinstance(refused, Refusal) and len(host.alarms) == 1
    host.env.run_for(5 * LAST_RETRY_MS)
    assert len(host.alarms) == 1, "it is tried again, and the alarm stands"
    for command in (AskPartitionInfo(log_id), host.append(log_id)):
        (busy,) = host.ask(command)
        assert isinstance(busy, Refusal) and busy.condition.symbol == "com.microsoft:server-busy" and busy.known
        assert "orders" in busy.text and "tried again" in busy.text
    host.env.files.heal()
    host.env.run_for(LAST_RETRY_MS + 1_000)
    assert host.alarms == []
    (found,) = host.ask(AskPartitionInfo(log_id))
    assert isinstance(found, PartitionInfo) and found.last_sequence_number == 1
    assert host.ask(host.append(log_id)) == [EventsAppended(2, 3)]


def test_tries_come_ever_later() -> None:
    host = Host()
    files = host.env.files
    files.plan(Fault.EIO, forever=True)
    host.open(*host.ids)
    tries, calls = [], files.calls
    for second in range(1, 120):
        host.env.run_for(1_000)
        if files.calls != calls:
            tries.append(second)
            calls = files.calls
    gaps = [later - earlier for earlier, later in zip(tries, tries[1:], strict=False)]
    assert gaps == sorted(gaps) and gaps[-1] == LAST_RETRY_MS // 1000


def test_a_lost_partition_is_refused_by_name_and_opened_when_it_is_put_back() -> None:
    host = Host(2)
    lost, kept = host.ids
    files, folder = host.env.files, f"store-0/logs/{host.ids[0]}"
    taken = {path: bytes(files.bytes_of(path)) for path in files.paths() if path.startswith(folder)}
    files.remove_folder(folder)
    (refused,) = host.open(lost)
    assert isinstance(refused, Refusal) and refused.condition.symbol == "com.microsoft:store-offline"
    assert host.open(kept) == [Done()]
    host.env.run_for(10_000)
    (refused,) = host.ask(host.append(lost))
    assert (
        isinstance(refused, Refusal)
        and refused.condition.symbol == "com.microsoft:store-offline"
        and "lost" in refused.text
    )
    assert not files.exists(folder) and len(host.alarms) == 1
    files.make_folder(folder)
    for path, data in taken.items():
        files.open(path, create=True).write(0, [data])
    host.env.run_for(LAST_RETRY_MS + 1_000)
    assert host.alarms == []
    (found,) = host.ask(AskPartitionInfo(lost))
    assert isinstance(found, PartitionInfo) and found.last_sequence_number == 1


def test_the_loop_opens_nothing_itself_and_few_are_opened_at_once() -> None:
    host = Host(7)
    host.env.stall(Lane.RECOVERY)
    calls = host.env.files.calls
    answers: list[Answer] = []
    for log_id in host.ids:
        host.broker.submit(OpenPartition(log_id, "orders", "0", Durability.DURABLE, HOUR_MS), answers.append)
    host.env.run_for(100)
    assert host.env.files.calls == calls and answers == []
    assert host.env.stalled_calls(Lane.RECOVERY) == OPENINGS_AT_ONCE < len(host.ids)
    (busy,) = host.ask(AskPartitionInfo(host.ids[-1]))
    assert (
        isinstance(busy, Refusal)
        and busy.condition.symbol == "com.microsoft:store-offline"
        and "being opened" in busy.text
    )
    assert host.alarms == []
    host.env.run_for(3_000)
    assert len(host.alarms) == len(host.ids), "what takes long is told"
    host.env.go_on(Lane.RECOVERY)
    host.env.run_for(1_000)
    assert answers == [Done()] * len(host.ids) and host.alarms == []


def test_slow_openings_are_told_few_a_turn_and_none_that_is_deleted_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openings, "TOLD_AT_ONCE", 2)
    host = Host(7)
    host.env.stall(Lane.RECOVERY)
    for log_id in host.ids:
        host.open(log_id, wait_ms=0)
    told: list[int] = []
    call_soon = host.env.call_soon

    def counted(callback: Callable[[], None]) -> None:
        def turn() -> None:
            host.broker._openings.end(host.ids[-1], lambda: None)
            before = len(host.alarms)
            callback()
            told.append(len(host.alarms) - before)

        call_soon(turn)

    host.env.run_for(1_000)
    monkeypatch.setattr(host.env, "call_soon", counted)
    host.env.run_for(3_000)
    assert told == [2, 2, 0] and len(host.alarms) == len(host.ids) - 1


def test_a_partition_that_is_being_made_is_no_alarm() -> None:
    host = Host()
    host.env.stall(Lane.RECOVERY)
    host.ask(CreatePartition(IDS[-1], "orders", "1", Durability.DURABLE, HOUR_MS), wait_ms=4_000)
    assert host.alarms == []


def test_what_is_deleted_before_it_is_its_turn_is_not_opened() -> None:
    host = Host(7)
    host.env.stall(Lane.RECOVERY)
    answers = [host.open(log_id, wait_ms=0) for log_id in host.ids]
    host.env.run_for(10)
    assert host.ask(DeletePartition(host.ids[-1])) == [Done()]
    (refused,) = answers[-1]
    assert isinstance(refused, Refusal) and refused.condition is SERVER_BUSY and "being deleted" in refused.text
    host.env.go_on(Lane.RECOVERY)
    host.env.run_for(1_000)
    assert sorted(hosted.log.log_id for hosted in host.broker._residents) == host.ids[:-1]
    assert host.alarms == []


def test_nobody_looks_through_all_that_waits_for_each_that_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    class Queue(deque[object]):
        def __contains__(self, wanted: object) -> bool:
            raise AssertionError("a queue of thousands was searched")

        remove = __contains__  # type: ignore[assignment]

    host = Host(7)
    monkeypatch.setattr(host.broker._openings, "_queue", Queue())
    answers = [host.open(log_id, wait_ms=0) for log_id in host.ids]
    host.env.run_for(1_000)
    assert answers == [[Done()]] * 7


def test_a_fault_of_ours_keeps_no_other_partition_from_being_opened(caplog: pytest.LogCaptureFixture) -> None:
    host = Host(2)
    recover = host.store.recover_log

    def fails(opening):  # type: ignore[no-untyped-def]
        if opening.log_id == host.ids[0]:
            raise ZeroDivisionError("planted")
        return recover(opening)

    host.store.recover_log = fails  # type: ignore[method-assign]
    (refused,) = host.open(host.ids[0])
    assert (
        isinstance(refused, Refusal) and refused.condition.symbol == "amqp:internal-error" and "planted" in caplog.text
    )
    assert host.open(host.ids[1]) == [Done()]
    host.store.recover_log = recover  # type: ignore[method-assign]
    host.env.run_for(LAST_RETRY_MS)
    assert isinstance(host.ask(AskPartitionInfo(host.ids[0]))[0], PartitionInfo)


@pytest.mark.parametrize("when", ["queued", "opening", "failed"])
def test_a_partition_that_is_not_open_can_be_deleted(when: str) -> None:
    host = Host()
    (log_id,) = host.ids
    if when == "failed":
        host.env.files.plan(Fault.EIO, forever=True)
        host.open(log_id)
        host.env.files.heal()
        opened: list[Answer] = []
    else:
        if when == "opening":
            host.env.stall(Lane.RECOVERY)
        opened = host.open(log_id, wait_ms=20 if when == "opening" else 0)
    deleted = host.ask(DeletePartition(log_id), wait_ms=500)
    if when == "opening":
        assert deleted == [], "an opening that is under way uses the files"
        host.env.go_on(Lane.RECOVERY)
        host.env.run_for(500)
    assert deleted == [Done()] and host.store.log_ids() == [] and host.alarms == []
    assert when == "failed" or len(opened) == 1
    host.env.run_for(2 * LAST_RETRY_MS)
    assert host.store.log_ids() == [] and host.alarms == []


def test_a_partition_that_is_asked_for_again_before_its_next_try_is_tried_once() -> None:
    host = Host()
    (log_id,) = host.ids
    host.env.files.plan(Fault.EIO, forever=True)
    host.open(log_id)
    host.env.files.heal()
    host.env.stall(Lane.RECOVERY)
    opened = host.open(log_id, wait_ms=5_000)
    assert opened == [] and host.env.stalled_calls(Lane.RECOVERY) == 1
    host.env.go_on(Lane.RECOVERY)
    host.env.run_for(500)
    assert opened == [Done()]


def test_a_stop_waits_for_what_is_being_opened_and_begins_nothing() -> None:
    host = Host(5)
    host.env.stall(Lane.RECOVERY)
    answers: list[Answer] = []
    for log_id in host.ids:
        host.broker.submit(OpenPartition(log_id, "orders", "0", Durability.DURABLE, HOUR_MS), answers.append)
    host.env.run_for(10)
    stopped: list[bool] = []
    host.broker.stop(lambda: stopped.append(True))
    host.env.run_for(100)
    assert not stopped and host.env.files.locks == {"store-0"}
    host.env.go_on(Lane.RECOVERY)
    host.env.run_for(1_000)
    assert stopped and not host.env.files.locks
    assert len(answers) == 5 and all(isinstance(answer, Refusal) for answer in answers)


def test_a_log_of_a_newer_epoch_is_opened_behind_it() -> None:
    host = Host()
    (log_id,) = host.ids
    files, folder = host.env.files, f"store-0/logs/{log_id}"
    (path,) = [path for path in files.paths() if path.startswith(folder) and path.endswith(".log")]
    data = bytearray(files.bytes_of(path))
    files.open(f"{folder}/{0:020d}-{9:08x}.log", create=True).write(0, [bytes(data)])
    host.open(log_id, wait_ms=1_000)
    assert host.store.writer_epoch == 10


def test_what_is_slow_later_is_told_too() -> None:
    host = Host(2)
    host.env.stall(Lane.RECOVERY)
    host.open(host.ids[0], wait_ms=10_000)
    assert len(host.alarms) == 1
    host.open(host.ids[1], wait_ms=2_000)
    assert len(host.alarms) == 1
    host.env.run_for(2_000)
    assert len(host.alarms) == 2


def test_a_stop_tells_of_nothing_slow_and_is_over_once() -> None:
    host = Host()
    host.env.stall(Lane.RECOVERY)
    host.open(*host.ids, wait_ms=1_000)
    stopped: list[bool] = []
    host.broker.stop(lambda: stopped.append(True))
    host.env.run_for(10_000)
    assert host.alarms == [] and stopped == []
    host.env.go_on(Lane.RECOVERY)
    host.env.run_for(10_000)
    assert host.alarms == [] and stopped == [True]
