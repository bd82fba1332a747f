"""How long commits and syncs of a log take, as its counters have it. Reads are timed in test_reads.py."""

from __future__ import annotations

from typing import Any

from hubweir.messaging_store.log import Refused
from hubweir.testing.memory_faults import Fault


def test_every_append_is_timed_from_when_it_was_queued_and_every_sync_for_itself(bench: Any) -> None:
    counters = bench.counters
    bench.append(b"makes the segment")
    for latency in (counters.commit, counters.sync):
        latency.buckets[:], latency.sum_s = [0] * len(latency.buckets), 0.0
    bench.append(b"a", wait_ms=0)
    bench.append(b"b", wait_ms=0)
    bench.env.turn()
    bench.append(b"waits for the round before", wait_ms=0)
    began_ms = bench.env.monotonic_ms()
    while len(bench.outcomes) < 4:
        bench.env.run_for(1)
    assert sum(counters.commit.buckets) == 3 and sum(counters.sync.buckets) == 2
    took_s = (bench.env.monotonic_ms() - began_ms) / 1_000
    assert took_s <= counters.commit.sum_s <= 3 * took_s


def test_marks_are_synced_and_are_no_commits(bench: Any) -> None:
    bench.append(b"a")
    commits, syncs = sum(bench.counters.commit.buckets), sum(bench.counters.sync.buckets)
    bench.env.run_for(2_000)
    assert sum(bench.counters.commit.buckets) == commits and sum(bench.counters.sync.buckets) == syncs + 1


def test_a_relaxed_log_times_the_sync_that_follows(relaxed: Any) -> None:
    relaxed.append(b"makes the segment")
    relaxed.env.run_for(500)
    commits, syncs = sum(relaxed.counters.commit.buckets), sum(relaxed.counters.sync.buckets)
    relaxed.append(b"a", wait_ms=0)
    relaxed.env.turn()
    assert sum(relaxed.counters.commit.buckets) == commits + 1 and sum(relaxed.counters.sync.buckets) == syncs
    relaxed.env.run_for(100)
    assert sum(relaxed.counters.sync.buckets) == syncs + 1


def test_a_round_that_fails_is_no_commit_and_no_sync(bench: Any) -> None:
    bench.append(b"makes the segment")
    commits, syncs = sum(bench.counters.commit.buckets), sum(bench.counters.sync.buckets)
    bench.env.files.plan(Fault.ENOSPC, call="write")
    bench.append(b"refused")
    assert isinstance(bench.outcomes[-1], Refused)
    assert sum(bench.counters.commit.buckets) == commits and sum(bench.counters.sync.buckets) == syncs
