from typing import Any

import pytest

from hubweir.broker.broker import Broker
from hubweir.broker.commands.partition import AppendEvents, CreatePartition, EventsAppended
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.broker.retention_sweep import SWEEP_MS, RetentionSweep
from hubweir.broker.store_look import LOOK_MS
from hubweir.counters import Counters
from hubweir.messaging_store.log import Bounds, Durability
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.answers import opened_log
from hubweir.testing.simulated_env import SimulatedEnv

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LOG_ID = "ab" * 16
# Far longer than the six hours in which a clock that stands is believed. No longer than shows that: the broker looks at
# its clock every two seconds of it.
RETENTION_MS = 2 * DAY_MS


def test_every_partition_is_swept_once_a_sweep(bench: Any) -> None:
    for name in ("b", "c"):
        bench.ask(CreatePartition(name, "orders", "1", Durability.DURABLE, HOUR_MS))
    bench.env.pass_time(3 * SWEEP_MS)
    assert [len(log.trimmed) for log in bench.store.logs.values()] == [3, 3, 3]
    assert bench.store.clock_kept == 3 * SWEEP_MS // LOOK_MS


def test_a_sweep_that_ends_in_a_fault_comes_again(bench: Any) -> None:
    times: list[int] = []

    def visit(now_ms: int) -> bool:
        times.append(now_ms)
        raise ZeroDivisionError("planted")

    sweep = RetentionSweep(BrokerDeadlines(bench.env), bench.store.clock, visit, at_end=lambda: None)
    sweep.start()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            bench.env.pass_time(SWEEP_MS)
    assert len(times) == 3


class Served:
    """A broker with one partition of a real store, whose clock and machine a test moves."""

    def __init__(self, retention_ms: int) -> None:
        self.env = SimulatedEnv(1)
        self.retention_ms = retention_ms
        self.start()

    def start(self) -> None:
        self.store = MessagingStore.open(self.env, "store-0", settings=LogSettings(segment_bytes=20_000))
        self.broker = Broker(self.env, self.store, Counters())
        command = CreatePartition(LOG_ID, "orders", "0", Durability.DURABLE, self.retention_ms)
        answers: list[Any] = []
        self.broker.submit(command, answers.append)
        self.broker.start()
        while not answers:  # it is opened away from the loop
            self.env.run_for(1)

    def restart(self, *, jump_ms: int = 0) -> None:
        self.env.crash()
        self.env.jump(jump_ms)
        self.env = self.env.restart()
        self.start()

    def send(self, count: int = 1) -> None:
        answers: list[Any] = []
        for _ in range(count):
            run = pack_operations([bytes(2000)])
            self.broker.submit(AppendEvents(LOG_ID, run), answers.append)
            self.env.run_for(1000)
        assert [type(answer) for answer in answers] == [EventsAppended] * count

    def hours(self, count: int) -> None:
        """Ten events an hour."""
        for _ in range(count):
            self.send(10)
            self.env.run_for(HOUR_MS - 10_000)

    def alarms(self) -> str:
        self.env.run_for(SWEEP_MS)
        return "; ".join(str(alarm) for alarm in self.store.alarms.current())

    @property
    def bounds(self) -> Bounds:
        return opened_log(self.env, self.store, LOG_ID).bounds

    @property
    def kept(self) -> int:
        return self.bounds.next_index - self.bounds.first_index


@pytest.mark.parametrize("jump_ms", [DAY_MS, 3650 * DAY_MS, -3650 * DAY_MS])
def test_one_second_of_a_wrong_clock_neither_stamps_events_nor_stops_retention(jump_ms: int) -> None:
    served = Served(HOUR_MS)
    served.send(30)
    served.env.jump(jump_ms)
    served.send()
    kept = served.kept
    served.env.jump(-jump_ms)
    served.send()
    assert served.kept == kept + 1 == 32
    assert served.bounds.last_time_ms == served.env.now_ms() - 1000
    served.hours(24)
    assert served.kept <= 22


def test_years_that_were_stamped_while_the_clock_was_wrong_for_hours_stop_no_retention() -> None:
    served = Served(8 * HOUR_MS)
    served.send(30)
    served.env.jump(3650 * DAY_MS)
    served.hours(2)
    served.env.jump(-3650 * DAY_MS)
    assert served.bounds.last_time_ms is not None and served.bounds.last_time_ms > served.env.now_ms() + DAY_MS
    served.hours(24)
    assert served.kept <= 100
    served.env.run_for(10 * HOUR_MS)  # and where nothing is appended any more
    assert served.kept == 0
    served.restart()
    served.hours(24)
    assert served.kept <= 100


@pytest.mark.parametrize("ahead_days", [30, 3650])
def test_a_start_with_the_clock_ahead_removes_nothing_and_the_time_is_set_right_without_harm(ahead_days: int) -> None:
    served = Served(RETENTION_MS)
    served.send(20)
    served.restart(jump_ms=ahead_days * DAY_MS)
    served.send(20)
    served.env.run_for(5 * HOUR_MS)
    assert served.kept == 40
    served.env.jump(-ahead_days * DAY_MS)
    served.send(20)
    served.env.run_for(RETENTION_MS - 6 * HOUR_MS)
    assert served.kept == 60
    served.env.run_for(14 * HOUR_MS)  # the newest segment goes up to an eighth of the retention later
    assert served.kept == 0


def test_a_machine_that_was_off_for_a_month_begins_to_remove_after_some_hours_and_keeps_what_is_new() -> None:
    served = Served(RETENTION_MS)
    served.send(20)
    served.restart(jump_ms=30 * DAY_MS)
    assert "ahead of the time that the store saw pass" in served.alarms()
    served.send(20)
    served.env.run_for(7 * HOUR_MS)
    assert served.kept == 20
    assert served.alarms() == ""
    served.env.run_for(RETENTION_MS - 9 * HOUR_MS)
    assert served.kept == 20
    served.env.run_for(10 * HOUR_MS)
    assert served.kept == 0


def test_a_machine_that_sleeps_removes_by_all_hours_and_not_by_those_awake() -> None:
    served = Served(2 * DAY_MS)
    served.send(20)
    for _ in range(2):
        served.env.run_for(8 * HOUR_MS)
        assert served.kept == 20
        served.env.sleep(16 * HOUR_MS)
    served.env.run_for(8 * HOUR_MS)
    assert served.kept == 0


def test_a_service_that_is_killed_every_half_minute_goes_on_removing() -> None:
    served = Served(HOUR_MS)
    for _ in range(300):
        served.send()
        served.env.run_for(29_000)
        served.restart()
    assert served.kept <= 150
