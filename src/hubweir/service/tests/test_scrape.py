"""/metrics of live services: figures that are so, who may read them, and several processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hubweir.auth.shared_access_signature import make_token
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.counters import Latency
from hubweir.errors import ServiceError
from hubweir.metrics import COMMIT_LATENCY, INCOMING_MESSAGES, METRICS, OUTGOING_BYTES, SIZE, Samples
from hubweir.service.scrape import TRAVEL_AT_ONCE, decode, encode
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
ROOT, KEY = "RootManageSharedAccessKey", "SAS_KEY_VALUE"
WAIT_S = 20.0


class Page:
    """One scrape, as prometheus-client reads it."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}

    def value(self, name: str, **labels: str) -> float:
        """Of the sample with exactly these labels."""
        [value] = [sample.value for sample in self.samples(name) if sample.labels == labels]
        return value

    def samples(self, name: str) -> list:  # type: ignore[type-arg]
        return [each for family in self.families.values() for each in family.samples if each.name == name]


def ask(
    namespace: RunningNamespace,
    *,
    token: str = "",
    host: str = "",
    path: str = "/metrics",
    method: str = "GET",
    wait_s: float = WAIT_S,
) -> tuple[int, str, str]:
    """Status, content type and body."""
    headers = {"Accept": OPEN_METRICS}
    if token:
        headers["Authorization"] = token
    if host:
        headers["Host"] = host
    with closing(HTTPConnection(namespace.host, namespace.port, timeout=wait_s)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-type", ""), answer.read().decode()


def scrape(namespace: RunningNamespace, *, wait_s: float = WAIT_S) -> Page:
    status, content_type, text = ask(namespace, wait_s=wait_s)
    assert status == 200 and content_type.startswith(OPEN_METRICS)
    return Page(text)


def signed(resource: str, host: str = "localhost") -> str:
    return make_token(f"sb://{host}/{resource}", ROOT, KEY, int(time.time()) + 600)


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as running:
        yield running


def test_events_in_and_out_are_counted_and_readers_that_are_behind(namespace: RunningNamespace) -> None:
    namespace.create_event_hub("flights", partition_count=2)
    its = {"namespace": "hubweir", "entity": "flights"}
    with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "flights") as client:
        sender = client.sender(partition_id="1")
        for _ in range(3):
            sender.send([b"event"] * 10)
        receiver = client.receiver("1")
        received = 0
        while received < 30:
            received += len(receiver.receive(max_wait_s=WAIT_S) or ())
        page = scrape(namespace)
        assert page.value("hubweir_incoming_messages_total", **its) == 30
        assert page.value("hubweir_outgoing_messages_total", **its) == 30
        assert page.value("hubweir_incoming_bytes_total", **its) == page.value("hubweir_size_bytes", **its) > 150
        assert page.value("hubweir_outgoing_bytes_total", **its) > 150
        assert page.value("hubweir_incoming_requests_total", **its) == 3
        assert page.value("hubweir_successful_requests_total", **its) == 3
        reads = {**its, "partition": "1", "consumer_group": "$default"}
        assert page.value("hubweir_readers", **reads) == 1
        assert page.value("hubweir_reader_lag_events", **reads) == 0
        assert page.value("hubweir_active_connections", namespace="hubweir") >= 1
    page = scrape(namespace)
    assert page.value("hubweir_send_latency_seconds_count") >= 3
    assert page.value("hubweir_commit_latency_seconds_count") >= 3
    assert 0 < page.value("hubweir_sync_latency_seconds_sum") < 60
    assert page.value("hubweir_connections_closed_total") >= 1


def test_messages_of_a_queue_are_told_by_where_they_are(namespace: RunningNamespace) -> None:
    namespace.create_queue("orders")
    its = {"namespace": "hubweir", "entity": "orders"}
    with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
        client.sender("orders").send(b"tea", b"coffee", b"water")
        receiver = client.receiver("orders")
        run = receiver.receive(max_wait_s=WAIT_S)
        receiver.dead_letter(run, reason="spilt")
        page = scrape(namespace)
        assert page.value("hubweir_incoming_messages_total", **its) == 3
        assert page.value("hubweir_incoming_bytes_total", **its) > 10
        assert page.value("hubweir_active_messages", **its) == 2
        assert page.value("hubweir_deadlettered_messages", **its) == 1
        assert page.value("hubweir_outgoing_messages_total", **its) >= 1
        assert page.value("hubweir_receivers", **its) == 1
        assert page.value("hubweir_size_bytes", **its) > 10


