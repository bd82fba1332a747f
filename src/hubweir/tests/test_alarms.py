"""Alarms: told once when they begin and once when they are over, and never so often that the log floods."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hubweir.alarms import (
    DAMAGE,
    DISK_FULL,
    ISSUER_KEYS,
    KINDS,
    LINES_AT_ONCE,
    LOG_OFFLINE,
    QUIET_MS,
    REMEMBERED,
    Alarms,
)
from hubweir.counters import Counters
from hubweir.testing.simulated_env import SimulatedEnv

ABOUT = "partition 3 of orders (log 12ab)"
PAGE = Path(__file__).parents[3] / "docs" / "alarms.md"


class World:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        self.env = SimulatedEnv()
        self.counters = Counters()
        self.alarms = Alarms(self.env, self.counters)
        self._caplog = caplog

    @property
    def lines(self) -> list[str]:
        return [f"{record.levelname} {record.getMessage()}" for record in self._caplog.records]

    def flap(self, times: int, every_ms: int = 100) -> None:
        for _ in range(times):
            self.alarms.begin(LOG_OFFLINE, ABOUT, "broken disk")
            self.env.run_for(every_ms // 2)
            self.alarms.end(LOG_OFFLINE, ABOUT)
            self.env.run_for(every_ms - every_ms // 2)


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> World:
    return World(caplog)


def test_an_alarm_is_told_once_when_it_begins_and_once_with_its_time_when_it_is_over(world: World) -> None:
    began_ms = world.env.now_ms()
    for _ in range(5):
        world.alarms.begin(LOG_OFFLINE, ABOUT, "broken disk")
        world.env.run_for(500)
    [alarm] = world.alarms.current()
    assert (alarm.kind, alarm.about, alarm.text, alarm.since_ms) == (LOG_OFFLINE, ABOUT, "broken disk", began_ms)
    assert world.lines == [f"ERROR alarm (log-offline): {ABOUT}: broken disk"]
    assert world.alarms.blocks and world.counters["alarms.standing"] == 1
    for _ in range(5):
        world.alarms.end(LOG_OFFLINE, ABOUT)
    assert world.lines[1:] == [f"INFO alarm over after 2.5 s (log-offline): {ABOUT}"]
    assert world.alarms.current() == () and not world.alarms.blocks
    assert (world.counters["alarms.begun"], world.counters["alarms.standing"]) == (1, 0)


def test_a_new_text_is_told_and_neither_a_new_beginning_nor_a_new_alarm(world: World) -> None:
    world.alarms.begin(DAMAGE, ABOUT, "records 3 to 4")
    world.env.run_for(700)
    world.alarms.begin(DAMAGE, ABOUT, "records 3 to 4, 9 to 9")
    [alarm] = world.alarms.current()
    assert alarm.text == "records 3 to 4, 9 to 9" and alarm.since_ms == world.env.now_ms() - 700
    assert len(world.lines) == 2 and world.lines[1].endswith("records 3 to 4, 9 to 9")
    assert world.counters["alarms.begun"] == 1


def test_alarms_are_told_apart_by_kind_and_by_what_they_are_about(world: World) -> None:
    for kind, about in ((DAMAGE, "a"), (LOG_OFFLINE, "a"), (LOG_OFFLINE, "b")):
        world.alarms.begin(kind, about, "bad")
    assert world.alarms.counts() == {"log-offline": 2, "damage": 1}
    assert [str(alarm) for alarm in world.alarms.current()] == ["a: bad", "a: bad", "b: bad"]
    world.alarms.end(LOG_OFFLINE, "b")
    assert world.alarms.counts() == {"log-offline": 1, "damage": 1} and world.alarms.blocks
    world.alarms.end_all("a")
    assert world.alarms.counts() == {} and world.alarms.current() == ()


def test_damage_is_told_and_blocks_nothing(world: World) -> None:
    world.alarms.begin(DAMAGE, ABOUT, "records 3 to 4")
    world.alarms.begin(ISSUER_KEYS, "issuer", "no JSON")
    assert not world.alarms.blocks
    world.alarms.begin(DISK_FULL, "store", "full")
    assert world.alarms.blocks


def test_a_storm_is_a_few_lines_and_then_one_a_minute_that_says_how_it_is(world: World) -> None:
    world.flap(100)
    assert len(world.lines) == LINES_AT_ONCE
    world.env.run_for(QUIET_MS - 10_000)
    assert len(world.lines) == LINES_AT_ONCE + 1
    assert "begun 100 times in 60 s, 194 lines left out" in world.lines[-1] and "alarm over" in world.lines[-1]
    assert world.counters["alarms.begun"] == 100
    world.env.run_for(10 * QUIET_MS)
    assert len(world.lines) == LINES_AT_ONCE + 1
    world.flap(6_000)  # ten minutes of it
    assert len(world.lines) <= 2 * LINES_AT_ONCE + 2 * 10 + 2


def test_who_stands_at_the_end_of_a_storm_is_told_to_stand(world: World) -> None:
    world.flap(10)
    world.alarms.begin(LOG_OFFLINE, ABOUT, "broken for good")
    said = len(world.lines)
    world.env.run_for(QUIET_MS)
    assert len(world.lines) == said + 1 and world.lines[-1].startswith("ERROR alarm stands, begun 11 times")
    assert world.lines[-1].endswith(f"{ABOUT}: broken for good")
    world.env.run_for(1_000)
    world.alarms.end(LOG_OFFLINE, ABOUT)
    assert world.lines[-1] == f"INFO alarm over after 61.0 s (log-offline): {ABOUT}"


def test_a_storm_of_one_alarm_keeps_no_other_from_being_told(world: World) -> None:
    world.flap(100)
    world.alarms.begin(LOG_OFFLINE, "another", "broken disk")
    assert world.lines[-1] == "ERROR alarm (log-offline): another: broken disk"


def test_what_is_remembered_of_alarms_that_are_over_is_bounded(world: World) -> None:
    for number in range(3 * REMEMBERED):
        world.alarms.begin(LOG_OFFLINE, str(number), "bad")
        world.alarms.end(LOG_OFFLINE, str(number))
        world.env.run_for(QUIET_MS // REMEMBERED)
    assert len(world.alarms._lines) <= 2 * REMEMBERED + 2
    world.env.run_for(QUIET_MS)
    for number in range(2 * REMEMBERED):
        world.alarms.begin(LOG_OFFLINE, str(number), "bad")
        world.alarms.end(LOG_OFFLINE, str(number))
        world.env.run_for(QUIET_MS // 10)
    assert len(world.alarms._lines) <= REMEMBERED + 2


def test_of_thousands_that_begin_at_once_few_look_at_all_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, forget = [], Alarms._forget
    monkeypatch.setattr(Alarms, "_forget", lambda self, now_ms: (looks.append(now_ms), forget(self, now_ms)))
    for number in range(5 * REMEMBERED):
        world.alarms.begin(LOG_OFFLINE, str(number), "bad")
    assert len(looks) == 3 and len(world.alarms._lines) == 5 * REMEMBERED


def test_what_stands_in_other_processes_counts_as_if_it_stood_here_and_once(world: World) -> None:
    alarms = world.alarms
    alarms.begin(DAMAGE, ABOUT, "bytes")
    alarms.hear([("damage", ABOUT), ("damage", "another"), ("a kind that nobody knows", "it")])
    assert (alarms.counts(), alarms.blocks) == ({"damage": 2}, False)
    alarms.hear([("disk-full", "store-2")])
    assert (alarms.counts(), alarms.blocks) == ({"disk-full": 1, "damage": 1}, True)
    assert [each.kind for each in alarms.current()] == [DAMAGE] and world.counters["alarms.standing"] == 1
    assert len(world.lines) == 1, "the other process has told it"
    alarms.hear([])
    assert (alarms.counts(), alarms.blocks) == ({"damage": 1}, False)


def test_a_service_that_stops_tells_no_more(world: World) -> None:
    world.flap(100)
    world.alarms.begin(LOG_OFFLINE, ABOUT, "broken disk")
    said = len(world.lines)
    world.alarms.close()
    world.alarms.end(LOG_OFFLINE, ABOUT)
    world.alarms.begin(DISK_FULL, "store", "full")
    world.env.run_for(2 * QUIET_MS)
    assert len(world.lines) == said


def test_the_page_names_every_kind_with_its_meaning_and_whether_it_blocks() -> None:
    table = PAGE.read_text().partition("<!-- kinds")[2].partition("<!-- end of kinds -->")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    wanted = [f"| `{kind.name}` | {'503' if kind.blocks else '200'} | {kind.meaning} |" for kind in KINDS]
    assert rows == wanted
