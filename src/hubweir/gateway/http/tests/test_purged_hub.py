"""A purge of an event hub at a live service: what goes, who is told, and what numbers go on."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient, PartitionContext

from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.process import Refusal
from hubweir.client.administration import Administration
from hubweir.errors import NOT_FOUND, SERVER_BUSY, ServiceError
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.tiers import HOUR_MS
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


def administration_of(namespace: RunningNamespace, connection_string: str = "") -> Administration:
    return Administration(ConnectionString.parse(connection_string or namespace.connection_string()))


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as running:
        yield running


def producer_of(namespace: RunningNamespace, hub: str) -> EventHubProducerClient:
    return EventHubProducerClient.from_connection_string(namespace.connection_string(), eventhub_name=hub)


def test_everything_goes_and_numbers_go_on(namespace: RunningNamespace) -> None:
    namespace.create_event_hub("numbers", partition_count=2)
    with producer_of(namespace, "numbers") as producer:
        producer.send_batch([EventData(str(number)) for number in range(30)], partition_id="1")
        before = producer.get_partition_properties("1")
        assert administration_of(namespace).purge_event_hub("numbers") == {
            "event_hub": "numbers",
            "partitions": [
                {"partition": "0", "purged": 0, "first_sequence_number": 0},
                {"partition": "1", "purged": 30, "first_sequence_number": 30},
            ],
        }
        after = producer.get_partition_properties("1")
        assert after["is_empty"] and after["last_enqueued_sequence_number"] == 29
        assert after["last_enqueued_offset"] == before["last_enqueued_offset"]
        producer.send_batch([EventData("next")], partition_id="1")
        last = producer.get_partition_properties("1")
        assert (last["beginning_sequence_number"], last["last_enqueued_sequence_number"]) == (30, 30)
        assert int(last["last_enqueued_offset"]) > int(before["last_enqueued_offset"])
    assert [each["purged"] for each in administration_of(namespace).purge_event_hub("numbers")["partitions"]] == [0, 1]
    assert [each["purged"] for each in administration_of(namespace).purge_event_hub("numbers")["partitions"]] == [0, 0]


def test_a_live_reader_that_read_everything_goes_on_and_an_old_position_starts_behind(
    namespace: RunningNamespace,
) -> None:
    namespace.create_event_hub("read")
    seen: list[str] = []
    came = threading.Event()

    def on_event(context: PartitionContext, event: EventData | None) -> None:
        if event is not None:
            seen.append(event.body_as_str())
            came.set()

    with producer_of(namespace, "read") as producer:
        producer.send_batch([EventData("old")])
        reader = EventHubConsumerClient.from_connection_string(
            namespace.connection_string(), "$Default", eventhub_name="read"
        )
        thread = threading.Thread(target=lambda: reader.receive(on_event, starting_position="-1"))
        thread.start()
        try:
            assert came.wait(30) and seen == ["old"]
            came.clear()
            administration_of(namespace).purge_event_hub("read")
            producer.send_batch([EventData("new")])
            assert came.wait(30) and seen == ["old", "new"]
        finally:
            reader.close()
            thread.join(30)


def test_it_ends_while_events_come(namespace: RunningNamespace) -> None:
    namespace.create_event_hub("busy")
    stop, sent = threading.Event(), list[int]()

    def send() -> None:
        with producer_of(namespace, "busy") as producer:
            while not stop.is_set():
                producer.send_batch([EventData("more")])
                sent.append(1)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        while len(sent) < 20:
            time.sleep(0.01)
        for _ in range(3):
            so_far = len(sent)
            (told,) = administration_of(namespace).purge_event_hub("busy")["partitions"]
            assert told["first_sequence_number"] >= so_far
    finally:
        stop.set()
        thread.join(30)


def test_a_captured_hub_a_queue_and_what_is_not_there_are_refused(namespace: RunningNamespace) -> None:
    namespace.create_event_hub("captured", capture=CaptureDescription(enabled=True, interval_s=900))
    namespace.create_queue("kitchen")
    administration = administration_of(namespace)
    with pytest.raises(ServiceError, match="switch capture off"):
        administration.purge_event_hub("captured")
    with pytest.raises(ServiceError, match="hubweir message purge"):
        administration.purge_event_hub("kitchen")
    with pytest.raises(ServiceError) as caught:
        administration.purge_event_hub("nothing")
    assert caught.value.condition is NOT_FOUND


@pytest.mark.parametrize("profile", ["basic", "standard", "premium", "official-emulator"])
def test_every_profile_purges(profile: str) -> None:
    with running_namespace(profile=profile) as running:
        running.create_event_hub("real", retention_ms=HOUR_MS)
        with producer_of(running, "real") as producer:
            producer.send_batch([EventData("gone")])
            assert administration_of(running).purge_event_hub("real")["partitions"][0]["purged"] == 1
            assert producer.get_partition_properties("0")["is_empty"]


def test_the_log_says_that_and_how_many_went(namespace: RunningNamespace, caplog: pytest.LogCaptureFixture) -> None:
    namespace.create_event_hub("told", partition_count=2)
    with producer_of(namespace, "told") as producer:
        producer.send_batch([EventData("one"), EventData("two")], partition_id="0")
        producer.send_batch([EventData("three")], partition_id="1")
    with caplog.at_level(logging.INFO, "hubweir.gateway.http.purged_hub"):
        administration_of(namespace).purge_event_hub("told")
    [line] = [record.getMessage() for record in caplog.records if record.name.endswith("purged_hub")]
    assert line == "purged Event hub 'told' in namespace hubweir: 3 events are gone"


@pytest.mark.crash
def test_partitions_of_other_processes_are_purged_too() -> None:
    with running_namespace(brokers=2) as running:
        running.create_event_hub("spread", partition_count=4)
        with producer_of(running, "spread") as producer:
            for partition in range(4):
                producer.send_batch([EventData("one")], partition_id=str(partition))
            told = administration_of(running).purge_event_hub("spread")["partitions"]
            assert [each["purged"] for each in told] == [1, 1, 1, 1]


class AwayBroker:
    """The way to a broker whose store is away."""

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        on_answer(Refusal(SERVER_BUSY, "store-1 is away", known=True))


def test_a_partition_that_cannot_be_purged_leaves_the_others_purged_and_says_why(
    namespace: RunningNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    namespace.create_event_hub("half", partition_count=2)
    with producer_of(namespace, "half") as producer:
        for partition in "01":
            producer.send_batch([EventData("one")], partition_id=partition)
        directory = namespace.parts.gateway.directory
        first, second = directory.partitions("half")
        monkeypatch.setattr(directory, "partitions", lambda hub: [replace(first, broker=AwayBroker()), second])
        with (
            caplog.at_level(logging.INFO, "hubweir.gateway.http.purged_hub"),
            pytest.raises(ServiceError, match="store-1 is away") as caught,
        ):
            administration_of(namespace).purge_event_hub("half")
        assert caught.value.condition is SERVER_BUSY
        assert [producer.get_partition_properties(partition)["is_empty"] for partition in "01"] == [False, True]
    assert "1 events are gone" in caplog.text
