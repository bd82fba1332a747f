"""Capture begun, changed and ended, over crashes in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.alarms import CAPTURE_FAILING
from hubweir.broker.capture.tests.capture_world import CAPTURED, HOUR_MS, LOG_ID, CaptureWorld
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import ChangePartition, DeletePartition
from hubweir.broker.commands.process import AskCounters, CountersTaken, Done, Refusal
from hubweir.capture.destination import LocalFolder
from hubweir.env import Lane
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_faults import Fault


def test_destination_that_hangs_holds_up_no_send() -> None:
    with CaptureWorld(description=replace(CAPTURED, interval_s=900)) as world:
        world.open()
        world.env.stall(Lane.CAPTURE)
        for _ in range(100):
            world.send(5, size=50)
            world.run_s(1)
        assert world.env.stalled_calls(Lane.CAPTURE) == 1 and len(world.stored) == 500
        world.env.go_on(Lane.CAPTURE)
        world.run_s(60)
        world.check(complete=False)


def test_capture_is_begun_and_ended_when_that_is_durable() -> None:
    with CaptureWorld() as world:
        world.open()
        for captured in (replace(CAPTURED, enabled=False), CAPTURED):
            world.env.stall(Lane.WRITES)
            answers = world.ask(ChangePartition(LOG_ID, Durability.DURABLE, HOUR_MS, captured))
            assert not answers and world.env.stalled_calls(Lane.WRITES) == 1
            world.env.go_on(Lane.WRITES)
            world.run_s(1)
            assert answers == [Done()]


def test_only_events_after_enabling_are_captured() -> None:
    with CaptureWorld(description=None) as world:
        world.open()
        world.send(7)
        world.run_s(1)
        assert world.change(CAPTURED) == [Done()]
        world.send(5)
        world.run_s(70)
        world.check(first=7)
        assert world.state().next_sequence_number == 12


def test_enabling_that_was_answered_survives_a_power_cut() -> None:
    with CaptureWorld(description=None) as world:
        world.open()
        world.send(7)
        world.run_s(1)
        assert world.change(CAPTURED) == [Done()]
        world.restart(power_cut=True)
        world.open()
        world.send(5)
        world.run_s(70)
        world.check(first=7)


def test_enabling_that_the_disk_refuses_is_refused() -> None:
    with CaptureWorld(description=None) as world:
        world.open()
        world.files.plan(Fault.EIO, forever=True)
        [answer] = world.change(CAPTURED)
        world.files.heal()
        assert isinstance(answer, Refusal) and "Capture cannot be enabled now" in answer.text
        assert not world.state().is_running
        assert world.change(CAPTURED) == [Done()]


def test_disabling_ends_it_and_enabling_again_starts_afresh() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(5)
        world.run_s(70)
        world.send(4)
        assert world.change(replace(CAPTURED, enabled=False)) == [Done()]
        assert world.mark() is None
        world.run_s(200)
        assert [len(file) for file in world.records()] == [5]
        world.change(CAPTURED)
        world.send(3)
        world.run_s(70)
        assert [record["SequenceNumber"] for record in world.records()[1]] == [9, 10, 11]


def test_disabling_that_a_crash_interrupts_leaves_no_mark_to_go_on_from() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(5)
        world.run_s(10)
        world.restart()
        world.description = replace(CAPTURED, enabled=False)
        world.open()
        assert world.mark() is None


def test_a_damaged_mark_begins_again_with_the_oldest_event_and_says_so() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(5)
        world.run_s(61)
        world.restart()
        [path] = [path for path in world.files.paths() if "/notes-" in path]
        for at in (20, -1):  # both copies
            world.files.bytes_of(path)[at] ^= 1
        world.open()
        assert world.broker is not None
        assert any("mark is damaged" in alarm.text for alarm in world.broker.alarms.current())
        world.run_s(61)
        numbers = [record["SequenceNumber"] for file in world.records() for record in file]
        assert numbers == [0, 1, 2, 3, 4] * 2


def test_a_partition_that_is_deleted_takes_its_mark_along() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(5)
        world.env.run(60_005)
        assert world.ask(DeletePartition(LOG_ID), run_ms=1_000) == [Done()]
        assert world.mark() is None
        world.run_s(200)


def test_a_stop_in_the_middle_of_a_file_ends_soon_and_the_next_start_makes_the_file() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(80)
        world.env.run(60_030)
        stopped: list[bool] = []
        assert world.broker is not None
        world.broker.stop(lambda: stopped.append(True))
        world.run_s(5)
        assert stopped == [True]
        world.restart()
        world.open()
        world.run_s(61)
        world.check()


@pytest.mark.parametrize("seed", range(30))
def test_settings_that_change_faster_than_the_disk_are_done_in_turn(seed: int) -> None:
    off = replace(CAPTURED, enabled=False)
    with CaptureWorld(seed, description=off) as world:
        world.open()
        answers: list[Answer] = []
        assert world.broker is not None
        wanted = [CAPTURED, off, CAPTURED, off, CAPTURED, off][: 5 + seed % 2]
        for description in wanted:
            command = ChangePartition(LOG_ID, Durability.DURABLE, HOUR_MS, description)
            world.broker.submit(command, answers.append)
        world.run_s(2)
        assert answers == [Done()] * len(wanted)
        is_on = wanted[-1] is CAPTURED
        assert (world.state().is_running, world.mark() is not None) == (is_on, is_on)
        world.send(3)
        world.run_s(70)
        assert world.records() == ([] if not is_on else [world.records()[0]])
        assert not world.broker.alarms.current()


@pytest.mark.parametrize("seed", range(30))
def test_capture_that_is_enabled_again_while_a_file_is_made_keeps_its_new_mark(seed: int) -> None:
    with CaptureWorld(seed) as world:
        world.open()
        world.send(80)
        world.env.run(60_005 + seed)
        answers: list[Answer] = []
        assert world.broker is not None
        for description in (replace(CAPTURED, enabled=False), CAPTURED):
            world.broker.submit(ChangePartition(LOG_ID, Durability.DURABLE, HOUR_MS, description), answers.append)
        world.run_s(2)
        assert answers == [Done(), Done()] and world.mark() is not None
        assert world.state().next_sequence_number == 80


@pytest.mark.parametrize("seed", range(30))
def test_a_partition_that_is_deleted_while_capture_is_being_enabled_leaves_nothing_behind(seed: int) -> None:
    with CaptureWorld(seed, description=None) as world:
        world.open()
        answers: list[Answer] = []
        assert world.broker is not None
        world.broker.submit(ChangePartition(LOG_ID, Durability.DURABLE, HOUR_MS, CAPTURED), answers.append)
        world.broker.submit(DeletePartition(LOG_ID), answers.append)
        world.run_s(200)
        assert answers[-1] == Done() and len(answers) == 2
        [taken] = world.ask(AskCounters())
        assert isinstance(taken, CountersTaken)
        assert not taken.values.get("capture.partitions") and not world.broker.alarms.current() and not world.archives()


@pytest.mark.parametrize("seed", range(30))
def test_a_stop_while_capture_is_being_enabled_waits_for_it_and_begins_nothing(seed: int) -> None:
    with CaptureWorld(seed, description=None) as world:
        world.open()
        assert world.broker is not None
        order: list[str] = []
        command = ChangePartition(LOG_ID, Durability.DURABLE, HOUR_MS, CAPTURED)
        world.broker.submit(command, lambda _: order.append("enabled"))
        world.broker.stop(lambda: order.append("stopped"))
        world.run_s(200)
        assert order == ["enabled", "stopped"] and not world.archives()
        assert not world.broker.alarms.current(), "a capture that was begun now would fail on a log that is closed"


@pytest.mark.parametrize("seed", range(12))
def test_a_stop_while_capture_is_being_disabled_waits_until_the_mark_is_gone(seed: int) -> None:
    with CaptureWorld(seed) as world:
        world.open()
        world.send(80)
        world.env.run(1_000 + 9 * seed)  # a file is being made
        assert world.broker is not None
        answers, stopped = list[Answer](), list[int]()
        command = ChangePartition(LOG_ID, Durability.DURABLE, HOUR_MS, None)
        world.broker.submit(command, answers.append)
        world.broker.stop(lambda: stopped.append(len(answers)))
        world.run_s(20)
        assert answers == [Done()] and stopped == [1] and world.mark() is None


class Account(LocalFolder):
    """A container's folder, in place of a storage account; wrong: what its check says."""

    wrong = ""
    checks = 0

    def check(self) -> None:
        Account.checks += 1
        if Account.wrong:
            raise OSError(Account.wrong)


