"""Damage of a log that is known: told and counted once a range, until retention takes it."""

from __future__ import annotations

import pytest

from hubweir.alarms import DAMAGE, Alarms
from hubweir.counters import Counters
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine.known_damage import TOLD_RANGES, KnownDamage
from hubweir.testing.simulated_env import SimulatedEnv

ABOUT = "partition 3 of orders"


class World:
    def __init__(self) -> None:
        self.counters = Counters()
        self.alarms = Alarms(SimulatedEnv(), self.counters)
        self.damage = KnownDamage(self.alarms, ABOUT, self.counters)

    @property
    def text(self) -> str:
        [alarm] = self.alarms.current()
        assert (alarm.kind, alarm.about) == (DAMAGE, ABOUT)
        return alarm.text


def test_each_range_is_told_and_counted_once() -> None:
    world = World()
    for _ in range(3):
        world.damage.found(4, 9, "here")
    world.damage.found(20, 21, "there")
    assert world.counters["log.corrupt_records"] == 6
    assert world.text == "records 4 to 8 (here), records 20 to 20 (there) cannot be read; readers step over them"


def test_of_many_ranges_the_newest_are_named_and_all_are_counted() -> None:
    world = World()
    for number in range(TOLD_RANGES + 3):
        world.damage.found(2 * number, 2 * number + 1, "here")
    assert world.text.startswith(f"{TOLD_RANGES + 3} ranges, the newest found are records 6 to 6 (here)")
    assert f"records {2 * (TOLD_RANGES + 2)} to" in world.text and world.text.count("(here)") == TOLD_RANGES


def test_as_many_ranges_as_are_named_are_not_counted() -> None:
    world = World()
    for number in range(TOLD_RANGES):
        world.damage.found(2 * number, 2 * number + 1, "here")
    assert world.text.startswith("records 0 to 0 (here), records 2 to 2 (here)")


def test_what_retention_takes_is_over_and_what_it_leaves_a_part_of_is_not() -> None:
    world = World()
    world.damage.found(4, 9, "here")
    world.damage.found(20, 21, "there")
    world.damage.forget_before(8)
    assert "records 4 to 8" in world.text
    world.damage.forget_before(9)
    assert "4 to 8" not in world.text and "20 to 20" in world.text
    world.damage.forget_before(21)
    assert world.alarms.current() == ()


@pytest.mark.parametrize("deleted", [False, True], ids=["retention", "deletion"])
def test_the_alarm_of_a_log_is_over_when_the_damage_is_gone(bench, deleted: bool) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100, wait_ms=20)
    bench.reopen(close=True)
    data = bench.env.files.bytes_of(bench.log._state.segments.kept[0].path)
    data[data.index(b"3" * 100)] ^= 1
    assert isinstance(bench.read(3), Refused)
    [alarm] = bench.store.alarms.current()
    assert alarm.kind is DAMAGE and "records 3 to 3" in alarm.text
    if deleted:
        bench.store.close_log(bench.log.log_id, lambda: None)
        bench.env.run_for(1_000)
        bench.store.delete_log(bench.log.log_id, lambda _: None)
    else:
        bench.env.run_for(5_000)
        expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=1_000)
    assert bench.store.alarms.current() == ()
