"""The official Python client, blocking, over plain TCP and TLS.

Long because all that the blocking client can do is tried here, in the order of its own pages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient, TransportType
from azure.eventhub.exceptions import AuthenticationError, ConnectError, EventHubError

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.auth.shared_access_signature import make_token
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import RawClient, status_of
from tests.conformance.ways import server_process

# This client leaves a socket to the collector when the server went away, and when an attempt to connect failed.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed", "ignore::pytest.PytestUnraisableExceptionWarning")

WAIT_S = 40.0
KEYS = [("a", 0), ("pk1", 1), ("alphabet", 2), ("abcdefghijklm", 3), ("TEST1", 0), ("héllo", 1), ("漢字", 2)]


def client_name(tls: bool) -> str:
    return f"azure-eventhub, blocking, {'TLS' if tls else 'plain'}"


@pytest.fixture(
    params=[
        pytest.param(False, id="plain", marks=pytest.mark.client(client_name(False))),
        pytest.param(True, id="tls", marks=pytest.mark.client(client_name(True))),
    ]
)
def tls(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def options(doors: Doors, tls: bool) -> dict[str, Any]:
    return {"connection_verify": doors.ca_file} if tls else {}


def producer(doors: Doors, tls: bool, hub: str, **more: Any) -> EventHubProducerClient:
    string = more.pop("conn_str", "") or doors.connection_string(tls=tls)
    return EventHubProducerClient.from_connection_string(
        string, eventhub_name=hub, retry_total=0, **options(doors, tls), **more
    )


def consumer(doors: Doors, tls: bool, hub: str, group: str = "$Default", **more: Any) -> EventHubConsumerClient:
    string = doors.connection_string(tls=tls)
    return EventHubConsumerClient.from_connection_string(
        string, consumer_group=group, eventhub_name=hub, **options(doors, tls), **more
    )


def read(client: EventHubConsumerClient, count: int, **how: Any) -> list[tuple[str, EventData]]:
    """Receive until count events came; partition id and event of each."""
    got: list[tuple[str, EventData]] = []
    errors: list[Exception] = []
    enough = threading.Event()

    def on_event(context: Any, event: EventData | None) -> None:
        if event is not None:
            got.append((context.partition_id, event))
            if how.get("checkpoint"):
                context.update_checkpoint(event)
        if len(got) >= count:
            enough.set()

    how.pop("checkpoint", None)
    arguments = {"on_event": on_event, "on_error": lambda _, error: errors.append(error), **how}
    thread = threading.Thread(target=lambda: client.receive(**arguments), daemon=True)
    with client:
        thread.start()
        came = enough.wait(WAIT_S)
        time.sleep(0.1)
    thread.join(WAIT_S)
    assert came, f"{len(got)} of {count} came; errors: {errors}"
    assert len(got) == count
    return got


def bodies(got: list[tuple[str, EventData]]) -> list[str]:
    return sorted(event.body_as_str() for _, event in got)


@pytest.mark.both_ways
@pytest.mark.eh(1, 2, 74, 69)
@pytest.mark.feature("properties")
def test_properties(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        found = client.get_eventhub_properties()
        assert (found["eventhub_name"], found["partition_ids"]) == (hub, ["0", "1", "2", "3"])
        assert client.get_partition_ids() == ["0", "1", "2", "3"]
        assert client.get_partition_properties("0")["is_empty"]


@pytest.mark.eh(1, 2)
@pytest.mark.feature("send single")
def test_single_events(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        for number in range(5):
            client.send_event(EventData(f"{number}"))
    got = read(consumer(doors, tls, hub), 5, starting_position="-1")
    assert bodies(got) == ["0", "1", "2", "3", "4"]


@pytest.mark.both_ways
@pytest.mark.eh(1, 2, 38, 41)
@pytest.mark.feature("send batch")
def test_batches_and_all_their_properties(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        batch = client.create_batch(partition_key="pk1")
        assert batch.max_size_in_bytes == 1_048_576
        for number in range(50):
            event = EventData(f"{number:02}")
            event.properties = {"n": number, b"bytes": b"\0\1", "none": None}
            event.content_type, event.correlation_id, event.message_id = "text/plain", "c", f"m{number}"
            batch.add(event)
        client.send_batch(batch)
        with pytest.raises(ValueError, match="size"):
            client.create_batch(max_size_in_bytes=1_048_577)
    # Asked for by partition: with empty partitions beside it this client takes one event a round of all of them.
    got = read(consumer(doors, tls, hub), 50, starting_position="-1", partition_id="1")
    assert [event.sequence_number for _, event in got] == list(range(50))
    for number, (_, event) in enumerate(got):
        assert event.body_as_str() == f"{number:02}"
        assert event.partition_key == b"pk1"
        assert event.properties == {b"n": number, b"bytes": b"\0\1", b"none": None}
        assert (event.content_type, event.correlation_id, event.message_id) == ("text/plain", "c", f"m{number}")
        assert event.offset is not None
        assert event.enqueued_time is not None


@pytest.mark.eh(43, 44)
@pytest.mark.feature("send keyed")
def test_keys_choose_their_partitions_single_or_batch(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        for key, _ in KEYS:
            client.send_event(EventData(key), partition_key=key)
            client.send_batch([EventData(key), EventData(key)], partition_key=key)
    got = read(consumer(doors, tls, hub), 3 * len(KEYS), starting_position="-1")
    assert {(event.body_as_str(), partition) for partition, event in got} == {(key, str(n)) for key, n in KEYS}


@pytest.mark.eh(51)
@pytest.mark.feature("send to partition")
def test_to_a_partition(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        client.send_event(EventData("two"), partition_id="2")
        client.send_batch([EventData("three")], partition_id="3")
    got = read(consumer(doors, tls, hub), 2, starting_position="-1")
    assert {(partition, event.body_as_str()) for partition, event in got} == {("2", "two"), ("3", "three")}


@pytest.mark.eh(50)
@pytest.mark.feature("send batch")
def test_a_quarter_of_a_megabyte_single_and_in_a_batch(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        client.send_event(EventData(b"x" * 250_000), partition_id="0")
        client.send_batch([EventData(b"y" * 125_000), EventData(b"z" * 125_000)], partition_id="0")
    got = read(consumer(doors, tls, hub), 3, starting_position="-1", partition_id="0")
    assert [len(b"".join(event.body)) for _, event in got] == [250_000, 125_000, 125_000]


@pytest.mark.feature("buffered producer")
def test_a_buffered_producer_sends_all_it_was_given(doors: Doors, tls: bool, hub: str) -> None:
    sent: list[EventData] = []
    failed: list[Exception] = []
    client = producer(
        doors,
        tls,
        hub,
        buffered_mode=True,
        on_success=lambda events, _: sent.extend(events),
        on_error=lambda _events, _partition, error: failed.append(error),
    )
    with client:
        for number in range(100):
            client.send_event(EventData(f"{number:02}"), partition_id=f"{number % 2}")
        client.flush(timeout=WAIT_S)
    assert (len(sent), failed) == (100, [])
    for partition in (0, 1):
        got = read(consumer(doors, tls, hub), 50, starting_position="-1", partition_id=f"{partition}")
        assert [event.body_as_str() for _, event in got] == [f"{number:02}" for number in range(partition, 100, 2)]


@pytest.mark.eh(55, 81)
@pytest.mark.feature("receive from any position")
def test_every_kind_of_position(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        client.send_batch([EventData(f"{number}") for number in range(6)], partition_id="0")
        time.sleep(0.01)
        client.send_batch([EventData(f"{number}") for number in range(6, 10)], partition_id="0")
    everything = [event for _, event in read(consumer(doors, tls, hub), 10, starting_position="-1", partition_id="0")]
    seventh = everything[6]
    starts: list[tuple[Any, bool, int]] = [
        ("-1", False, 0),
        (seventh.offset, False, 7),
        (seventh.offset, True, 6),
        (seventh.sequence_number, False, 7),
        (seventh.sequence_number, True, 6),
        (seventh.enqueued_time, True, 6),
        (everything[0].enqueued_time, False, 6),
    ]

    def reads(at: int) -> None:
        start, inclusive, first = starts[at]
        how = {"starting_position": start, "starting_position_inclusive": inclusive, "partition_id": "0"}
        # All at once, in two groups: a group has five readers of a partition at most.
        got = read(consumer(doors, tls, hub, ("$Default", "second")[at % 2]), 10 - first, **how)
        assert [event.sequence_number for _, event in got] == list(range(first, 10)), start

    with ThreadPoolExecutor(len(starts)) as pool:
        list(pool.map(reads, range(len(starts))))


@pytest.mark.eh(55)
@pytest.mark.feature("receive from any position")
def test_latest_gets_only_what_comes_later(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        client.send_batch([EventData("before")], partition_id="0")

        has_come = threading.Event()

        def publish() -> None:
            """Again, where a busy machine lets the reader come late."""
            wait_s = 1.5
            while not has_come.wait(wait_s):
                client.send_batch([EventData("after")], partition_id="0")
                wait_s = 8.0

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            got = read(consumer(doors, tls, hub), 1, starting_position="@latest", partition_id="0")
        finally:
            has_come.set()
            thread.join()
    assert bodies(got) == ["after"]


@pytest.mark.eh(68)
@pytest.mark.feature("checkpoints")
def test_a_reader_comes_back_where_it_stopped(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, hub) as client:
        client.send_batch([EventData(f"{number}") for number in range(10)], partition_id="0")
        seen = read(consumer(doors, tls, hub), 10, starting_position="-1", partition_id="0")
        last = seen[-1][1].offset
        client.send_batch([EventData(f"{number}") for number in range(10, 15)], partition_id="0")
    got = read(consumer(doors, tls, hub), 5, starting_position=last, partition_id="0")
    assert [event.body_as_str() for _, event in got] == ["10", "11", "12", "13", "14"]


@pytest.mark.eh(25)
@pytest.mark.feature("SAS")
def test_a_wrong_key_is_an_authentication_error(doors: Doors, tls: bool, hub: str) -> None:
    string = doors.connection_string(tls=tls, key="wrong")
    client = producer(doors, tls, hub, conn_str=string)
    with client, pytest.raises(AuthenticationError):
        client.send_event(EventData("x"))
    with producer(doors, tls, hub, conn_str=string) as other, pytest.raises(AuthenticationError):
        other.get_eventhub_properties()


@pytest.mark.eh(37, 74)
@pytest.mark.feature("errors")
def test_missing_hubs_and_partitions(doors: Doors, tls: bool, hub: str) -> None:
    with producer(doors, tls, "missing") as client:
        with pytest.raises(AuthenticationError):  # existence is told with the token
            client.send_event(EventData("x"))
        with pytest.raises(EventHubError):
            client.get_eventhub_properties()
    with producer(doors, tls, hub) as client:
        for partition in ("XYZ", "-1", "1000", "-"):
            with pytest.raises(ConnectError):
                client.send_batch([EventData("x")], partition_id=partition)
        client.send_event(EventData("still usable"))


@pytest.mark.eh(33)
@pytest.mark.feature("SAS")
def test_a_ready_made_signature_sends_and_reads_properties(doors: Doors, tls: bool, hub: str) -> None:
    where = doors.host if tls else f"{doors.host}:{doors.port}"
    token = make_token(f"sb://{where}/{hub}", "RootManageSharedAccessKey", "SAS_KEY_VALUE", int(time.time()) + 600)
    flag = "" if tls else ";UseDevelopmentEmulator=true"
    with producer(doors, tls, hub, conn_str=f"Endpoint=sb://{where};SharedAccessSignature={token}{flag}") as client:
        client.send_event(EventData("signed"))
        assert client.get_eventhub_properties()["eventhub_name"] == hub


@pytest.mark.eh(2)
@pytest.mark.client(client_name(True))
@pytest.mark.feature("send single")
def test_tls_through_a_custom_endpoint_address(doors: Doors, hub: str) -> None:
    client = EventHubProducerClient.from_connection_string(
        doors.connection_string(tls=True),
        eventhub_name=hub,
        custom_endpoint_address=f"sb://{doors.host}:{doors.port}",
        transport_type=TransportType.Amqp,
        connection_verify=doors.ca_file,
        retry_total=0,
    )
    with client:
        client.send_event(EventData("through"))
        assert client.get_eventhub_properties()["eventhub_name"] == hub


@pytest.mark.eh(13)
def test_a_client_that_was_silent_for_eleven_seconds_sends_on(doors: Doors, hub: str) -> None:
    with producer(doors, False, hub, idle_timeout=10, keep_alive=5) as client:
        client.send_event(EventData("before"))
        time.sleep(11)
        client.send_event(EventData("after"))


@pytest.mark.eh(21, 67, 68)
def test_clients_resume_over_a_restart_without_loss_or_doubles(broker_count: int, tmp_path: Path) -> None:
    with server_process(tmp_path / "data", broker_count) as server:
        string = server.connection_string()
        create_hub(server.port, "events")
        got: list[int] = []
        client = EventHubConsumerClient.from_connection_string(
            string, consumer_group="$Default", eventhub_name="events", retry_backoff_factor=0.1
        )
        thread = threading.Thread(
            target=lambda: client.receive(
                on_event=lambda _, event: got.append(int(event.body_as_str())),
                starting_position="-1",
                partition_id="0",
            ),
            daemon=True,
        )
        with (
            client,
            EventHubProducerClient.from_connection_string(
                string, eventhub_name="events", retry_total=8, retry_backoff_factor=0.2
            ) as sender,
        ):
            thread.start()
            sender.send_batch([EventData(f"{number}") for number in range(10)], partition_id="0")
            wait_until(lambda: len(got) == 10)
            assert server.stop() == 0
            server.start()
            sender.send_batch([EventData(f"{number}") for number in range(10, 20)], partition_id="0")
            wait_until(lambda: len(got) >= 20)
            time.sleep(0.5)
        thread.join(WAIT_S)
        assert got == list(range(20))


def create_hub(port: int, name: str) -> None:
    """Make a hub over the wire, as hubweir's own tools do."""
    with RawClient.connect(("127.0.0.1", port)) as client:
        said: dict[str, object] = {"operation": "CREATE", "type": "com.microsoft:eventhub", "name": name}
        request = Message(application_properties=said, body=ValueBody({}))
        assert status_of(client.trusted().request("$management", request))[0] == 201


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
