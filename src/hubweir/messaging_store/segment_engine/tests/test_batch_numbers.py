"""D counts control batches, too: what was said behind a record is vouched for, rewritten and missed as records are.

A segment that holds no record is superseded without what it says (roll.py): marks, which nobody needs then.
"""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.alarms import DAMAGE
from hubweir.errors import CorruptStore
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, CONTROL_SKIPPED, control_of
from hubweir.messaging_store.log import Durability, Refused, Replayed, Run
from hubweir.messaging_store.record import headers_of
from hubweir.testing.answers import answered
from hubweir.testing.memory_faults import Fault, Killed
from hubweir.testing.simulated_env import SimulatedEnv

FIRST, SECOND, THIRD = (number.to_bytes(8, "big") + b"says" * 4 for number in (1, 2, 3))


def say(bench: Any, body: bytes, *, wait_ms: int = 60) -> list[Any]:
    return bench.control(body, wait_ms=wait_ms)


def said(bench: Any, *, damages: list[CorruptStore] | None = None) -> list[bytes]:
    """What the log says from its begin on, without marks."""
    found, runs = [], list[Run]()
    outcome = answered(bench.env, lambda on_done: bench.log.replay(0, runs.append, on_done))
    assert isinstance(outcome, Replayed)
    if damages is not None:
        damages += outcome.damage
    elif outcome.damage:
        raise outcome.damage[0]
    for run in runs:
        for header in headers_of(run.data):
            control, body = (CONTROL_IDLE_MARK, b"") if header.count else control_of(run.data, header)
            if control not in (CONTROL_IDLE_MARK, CONTROL_SKIPPED):
                found.append(body)
    return found


def flip_in(bench: Any, body: bytes) -> None:
    """One bit of what was said, wherever it stands."""
    for path in bench.env.files.paths():
        data = bench.env.files.bytes_of(path)
        if path.endswith(".log") and body in data:
            data[data.index(body) + 9] ^= 1


def test_what_only_the_page_cache_has_is_durable_before_it_is_shown(bench) -> None:
    bench.append(b"record")
    say(bench, FIRST, wait_ms=2000)
    bench.env.files.plan(Fault.KILL, call="sync")
    with pytest.raises(Killed):
        say(bench, SECOND)
    bench.reopen()
    shown = said(bench)
    assert shown in ([FIRST, SECOND], [FIRST])
    bench.reopen(power_cut=True)
    assert said(bench) == shown == [FIRST, SECOND]
    assert list(bench.everything().values()) == [b"record"]


def test_a_mark_alone_makes_no_new_segment_whatever_the_end(bench) -> None:
    bench.append(b"record")
    say(bench, FIRST, wait_ms=2000)
    for power_cut in (False, True, False):
        bench.reopen(power_cut=power_cut)
        assert said(bench) == [FIRST]
    bench.reopen(close=True)
    bench.reopen()
    assert len(bench.segments()) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_mark_that_the_page_cache_lost_is_not_missed(make_bench, seed: int) -> None:
    bench = make_bench(env=SimulatedEnv(seed))
    bench.append(b"record", wait_ms=100)
    bench.env.files.plan(Fault.KILL, call="sync")
    with pytest.raises(Killed):
        bench.env.run_for(2000)  # the mark is written, and never synced
    bench.reopen()
    bench.append(b"more")
    bench.reopen(power_cut=True)
    assert list(bench.everything().values()) == [b"record", b"more"] and said(bench) == []


@pytest.mark.parametrize("durability", Durability)
def test_what_was_refused_behind_the_last_record_does_not_come_back(make_bench, durability: Durability) -> None:
    bench = make_bench(durability=durability)
    bench.append(b"record", wait_ms=200)
    say(bench, FIRST, wait_ms=200)
    bench.env.files.plan(Fault.SYNC_EIO)
    (outcome,) = say(bench, SECOND, wait_ms=300)
    expected = [FIRST] if isinstance(outcome, Refused) else [FIRST, SECOND]
    say(bench, THIRD, wait_ms=300)
    assert said(bench) == [*expected, THIRD]
    assert bench.append(b"more").first_index == 1
    for power_cut in (False, True):
        bench.reopen(power_cut=power_cut)
        assert set(said(bench)) <= {*expected, THIRD} and set(said(bench)) >= {FIRST}
    assert bench.append(b"more").first_index in (2, 2 + 32 * 1024 * 1024, 2 + 2 * 32 * 1024 * 1024)


def test_damage_in_what_was_vouched_for_is_told_and_what_follows_stays(bench) -> None:
    bench.append(b"record")
    for body in (FIRST, SECOND):
        say(bench, body, wait_ms=2000)
    bench.env.crash()
    flip_in(bench, FIRST)
    bench.env = bench.env.restart()
    bench.open()
    (alarm,) = bench.store.alarms.current()
    assert alarm.kind is DAMAGE and "before record 1" in alarm.text
    damages: list[CorruptStore] = []
    assert said(bench, damages=damages) == [SECOND] and len(damages) == 1
    with pytest.raises(CorruptStore, match="before record 1"):
        said(bench)
    assert bench.append(b"more").first_index == 1
    assert bench.everything() == {0: b"record", 1: b"more"}
    bench.reopen()
    damages.clear()
    assert said(bench, damages=damages) == [SECOND] and len(damages) == 1
    assert bench.everything() == {0: b"record", 1: b"more"}


def test_damage_at_the_end_of_an_older_segment_is_told(bench) -> None:
    bench.append(b"record")
    say(bench, FIRST)
    bench.log._commit.roll()
    bench.append(b"more", wait_ms=2000)
    assert len(bench.segments()) == 2
    bench.env.crash()
    flip_in(bench, FIRST)
    bench.env = bench.env.restart()
    bench.open()
    damages: list[CorruptStore] = []
    assert said(bench, damages=damages) == [] and len(damages) == 1
    assert any(alarm.kind is DAMAGE for alarm in bench.store.alarms.current())
    assert list(bench.everything().values()) == [b"record", b"more"]


def test_an_older_segment_that_ends_before_what_was_said_is_missed(bench) -> None:
    bench.append(b"record")
    end = bench.log._state.segments.active.end
    path = bench.log._state.segments.active.path
    say(bench, FIRST)
    bench.log._commit.roll()
    bench.append(b"more", wait_ms=2000)
    bench.env.crash()
    bench.env.files.set_bytes(path, bytes(bench.env.files.bytes_of(path)[:end]))
    bench.env = bench.env.restart()
    bench.open()
    damages: list[CorruptStore] = []
    assert said(bench, damages=damages) == [] and len(damages) == 1


def test_a_torn_write_behind_what_was_said_is_no_damage(bench) -> None:
    bench.append(b"record")
    say(bench, FIRST)
    say(bench, SECOND)
    bench.env.crash()
    flip_in(bench, SECOND)  # nothing came behind it that vouches for it
    bench.env = bench.env.restart()
    bench.open()
    assert said(bench) == [FIRST] and not bench.store.alarms.current()


def test_a_segment_without_a_record_is_superseded_with_its_numbers(bench) -> None:
    say(bench, FIRST, wait_ms=2000)
    for turn in range(5):
        bench.reopen()
        say(bench, SECOND if turn % 2 else THIRD, wait_ms=100 if turn < 3 else 2000)
    assert said(bench) == [THIRD], "what a segment without a record says goes with it"
    bench.append(b"record")
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"record"}
    numbers = [header.number for run in bench.runs() for header in headers_of(run.data)]
    assert numbers == sorted(set(numbers)) and numbers[0] > 5
