"""Test control at a live service: what the clock carries with it, what faults do to links, and who has neither."""

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from hubweir.broker.commands.testcontrol import StandingOrders
from hubweir.client.administration import Administration
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.namespace_control import NamespaceControl
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiverOptions
from hubweir.client.retry import RetryPolicy
from hubweir.config.namespace_settings import Said, SaidNamespaces
from hubweir.drivers.monotonic import monotonic_ms
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.connection_string import ConnectionString
from hubweir.queue.sub_queue import SubQueue
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
ONCE = RetryPolicy(attempts=1)
DEAD = QueueReceiverOptions(sub_queue=SubQueue.DEAD_LETTERS)


def control_of(namespace: RunningNamespace, connection_string: str = "") -> NamespaceControl:
    said = ConnectionString.parse(connection_string or namespace.connection_string())
    return NamespaceControl(Administration(said))


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace(retention_sweep_ms=60_000) as running:
        yield running


@pytest.fixture
def control(namespace: RunningNamespace) -> Iterator[NamespaceControl]:
    made = control_of(namespace)
    yield made
    made.end_faults()


@pytest.fixture
def queues(namespace: RunningNamespace) -> Iterator[BlockingQueueClient]:
    with BlockingQueueClient.from_connection_string(namespace.connection_string(), retry=ONCE) as client:
        yield client


