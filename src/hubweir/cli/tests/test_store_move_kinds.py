"""hubweir store move of a captured hub and of a topic: neither files nor subscriptions lose or double anything."""

from __future__ import annotations

import time
from pathlib import Path

import fastavro
import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from hubweir.cli.tests.test_store_move import WAIT_S, move, places, publish, typed
from hubweir.namespace import capture_description
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

EACH_SECOND = CaptureDescription(enabled=True, interval_s=1)


def captured(folder: Path, count: int) -> list[tuple[int, bytes]]:
    """Sequence number and body of all that the files have, by number, once it is so many."""
    limit = time.monotonic() + WAIT_S
    found: list[tuple[int, bytes]] = []
    while len(found) < count:
        assert time.monotonic() < limit, f"{found} is all that was captured"
        time.sleep(0.05)
        found = []
        for path in folder.rglob("*.avro"):
            with path.open("rb") as file:
                found += [(record["SequenceNumber"], record["Body"]) for record in fastavro.reader(file)]
    return sorted(found)


def tell(namespace: RunningNamespace, *bodies: str) -> None:
    """Send messages to the topic."""
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string()) as client,
        client.get_topic_sender("news") as sender,
    ):
        sender.send_messages([ServiceBusMessage(body) for body in bodies])


def heard(namespace: RunningNamespace, subscription: str, count: int) -> list[str]:
    """Complete so many messages of a subscription."""
    found: list[str] = []
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string()) as client,
        client.get_subscription_receiver("news", subscription) as receiver,
    ):
        while len(found) < count:
            messages = receiver.receive_messages(count - len(found), max_wait_time=WAIT_S)
            assert messages, f"{found} is all that came"
            for message in messages:
                found.append(str(message))
                receiver.complete_message(message)
    return found


@pytest.mark.parametrize("brokers", [1, 2])
def test_files_and_subscriptions_have_each_event_and_message_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brokers: int
) -> None:
    """One subscription is ahead of the other one, and some events are captured, others not yet, when it moves."""
    monkeypatch.setattr(capture_description, "INTERVAL_MIN_S", 1)
    data, folder = tmp_path / "data", tmp_path / "captured"
    with running_namespace(data=str(data), stores=2, capture_folder=str(folder)) as namespace:
        namespace.create_event_hub("events", partition_count=1, capture=EACH_SECOND)
        namespace.create(TopicDescription("news"))
        for name in ("ahead", "behind"):
            namespace.create(SubscriptionDescription(f"news/Subscriptions/{name}"))
        publish(namespace, "one", "two")
        assert captured(folder, 2) == [(0, b"one"), (1, b"two")]
        tell(namespace, "a", "b", "c")
        assert heard(namespace, "ahead", 2) == ["a", "b"]
        publish(namespace, "three", "four")
    before = places(data)
    moves = {"hub events, partition 0": "events/0", "topic news, fragment 0": "news/0"}
    for entity, log in moves.items():
        target = "store-1" if before[entity] == "store-0" else "store-0"
        result = move(data, log, target)
        assert result.exit_code == 0, result.output
        assert places(data)[entity] == target
    assert typed("store", "verify", "--data", str(data)).exit_code == 0
    with running_namespace(data=str(data), brokers=brokers, capture_folder=str(folder)) as namespace:
        publish(namespace, "five")
        expected = [(0, b"one"), (1, b"two"), (2, b"three"), (3, b"four"), (4, b"five")]
        assert captured(folder, 5) == expected
        tell(namespace, "d")
        assert heard(namespace, "ahead", 2) == ["c", "d"]
        assert heard(namespace, "behind", 4) == ["a", "b", "c", "d"]
        publish(namespace, "six")
        assert captured(folder, 6) == [*expected, (5, b"six")], "nothing came twice meanwhile"
        tell(namespace, "e")
        assert [heard(namespace, name, 1) for name in ("ahead", "behind")] == [["e"], ["e"]]