def test_what_is_wrong_with_an_account_is_told_when_capture_is_enabled_and_not_at_its_first_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with CaptureWorld(description=None) as world:
        monkeypatch.setattr(Account, "wrong", "the signature may not delete")
        monkeypatch.setattr(Account, "checks", 0)
        world.open()
        assert world.broker is not None
        its = world.broker._captures.tools
        assert its is not None
        places = replace(its.places, containers=lambda container: Account(world.files, f"capture/{container}"))
        world.broker._captures.tools = replace(its, places=places)
        blobs = replace(CAPTURED, destination=CaptureDestination.AZURE_BLOCK_BLOB, container="films", interval_s=900)
        assert world.change(blobs) == [Done()]
        assert world.state().failure == "the signature may not delete"
        [alarm] = world.broker.alarms.current()
        assert alarm.kind is CAPTURE_FAILING and "may not delete" in alarm.text
        assert alarm.about == "capture of partition 0 of hub in namespace ns"
        world.send(100)
        world.run_s(600)
        monkeypatch.setattr(Account, "wrong", "")
        world.run_s(61)
        assert world.state().failure == "" and not world.broker.alarms.current()
        asked = Account.checks
        world.run_s(900)
        assert Account.checks == asked, "not for each file"
        world.check()
        monkeypatch.setattr(Account, "wrong", "there is no container")
        assert world.change(replace(blobs, container="flims")) == [Done()]
        assert world.state().failure == "there is no container"
        assert world.change(CAPTURED) == [Done()]
        assert world.state().failure == "", "it goes elsewhere"


@pytest.mark.parametrize("how", ["disabled", "deleted"])
def test_what_a_capture_fails_of_is_no_alarm_any_more_when_it_is_ended(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with CaptureWorld() as world:
        world.open()
        assert world.broker is not None

        def broken(*_: object) -> None:
            raise OSError("the place is away")

        monkeypatch.setattr(LocalFolder, "begin", broken)
        world.send(5)
        world.run_s(70)
        assert [alarm.kind for alarm in world.broker.alarms.current()] == [CAPTURE_FAILING]
        if how == "deleted":
            assert world.ask(DeletePartition(LOG_ID), run_ms=1_000) == [Done()]
        else:
            assert world.change(replace(CAPTURED, enabled=False)) == [Done()]
        world.env.run_for(1_000)
        assert world.broker.alarms.current() == ()
