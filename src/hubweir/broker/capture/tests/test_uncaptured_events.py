"""Events that capture never gets: taken by retention past the quota, damaged, or numbers that were skipped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.broker.capture.places import CaptureQuota
from hubweir.broker.capture.tests.capture_world import CAPTURED, HOUR_MS, LOG_ID, Away, CaptureWorld
from hubweir.messaging_store.log import Durability


def test_retention_waits_for_capture_and_goes_on_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    away = Away(monkeypatch)
    with CaptureWorld(retention_ms=HOUR_MS) as world:
        world.open()
        away.is_away = True
        for _ in range(20):
            world.send(30, size=60)
            world.run_s(600)
        assert first_index(world) == 0, "three hours, with a retention of one"
        away.is_away = False
        world.run_s(3_600)
        world.check()
        assert first_index(world) > 300


def first_index(world: CaptureWorld) -> int:
    assert world.broker is not None
    return world.broker._residents.by_log_id[LOG_ID].log.bounds.first_index


@pytest.mark.parametrize("quota", [CaptureQuota(size_bytes=20_000), CaptureQuota(age_ms=HOUR_MS)], ids=["bytes", "age"])
def test_past_the_quota_what_went_uncaptured_is_counted_by_range(
    monkeypatch: pytest.MonkeyPatch, quota: CaptureQuota, caplog: pytest.LogCaptureFixture
) -> None:
    away = Away(monkeypatch)
    with CaptureWorld(retention_ms=HOUR_MS, quota=quota) as world:
        world.open()
        away.is_away = True
        for _ in range(20):
            world.send(30, size=60)
            world.run_s(600)
        assert first_index(world) > 0
        away.is_away = False
        world.run_s(300)
        state, numbers = world.state(), [record["SequenceNumber"] for file in world.records() for record in file]
        lost_to = numbers[0]
        assert state.uncaptured_events == lost_to == world.counters["capture.uncaptured_events"]
        assert f" to {lost_to - 1} were not captured" in caplog.text
        sizes = [len(file) for file in world.records()]
        assert 0 not in sizes[: sizes.index(0)] and sum(sizes[: sizes.index(0)]) == len(numbers), (
            "a file of lost events"
        )
        assert numbers == list(range(lost_to, 600))
        world.restart()
        world.open()
        assert world.state().uncaptured_events == lost_to


@pytest.mark.parametrize("seed", range(3))
def test_retention_waits_for_the_age_of_the_quota_and_what_it_took_then_is_counted(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(monkeypatch)
    with CaptureWorld(seed, quota=CaptureQuota(age_ms=HOUR_MS), retention_ms=HOUR_MS) as world:
        world.open()
        away.is_away = True
        for _ in range(10):
            world.send(60)
            world.run_s(5)
        world.run_s(5_400)
        assert world.state().behind_events == 600 and world.state().uncaptured_events == 0
        world.run_s(7_200)
        world.send(5)
        away.is_away = False
        world.run_s(200)
        numbers = [record["SequenceNumber"] for file in world.records() for record in file]
        assert numbers == sorted(set(numbers)) and 5 <= len(numbers) < 605
        assert world.state().uncaptured_events == 605 - len(numbers)
        assert world.state().behind_events == 0 and world.broker is not None and not world.broker.alarms.current()


def test_damage_in_the_log_is_stepped_over_and_counted() -> None:
    with CaptureWorld(description=replace(CAPTURED, interval_s=900, size_limit_bytes=10**6)) as world:
        world.open()
        for _ in range(30):
            world.send(10, size=60)
            world.run_s(0.2)
        folder = f"store-0/logs/{LOG_ID}"
        oldest = sorted(name for name in world.files.list(folder) if name.endswith(".log"))[0]
        world.files.bytes_of(f"{folder}/{oldest}")[3_000] ^= 1
        world.run_s(901)
        numbers = [record["SequenceNumber"] for file in world.records() for record in file]
        state = world.state()
        assert 0 < state.uncaptured_events < 100
        assert len(numbers) + state.uncaptured_events == 300
        assert numbers == sorted(set(numbers))


def test_one_damaged_event_is_lost_and_the_next_one_is_not() -> None:
    with CaptureWorld(description=replace(CAPTURED, interval_s=900, size_limit_bytes=10**6)) as world:
        world.open()
        for _ in range(30):
            world.send(1, size=60)
            world.run_s(0.2)
        world.send(40, size=60)  # so that the others are in the tail no more, which is in memory
        world.run_s(0.2)
        folder = f"store-0/logs/{LOG_ID}"
        for name in world.files.list(folder):
            data = world.files.bytes_of(f"{folder}/{name}")
            if name.endswith(".log") and b"000012...." in data:
                data[data.index(b"000012....")] ^= 1
        world.run_s(901)
        numbers = [record["SequenceNumber"] for file in world.records() for record in file]
        assert numbers == [number for number in range(70) if number != 12]
        assert world.state().uncaptured_events == 1


@pytest.mark.parametrize("power_cut", [False, True], ids=["killed", "power cut"])
def test_numbers_that_a_relaxed_log_skips_make_no_files_and_no_alarm(power_cut: bool) -> None:
    with CaptureWorld(durability=Durability.RELAXED, description=replace(CAPTURED, interval_s=900)) as world:
        world.open()
        world.send(5)
        world.run_s(10)
        world.restart(power_cut=power_cut)
        world.open()
        world.send(4)
        world.run_s(5)
        world.restart(power_cut=power_cut)
        world.open()
        world.send(3)
        world.run_s(910)
        state = world.state()
        assert state.uncaptured_events == 0
        assert state.next_sequence_number > 2 * 32 * 1024 * 1024
        assert sum(len(file) for file in world.records()) == 12
        assert len(world.archives()) <= 3
        world.check()
