"""Spans of live services, as a collector of OpenTelemetry gets them: they join those of the official clients."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra `traces` is not installed")

from azure.core.settings import settings as azure_settings
from azure.core.tracing.ext.opentelemetry_span import OpenTelemetrySpan
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import EventHubError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hubweir.auth.shared_access_signature import make_token
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiverOptions
from hubweir.gateway.tracing import TraceContext
from hubweir.namespace.connection_string import ConnectionString
from hubweir.queue.sub_queue import SubQueue
from hubweir.service.trace_export import STOP_S, NoTraces, SpanExport, span_export
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.simulated_env import SimulatedEnv

pytestmark = pytest.mark.filterwarnings("ignore")
WAIT_S = 20.0
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"


class Collector:
    """What a collector that listens on a port of its own was sent."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                request = ExportTraceServiceRequest.FromString(body)
                for each in request.resource_spans:
                    collector.resources.append({a.key: a.value.string_value for a in each.resource.attributes})
                    collector.spans += [span for scope in each.scope_spans for span in scope.spans]
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT_S)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture(scope="module")
def exported() -> Iterator[InMemorySpanExporter]:
    """The spans of the official clients of this process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    azure_settings.tracing_implementation = OpenTelemetrySpan
    yield exporter
    azure_settings.tracing_implementation = None


def attributes(span: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


def ids_of(exporter: InMemorySpanExporter) -> set[tuple[bytes, bytes]]:
    """Trace and span of each span that the clients made."""
    contexts = [span.context for span in exporter.get_finished_spans() if span.context is not None]
    return {(each.trace_id.to_bytes(16, "big"), each.span_id.to_bytes(8, "big")) for each in contexts}


def use_a_hub(namespace: RunningNamespace, tracer: trace.Tracer) -> int:
    """Send and receive under a span; its trace's number."""
    text, came = namespace.connection_string(), threading.Event()
    producer = EventHubProducerClient.from_connection_string(text, eventhub_name="orders")
    with producer, tracer.start_as_current_span("the application") as span:
        producer.send_batch([EventData("one"), EventData("two")], partition_id="0")
    consumer = EventHubConsumerClient.from_connection_string(text, "$Default", eventhub_name="orders")
    seen: list[dict[Any, Any]] = []

    def on_event(context: Any, event: Any) -> None:
        if event is not None:
            seen.append(event.properties)
        if len(seen) == 2:
            came.set()

    thread = threading.Thread(target=lambda: consumer.receive(on_event, starting_position="-1"))
    thread.start()
    assert came.wait(WAIT_S)
    consumer.close()
    thread.join(WAIT_S)
    for properties in seen:
        assert {bytes(name) if isinstance(name, bytes) else name.encode() for name in properties} & {
            b"Diagnostic-Id", b"traceparent",
        }, "the context goes on to who reads"  # fmt: skip
    return span.get_span_context().trace_id


def use_a_queue(namespace: RunningNamespace, tracer: trace.Tracer) -> int:
    client = ServiceBusClient.from_connection_string(namespace.connection_string())
    with client, tracer.start_as_current_span("the application") as span:
        with client.get_queue_sender("kitchen") as sender:
            sender.send_messages(ServiceBusMessage("tea"))
        with client.get_queue_receiver("kitchen", max_wait_time=WAIT_S) as receiver:
            [message] = receiver.receive_messages(1)
            receiver.complete_message(message)
    return span.get_span_context().trace_id


@pytest.mark.parametrize(("entity", "use"), [("orders", use_a_hub), ("kitchen", use_a_queue)])
def test_spans_of_the_service_are_in_the_trace_of_the_client(
    collector: Collector, exported: InMemorySpanExporter, entity: str, use: Any
) -> None:
    with running_namespace(traces=collector.url) as namespace:
        namespace.create_event_hub("orders")
        namespace.create_queue("kitchen")
        began_ns = time.time_ns()
        trace_id = use(namespace, trace.get_tracer("a test"))
        ended_ns = time.time_ns()
    (send,), (commit,), (deliver, *_) = (collector.named(f"{name} {entity}") for name in ("send", "commit", "deliver"))
    assert {span.trace_id for span in (send, commit, deliver)} == {trace_id.to_bytes(16, "big")}
    theirs = ids_of(exported)
    assert (send.trace_id, send.parent_span_id) in theirs and (deliver.trace_id, deliver.parent_span_id) in theirs
    assert commit.parent_span_id == send.span_id
    assert began_ns < send.start_time_unix_nano <= commit.start_time_unix_nano < commit.end_time_unix_nano
    assert commit.end_time_unix_nano == send.end_time_unix_nano < ended_ns
    assert deliver.end_time_unix_nano > send.start_time_unix_nano
    assert all((link.trace_id, link.span_id) in theirs for link in send.links)
    assert attributes(send)["messaging.destination.name"] == entity and send.status.code != 2
    assert collector.resources[0]["service.name"] == "hubweir"


