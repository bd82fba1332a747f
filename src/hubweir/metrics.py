"""Metrics: what a process tells of itself in numbers, as one table, and the samples of one scrape.

A metric that Azure's monitor has is named after that one (`cloud`); the others have the house's nouns. Names are as
Prometheus wants them: counters end in `_total` where they are shown, times are seconds, sizes bytes. Nothing is counted
for metrics alone where something else says it: samples are taken when somebody asks, from counters.py, from the logs
and from what stands. docs/metrics.md shows the table.

Counters begin at 0 with the process, but for the events and bytes of an event hub: those count what was ever stored.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum

from hubweir.counters import Counters, Latency

PREFIX = "hubweir_"


class MetricKind(Enum):
    """As the format calls them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """labels: their names, in order. meaning: for people. cloud: the metric of Azure's monitor; "" where it has none.

    scale: what a sample is multiplied by to be in the unit of the name.
    """

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    meaning: str
    cloud: str = ""
    scale: float = 1

    @property
    def shown(self) -> str:
        """The name of its samples, but for those of a histogram."""
        return f"{self.name}_total" if self.kind is MetricKind.COUNTER else self.name


_COUNTER, _GAUGE = MetricKind.COUNTER, MetricKind.GAUGE
_ENTITY = ("namespace", "entity")
_READER = (*_ENTITY, "partition", "consumer_group")


def _of_entity(name: str, kind: MetricKind, meaning: str, cloud: str = "") -> Metric:
    return Metric(PREFIX + name, kind, _ENTITY, meaning, cloud)


# Of entities: requests are sends (a batch is one), requests to $management and $cbs, and requests over HTTP. The entity
# is empty where a request names none that there is.
INCOMING_REQUESTS = _of_entity("incoming_requests", _COUNTER, "requests that came", "IncomingRequests")
SUCCESSFUL_REQUESTS = _of_entity("successful_requests", _COUNTER, "requests that were done", "SuccessfulRequests")
SERVER_ERRORS = _of_entity("server_errors", _COUNTER, "requests that failed in the service", "ServerErrors")
USER_ERRORS = _of_entity("user_errors", _COUNTER, "requests that were refused for what they asked", "UserErrors")
THROTTLED_REQUESTS = _of_entity(
    "throttled_requests", _COUNTER, "requests that were told to wait and come again", "ThrottledRequests"
)
QUOTA_EXCEEDED_ERRORS = _of_entity(
    "quota_exceeded_errors", _COUNTER, "requests that were refused because a quota is reached", "QuotaExceededErrors"
)
INCOMING_MESSAGES = _of_entity("incoming_messages", _COUNTER, "events or messages stored", "IncomingMessages")
INCOMING_BYTES = _of_entity("incoming_bytes", _COUNTER, "bytes of events or messages stored", "IncomingBytes")
OUTGOING_MESSAGES = _of_entity("outgoing_messages", _COUNTER, "events or messages sent to readers", "OutgoingMessages")
OUTGOING_BYTES = _of_entity("outgoing_bytes", _COUNTER, "bytes sent to readers, as frames", "OutgoingBytes")
SIZE = _of_entity("size_bytes", _GAUGE, "bytes that the entity holds", "Size")
ACTIVE_MESSAGES = _of_entity(
    "active_messages", _GAUGE, "messages that may be received, locked ones too", "ActiveMessages"
)
DEADLETTERED_MESSAGES = _of_entity("deadlettered_messages", _GAUGE, "dead letters", "DeadletteredMessages")
SCHEDULED_MESSAGES = _of_entity("scheduled_messages", _GAUGE, "messages that wait for their time", "ScheduledMessages")
DEFERRED_MESSAGES = _of_entity("deferred_messages", _GAUGE, "messages that were set aside")
TRANSFER_DEADLETTERED_MESSAGES = _of_entity(
    "transfer_deadlettered_messages", _GAUGE, "messages that could not be forwarded"
)
RECEIVERS = _of_entity("receivers", _GAUGE, "receivers that are open on a queue or a subscription")
CAPTURE_BACKLOG = _of_entity("capture_backlog_bytes", _GAUGE, "bytes in no captured file yet", "CaptureBacklog")
CAPTURE_BACKLOG_EVENTS = _of_entity("capture_backlog_events", _GAUGE, "events in no captured file yet")
CAPTURED_MESSAGES = _of_entity("captured_messages", _COUNTER, "events in finished captured files", "CapturedMessages")
CAPTURED_BYTES = _of_entity("captured_bytes", _COUNTER, "bytes of finished captured files", "CapturedBytes")

