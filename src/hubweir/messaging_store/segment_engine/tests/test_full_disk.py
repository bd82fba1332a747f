"""A full disk is an alarm of its store, from the first refusal until there is space, whoever sends meanwhile."""

from __future__ import annotations

import pytest

from hubweir.alarms import DISK_FULL, Alarms
from hubweir.counters import Counters
from hubweir.env import Lane
from hubweir.errors import DiskFull
from hubweir.messaging_store.log import Appended, Durability, Note, Refused
from hubweir.messaging_store.segment_engine.full_disk import FIRST_LOOK_MS, LAST_LOOK_MS, RESUME_BYTES, FullDisk
from hubweir.testing.answers import made_log
from hubweir.testing.simulated_env import SimulatedEnv

OTHER = "cd" * 16
SIZE = 2 << 20  # more than a segment has set aside


def stands(alarms: Alarms) -> bool:
    return any(alarm.kind is DISK_FULL for alarm in alarms.current())


def fill(bench, left: int = 0) -> None:
    files = bench.env.files
    files.capacity_bytes -= files.free_bytes() - left


def refused(bench) -> bool:
    try:
        bench.append(bytes(SIZE), wait_ms=100)
    except DiskFull:
        return True
    return isinstance(bench.outcomes[-1], Refused)


def test_a_log_that_refused_nothing_yet_notes_and_appends_what_fits(bench) -> None:
    """Only behind a refusal RESUME_BYTES more must be free, or each write would be tried in vain."""
    bench.append(b"a")
    fill(bench, left=RESUME_BYTES // 2)
    assert isinstance(bench.note(b"key", b"body")[-1], Note)
    bench.append(b"b")
    assert isinstance(bench.outcomes[-1], Appended) and not stands(bench.store.alarms)
    assert bench.noted() == {b"key": b"body"}


@pytest.mark.parametrize("durability", Durability)
def test_it_stands_from_the_first_refusal_until_there_is_space_though_nobody_sends(make_bench, durability) -> None:
    bench = make_bench(durability=durability)
    bench.append(b"a")
    assert not stands(bench.store.alarms)
    fill(bench)
    assert refused(bench) and stands(bench.store.alarms) and bench.store.alarms.blocks
    bench.env.run_for(60_000)
    assert stands(bench.store.alarms)
    bench.env.files.capacity_bytes += SIZE // 2  # not as much as it lacked: the log would refuse the same again
    bench.env.run_for(2 * LAST_LOOK_MS)
    assert stands(bench.store.alarms) and refused(bench)
    bench.env.files.capacity_bytes += SIZE + 2 * RESUME_BYTES
    bench.env.run_for(2 * LAST_LOOK_MS)
    assert not stands(bench.store.alarms)
    assert not refused(bench) and isinstance(bench.outcomes[-1], Appended)


def test_all_logs_of_a_store_are_one_alarm(bench) -> None:
    bench.append(b"a")
    other = made_log(bench.env, bench.store, OTHER)
    fill(bench)
    assert refused(bench)
    bench.log, first = other, bench.log
    assert refused(bench)
    bench.log = first
    assert [alarm.about for alarm in bench.store.alarms.current() if alarm.kind is DISK_FULL] == ["store store-0"]


def test_a_quota_that_refuses_though_bytes_are_free_stands_while_it_refuses() -> None:
    env = SimulatedEnv(1)
    alarms = Alarms(env, Counters())
    disk = FullDisk(env, alarms, "store")
    assert env.files.free_bytes() > 1_000
    for _ in range(100):
        disk.refused(1_000)
        env.run_for(FIRST_LOOK_MS // 4)
        assert stands(alarms)
    env.run_for(3 * LAST_LOOK_MS)
    assert not stands(alarms)
    disk.refused(1_000)
    assert stands(alarms)
    env.run_for(3 * FIRST_LOOK_MS + 100)
    assert not stands(alarms)  # the next time is looked after soon, too


def test_what_the_largest_refused_append_lacked_is_what_counts() -> None:
    env = SimulatedEnv(1)
    env.files.capacity_bytes = 5_000
    alarms = Alarms(env, Counters())
    disk = FullDisk(env, alarms, "store")
    disk.refused(9_000)
    disk.refused(4_000)
    env.run_for(3 * LAST_LOOK_MS)
    assert stands(alarms)
    env.files.capacity_bytes = 9_000
    env.run_for(3 * LAST_LOOK_MS)
    assert not stands(alarms)
    env.files.capacity_bytes = 5_000
    disk.refused(4_000)  # the one before is forgotten
    env.run_for(3 * LAST_LOOK_MS)
    assert not stands(alarms)


def test_a_log_that_refuses_before_it_tries_is_told_too(bench) -> None:
    """The alarm is over, there is space for what was refused; the log has not tried again, and more than that comes."""
    bench.append(b"a")
    fill(bench)
    assert refused(bench)
    bench.env.files.capacity_bytes += SIZE + 2 * RESUME_BYTES
    bench.env.run_for(2 * LAST_LOOK_MS)
    assert not stands(bench.store.alarms)
    with pytest.raises(DiskFull):
        bench.append(bytes(3 * SIZE))
    assert stands(bench.store.alarms)


class Watched:
    """A full disk of its own, on which 1,000 bytes are wanted, and when it was looked at."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(1, slowest_ms=0)
        self.alarms = Alarms(self.env, Counters())
        self.disk = FullDisk(self.env, self.alarms, "store")
        self.looked_ms: list[int] = []
        self.env.files.free_bytes = self.look  # type: ignore[method-assign]
        self.disk.refused(1_000)

    def look(self) -> int:
        self.looked_ms.append(self.env.monotonic_ms())
        return 0


def test_it_is_looked_at_ever_more_seldom_up_to_every_5_s() -> None:
    watched = Watched()
    watched.env.run_for(22_000)
    assert watched.looked_ms == [1_000, 3_000, 7_000, 12_000, 17_000, 22_000]


def test_what_is_refused_during_a_look_keeps_the_alarm() -> None:
    watched = Watched()
    watched.look = lambda: 10_000
    watched.env.files.free_bytes = watched.look  # type: ignore[method-assign]
    watched.env.run_for(FIRST_LOOK_MS - 1)
    watched.env.stall(Lane.MAINTENANCE)
    watched.env.run_for(2 * FIRST_LOOK_MS)  # one look, which found what was refused before it
    watched.env.go_on(Lane.MAINTENANCE)
    watched.env.run_for(FIRST_LOOK_MS)
    watched.env.stall(Lane.MAINTENANCE)
    watched.env.run_for(2 * FIRST_LOOK_MS)
    watched.disk.refused(1_000)
    watched.env.go_on(Lane.MAINTENANCE)
    watched.env.run_for(1)
    assert stands(watched.alarms)
    watched.env.run_for(3 * LAST_LOOK_MS)
    assert not stands(watched.alarms)


@pytest.mark.parametrize("is_looking", [False, True])
def test_a_closed_store_looks_no_more_and_tells_no_more(is_looking: bool) -> None:
    watched = Watched()
    if is_looking:
        watched.env.stall(Lane.MAINTENANCE)
        watched.env.run_for(FIRST_LOOK_MS)
        watched.disk.stop()
        watched.env.go_on(Lane.MAINTENANCE)
    else:
        watched.disk.stop()
    watched.env.run_for(100_000)
    assert len(watched.looked_ms) == is_looking
    watched.alarms.end(DISK_FULL, "store")
    watched.disk.refused(2_000)
    assert not stands(watched.alarms)
