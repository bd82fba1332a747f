"""Rests between pieces: as long as the pace says, none near the quota, and over at once when they must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hubweir.broker.capture import captures
from hubweir.broker.capture.rest import CaptureRest
from hubweir.broker.capture.tests.capture_world import CAPTURED, CaptureWorld
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.broker.tests.conftest import HandEnv
from hubweir.capture import avro
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv

QUOTA = 1_000


class Resting(CapturePace):
    """Rests for so long behind every piece; what it was told."""

    rest_ms = 500

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[int, int, int]] = []
        self.were_at_work: list[int] = []
        self.on_worked: Callable[[], None] = lambda: None

    def worked(self, size: int, work_ms: int, now_ms: int, appended_bytes: int) -> int:
        self.told.append((size, work_ms, appended_bytes))
        self.were_at_work.append(self.at_work)
        self.on_worked()
        return self.rest_ms


@pytest.fixture
def env() -> SimulatedEnv:
    return SimulatedEnv(0, files=MemoryFiles("rest"))


def test_the_next_piece_begins_when_the_rest_is_over(env: SimulatedEnv) -> None:
    counters, pace, went = Counters(), Resting(), []
    rest = CaptureRest(env, BrokerDeadlines(env), counters, pace, QUOTA)
    env.run_for(1_000)
    rest.enter()
    counters["log.appended_bytes"] += 70
    rest.begin_piece()
    env.run_for(30)
    rest.end_piece(11, 0, lambda: went.append(env.monotonic_ms()))
    begun_ms = env.monotonic_ms()
    env.run_for(499)
    assert not went
    env.run_for(10)
    assert went == [begun_ms + 500]
    assert pace.told == [(11, 30, 70)]


@pytest.mark.parametrize("rest_ms", [0, 1])
def test_the_shortest_rest_is_a_millisecond_and_none_is_no_wait_at_all(env: SimulatedEnv, rest_ms: int) -> None:
    pace, went = Resting(), list[int]()
    pace.rest_ms = rest_ms
    rest = CaptureRest(env, BrokerDeadlines(env), Counters(), pace, QUOTA)
    rest.begin_piece()
    rest.end_piece(1, 0, lambda: went.append(env.monotonic_ms()))
    assert len(went) == 1 - rest_ms
    env.run_for(5)
    assert len(went) == 1


def test_what_a_stop_wakes_does_not_rest_behind_its_next_piece() -> None:
    """Else a stop would wait for one more rest, and a clock's callback would come behind the end."""
    env, went = HandEnv(), list[int]()
    rest = CaptureRest(env, BrokerDeadlines(env), Counters(), Resting(), QUOTA)  # type: ignore[arg-type]
    rest.begin_piece()
    rest.end_piece(1, 0, lambda: rest.end_piece(1, 0, lambda: went.append(1)))
    assert env.timers == 1
    rest.stop()
    assert went == [1] and env.timers == 0


def test_there_is_no_rest_near_the_quota(env: SimulatedEnv) -> None:
    went: list[int] = []
    rest = CaptureRest(env, BrokerDeadlines(env), Counters(), Resting(), QUOTA)
    rest.begin_piece()
    rest.end_piece(1, QUOTA, lambda: went.append(1))
    assert went == [1]


def test_a_stop_ends_the_rest_once_and_there_is_none_behind_it(env: SimulatedEnv) -> None:
    went: list[int] = []
    rest = CaptureRest(env, BrokerDeadlines(env), Counters(), Resting(), QUOTA)
    rest.begin_piece()
    rest.end_piece(1, 0, lambda: went.append(1))
    assert not went
    rest.stop()
    env.run_for(1_000)
    rest.stop()
    assert went == [1]
    rest.end_piece(1, 0, lambda: went.append(2))
    assert went == [1, 2]


def test_who_leaves_twice_or_never_entered_is_counted_once(env: SimulatedEnv) -> None:
    pace = CapturePace()
    one, another = (
        CaptureRest(env, BrokerDeadlines(env), Counters(), pace, QUOTA),
        CaptureRest(env, BrokerDeadlines(env), Counters(), pace, QUOTA),
    )
    one.enter()
    another.leave()
    assert pace.at_work == 1
    one.leave()
    one.leave()
    assert pace.at_work == 0


def test_a_capture_that_rests_loses_nothing_and_ends_in_mid_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    paces: list[Resting] = []

    def pace() -> Resting:
        paces.append(Resting())
        return paces[-1]

    monkeypatch.setattr(captures, "CapturePace", pace)
    with CaptureWorld(description=replace(CAPTURED, size_limit_bytes=100_000)) as world:
        world.open()
        for _ in range(10):
            world.send(8)
            world.run_s(1)
        world.run_s(51)  # the window is over, and the first of several pieces is written
        assert not world.archives() and paces[0].told
        ended: list[int] = []
        assert world.broker is not None
        world.broker.stop(lambda: ended.append(world.env.monotonic_ms()))
        before_ms = world.env.monotonic_ms()
        world.env.run_for(400)
        assert ended and ended[0] - before_ms < 100, "a stop waits for no rest"
        assert paces[0].at_work == 0
        world.restart()
        world.open()
        world.run_s(70)
        world.check()
        assert len(paces[1].told) > 3 and paces[1].at_work == 0
        assert set(paces[0].were_at_work + paces[1].were_at_work) == {1}, "its share of the pace is one capture's"


def test_a_stop_while_a_file_rests_that_nobody_began_to_write_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is told inside the call that ends the rest: who is told later would wait for ever, and the service with
    him."""
    pace = Resting()
    monkeypatch.setattr(captures, "CapturePace", lambda: pace)
    with CaptureWorld(description=replace(CAPTURED, size_limit_bytes=100_000)) as world:
        monkeypatch.setattr(avro, "BLOCK_BYTES", 1_000_000)
        world.open()
        for _ in range(10):
            world.send(8)
            world.run_s(1)
        while not pace.told:
            world.run_s(0.1)
        ended: list[bool] = []
        assert world.broker is not None and not world.archives()
        world.broker.stop(lambda: ended.append(True))
        world.env.run_for(300)
        assert ended == [True] and pace.at_work == 0


def test_a_stop_in_the_middle_of_a_piece_is_followed_by_no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    pace, ended_ms = Resting(), list[int]()
    monkeypatch.setattr(captures, "CapturePace", lambda: pace)
    with CaptureWorld(description=replace(CAPTURED, size_limit_bytes=100_000)) as world:
        world.open()
        for _ in range(10):
            world.send(8)
            world.run_s(1)
        broker, begun_ms = world.broker, list[int]()
        assert broker is not None

        def stop() -> None:
            if not begun_ms:
                begun_ms.append(world.env.monotonic_ms())
                broker.stop(lambda: ended_ms.append(world.env.monotonic_ms()))

        pace.on_worked = stop
        world.run_s(60)
        assert begun_ms and ended_ms and ended_ms[0] - begun_ms[0] < 100
        assert pace.at_work == 0