def becomes(holds: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether it holds at last."""
    end_s = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True


# -- the clock


def test_the_state_tells_the_clock_of_the_service(namespace: RunningNamespace, control: NamespaceControl) -> None:
    before = control.state()["clock"]
    after = control.forward_clock(HOUR_MS)["clock"]
    assert after["ahead_ms"] == before["ahead_ms"] + HOUR_MS
    assert HOUR_MS <= after["now_ms"] - before["now_ms"] < HOUR_MS + 60_000
    assert after["now_ms"] - after["ahead_ms"] - time.time() * 1000 < 1_000


def test_a_lock_ends_and_the_message_is_delivered_again(
    namespace: RunningNamespace, control: NamespaceControl, queues: BlockingQueueClient
) -> None:
    namespace.create_queue("locks", lock_duration_ms=5 * MINUTE_MS)
    queues.sender("locks").send(b"one")
    receiver = queues.receiver("locks")
    assert receiver.receive(max_wait_s=30)[0].delivery_count == 0
    control.forward_clock(4 * MINUTE_MS)
    assert not receiver.receive(max_wait_s=0.3), "a minute of the lock is left"
    control.forward_clock(MINUTE_MS)
    (again,) = receiver.receive(max_wait_s=30)
    assert again.delivery_count == 1
    receiver.complete(again)


def test_a_message_lives_as_long_as_it_says_and_becomes_a_dead_letter(
    namespace: RunningNamespace, control: NamespaceControl, queues: BlockingQueueClient
) -> None:
    namespace.create_queue("lives", time_to_live_ms=DAY_MS, dead_letters_on_expiration=True)
    queues.sender("lives").send(b"old")
    control.forward_clock(DAY_MS - MINUTE_MS)
    queues.sender("lives").send(b"young")
    control.forward_clock(MINUTE_MS)
    (dead,) = queues.receiver("lives", DEAD).receive(max_wait_s=30)
    assert (dead.body, dead.dead_letter_reason) == (b"old", "TTLExpiredException")
    assert queues.receiver("lives").receive(max_wait_s=30).bodies() == [b"young"]


def test_a_scheduled_message_comes_at_its_time(
    namespace: RunningNamespace, control: NamespaceControl, queues: BlockingQueueClient
) -> None:
    namespace.create_queue("schedule")
    at_ms = control.state()["clock"]["now_ms"] + HOUR_MS
    queues.sender("schedule").schedule([QueueMessage(b"later")], at_ms)
    receiver = queues.receiver("schedule")
    control.forward_clock(HOUR_MS - MINUTE_MS)
    assert not receiver.receive(max_wait_s=0.3)
    control.forward_clock(MINUTE_MS)
    assert receiver.receive(max_wait_s=30).bodies() == [b"later"]


def test_retention_removes_what_is_old_by_then(namespace: RunningNamespace, control: NamespaceControl) -> None:
    namespace.create_event_hub("kept", retention_ms=HOUR_MS)
    with EventHubProducerClient.from_connection_string(namespace.connection_string(), eventhub_name="kept") as client:
        client.send_event(EventData("old"))
        control.forward_clock(50 * MINUTE_MS)
        client.send_event(EventData("young"))
        control.forward_clock(20 * MINUTE_MS)
        assert becomes(lambda: control.forward_clock(MINUTE_MS) and first_of(client) == 1), client
        assert client.get_partition_properties("0")["last_enqueued_sequence_number"] == 1


def first_of(client: EventHubProducerClient) -> int:
    return int(client.get_partition_properties("0")["beginning_sequence_number"])


def test_a_window_of_capture_ends(namespace: RunningNamespace, control: NamespaceControl) -> None:
    capture = CaptureDescription(enabled=True, interval_s=900, skip_empty_archives=True)
    namespace.create_event_hub("captured", capture=capture)
    folder = Path(namespace.parts.settings.data)
    with EventHubProducerClient.from_connection_string(
        namespace.connection_string(), eventhub_name="captured"
    ) as client:
        client.send_event(EventData("one"))
    control.forward_clock(14 * MINUTE_MS)
    time.sleep(0.2)
    assert not list(folder.rglob("*.avro"))
    control.forward_clock(MINUTE_MS)
    assert becomes(lambda: bool(list(folder.rglob("*.avro"))))


def test_nobody_takes_it_for_a_clock_that_jumped(namespace: RunningNamespace, control: NamespaceControl) -> None:
    for _ in range(3):
        control.forward_clock(30 * DAY_MS)
    time.sleep(2.5)  # a broker looks at its clock every two seconds
    assert namespace.service.alarms.current() == ()


def test_a_connection_lives_on_whatever_passes(namespace: RunningNamespace, control: NamespaceControl) -> None:
    namespace.create_queue("long")
    before = namespace.service.counters["gateway.connections_accepted"]
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string()) as client,
        client.get_queue_sender("long") as sender,
        client.get_queue_receiver("long", max_wait_time=30) as receiver,
    ):
        sender.send_messages(ServiceBusMessage("one"))
        accepted = namespace.service.counters["gateway.connections_accepted"]
        control.forward_clock(40 * DAY_MS)
        sender.send_messages(ServiceBusMessage("two"))
        for message in receiver.receive_messages(2, max_wait_time=30):
            receiver.complete_message(message)
        assert namespace.service.counters["gateway.connections_accepted"] == accepted > before


async def begun_ms(running: RunningNamespace) -> int:
    """When a connection that comes now begins, by its engine."""
    endpoint, host = running.service._listeners._connections.new("a peer")
    host.on_closed()
    return endpoint.now_ms


def test_limits_of_connections_go_by_the_machines_time() -> None:
    """The clock is ahead before anybody connects: what is idle ends in time all the same, and never early."""
    with running_namespace(idle_link_ms=4_000) as running:
        control = control_of(running)
        control.forward_clock(HOUR_MS)
        running.create_queue("quiet")
        assert abs(running.run(begun_ms(running)) - monotonic_ms()) < 60_000, "from where its deadlines count"
        with BlockingQueueClient.from_connection_string(running.connection_string(), retry=ONCE) as client:
            client.sender("quiet").send(b"one")
            (host,) = running.service._listeners._connections._hosts.values()
            links = len(host.nodes)
            control.forward_clock(HOUR_MS)
            time.sleep(1)  # links are looked at every half second
            assert len(host.nodes) == links
            assert becomes(lambda: len(host.nodes) < links), "it was idle for four seconds"
        hosts = running.service._listeners._connections._hosts
        assert becomes(lambda: not hosts), "the client is gone"
        with (
            ServiceBusClient.from_connection_string(running.connection_string()) as official,
            official.get_queue_sender("quiet"),
        ):
            (host,) = running.service._listeners._connections._hosts.values()
            assert becomes(lambda: all(node.entity != "quiet" for node in host.nodes)), "it was never used"


def test_tokens_end_when_that_is_said_and_the_same_client_comes_back(
    namespace: RunningNamespace, control: NamespaceControl
) -> None:
    namespace.create_queue("tokens")
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string(), logging_enable=False) as client,
        client.get_queue_sender("tokens") as sender,
    ):
        sender.send_messages(ServiceBusMessage("one"))
        control.forward_clock(2 * HOUR_MS)
        sender.send_messages(ServiceBusMessage("two"))
        hosts = namespace.service._listeners._connections._hosts
        assert becomes(lambda: len(hosts) == 1), "clients of other tests are gone"
        (host,) = hosts.values()
        links = len(host.nodes)
        control.forward_clock(2 * HOUR_MS, ends_tokens=True)
        assert becomes(lambda: len(host.nodes) < links), "its link was detached"
        sender.send_messages(ServiceBusMessage("three"))


@pytest.mark.parametrize(
    ("step", "says"), [(-1, ">= 0"), (11 * 366 * DAY_MS, "<= "), (1.5, "int"), ("1h", "int"), (None, "int")]
)
def test_a_step_that_is_none_is_refused(control: NamespaceControl, step: object, says: str) -> None:
    with pytest.raises(ServiceError, match=says) as caught:
        control.forward_clock(step)  # type: ignore[arg-type]
    assert caught.value.condition is ARGUMENT_ERROR


def test_no_calendar_of_a_client_is_left_behind() -> None:
    """All steps together are bounded, not each alone."""
    with running_namespace() as running:
        control = control_of(running)
        control.forward_clock(3_660 * DAY_MS - HOUR_MS)
        with pytest.raises(ServiceError, match="over 3660 days ahead"):
            control.forward_clock(2 * HOUR_MS)
        assert control.forward_clock(HOUR_MS)["clock"]["ahead_ms"] == 3_660 * DAY_MS


def test_it_is_the_clock_of_every_store_of_the_process() -> None:
    with (
        running_namespace(stores=3) as running,
        BlockingQueueClient.from_connection_string(running.connection_string(), retry=ONCE) as client,
    ):
        running.create_queue("parts", is_partitioned=True, time_to_live_ms=HOUR_MS, dead_letters_on_expiration=True)
        for number in range(16):
            client.sender("parts").send(QueueMessage(b"one", partition_key=str(number)))
        control_of(running).forward_clock(HOUR_MS)
        dead = client.receiver("parts", DEAD)
        count = 0
        while count < 16 and (found := dead.receive(16, max_wait_s=30)):
            count += len(found)
        assert count == 16


def test_the_log_says_what_was_ordered(
    namespace: RunningNamespace, control: NamespaceControl, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "hubweir.gateway.http.testcontrol"):
        control.forward_clock(90_000)
        control.order_faults(drop=0.5, seed=7)
        control.end_faults()
    first, second, third = (record.getMessage() for record in caplog.records)
    assert first.startswith("for a test, in namespace hubweir: the clock went 90 s forward, and is ")
    assert second.endswith("faults strike by the rates server_busy 0, delay 0, detach 0, drop 0.5, seed 7")
    assert third.endswith("no fault strikes any more")


def test_a_session_is_free_when_its_lock_has_ended(
    namespace: RunningNamespace, control: NamespaceControl, queues: BlockingQueueClient
) -> None:
    namespace.create_queue("sessions", lock_duration_ms=MINUTE_MS, requires_session=True)
    queues.sender("sessions").send(QueueMessage(b"boarding", session_id="N14228"))
    held = queues.accept_session("sessions", max_wait_s=30)
    with pytest.raises(ServiceError):
        queues.accept_session("sessions", "N14228", max_wait_s=0.5)
    control.forward_clock(MINUTE_MS)
    again = queues.accept_session("sessions", "N14228", max_wait_s=30)
    assert (held.session_id, again.session_id) == ("N14228", "N14228")
    again.close()


def test_duplicates_are_known_as_long_as_their_window(
    namespace: RunningNamespace, control: NamespaceControl, queues: BlockingQueueClient
) -> None:
    namespace.create_queue("once", duplicate_window_ms=HOUR_MS)
    sender = queues.sender("once")
    for step_ms in (0, HOUR_MS - MINUTE_MS, 3 * MINUTE_MS):
        control.forward_clock(step_ms)
        sender.send(QueueMessage(b"one", message_id="7"))
    assert len(queues.receiver("once").receive(10, max_wait_s=30)) == 2


# -- who has none of it


def everything(control: NamespaceControl) -> list[Callable[[], object]]:
    return [
        control.state,
        lambda: control.forward_clock(HOUR_MS),
        lambda: control.order_faults(server_busy=1),
        control.end_faults,
    ]


@pytest.mark.parametrize("profile", ["standard", "premium", "basic", "official-emulator"])
def test_a_namespace_that_is_not_for_development_has_none_of_it(profile: str) -> None:
    with running_namespace(profile=profile) as running:
        running.create_queue("real")
        for attempt in everything(control_of(running)):
            with pytest.raises(ServiceError, match=f"has the profile {profile}"):
                attempt()
        assert running.parts.own_orders.standing == StandingOrders()
        assert running.parts.gateway.faults is None
        with BlockingQueueClient.from_connection_string(running.connection_string(), retry=ONCE) as client:
            client.sender("real").send(b"one")


def test_the_clock_stands_where_one_namespace_is_not_for_development() -> None:
    said = SaidNamespaces(Said(name="one"), (Said(name="two", profile="standard"),))
    with running_namespace(said=said) as running:
        control = control_of(running)
        with pytest.raises(ServiceError, match="another namespace of this service has the profile standard") as caught:
            control.forward_clock(HOUR_MS)
        assert "two" not in caught.value.text
        assert control.state()["clock"]["ahead_ms"] == 0
        control.order_faults(server_busy=1)
        other, own = running.service.process.gateways[1], running.service.process.gateways[0]
        assert own.faults is not None and other.faults is None


def test_it_takes_the_right_to_manage(namespace: RunningNamespace) -> None:
    wrong = namespace.connection_string().replace("SAS_KEY_VALUE", "bm90IHRoZSBrZXk=")
    for attempt in everything(control_of(namespace, wrong)):
        with pytest.raises(ServiceError):
            attempt()
    assert control_of(namespace).state()["faults"] is None
