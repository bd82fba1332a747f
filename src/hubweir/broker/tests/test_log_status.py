"""What a broker tells of each log that is open: its bounds, and how its capture is."""

from __future__ import annotations

import pytest

from hubweir.broker.capture.tests.capture_world import LOG_ID, Away, CaptureWorld
from hubweir.broker.commands.fragment import CreateFragment
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.status import AskStatus, LogTold, StatusTold
from hubweir.broker.log_status import NOT_CAPTURED, log_told
from hubweir.queue.fragment_settings import FragmentSettings


def told(world: CaptureWorld) -> list[LogTold]:
    """As the broker answers who asks how it is."""
    [answer] = world.ask(AskStatus())
    assert isinstance(answer, StatusTold)
    return list(answer.logs)


def test_a_log_that_nobody_captures_is_told_with_its_bounds_and_as_not_captured() -> None:
    with CaptureWorld(description=None) as world:
        world.open()
        assert told(world) == [LogTold(LOG_ID, 0, 0, NOT_CAPTURED, "")]
        world.send(7)
        world.run_s(1)
        assert told(world) == [LogTold(LOG_ID, 0, 7, NOT_CAPTURED, "")]


def test_what_retention_took_is_before_the_first_index() -> None:
    with CaptureWorld(description=None, retention_ms=10_000) as world:
        world.open()
        for _ in range(20):
            world.send(5, size=200)
            world.run_s(2)
        [log] = told(world)
        assert 0 < log.first_index < log.next_index == 100


def test_a_captured_log_is_behind_by_what_is_in_no_finished_file() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(3)
        world.run_s(1)
        assert told(world) == [LogTold(LOG_ID, 0, 3, 3, "")]
        world.run_s(70)
        assert told(world) == [LogTold(LOG_ID, 0, 3, 0, "")]


def test_a_capture_that_fails_says_why_until_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    away = Away(monkeypatch)
    with CaptureWorld() as world:
        world.open()
        world.send(3)
        away.is_away = True
        world.run_s(70)
        [log] = told(world)
        assert log.behind_events == 3 and "the destination is away" in log.capture_failure
        away.is_away = False
        world.run_s(70)
        assert told(world) == [LogTold(LOG_ID, 0, 3, 0, "")]


def test_the_fragment_of_a_queue_is_told_as_not_captured() -> None:
    with CaptureWorld(description=None) as world:
        world.open()
        assert world.ask(CreateFragment("f" * 32, "orders", FragmentSettings())) == [Done()]
        [fragment] = told(world)[1:]
        assert (fragment.log_id, fragment.behind_events, fragment.capture_failure) == ("f" * 32, NOT_CAPTURED, "")
        assert world.broker is not None
        assert [log_told(each) for each in world.broker._residents] == told(world)