READERS = Metric(PREFIX + "readers", _GAUGE, _READER, "readers that are open on a partition")
READER_LAG = Metric(
    PREFIX + "reader_lag_events", _GAUGE, _READER, "events behind the last one, of the reader that is behind most"
)

ACTIVE_CONNECTIONS = Metric(
    PREFIX + "active_connections", _GAUGE, ("namespace",), "AMQP connections that are open", "ActiveConnections"
)
CONNECTIONS_OPENED = Metric(
    PREFIX + "connections_opened", _COUNTER, (), "AMQP connections that were opened", "ConnectionsOpened"
)
CONNECTIONS_CLOSED = Metric(
    PREFIX + "connections_closed", _COUNTER, (), "AMQP connections that are over", "ConnectionsClosed"
)
THROUGHPUT_UNITS = Metric(
    PREFIX + "throughput_units", _GAUGE, ("namespace",), "throughput units that are held; 0: they are off"
)
ALARMS = Metric(PREFIX + "alarms", _GAUGE, ("kind",), "alarms that stand")
PROCESS_UP = Metric(PREFIX + "process_up", _GAUGE, (), "whether a process of the service answered this scrape")
BUILD_INFO = Metric(PREFIX + "build_info", _GAUGE, ("version",), "always 1; the version is a label")

SEND_LATENCY = Metric(
    PREFIX + "send_latency_seconds",
    MetricKind.HISTOGRAM,
    (),
    "from the first delivery of a run until its publishers are told that it is accepted",
)
COMMIT_LATENCY = Metric(
    PREFIX + "commit_latency_seconds",
    MetricKind.HISTOGRAM,
    (),
    "from an append to a log until it is as durable as its mode says",
)
SYNC_LATENCY = Metric(
    PREFIX + "sync_latency_seconds", MetricKind.HISTOGRAM, (), "a write with its sync, or a sync alone, in its thread"
)
READ_LATENCY = Metric(
    PREFIX + "read_latency_seconds", MetricKind.HISTOGRAM, (), "a read that memory could not answer, from files"
)

# What prometheus clients of every language call so.
PROCESS_CPU = Metric("process_cpu_seconds", _COUNTER, (), "processor time of the process, of user and system")
PROCESS_MEMORY = Metric("process_resident_memory_bytes", _GAUGE, (), "memory of the process that is in use")
PROCESS_START = Metric("process_start_time_seconds", _GAUGE, (), "when the process began, since 1970")


def _counter(name: str, meaning: str) -> Metric:
    return Metric(PREFIX + name, _COUNTER, (), meaning)


def _gauge(name: str, meaning: str, *, scale: float = 1) -> Metric:
    return Metric(PREFIX + name, _GAUGE, (), meaning, scale=scale)


