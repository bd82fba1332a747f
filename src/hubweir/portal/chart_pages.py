"""Charts of rates and latencies, of the namespace or of one entity: the page draws what it sees while it is open.

A page asks every few seconds for what was counted since the start, and draws the differences, so that the service
remembers nothing for it. Latencies are of whole processes: of several namespaces, the default one's managers see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubweir.counters import Latency
from hubweir.gateway.http.exchange import Response
from hubweir.gateway.http.open_metrics import ProcessSamples
from hubweir.metrics import (
    COMMIT_LATENCY,
    INCOMING_BYTES,
    INCOMING_MESSAGES,
    INCOMING_REQUESTS,
    OUTGOING_BYTES,
    OUTGOING_MESSAGES,
    READ_LATENCY,
    SEND_LATENCY,
    SERVER_ERRORS,
    SYNC_LATENCY,
    THROTTLED_REQUESTS,
    USER_ERRORS,
    Metric,
)
from hubweir.portal.visit import Visit

_COUNTED = (
    ("in", "Messages in", INCOMING_MESSAGES, "count"),
    ("out", "Messages out", OUTGOING_MESSAGES, "count"),
    ("bytes-in", "Bytes in", INCOMING_BYTES, "bytes"),
    ("bytes-out", "Bytes out", OUTGOING_BYTES, "bytes"),
    ("requests", "Requests", INCOMING_REQUESTS, "count"),
    ("throttled", "Throttled requests", THROTTLED_REQUESTS, "count"),
    ("user-errors", "Refused requests", USER_ERRORS, "count"),
    ("server-errors", "Failed requests", SERVER_ERRORS, "count"),
)
_MEASURED = (
    ("send", "Send", SEND_LATENCY), ("commit", "Commit", COMMIT_LATENCY), ("sync", "Sync", SYNC_LATENCY),
    ("read", "Read from files", READ_LATENCY),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Total:
    """Something that was counted since the start. key: by which the page's charts know it. unit: count or bytes."""

    key: str
    label: str
    value: int
    unit: str


@dataclass(frozen=True, slots=True)
class Took:
    """How long something took since the start. buckets: as Latency has them, separated by blanks; ms: of a quantile."""

    key: str
    label: str
    buckets: str
    count: int
    median_ms: float
    p99_ms: float


async def charts(visit: Visit) -> Response:
    """The page; of one that renews itself the figures alone."""
    entity = visit.any_entity() if visit.name else None
    told = await visit.samples.now()
    processes = [each for each in told if each.samples is not None]
    has_latencies = visit.has_alarms and entity is None
    return visit.show(
        "_measures.html" if visit.is_fragment else "charts.html",
        entity=entity,
        now_ms=visit.gateway.env.monotonic_ms(),
        totals=[Total(key, label, _sum(visit, processes, metric), unit) for key, label, metric, unit in _COUNTED],
        latencies=[_took(key, label, processes, metric) for key, label, metric in _MEASURED] if has_latencies else [],
        away=[each.process for each in told if each.samples is None],
    )


def _sum(visit: Visit, processes: Sequence[ProcessSamples], metric: Metric) -> int:
    """Of the session's namespace, or of the entity that the address names; only what the session may manage."""
    namespace, wanted = visit.gateway.settings.namespace, visit.any_entity().name if visit.name else None
    return sum(
        int(value)
        for each in processes
        if each.samples is not None and metric in each.samples
        for labels, value in each.samples[metric].items()
        if labels[0] == namespace and wanted in (None, labels[1])
    )


def _took(key: str, label: str, processes: Sequence[ProcessSamples], metric: Metric) -> Took:
    found = [each.samples.latencies[metric] for each in processes if each.samples and metric in each.samples.latencies]
    buckets = [sum(column) for column in zip(*(each.buckets for each in found), strict=True)] or Latency().buckets
    while len(buckets) > 1 and not buckets[-1]:
        buckets.pop()
    return Took(
        key, label, " ".join(map(str, buckets)), sum(buckets), quantile_ms(buckets, 0.5), quantile_ms(buckets, 0.99)
    )


def quantile_ms(buckets: Sequence[int], share: float) -> float:
    """Below how many milliseconds this share was; 0 for nothing. bucket b: what took less than 2**b microseconds."""
    wanted, seen = sum(buckets) * share, 0
    for bits, count in enumerate(buckets):
        seen += count
        if count and seen >= wanted:
            return float(2**bits / 1_000)
    return 0.0
