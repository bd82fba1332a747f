"""The commands for the logs of an entity, one for each placement."""

from __future__ import annotations

import pytest

from hubweir.broker.commands.fragment import ChangeFragment, CreateFragment, DeleteFragment, OpenFragment
from hubweir.broker.commands.partition import ChangePartition, CreatePartition, DeletePartition, OpenPartition
from hubweir.broker.commands.topic import CreateTopic
from hubweir.gateway.entity_logs import LogCommands, fragment_settings, logs_of
from hubweir.limits import MIB
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Entity, EntityDescription, EntityKind, EntityStatus, Placement
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import written_duration
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.tiers import PROFILES
from hubweir.namespace.topic_description import TopicDescription
from hubweir.queue.fragment_settings import FragmentSettings

PLACED = (Placement("a" * 32, 0), Placement("b" * 32, 1))
CAPTURE = CaptureDescription(enabled=True)
SETTINGS = (Durability.RELAXED, 7_200_000)
HUB = EventHubDescription("orders", 2, 7_200_000, Durability.RELAXED, capture=CAPTURE)
NAMESPACE = Namespace(Catalog(), profile=PROFILES["standard"], host="ns.local")
LOGS = logs_of(Entity("e" * 32, HUB, PLACED, EntityStatus.ACTIVE), NAMESPACE)


@pytest.mark.parametrize(
    ("commands", "kind"), [(LOGS.make("ns"), CreatePartition), (LOGS.open("ns"), OpenPartition)], ids=["make", "open"]
)
def test_each_partition_of_a_hub_is_made_or_opened_with_its_settings(
    commands: LogCommands, kind: type[CreatePartition]
) -> None:
    assert [placement for placement, _ in commands] == list(PLACED)
    assert [type(command) for _, command in commands] == [kind, kind], "what is opened is never made anew"
    assert [command for _, command in commands] == [
        kind("a" * 32, "orders", "0", *SETTINGS, "ns", CAPTURE),
        kind("b" * 32, "orders", "1", *SETTINGS, "ns", CAPTURE),
    ]


def test_each_partition_of_a_hub_is_told_its_settings_and_removed() -> None:
    assert LOGS.change() == [(placement, ChangePartition(placement.log_id, *SETTINGS, CAPTURE)) for placement in PLACED]
    assert LOGS.remove() == [(placement, DeletePartition(placement.log_id)) for placement in PLACED]


DELIVERY = DeliverySettings(
    lock_duration=written_duration("PT45S"), max_delivery_count=3, dead_letters_on_expiration=True
)
STORAGE = StorageSettings(max_size_megabytes=2_048, requires_duplicate_detection=True, is_express=True)
QUEUE = QueueDescription("tasks", DELIVERY, STORAGE, default_time_to_live=written_duration("PT6H"))
TOLD = FragmentSettings(
    lock_duration_ms=45_000, default_ttl_ms=6 * 3_600_000, max_delivery_count=3, dead_letters_on_expiry=True,
    duplicate_window_ms=600_000, max_size_bytes=2_048 * 1_048_576, is_express=True,
)  # fmt: skip


def test_the_fragment_of_a_queue_is_made_opened_told_and_removed() -> None:
    (placed, _) = PLACED
    logs = logs_of(Entity("e" * 32, QUEUE, (placed,), EntityStatus.ACTIVE), NAMESPACE)
    assert logs.make("ns") == [(placed, CreateFragment("a" * 32, "tasks", TOLD, "ns", 0))]
    assert logs.open("ns") == [(placed, OpenFragment("a" * 32, "tasks", TOLD, "ns", 0))]
    assert type(logs.open("ns")[0][1]) is OpenFragment, "what is opened is never made anew"
    assert logs.change() == [(placed, ChangeFragment("a" * 32, TOLD))]
    assert logs.remove() == [(placed, DeleteFragment("a" * 32))]


def test_an_express_queue_lies_in_a_log_that_answers_before_its_sync() -> None:
    express, plain = QUEUE, QueueDescription("plain")
    told = [
        CreateFragment("a" * 32, "q", fragment_settings(each, NAMESPACE), "ns", 0).log_durability
        for each in (express, plain)
    ]
    assert told == [Durability.RELAXED, Durability.DURABLE]


def test_what_was_never_set_bounds_nothing() -> None:
    settings = fragment_settings(QueueDescription("q", DeliverySettings(requires_session=True)), NAMESPACE)
    assert (settings.default_ttl_ms, settings.duplicate_window_ms, settings.requires_session) == (None, None, True)


def test_a_topic_lies_in_a_log_and_its_subscriptions_in_that() -> None:
    """What is told of subscriptions stands in test_messaging_keeper.py, where there is a namespace."""
    (placed, _) = PLACED
    description = TopicDescription("news", STORAGE)
    topic = logs_of(Entity("e" * 32, description, (placed,), EntityStatus.ACTIVE), NAMESPACE)
    settings = fragment_settings(description, NAMESPACE)
    assert topic.make("ns") == [(placed, CreateTopic("a" * 32, "news", settings, "ns"))]
    assert topic.change() == [(placed, ChangeFragment("a" * 32, settings))]
    assert topic.remove() == [(placed, DeleteFragment("a" * 32))]


def test_each_fragment_of_a_partitioned_entity_has_its_number() -> None:
    queue = logs_of(Entity("e" * 32, QUEUE, PLACED, EntityStatus.ACTIVE), NAMESPACE)
    made = [command.fragment_number for _, command in queue.make("ns") if isinstance(command, CreateFragment)]
    assert made == [0, 1] and [placement for placement, _ in queue.change()] == list(PLACED)
    topic = logs_of(Entity("e" * 32, TopicDescription("news"), PLACED, EntityStatus.ACTIVE), NAMESPACE)
    assert [placement for placement, _ in topic.make("ns")] == list(PLACED)
    made = [command.fragment_number for _, command in topic.make("ns") if isinstance(command, CreateTopic)]
    assert made == [0, 1]


@pytest.mark.parametrize(
    ("profile", "is_partitioned", "count", "megabytes"),
    [("standard", False, 1, 4_096), ("standard", True, 16, 4_096), ("standard", True, 1, 65_536),
     ("development", True, 16, 4_096), ("premium", True, 2, 2_048), ("premium", True, 1, 4_096)],
)  # fmt: skip
def test_the_whole_size_is_divided_among_fragments(
    profile: str, is_partitioned: bool, count: int, megabytes: int
) -> None:
    namespace = Namespace(Catalog(), profile=PROFILES[profile], host="ns.local")
    storage = StorageSettings(max_size_megabytes=4_096, is_partitioned=is_partitioned)
    settings = fragment_settings(QueueDescription("q", storage=storage), namespace, count)
    assert settings.max_size_bytes == megabytes * MIB


def test_a_kind_that_no_broker_keeps_is_named() -> None:
    class Other(EntityDescription, frozen=True):
        kind = EntityKind.EVENT_HUB

    with pytest.raises(NotImplementedError, match="event hub"):
        logs_of(Entity("e" * 32, Other(name="other"), PLACED, EntityStatus.ACTIVE), NAMESPACE)
