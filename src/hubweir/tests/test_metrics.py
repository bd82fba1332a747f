"""metrics.py: the table, against what the package counts, and samples that add up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from hubweir.counters import Counters, Latency
from hubweir.metrics import (
    ALARMS,
    COMMIT_LATENCY,
    CONNECTIONS_CLOSED,
    CONNECTIONS_OPENED,
    METRICS,
    OF_COUNTERS,
    SIZE,
    MetricKind,
    Samples,
)

PACKAGE = Path(__file__).parents[1]
COUNTED = re.compile(r'counters\["([a-z_.]+)"\]|GaugeShare\([a-z_]+, "([a-z_.]+)"\)')
# Gauges whose names are put together: capture/captures.py.
PUT_TOGETHER = {f"capture.{name}" for name in ("partitions", "behind_events", "behind_bytes", "failing")}


def counted(texts: Iterable[str]) -> set[str]:
    """The names of all counters that the texts of modules count with."""
    return {one or other for text in texts for one, other in COUNTED.findall(text)}


def test_every_counter_of_the_package_is_shown_and_nothing_else_is() -> None:
    texts = [path.read_text() for path in PACKAGE.rglob("*.py") if "tests" not in path.parts]
    assert counted(texts) | PUT_TOGETHER == set(OF_COUNTERS)


def test_control_arm_a_counter_that_the_table_leaves_out_is_seen() -> None:
    planted = 'self._counters["log.lost"] += 1\nself._gauge = GaugeShare(counters, "broker.lost")\n'
    assert counted([planted]) == {"log.lost", "broker.lost"}


def test_names_are_such_as_prometheus_takes_and_no_two_are_equal() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"(hubweir|process)_[a-z][a-z_]*[a-z]", metric.name)
        assert all(re.fullmatch(r"[a-z][a-z_]*", label) for label in metric.labels)
        assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_ms")), "which the format adds, or ms"
        assert metric.meaning and metric.meaning[-1] != "."


def test_what_the_cloud_has_is_named_after_it() -> None:
    for metric in METRICS:
        if metric.cloud:
            snake = re.sub(r"(?<!^)([A-Z])", r"_\1", metric.cloud).lower()
            assert metric.name.removeprefix("hubweir_").startswith(snake)


def test_samples_of_several_add_up() -> None:
    samples = Samples()
    for size in (3, 4):
        samples[SIZE]["shop", "orders"] += size
    assert samples == {SIZE: {("shop", "orders"): 7}}
    assert ALARMS not in samples


def test_counters_are_shown_in_the_units_of_their_names_and_at_zero_too() -> None:
    counters = Counters({"log.syncs": 3, "loop.longest_stall_ms": 20, "gateway.connections_accepted": 5})
    counters["gateway.connections"] = 2
    samples = Samples()
    samples.count(counters)
    assert samples[OF_COUNTERS["log.syncs"]][()] == 3
    assert samples[OF_COUNTERS["loop.longest_stall_ms"]][()] == 0.02
    assert samples[OF_COUNTERS["log.faults"]] == {(): 0}
    assert (samples[CONNECTIONS_OPENED][()], samples[CONNECTIONS_CLOSED][()]) == (5, 3)
    assert samples.latencies[COMMIT_LATENCY] is counters.commit


def test_a_latency_is_in_the_bucket_of_the_next_power_of_two() -> None:
    latency = Latency()
    for took_s in (0.0, 0.9e-6, 1e-6, 3.9e-6, 4e-6, 1.0, 400 * 24 * 3600.0):
        latency.buckets[int(took_s * 1e6).bit_length()] += 1
    assert [(bits, count) for bits, count in enumerate(latency.buckets) if count] == [
        (0, 2), (1, 1), (2, 1), (3, 1), (20, 1), (45, 1),
    ]  # fmt: skip


def test_histograms_have_no_labels_of_their_own() -> None:
    """The writer gives them those of the process alone."""
    assert all(not metric.labels for metric in METRICS if metric.kind is MetricKind.HISTOGRAM)