def test_a_span_of_several_contexts_has_the_first_as_its_parent_and_links_to_the_others(collector: Collector) -> None:
    contexts = [TraceContext(0x4BF92F3577B34DA6A3CE929D0E0E4736 + number, 0x100 + number) for number in range(3)]
    export = SpanExport(SimulatedEnv(1), collector.url)
    export.end(export.span("send", "SERVER", contexts, "kitchen", time.time_ns()))
    asyncio.run(export.stop())
    [span] = collector.named("send kitchen")
    ids = [(each.trace_id.to_bytes(16, "big"), each.span_id.to_bytes(8, "big")) for each in contexts]
    assert (span.trace_id, span.parent_span_id) == ids[0]
    assert [(link.trace_id, link.span_id) for link in span.links] == ids[1:]


def send_tea(namespace: RunningNamespace, *flags: str) -> None:
    """A message with a context of these flags each, by a client that traces nothing itself."""
    with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
        sender = client.sender("kitchen")
        for each in flags:
            sender.send(QueueMessage(b"tea", properties={"traceparent": f"{PARENT}-{each}"}))


def test_a_context_goes_on_through_forwards_topics_and_dead_letters_without_the_setting() -> None:
    with running_namespace() as namespace:
        namespace.create_queue("last")
        namespace.create_queue("first", forward_to="last")
        administration = Administration(ConnectionString.parse(namespace.connection_string()))
        administration.create(EntityType.TOPIC, "news", {})
        administration.create(EntityType.SUBSCRIPTION, "news/Subscriptions/all", {})
        given = {"traceparent": f"{PARENT}-01", "Diagnostic-Id": f"{PARENT}-00"}
        with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
            for entity in ("first", "news"):
                client.sender(entity).send(QueueMessage(b"tea", properties=given))
            for entity in ("last", "news/Subscriptions/all"):
                receiver = client.receiver(entity)
                came = receiver.receive(max_wait_s=WAIT_S)
                assert [message.properties for message in came] == [given]
                receiver.dead_letter(came, reason="cold")
                dead = client.receiver(entity, QueueReceiverOptions(sub_queue=SubQueue.DEAD_LETTERS))
                [message] = dead.receive(max_wait_s=WAIT_S)
                assert given.items() <= message.properties.items()


def test_transactions_forwards_and_copies_have_their_spans_and_hand_the_context_on(collector: Collector) -> None:
    given = {"traceparent": f"{PARENT}-01"}
    with running_namespace(traces=collector.url) as namespace:
        for name, settings in (("last", {}), ("first", {"forward_to": "last"}), ("ledger", {})):
            namespace.create_queue(name, **settings)
        administration = Administration(ConnectionString.parse(namespace.connection_string()))
        administration.create(EntityType.TOPIC, "news", {})
        for name in ("all", "more"):
            administration.create(EntityType.SUBSCRIPTION, f"news/Subscriptions/{name}", {})
        with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
            with client.transaction() as transaction:
                for name in ("first", "ledger", "news"):
                    client.sender(name).send(QueueMessage(b"tea", properties=given), transaction=transaction)
            for name in ("last", "ledger", "news/Subscriptions/all", "news/Subscriptions/more"):
                [came] = client.receiver(name).receive(max_wait_s=WAIT_S)
                assert came.properties == given
    spans = {
        name: collector.named(name)
        for name in ("discharge first", "discharge ledger", "discharge news", "forward first", "copy news")
    }
    assert [len(each) for each in spans.values()] == [1] * 5, [span.name for span in collector.spans]
    for [span] in spans.values():
        assert f"{span.trace_id.hex()}-{span.parent_span_id.hex()}" == PARENT[3:]
        assert span.status.code != 2 and span.start_time_unix_nano < span.end_time_unix_nano
    assert not collector.named("send first"), "what is sent in a transaction is a part of its discharge"
    assert {span.name for span in collector.spans if span.name.startswith("deliver")} == {
        "deliver last", "deliver ledger", "deliver news/Subscriptions/all", "deliver news/Subscriptions/more",
    }  # fmt: skip


