"""In which order a captured file, its mark and its claim come and go, and what a failure in between leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hubweir.broker.capture import intent, runner
from hubweir.broker.capture.places import CaptureQuota
from hubweir.broker.capture.tests.capture_world import CAPTURED, HOUR_MS, LOG_ID, CaptureWorld
from hubweir.broker.commands.partition import DeletePartition
from hubweir.broker.commands.process import Done
from hubweir.capture.capture_mark import CaptureMark, note_mark
from hubweir.capture.destination import LocalFolder
from hubweir.env import Lane
from hubweir.errors import LogOffline
from hubweir.messaging_store.log import Log, Refused


def before_moving(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Call act whenever a finished file's mark is about to move; when it raises OSError, the mark is refused."""

    def note(log: Log, mark: CaptureMark, *, now_ms: int, on_done: Callable[[Refused | None], None]) -> None:
        try:
            act()
        except OSError as error:
            on_done(Refused(LogOffline(str(error))))
        else:
            note_mark(log, mark, now_ms=now_ms, on_done=on_done)

    monkeypatch.setattr(runner, "note_mark", note)


def test_nobody_else_gets_a_files_name_before_the_mark_is_behind_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start in between makes the file again under that name: another service must not have put its own there."""
    with CaptureWorld() as world:
        names: list[str] = []

        def claim() -> None:
            [name] = [path.removeprefix("capture/") for path in world._below("capture") if path.endswith(".claim")]
            names.append(name.removesuffix(".claim"))
            assert not LocalFolder(world.files, "capture").claim(names[-1])

        before_moving(monkeypatch, claim)
        world.open()
        world.send(5)
        world.run_s(70)
        assert [f"capture/{name}" for name in names] == list(world.archives())
        assert not [path for path in world._below("capture") if path.endswith(".claim")]


def fail(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Moving a mark fails as long as the list says so."""
    is_failing = [True]

    def act() -> None:
        if is_failing[0]:
            raise OSError("the disk is sick")

    before_moving(monkeypatch, act)
    return is_failing


def test_capture_goes_no_further_than_its_durable_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What retention may take goes by it."""
    is_failing = fail(monkeypatch)
    with CaptureWorld() as world:
        world.open()
        world.send(5)
        world.run_s(70)
        assert len(world.archives()) == 1
        assert world.state().next_sequence_number == 0 and world.state().behind_events == 5
        is_failing[0] = False
        world.run_s(120)
        assert world.state().next_sequence_number == 5
        world.check()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_claim_is_let_go_of_only_when_no_mark_can_hold_its_intent(
    is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start may find an intent whose end is unknown: with its name given away, two hubs would write one file."""

    def note(log: Log, mark: CaptureMark, *, now_ms: int, on_done: Callable[[Refused | None], None]) -> None:
        on_done(Refused(LogOffline("the disk is sick"), known=is_known))

    with CaptureWorld() as world:
        world.open()
        world.send(5)
        monkeypatch.setattr(intent, "note_mark", note)
        world.run_s(62)
        claims = [path for path in world._below("capture") if path.endswith(".claim")]
        assert bool(claims) == (not is_known) and not world.archives()
        monkeypatch.undo()
        world.run_s(120)
        world.check()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_finished_file_stays_when_its_mark_did_not_move_and_the_log_lost_its_events(
    restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_failing = fail(monkeypatch)
    with CaptureWorld(quota=CaptureQuota(age_ms=HOUR_MS), retention_ms=HOUR_MS) as world:
        world.open()
        for _ in range(6):
            world.send(10)
            world.run_s(5)
        world.run_s(40)
        finished = world.archives()
        assert finished
        world.look_at_files()
        world.run_s(4 * 3_600)  # retention, and the time that it waits for capture
        if restarted:
            world.restart()
            world.open()
        is_failing[0] = False
        world.send(5)
        world.run_s(300)
        world.look_at_files()
        assert finished.items() <= world.archives().items()
        assert world.state().behind_events == 0


@pytest.mark.parametrize("seed", range(12))
def test_disabling_that_was_answered_survives_a_power_cut(seed: int) -> None:
    """Or capture, enabled again, would go on from the old mark."""
    with CaptureWorld(seed) as world:
        world.open()
        world.send(5)
        world.run_s(1)
        assert world.change(replace(CAPTURED, enabled=False)) == [Done()]
        world.restart(power_cut=True)
        assert world.mark() is None


def test_a_deletion_waits_for_the_capture_that_still_writes() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(80)
        world.env.stall(Lane.CAPTURE)
        world.run_s(61)
        assert world.env.stalled_calls(Lane.CAPTURE) == 1
        answers = world.ask(DeletePartition(LOG_ID), run_ms=5_000)
        assert not answers and world.mark() is not None
        world.env.go_on(Lane.CAPTURE)
        world.run_s(2)
        assert answers == [Done()] and world.mark() is None
