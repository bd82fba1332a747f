"""A purge of an event hub at a live service: what goes, who is told, and what numbers go on."""

import threading
import time
from collections.abc import Iterator

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient, PartitionContext

from hubweir.client.administration import Administration
from hubweir.client.namespace_control import NamespaceControl
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


def control_of(namespace: RunningNamespace) -> NamespaceControl:
    return NamespaceControl(Administration(ConnectionString.parse(namespace.connection_string())))


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
        assert control_of(namespace).purge("numbers") == {
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
    assert [each["purged"] for each in control_of(namespace).purge("numbers")["partitions"]] == [0, 1]
    assert [each["purged"] for each in control_of(namespace).purge("numbers")["partitions"]] == [0, 0]


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
            control_of(namespace).purge("read")
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
            (told,) = control_of(namespace).purge("busy")["partitions"]
            assert told["first_sequence_number"] >= so_far
    finally:
        stop.set()
        thread.join(30)


def test_a_captured_hub_a_queue_and_what_is_not_there_are_refused(namespace: RunningNamespace) -> None:
    namespace.create_event_hub("captured", capture=CaptureDescription(enabled=True, interval_s=900))
    namespace.create_queue("kitchen")
    control = control_of(namespace)
    with pytest.raises(ServiceError, match="switch capture off"):
        control.purge("captured")
    with pytest.raises(ServiceError, match="hubweir message purge"):
        control.purge("kitchen")
    with pytest.raises(ServiceError) as caught:
        control.purge("nothing")
    assert caught.value.condition is NOT_FOUND


def test_no_other_profile_purges() -> None:
    with running_namespace(profile="standard") as running:
        running.create_event_hub("real")
        with producer_of(running, "real") as producer:
            producer.send_batch([EventData("kept")])
            with pytest.raises(ServiceError, match="has the profile standard"):
                control_of(running).purge("real")
            assert producer.get_partition_properties("0")["beginning_sequence_number"] == 0


@pytest.mark.crash
def test_partitions_of_other_processes_are_purged_too() -> None:
    with running_namespace(brokers=2) as running:
        running.create_event_hub("spread", partition_count=4)
        with producer_of(running, "spread") as producer:
            for partition in range(4):
                producer.send_batch([EventData("one")], partition_id=str(partition))
            told = control_of(running).purge("spread")["partitions"]
            assert [each["purged"] for each in told] == [1, 1, 1, 1]