def ask(namespace: RunningNamespace, method: str, path: str, headers: dict[str, str]) -> int:
    """A request over HTTP with the root key; its status."""
    target = ConnectionString.parse(namespace.connection_string())
    assert target.key_name is not None and target.key is not None
    token = make_token(f"https://{target.host}/", target.key_name, target.key, int(time.time()) + 60)
    connection = http.client.HTTPConnection(target.host, target.tcp_port, timeout=WAIT_S)
    try:
        body = b"tea" if path.endswith("/messages") else b""
        connection.request(method, f"/{path}?timeout=15", body, {"Authorization": token, **headers})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


@pytest.mark.parametrize(("method", "status"), [("DELETE", 200), ("POST", 201)])
def test_what_is_sent_and_received_over_http_has_its_spans(collector: Collector, method: str, status: int) -> None:
    with running_namespace(traces=collector.url) as namespace:
        namespace.create_queue("kitchen")
        for flags in ("01", "00"):
            assert ask(namespace, "POST", "kitchen/messages", {"traceparent": f'"{PARENT}-{flags}"'}) == 201
        began_ns = time.time_ns()
        for _ in range(2):
            assert ask(namespace, method, "kitchen/messages/head", {}) == status
    (send,), (commit,), (deliver,) = (collector.named(f"{name} kitchen") for name in ("send", "commit", "deliver"))
    assert {span.parent_span_id.hex() for span in (send, deliver)} == {PARENT[-16:]}
    assert commit.parent_span_id == send.span_id
    assert send.end_time_unix_nano < began_ns < deliver.start_time_unix_nano <= deliver.end_time_unix_nano


@pytest.mark.crash
def test_each_of_several_processes_sends_its_spans_and_fragments_of_others_are_in_them(collector: Collector) -> None:
    with running_namespace(traces=collector.url, brokers=2) as namespace:
        namespace.create_queue("kitchen", is_partitioned=True)
        for _ in range(4):
            send_tea(namespace, "01")
        with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
            receiver, left = client.receiver("kitchen"), 4
            while left:
                left -= len(receiver.receive(max_wait_s=WAIT_S))
    assert len(collector.named("send kitchen")) == len(collector.named("commit kitchen")) == 4
    assert collector.named("deliver kitchen")
    assert 1 <= len({each["service.instance.id"] for each in collector.resources}) <= 2


def test_what_nobody_samples_makes_no_span(collector: Collector) -> None:
    with running_namespace(traces=collector.url) as namespace:
        namespace.create_queue("kitchen")
        send_tea(namespace, "00", "01")
    assert [span.name for span in collector.spans] == ["commit kitchen", "send kitchen"], "control: the sampled one"


def test_a_send_that_is_refused_is_an_error(collector: Collector) -> None:
    with running_namespace(traces=collector.url, throughput_units=1) as namespace:
        namespace.create_event_hub("orders")
        with EventHubProducerClient.from_connection_string(
            namespace.connection_string(), eventhub_name="orders", retry_total=0
        ) as producer:
            batches = [producer.create_batch(partition_id="0") for _ in range(4)]
            for batch in batches:  # made before the first is sent: the unit fills up again meanwhile
                for _ in range(900):
                    event = EventData("x")
                    event.properties = {"traceparent": f"{PARENT}-01"}
                    batch.add(event)
            with pytest.raises(EventHubError):
                for batch in batches:
                    producer.send_batch(batch)
    refused = [span for span in collector.named("send orders") if span.status.code == 2]
    assert refused and attributes(refused[0])["error.type"] == "com.microsoft:server-busy"


def test_without_the_setting_there_is_no_tracer_and_a_collector_that_is_away_holds_nothing_up() -> None:
    with running_namespace() as namespace:
        assert namespace.parts.process.tracer is None
    assert span_export(SimulatedEnv(1), "") is None
    with running_namespace(traces="http://127.0.0.1:9/v1/traces") as namespace:
        namespace.create_queue("kitchen")
        send_tea(namespace, "01")
        began_s = time.monotonic()
    assert time.monotonic() - began_s < STOP_S + 6.0


def test_a_start_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(NoTraces, match=r"pip install 'hubweir\[traces\]'"):
        SpanExport(SimulatedEnv(1), "http://127.0.0.1:9/v1/traces")