# By their names in counters.py.
OF_COUNTERS = {
    "alarms.begun": _counter("alarms_begun", "alarms that began"),
    "alarms.standing": _gauge("alarms_standing", "alarms that stand, of all kinds"),
    "broker.appends_refused": _counter("appends_refused", "runs of events that were not stored"),
    "broker.bytes_appended": _counter("appended_bytes", "bytes of runs of events stored"),
    "broker.bytes_enqueued": _counter("enqueued_bytes", "bytes of messages stored"),
    "broker.duplicates_accepted": _counter("duplicates_accepted", "runs of idempotent producers stored before"),
    "broker.enqueues_refused": _counter("enqueues_refused", "runs of messages that were not stored"),
    "broker.events_appended": _counter("events_appended", "events stored"),
    "broker.messages_enqueued": _counter("messages_enqueued", "messages stored"),
    "broker.messages_forwarded": _counter("messages_forwarded", "messages that came by a forward"),
    "broker.partitions": _gauge("hosted_logs", "partitions, fragments, topics and subscriptions that are open"),
    "broker.producers_expired": _counter("producers_expired", "idempotent producers that were forgotten"),
    "broker.producers_fenced": _counter("producers_fenced", "idempotent producers that another one took over"),
    "broker.reader_faults": _counter("reader_faults", "faults of the service that ended a reader"),
    "broker.readers": _gauge("open_readers", "readers of partitions, as they were counted last"),
    "broker.transactions_committed": _counter("transactions_committed", "transactions that were committed"),
    "capture.behind_bytes": _gauge("capture_behind_bytes", "bytes of all hubs in no captured file yet"),
    "capture.behind_events": _gauge("capture_behind_events", "events of all hubs in no captured file yet"),
    "capture.bytes": _counter("capture_bytes", "bytes of finished captured files of all hubs"),
    "capture.events": _counter("capture_events", "events in finished captured files of all hubs"),
    "capture.failing": _gauge("capture_failing", "partitions whose captured files cannot be written now"),
    "capture.failures": _counter("capture_failures", "tries to write captured files that failed"),
    "capture.files": _counter("capture_files", "captured files that were finished"),
    "capture.partitions": _gauge("capture_partitions", "partitions that are captured"),
    "capture.uncaptured_events": _counter("uncaptured_events", "events that retention or damage took uncaptured"),
    "collector.long_collections": _counter("long_collections", "garbage collections that took long"),
    "collector.longest_ms": _gauge("longest_collection_seconds", "the longest garbage collection", scale=0.001),
    "gateway.attaches_refused": _counter("attaches_refused", "links that were refused"),
    "gateway.connections": _gauge("connections", "AMQP connections that are open, of all namespaces"),
    "gateway.connections_accepted": CONNECTIONS_OPENED,
    "gateway.deliveries_received": _counter("deliveries_received", "deliveries that publishers and senders sent"),
    "gateway.deliveries_rejected": _counter("deliveries_rejected", "deliveries that were rejected before a log"),
    "gateway.events_delivered": _counter("events_delivered", "events sent to readers"),
    "gateway.http_publications_received": _counter("http_publications_received", "sends over HTTP"),
    "gateway.messages_delivered": _counter("messages_delivered", "messages sent to receivers"),
    "gateway.requests_answered": _counter("requests_answered", "requests to $cbs and $management"),
    "gateway.tokens_refused": _counter("tokens_refused", "tokens that were refused"),
    "log.appended_bytes": _counter("log_appended_bytes", "bytes written to logs"),
    "log.appends": _counter("log_appends", "runs written to logs"),
    "log.cold_reads": _counter("log_cold_reads", "reads that memory could not answer"),
    "log.corrupt_records": _counter("log_corrupt_records", "records that are damaged"),
    "log.expired_segments": _counter("log_expired_segments", "segments that retention removed"),
    "log.failed_syncs": _counter("log_failed_syncs", "writes or syncs that failed"),
    "log.faults": _counter("log_faults", "faults of the service that stopped a log"),
    "log.offline_healed": _counter("log_offline_healed", "logs that went offline and came back"),
    "log.offline_retries": _counter("log_offline_retries", "tries to bring a log back"),
    "log.refused": _counter("log_appends_refused", "appends that logs refused"),
    "log.slow_syncs": _counter("log_slow_syncs", "syncs that were slow enough for a line of the log"),
    "log.syncs": _counter("log_syncs", "syncs of logs"),
    "loop.longest_stall_ms": _gauge("loop_longest_stall_seconds", "the latest beat of the event loop", scale=0.001),
    "loop.stalls": _counter("loop_stalls", "beats of the event loop that came late"),
    "store.reserve_used": _counter("store_reserve_used", "uses of the space that is kept for a full disk"),
}

LATENCIES = (SEND_LATENCY, COMMIT_LATENCY, SYNC_LATENCY, READ_LATENCY)
# All that there is, in the order of the page and of a scrape.
METRICS: tuple[Metric, ...] = (
    *(value for value in list(globals().values()) if isinstance(value, Metric)),
    *(metric for metric in OF_COUNTERS.values() if metric is not CONNECTIONS_OPENED),
)
BY_NAME = {metric.name: metric for metric in METRICS}

# Values by the label values of their metric, in its order.
Series = defaultdict[tuple[str, ...], float]


class Samples(dict[Metric, Series]):
    """What one process says at one scrape. Several that speak of one thing add up: `samples[SIZE][labels] += size`."""

    __slots__ = ("latencies",)

    def __init__(self) -> None:
        super().__init__()
        self.latencies: dict[Metric, Latency] = {}

    def __missing__(self, metric: Metric) -> Series:
        series = self[metric] = defaultdict(int)
        return series

    def count(self, counters: Counters) -> None:
        """With all that counters say, and the latencies beside them."""
        for name, metric in OF_COUNTERS.items():
            self[metric][()] += counters[name] * metric.scale
        opened, now = counters["gateway.connections_accepted"], counters["gateway.connections"]
        self[CONNECTIONS_CLOSED][()] += opened - now
        self.latencies.update(
            zip(LATENCIES, (counters.send, counters.commit, counters.sync, counters.read), strict=True)
        )
