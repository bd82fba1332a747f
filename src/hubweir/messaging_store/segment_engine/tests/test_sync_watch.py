"""sync_watch.py: a sync that does not end is an alarm of its log, and none is when it ended."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.alarms import LOG_OFFLINE, SYNC_HANGS, AlarmKind
from hubweir.env import Lane
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.sync_watch import HANGS_S
from hubweir.testing.memory_faults import Fault

HANGS_MS = int(HANGS_S * 1_000)
MODES = pytest.mark.parametrize("durability", list(Durability))


def stands(bench: Any, kind: AlarmKind = SYNC_HANGS) -> bool:
    """After a look."""
    bench.store.look_at_syncs()
    return any(alarm.kind is kind for alarm in bench.store.alarms.current())


def hang(bench: Any) -> None:
    """Append, and let the disk not end the sync of it."""
    bench.append(b"first")
    bench.env.stall(Lane.WRITES)
    bench.append(b"a", wait_ms=100)
    assert bench.env.stalled_calls(Lane.WRITES) == 1


@MODES
def test_a_sync_that_hangs_is_an_alarm_until_it_ends(make_bench: Any, durability: Durability) -> None:
    bench = make_bench(durability=durability)
    hang(bench)
    bench.env.run_for(HANGS_MS - 200)
    assert not stands(bench)
    bench.env.run_for(200)
    assert stands(bench) and stands(bench), "it is told again and again, and is one alarm"
    [alarm] = bench.store.alarms.current()
    assert alarm.about == bench.log._state.about and alarm.kind.blocks
    bench.env.go_on(Lane.WRITES)
    bench.env.run_for(100)
    assert not stands(bench) and len(bench.outcomes) == 2
    bench.env.run_for(10 * HANGS_MS)
    assert not stands(bench), "an idle log hangs on nothing"


def test_a_log_that_hangs_again_before_the_next_look_has_hung_for_no_time(bench: Any) -> None:
    hang(bench)
    bench.env.run_for(HANGS_MS)
    assert stands(bench)
    bench.env.go_on(Lane.WRITES)
    bench.env.run_for(10)
    bench.env.stall(Lane.WRITES)
    bench.append(b"b", wait_ms=100)
    assert not stands(bench)
    bench.env.run_for(HANGS_MS)
    assert stands(bench)
    bench.env.go_on(Lane.WRITES)


@MODES
def test_a_sync_that_fails_has_ended(make_bench: Any, durability: Durability) -> None:
    bench = make_bench(durability=durability)
    hang(bench)
    bench.env.run_for(HANGS_MS)
    assert stands(bench)
    bench.env.files.plan(Fault.EIO, call="sync", forever=True)
    bench.env.go_on(Lane.WRITES)
    bench.env.run_for(100)
    assert not stands(bench) and stands(bench, LOG_OFFLINE)
    bench.env.run_for(10 * HANGS_MS)
    assert not stands(bench)
    bench.env.files.heal()
