"""Capture beside a log: windows to the millisecond of virtual time, what is in files, who waits for whom."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from hubweir.broker.capture.slots import LOCAL_SLOTS
from hubweir.broker.capture.tests.capture_world import CAPTURED, HOUR_MS, LOG_ID, Away, CaptureWorld
from hubweir.broker.commands.partition import CreatePartition, DeletePartition
from hubweir.broker.commands.process import Done
from hubweir.capture.destination import LocalFolder
from hubweir.messaging_store.log import Durability
from hubweir.metrics import (
    CAPTURE_BACKLOG,
    CAPTURE_BACKLOG_EVENTS,
    CAPTURED_BYTES,
    CAPTURED_MESSAGES,
    Metric,
    Samples,
)
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.service_log import CAPTURED_FILE, Line

START = "2023/11/14/22"


def test_window_ends_after_its_interval_to_the_millisecond() -> None:
    with CaptureWorld() as world:
        world.open()
        world.env.run(100)
        world.send(3)
        world.env.run(59_999)
        assert not world.archives()
        world.env.run(60_500)
        assert list(world.archives()) == [f"capture/ns/hub/0/{START}/14/20.avro"]
        assert [len(file) for file in world.records()] == [3]
        world.env.run(120_500)
        assert list(world.archives())[1:] == [f"capture/ns/hub/0/{START}/15/20.avro"]
        world.check()


def test_a_finished_file_is_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with CaptureWorld() as world:
        world.open()
        world.send(3)
        world.run_s(61)
    [line] = [record.msg for record in caplog.records if isinstance(record.msg, Line)]
    assert line.kind is CAPTURED_FILE
    assert [line.fields[name] for name in ("events", "first", "last", "behind")] == [3, 0, 2, 0]
    assert line.fields["bytes"] == len(next(iter(world.archives().values())))


def test_what_is_in_finished_files_is_counted_for_its_hub_and_for_all_hubs() -> None:
    with CaptureWorld() as world:
        world.open()
        for count in (3, 5):
            world.send(count)
            world.run_s(61)
            assert told(world, CAPTURED_MESSAGES) == world.counters["capture.events"] == world.sent
            size = sum(map(len, world.archives().values()))
            assert told(world, CAPTURED_BYTES) == world.counters["capture.bytes"] == size
            assert told(world, CAPTURE_BACKLOG) == told(world, CAPTURE_BACKLOG_EVENTS) == 0
        assert world.counters["capture.files"] == 2
        world.send(4)
        world.run_s(1)
        assert told(world, CAPTURE_BACKLOG_EVENTS) == 4 and told(world, CAPTURE_BACKLOG) > 4 * 20
        assert (told(world, CAPTURED_MESSAGES), told(world, CAPTURED_BYTES)) == (8, size)


def told(world: CaptureWorld, metric: Metric) -> float:
    """What the broker says of the hub at a scrape."""
    assert world.broker is not None
    samples = Samples()
    for _ in world.broker.measure(samples):
        pass
    return samples[metric]["ns", "hub"]


def test_window_ends_at_its_size_without_waiting_for_its_time() -> None:
    with CaptureWorld(description=replace(CAPTURED, interval_s=900)) as world:
        world.open()
        world.send(100, size=50)
        world.run_s(10)
        sizes = [len(file) for file in world.records()]
        assert len(sizes) > 3
        assert max(sizes) - min(sizes) <= 1, "every full window has its size"
        world.check(complete=False)
        assert world.state().behind_bytes < CAPTURED.size_limit_bytes


def test_window_without_events_makes_an_empty_file_by_setting() -> None:
    for skip, files in ((False, 3), (True, 0)):
        with CaptureWorld(description=replace(CAPTURED, skip_empty_archives=skip)) as world:
            world.open()
            world.run_s(190)
            assert world.records() == [[]] * files
            world.send(1)
            world.run_s(60)
            world.check()


def test_changed_settings_hold_for_the_open_window() -> None:
    with CaptureWorld(description=replace(CAPTURED, interval_s=900)) as world:
        world.open()
        world.send(2)
        world.run_s(30)
        world.change(replace(CAPTURED, archive_name_format=turned()))
        world.run_s(31)
        assert [name.split("/")[1] for name in world.archives()] == ["2023-hub"]


def turned() -> str:
    return "{Year}-{EventHub}/{PartitionId}/{Month}/{Day}/{Hour}/{Minute}/{Second}/{Namespace}"


def test_name_that_somebody_has_taken_is_left_alone() -> None:
    with CaptureWorld() as world:
        world.open()
        taken = LocalFolder(world.files, "capture").begin(f"ns/hub/0/{START}/14/20.avro")
        taken.write([b"somebody's"])
        taken.commit()
        world.send(2)
        world.run_s(70)
        assert world.files.bytes_of(f"capture/ns/hub/0/{START}/14/20.avro") == b"somebody's"
        assert world.state().last_file == f"ns/hub/0/{START}/14/21.avro"


@pytest.mark.parametrize("seed", range(10))
def test_two_hubs_whose_format_gives_them_one_name_have_two_files_of_two_seconds(seed: int) -> None:
    both = replace(CAPTURED, archive_name_format=turned().replace("{EventHub}", "{Namespace}{EventHub}")[:-12])
    with CaptureWorld(seed, description=both) as world:
        world.open()
        command = CreatePartition("f" * 32, "shub", "0", Durability.DURABLE, HOUR_MS, "n", both)
        assert world.ask(command) == [Done()]
        world.send(30)
        world.run_s(70)
        world.look_at_files()
        world.restart()
        world.open()
        assert world.ask(command) == [Done()]
        world.run_s(70)
        world.look_at_files()
        assert len(world.archives()) == 4 and all("/2023-nshub/" in name for name in world.archives())
        assert sum(len(records) for records in world.records()) == 30


def test_a_destination_that_is_away_loses_nothing_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away = Away(monkeypatch)
    with CaptureWorld(retention_ms=HOUR_MS) as world:
        world.open()
        world.send(5)
        world.run_s(61)
        away.is_away = True
        for _ in range(8):
            world.send(40, size=60)
            world.run_s(1_800)
        state = world.state()
        assert state.failure == "the destination is away"
        assert state.behind_events == 320
        assert world.counters["capture.failures"] > 5
        assert [record.levelname for record in caplog.records] == ["WARNING"], "one line, however often it is tried"
        assert world.broker is not None and "is away" in str(world.broker.alarms.current()[0])
        away.is_away = False
        world.run_s(200)
        world.check()
        assert world.state().failure == ""
        assert not world.broker.alarms.current()


def test_a_time_away_without_events_makes_one_empty_file_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    away = Away(monkeypatch)
    with CaptureWorld() as world:
        world.open()
        world.send(5)
        world.run_s(61)
        away.is_away = True
        world.run_s(3 * 3_600)
        away.is_away = False
        world.run_s(59)
        assert [len(file) for file in world.records()] == [5, 0]


def test_a_service_that_was_down_for_long_makes_one_empty_file_at_most() -> None:
    with CaptureWorld() as world:
        world.open()
        world.run_s(10)
        world.restart()
        world.env.jump(5 * HOUR_MS)
        world.open()
        world.run_s(55)
        assert world.records() == [[]]


@pytest.mark.parametrize("seed", range(3))
def test_another_destination_that_is_given_while_the_first_is_away_gets_what_waits(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away(monkeypatch)
    with CaptureWorld(seed) as world:
        world.open()
        away.is_away = True
        for _ in range(5):
            world.send(60)
            world.run_s(30)
        world.description = replace(CAPTURED, container="other")
        assert world.change(world.description) == [Done()]
        away.is_away = False
        world.run_s(200)
        world.restart()
        world.open()
        world.run_s(70)
        world.check()
        assert all(name.startswith("capture/other/") for name in world.archives())


def test_a_stop_does_not_wait_for_files_of_others() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(2)
        assert world.broker is not None
        its = world.broker._captures.tools
        assert its is not None
        for _ in range(LOCAL_SLOTS):
            its.slots.take(CaptureDestination.LOCAL_FOLDER, lambda: None)  # they never end
        world.run_s(61)
        assert not world.archives() and its.pace.at_work == 0, "it waits for a slot"
        ended: list[int] = []
        world.broker.stop(lambda: ended.append(1))
        world.env.run_for(200)
        assert ended == [1]
        world.restart()
        world.open()
        world.run_s(70)
        world.check()


@pytest.mark.parametrize("seed", range(24))
def test_a_partition_that_is_deleted_while_a_file_is_made_leaves_no_half_of_it(seed: int) -> None:
    with CaptureWorld(seed) as world:
        world.open()
        world.send(80)
        world.env.run(1_000 + 9 * seed)
        assert world.ask(DeletePartition(LOG_ID), run_ms=2_000) == [Done()]
        assert not [path for path in world._below("capture") if path.endswith(".tmp")]
        assert world.broker is not None and not world.broker.alarms.current()


def test_a_capture_has_one_deadline_however_often_it_is_changed_and_none_when_it_is_stopped() -> None:
    with CaptureWorld() as world:
        world.open()
        assert world.broker is not None
        deadlines = world.broker._deadlines
        for interval_s in (60, 120, 300, 900):
            assert world.change(replace(CAPTURED, interval_s=interval_s)) == [Done()]
            assert len(deadlines) == 2, "its next look, and the sweep"
        world.broker.stop(lambda: None)
        assert len(deadlines) == 0
