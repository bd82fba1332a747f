"""Snapshots of producers: one at a time, as often as is said and no more, answered each with its own outcome."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.broker import producer_snapshots
from hubweir.broker.producer_snapshots import SNAPSHOT_EVERY_MS, ProducerSnapshots
from hubweir.broker.tests.conftest import HandEnv, HandLog
from hubweir.errors import LogOffline
from hubweir.event_hub.producer_log import encode_snapshot
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.messaging_store.log import Durability, Refused, Snapshot
from hubweir.messaging_store.trusted_clock import TrustedClock

REFUSED = Refused(LogOffline("the disk is full"))


class Bench:
    """Snapshots over a log in the test's hand. saving: what ends each that was begun."""

    def __init__(self) -> None:
        self.env, self.log = HandEnv(), HandLog("a", Durability.DURABLE)
        self.saving: list[Callable[[Refused | None], None]] = []
        self.log.save_snapshot = lambda state, on_done: self.saving.append(on_done)  # type: ignore[method-assign]
        clock = TrustedClock(self.env)  # type: ignore[arg-type]
        self.snapshots = ProducerSnapshots(self.env, clock, self.log, ProducerSequences())  # type: ignore[arg-type]

    def append(self, count: int = 1) -> None:
        self.log.append(bytearray(count), now_ms=0, on_done=lambda outcome: None)
        self.log.complete()

    def pass_time(self, ms: int) -> None:
        """With a sweep every ten seconds."""
        for _ in range(ms // 10_000):
            self.env.pass_time(10_000)
            self.snapshots.save_if_due()

    def saved(self) -> Bench:
        """With a first one."""
        self.snapshots.save(lambda outcome: None)
        self.saving.pop()(None)
        return self


@pytest.mark.parametrize("found", [None, Snapshot(3, 30, encode_snapshot(ProducerSequences()))])
def test_what_a_start_finds_says_up_to_where_the_newest_one_reaches(found: Snapshot | None) -> None:
    bench, outcomes = Bench(), list[Refused | None]()
    bench.log.saved = found
    bench.snapshots.load(outcomes.append)
    assert outcomes == [None] and bench.snapshots.saved_at == (None if found is None else 3)


def test_a_start_that_cannot_read_them_says_why() -> None:
    bench, outcomes = Bench(), list[Refused | None]()
    bench.log.saved = REFUSED
    bench.snapshots.load(outcomes.append)
    assert outcomes == [REFUSED] and bench.snapshots.saved_at is None


def test_a_partition_that_never_had_a_producer_gets_no_snapshot() -> None:
    bench = Bench()
    bench.append()
    bench.pass_time(3 * SNAPSHOT_EVERY_MS)
    assert bench.saving == [] and bench.snapshots.saved_at is None


def test_a_partition_that_gets_little_is_saved_every_ten_minutes_and_no_oftener() -> None:
    bench, begun = Bench().saved(), list[int]()
    for _ in range(4 * SNAPSHOT_EVERY_MS // 10_000):
        bench.append()
        bench.pass_time(10_000)
        if bench.saving:
            begun.append(bench.env.elapsed_ms)
            bench.saving.pop()(None)
    gaps = [later - earlier for earlier, later in zip(begun, begun[1:], strict=False)]
    assert len(begun) >= 3 and all(abs(gap - SNAPSHOT_EVERY_MS) <= 10_000 for gap in gaps)


def test_a_partition_that_gets_much_is_saved_by_the_number_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_snapshots, "EVENTS_PER_SNAPSHOT", 50)
    bench = Bench().saved()
    bench.append(49)
    bench.snapshots.save_if_due()
    assert bench.saving == []
    bench.append()
    bench.snapshots.save_if_due()
    bench.saving.pop()(None)
    assert bench.snapshots.saved_at == 50
    bench.append(49)
    bench.snapshots.save_if_due()
    assert bench.saving == []


def test_while_one_is_on_its_way_no_other_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_snapshots, "EVENTS_PER_SNAPSHOT", 1)
    bench = Bench().saved()
    bench.append()
    bench.snapshots.save_if_due()
    bench.append()
    bench.pass_time(2 * SNAPSHOT_EVERY_MS)
    assert len(bench.saving) == 1
    bench.saving.pop()(REFUSED)
    assert bench.snapshots.saved_at == 0, "the one before holds"
    bench.pass_time(10_000)
    bench.saving.pop()(None)
    assert bench.snapshots.saved_at == 2, "it is taken again, with what came meanwhile"


def test_a_silent_partition_is_saved_until_both_snapshots_cover_all_of_it() -> None:
    """Retention trims up to the older one."""
    bench = Bench().saved()
    bench.append()
    indexes = list[int | None]()
    for _ in range(5):
        bench.pass_time(2 * SNAPSHOT_EVERY_MS)
        if bench.saving:
            bench.saving.pop()(None)
            indexes.append(bench.snapshots.saved_at)
    assert indexes == [1, 1]
    bench.append()
    bench.pass_time(2 * SNAPSHOT_EVERY_MS)
    assert len(bench.saving) == 1, "one event is enough"


def test_a_silent_partition_is_saved_once_more_behind_a_start_which_knows_the_newest_one_only() -> None:
    bench, indexes = Bench(), list[int | None]()
    bench.append(3)
    bench.log.saved = Snapshot(3, 30, encode_snapshot(ProducerSequences()))
    bench.snapshots.load(lambda outcome: None)
    for _ in range(5):
        bench.pass_time(2 * SNAPSHOT_EVERY_MS)
        if bench.saving:
            bench.saving.pop()(None)
            indexes.append(bench.snapshots.saved_at)
    assert indexes == [3]