def test_messages_of_a_transaction_are_counted_when_it_is_committed(namespace: RunningNamespace) -> None:
    namespace.create_queue("transacted")
    its = {"namespace": "hubweir", "entity": "transacted"}
    with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
        with client.transaction() as transaction:
            client.sender("transacted").send(b"tea", transaction=transaction)
        page = scrape(namespace)
        assert page.value("hubweir_incoming_messages_total", **its) == 1
        assert page.value("hubweir_incoming_bytes_total", **its) >= 3
        assert page.value("hubweir_successful_requests_total", **its) == 1


def test_messages_that_come_by_a_forward_are_counted_where_they_arrive(namespace: RunningNamespace) -> None:
    namespace.create_queue("arrivals")
    namespace.create_queue("departures", forward_to="arrivals")
    its = {"namespace": "hubweir", "entity": "arrivals"}
    with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
        client.sender("departures").send(b"tea", b"coffee")
        receiver = client.receiver("arrivals")
        for _ in range(2):
            assert len(receiver.receive(max_wait_s=WAIT_S)) == 1
    page = scrape(namespace)
    assert page.value("hubweir_incoming_messages_total", **its) == 2
    assert page.value("hubweir_incoming_bytes_total", **its) >= 9


def test_refused_requests_are_counted_where_they_belong(namespace: RunningNamespace) -> None:
    namespace.create_queue("closed")
    with closing(HTTPConnection(namespace.host, namespace.port, timeout=WAIT_S)) as connection:
        for path in ("/closed/messages", "/nobody/messages"):
            connection.request("POST", path, b"x")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 401
    page = scrape(namespace)
    assert page.value("hubweir_user_errors_total", namespace="hubweir", entity="closed") == 1
    assert page.value("hubweir_user_errors_total", namespace="hubweir", entity="") == 1


def test_what_is_deleted_is_told_no_more(namespace: RunningNamespace) -> None:
    namespace.create_queue("gone")
    with BlockingQueueClient.from_connection_string(namespace.connection_string()) as client:
        client.sender("gone").send(b"tea")
    assert scrape(namespace).value("hubweir_size_bytes", namespace="hubweir", entity="gone") > 0
    namespace.delete_queue("gone")
    assert 'entity="gone"' not in ask(namespace)[2]


def test_every_metric_without_labels_is_there_from_the_beginning(namespace: RunningNamespace) -> None:
    page = scrape(namespace)
    assert {metric.name for metric in METRICS if not metric.labels} <= set(page.families)
    assert page.value("hubweir_alarms", kind="disk-full") == 0
    assert page.value("hubweir_build_info", version=page.samples("hubweir_build_info")[0].labels["version"]) == 1
    assert page.value("process_cpu_seconds_total") > 0


def test_plain_text_is_for_who_does_not_ask_for_open_metrics(namespace: RunningNamespace) -> None:
    with closing(HTTPConnection(namespace.host, namespace.port, timeout=WAIT_S)) as connection:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode()
    assert answer.getheader("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    assert "# EOF" not in text and "# TYPE hubweir_log_syncs_total counter" in text


def test_a_head_request_has_no_body_and_others_are_none_of_the_page(namespace: RunningNamespace) -> None:
    assert ask(namespace, method="HEAD")[::2] == (200, "")
    assert ask(namespace, method="POST")[0] == 405


def test_an_entity_that_is_called_metrics_is_managed_all_the_same(namespace: RunningNamespace) -> None:
    namespace.create_queue("metrics")
    path = "/metrics?api-version=2021-05"
    assert ask(namespace, path=path)[0] == 401
    status, _, text = ask(namespace, path=path, token=signed("metrics"))
    assert status == 200 and "QueueDescription" in text


def test_off_means_that_there_is_no_page() -> None:
    with running_namespace(metrics="off") as namespace:
        assert ask(namespace)[0] == 401, "as of an entity of that name"
        assert ask(namespace, token=signed(""))[0] in (404, 204)


def test_with_token_nobody_reads_it_who_may_not_manage() -> None:
    with running_namespace(metrics="token", further_namespace=("other=other.example",)) as namespace:
        namespace.create_queue("orders")
        for token in ("", signed("orders"), signed("$metrics").replace("sig=", "sig=x"), signed("metrics"), "x"):
            status, _, text = ask(namespace, token=token)
            assert status == 401 and "hubweir_" not in text
        for token in (signed("$metrics"), signed(""), f"Bearer {signed('$metrics')}"):
            status, _, text = ask(namespace, token=token)
            assert status == 200 and 'entity="orders"' in text and "hubweir_log_syncs_total" in text
        # A namespace beside the default one hears of its own alone.
        token = signed("$metrics", host="other.example")
        status, _, text = ask(namespace, token=token, host="other.example")
        assert status == 200 and 'namespace="other"' in text
        assert 'namespace="hubweir"' not in text and "hubweir_log_syncs" not in text


async def there_and_back(samples: Samples) -> Samples:
    return await decode(memoryview(await encode(samples)))


def test_the_loop_has_its_turns_while_much_travels() -> None:
    samples, turns = Samples(), 0
    for metric in (SIZE, INCOMING_MESSAGES, OUTGOING_BYTES):
        for number in range(TRAVEL_AT_ONCE):
            samples[metric]["shop", str(number)] += number

    async def count() -> int:
        nonlocal turns
        travel = asyncio.ensure_future(there_and_back(samples))
        while not travel.done():
            turns += 1
            await asyncio.sleep(0)
        assert await travel == samples
        return turns

    assert asyncio.run(count()) >= 6


def test_samples_travel_as_they_are() -> None:
    samples = Samples()
    samples[SIZE]["shop", "orders"] += 3
    samples[SIZE]["shop", 'a "name"'] += 0.5
    latency = samples.latencies[COMMIT_LATENCY] = Latency()
    latency.buckets[7], latency.sum_s = 2, 0.25
    there = asyncio.run(there_and_back(samples))
    assert there == samples
    assert (there.latencies[COMMIT_LATENCY].buckets, there.latencies[COMMIT_LATENCY].sum_s) == (latency.buckets, 0.25)


@pytest.mark.crash
def test_any_process_tells_of_all_and_of_one_that_is_killed() -> None:
    with running_namespace(brokers=3) as namespace:
        namespace.create_event_hub("flights", partition_count=6)
        with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "flights") as client:
            for partition in range(6):
                client.sender(partition_id=str(partition)).send([b"event"] * 5)
        processes = ("0", "1", "2", "keeper")
        for _ in range(4):  # each of them may answer
            page = scrape(namespace)
            assert all(page.value("hubweir_process_up", process=each) == 1 for each in processes)
            messages = page.samples("hubweir_incoming_messages_total")
            assert [sample.value for sample in messages if sample.labels["entity"] == "flights"] == [10, 10, 10]
            assert page.value("hubweir_throughput_units", namespace="hubweir", process="keeper") == 0
        supervisor = namespace.parts
        victim = supervisor.processes[1].life  # type: ignore[attr-defined]
        os.kill(victim.pid, signal.SIGSTOP)  # it is away, and nobody starts another one yet
        try:
            deadline = time.monotonic() + WAIT_S
            while True:
                try:
                    page = scrape(namespace, wait_s=2.0)  # it is killed after 10 s
                except (OSError, ServiceError, AssertionError):  # it may be the one that was asked
                    continue
                finally:
                    assert time.monotonic() < deadline
                if page.value("hubweir_process_up", process="1") == 0:
                    break
            assert not [each for each in page.samples("hubweir_size_bytes") if each.labels["process"] == "1"]
            assert page.value("hubweir_process_up", process="0") == 1
        finally:
            with contextlib.suppress(ProcessLookupError):  # the supervisor may have killed it by now
                os.kill(victim.pid, signal.SIGCONT)
