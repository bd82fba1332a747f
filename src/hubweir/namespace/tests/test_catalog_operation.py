"""catalog_operation.py: the bytes of each operation are those that were ever written; all others are refused."""

from __future__ import annotations

import msgspec
import pytest

from hubweir.errors import CorruptStore, NewerFormat, OldFormat
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.catalog_operation import (
    FORMAT_VERSION,
    CatalogState,
    ChangeEntity,
    CommitCreate,
    CommitDelete,
    DescribeNamespace,
    IntendCreate,
    IntendDelete,
    MoveLog,
    Operation,
    PutRule,
    RecordUsage,
    RemoveRule,
    decode_operation,
    decode_state,
    encode,
)
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability, Entity, EntityStatus, Placement
from hubweir.namespace.event_hub_description import EventHubDescription, GroupDetails
from hubweir.namespace.iso_duration import WrittenDuration
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    NamedValue,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    ValueType,
)
from hubweir.namespace.topic_description import TopicDescription

# Each value and what stands on the disk for it. A name, a tag or a number here never changes: catalogs hold them.
RULE = AuthorizationRuleDescription("r", Rights.SEND | Rights.LISTEN, Secret("one"), Secret(""))
RULE_MAP = {"name": "r", "rights": 3, "primary": "one", "secondary": ""}
CAPTURE = CaptureDescription(True, 60, 10_485_760, CaptureDestination.AZURE_BLOCK_BLOB, "c", "a", "{Namespace}", True)
CAPTURE_MAP = {
    "enabled": True,
    "interval_s": 60,
    "size_limit_bytes": 10_485_760,
    "destination": "EventHubArchive.AzureBlockBlob",
    "container": "c",
    "storage_account": "a",
    "archive_name_format": "{Namespace}",
    "skip_empty_archives": True,
}
GROUP, GROUP_MAP = (
    GroupDetails("g", 7, 8, "text"),
    {"name": "g", "created_at_ms": 7, "changed_at_ms": 8, "user_metadata": "text"},
)
HUB = EventHubDescription(
    "orders", 2, 3_600_000, Durability.RELAXED, ("$Default", "g"), (GROUP,), ("p",), CAPTURE,
    created_at_ms=5, changed_at_ms=6, availability=Availability.SEND_DISABLED, user_metadata="mine", rules=(RULE,),
)  # fmt: skip
HUB_MAP = {
    "type": "event-hub",
    "name": "orders",
    "partition_count": 2,
    "retention_ms": 3_600_000,
    "durability": 2,
    "consumer_groups": ["$Default", "g"],
    "group_details": [GROUP_MAP],
    "revoked_publishers": ["p"],
    "capture": CAPTURE_MAP,
    "created_at_ms": 5,
    "changed_at_ms": 6,
    "availability": 3,
    "user_metadata": "mine",
    "rules": [RULE_MAP],
}
SPAN, SPAN_MAP = WrittenDuration(60_000, "PT60S"), {"ms": 60_000, "text": "PT60S"}
DELIVERY = DeliverySettings(
    lock_duration=SPAN, max_delivery_count=3, requires_session=True, dead_letters_on_expiration=True,
    forward_to="sb://h/q", forward_dead_letters_to="dead",
)  # fmt: skip
DELIVERY_MAP = {
    "lock_duration": SPAN_MAP,
    "max_delivery_count": 3,
    "requires_session": True,
    "dead_letters_on_expiration": True,
    "forward_to": "sb://h/q",
    "forward_dead_letters_to": "dead",
}
STORAGE = StorageSettings(
    max_size_megabytes=2_048, requires_duplicate_detection=True, duplicate_window=SPAN, is_partitioned=True,
    is_express=True, support_ordering=False, max_message_kilobytes=2_000,
)  # fmt: skip
STORAGE_MAP = {
    "max_size_megabytes": 2_048,
    "requires_duplicate_detection": True,
    "duplicate_window": SPAN_MAP,
    "is_partitioned": True,
    "is_express": True,
    "support_ordering": False,
    "max_message_kilobytes": 2_000,
}
VALUE, VALUE_MAP = NamedValue("@n", ValueType.INT, "1"), {"name": "@n", "type": "int", "text": "1"}
SQL_RULE = SubscriptionRuleDescription(
    "r", SqlFilterDescription("a = @n", (VALUE,)), SqlActionDescription("SET a = @n", (VALUE,)), 9
)
SQL_RULE_MAP = {
    "name": "r",
    "filter": {"type": "sql", "expression": "a = @n", "parameters": [VALUE_MAP]},
    "action": {"expression": "SET a = @n", "parameters": [VALUE_MAP]},
    "created_at_ms": 9,
}
CORRELATION = CorrelationFilterDescription(
    correlation_id="a", message_id="b", to="c", reply_to="d", label="e", session_id="f", reply_to_session_id="g",
    content_type="h", properties=(VALUE,),
)  # fmt: skip
CORRELATION_MAP = {
    "type": "correlation",
    "correlation_id": "a",
    "message_id": "b",
    "to": "c",
    "reply_to": "d",
    "label": "e",
    "session_id": "f",
    "reply_to_session_id": "g",
    "content_type": "h",
    "properties": [VALUE_MAP],
}
COMMON = {
    "created_at_ms": 5, "changed_at_ms": 6, "availability": Availability.SEND_DISABLED, "user_metadata": "mine",
    "rules": (RULE,), "default_time_to_live": SPAN, "auto_delete_on_idle": SPAN, "enable_batched_operations": False,
}  # fmt: skip
COMMON_MAP = {
    "created_at_ms": 5,
    "changed_at_ms": 6,
    "availability": 3,
    "user_metadata": "mine",
    "rules": [RULE_MAP],
    "default_time_to_live": SPAN_MAP,
    "auto_delete_on_idle": SPAN_MAP,
    "enable_batched_operations": False,
}
QUEUE = QueueDescription("q", DELIVERY, STORAGE, **COMMON)  # type: ignore[arg-type]
QUEUE_MAP = {"type": "queue", "name": "q", "delivery": DELIVERY_MAP, "storage": STORAGE_MAP, **COMMON_MAP}
TOPIC = TopicDescription("t", STORAGE, **COMMON)  # type: ignore[arg-type]
TOPIC_MAP = {"type": "topic", "name": "t", "storage": STORAGE_MAP, **COMMON_MAP}
SUBSCRIPTION = SubscriptionDescription("t/Subscriptions/s", DELIVERY, False, SQL_RULE, **COMMON)  # type: ignore[arg-type]
SUBSCRIPTION_MAP = {
    "type": "subscription",
    "name": "t/Subscriptions/s",
    "delivery": DELIVERY_MAP,
    "dead_letters_on_filter_errors": False,
    "first_rule": SQL_RULE_MAP,
    **COMMON_MAP,
}
PLACED, PLACED_MAP = Placement("ab" * 16, 0), {"log_id": "ab" * 16, "store_index": 0}
UNITS, UNITS_MAP = UnitsDescription(2, 4, 1), {"held": 2, "maximum": 4, "inflated": 1}
NAMESPACE = NamespaceDescription(
    "ns", (RULE,), 5, UNITS, ("h.example",), "basic", 3, True, True, "here", (("team", "shop"),), 6
)
NAMESPACE_MAP = {
    "name": "ns",
    "rules": [RULE_MAP],
    "created_at_ms": 5,
    "units": UNITS_MAP,
    "hostnames": ["h.example"],
    "profile": "basic",
    "default_rank": 3,
    "is_made_running": True,
    "is_deleting": True,
    "location": "here",
    "tags": [["team", "shop"]],
    "changed_at_ms": 6,
}
DESCRIBED = DescribeNamespace(NAMESPACE)

ON_DISK: list[tuple[Operation, dict[str, object]]] = [
    (DESCRIBED, {"type": "describe-namespace", "namespace": NAMESPACE_MAP}),
    (
        IntendCreate("h1", HUB, (PLACED,)),
        {"type": "intend-create", "entity_id": "h1", "description": HUB_MAP, "placements": [PLACED_MAP]},
    ),
    (CommitCreate("h1"), {"type": "commit-create", "entity_id": "h1"}),
    (ChangeEntity("h1", HUB), {"type": "change-entity", "entity_id": "h1", "description": HUB_MAP}),
    (ChangeEntity("q1", QUEUE), {"type": "change-entity", "entity_id": "q1", "description": QUEUE_MAP}),
    (ChangeEntity("t1", TOPIC), {"type": "change-entity", "entity_id": "t1", "description": TOPIC_MAP}),
    (
        IntendCreate("s1", SUBSCRIPTION, ()),
        {"type": "intend-create", "entity_id": "s1", "description": SUBSCRIPTION_MAP, "placements": []},
    ),
    (PutRule("s1", SQL_RULE), {"type": "put-rule", "entity_id": "s1", "rule": SQL_RULE_MAP}),
    (
        PutRule("s1", SubscriptionRuleDescription("c", CORRELATION)),
        {
            "type": "put-rule",
            "entity_id": "s1",
            "rule": {"name": "c", "filter": CORRELATION_MAP, "action": None, "created_at_ms": 0},
        },
    ),
    (
        PutRule("s1", SubscriptionRuleDescription(filter=FalseFilterDescription())),
        {
            "type": "put-rule",
            "entity_id": "s1",
            "rule": {"name": "$Default", "filter": {"type": "false"}, "action": None, "created_at_ms": 0},
        },
    ),
    (RemoveRule("s1", "r"), {"type": "remove-rule", "entity_id": "s1", "name": "r"}),
    (IntendDelete("h1"), {"type": "intend-delete", "entity_id": "h1"}),
    (CommitDelete("h1"), {"type": "commit-delete", "entity_id": "h1"}),
    (
        MoveLog("h1", "d" * 32, 7),
        {"type": "move-log", "entity_id": "h1", "log_id": "d" * 32, "store_index": 7},
    ),
    (
        RecordUsage(((3_600_000, 1, 2),), 3_600_000),
        {"type": "record-usage", "hours": [[3_600_000, 1, 2]], "oldest_hour_ms": 3_600_000},
    ),
]
STATE = CatalogState(
    3, NAMESPACE, (Entity("h1", HUB, (PLACED,), EntityStatus.DELETING),), ((1, 2),), {"s1": (SQL_RULE,)}
)
STATE_MAP = {
    "type": "state",
    "version": 3,
    "namespace": NAMESPACE_MAP,
    "entities": [{"entity_id": "h1", "description": HUB_MAP, "placements": [PLACED_MAP], "status": 3}],
    "usage": [[1, 2]],
    "subscription_rules": {"s1": [SQL_RULE_MAP]},
}


def stored(document: dict[str, object]) -> bytes:
    return b"\x03" + msgspec.msgpack.encode(document)


@pytest.mark.parametrize(("operation", "document"), ON_DISK, ids=lambda value: type(value).__name__)
def test_the_bytes_of_an_operation_have_not_changed(operation: Operation, document: dict[str, object]) -> None:
    data = encode(operation)
    assert data[0] == 3 and msgspec.msgpack.decode(data[1:]) == document
    assert encode(decode_operation(stored(document))) == data


def test_a_namespace_that_was_described_before_it_could_be_made_running_is_read() -> None:
    before = {name: value for name, value in NAMESPACE_MAP.items() if name not in ("is_made_running", "is_deleting")}
    read = decode_operation(stored({"type": "describe-namespace", "namespace": before}))
    assert isinstance(read, DescribeNamespace)
    assert (read.namespace.is_made_running, read.namespace.is_deleting) == (False, False)


def test_the_bytes_of_a_snapshot_have_not_changed() -> None:
    data = encode(STATE)
    assert data[0] == 3 and msgspec.msgpack.decode(data[1:]) == STATE_MAP
    assert encode(decode_state(stored(STATE_MAP))) == data


def test_every_operation_is_in_the_table_above() -> None:
    assert {type(operation) for operation, _ in ON_DISK} == set(Operation.__args__)


def test_keys_come_back_as_secrets() -> None:
    for operation in (DESCRIBED, ChangeEntity("h1", HUB)):
        found = decode_operation(encode(operation))
        assert isinstance(found, DescribeNamespace | ChangeEntity)
        (rule,) = found.namespace.rules if isinstance(found, DescribeNamespace) else found.description.rules
        assert isinstance(rule.primary, Secret) and rule.primary.reveal() == "one" and not rule.secondary


def test_a_field_that_is_not_known_yet_is_stepped_over_and_a_type_is_not() -> None:
    assert decode_operation(stored({"type": "commit-create", "entity_id": "h1", "later": 1})) == CommitCreate("h1")
    with pytest.raises(CorruptStore):
        decode_operation(stored({"type": "commit-rename", "entity_id": "h1"}))


def test_fields_that_came_later_have_defaults() -> None:
    hub = {"type": "event-hub", "name": "orders", "partition_count": 2}
    changed = decode_operation(stored({"type": "change-entity", "entity_id": "h1", "description": hub}))
    assert changed == ChangeEntity("h1", EventHubDescription("orders", 2))
    for kind, description in (
        ("queue", QueueDescription("e")),
        ("topic", TopicDescription("e")),
        ("subscription", SubscriptionDescription("e")),
    ):
        document = {"type": "change-entity", "entity_id": "e1", "description": {"type": kind, "name": "e"}}
        assert decode_operation(stored(document)) == ChangeEntity("e1", description)
    state = {"type": "state", "version": 1, "namespace": {"name": "ns"}, "entities": []}
    assert decode_state(stored(state)) == CatalogState(1, NamespaceDescription("ns"), (), ())


@pytest.mark.parametrize("kind", ["stream", "event hub", "", None])
def test_an_entity_of_a_kind_that_is_not_known_is_refused(kind: str | None) -> None:
    hub = {**HUB_MAP, "type": kind}
    for document in (
        {"type": "change-entity", "entity_id": "h1", "description": hub},
        {"type": "intend-create", "entity_id": "h1", "description": hub, "placements": []},
    ):
        with pytest.raises(CorruptStore):
            decode_operation(stored(document))


@pytest.mark.parametrize("cut", range(1, len(encode(ON_DISK[3][0]))))
def test_an_operation_that_is_cut_anywhere_is_corruption(cut: int) -> None:
    with pytest.raises(CorruptStore):
        decode_operation(encode(ON_DISK[3][0])[:cut])


def test_a_snapshot_is_no_operation() -> None:
    with pytest.raises(CorruptStore):
        decode_operation(encode(STATE))


def test_another_format_is_refused_and_rubbish_is_corruption() -> None:
    data = encode(DESCRIBED)
    with pytest.raises(NewerFormat):
        decode_operation(bytes([FORMAT_VERSION + 1]) + data[1:])
    with pytest.raises(OldFormat):
        decode_operation(bytes([FORMAT_VERSION - 1]) + data[1:])
    for rubbish in (
        b"",
        data[:1],
        data[:-1],
        data + b"x",
        data[:1] + b"\xc0",
        data[:1] + b"\x81\xa1a\x01",
    ):
        with pytest.raises(CorruptStore):
            decode_operation(rubbish)
    with pytest.raises(CorruptStore):
        decode_state(data)


def test_what_a_corrupt_record_s_error_says_holds_no_key() -> None:
    data = encode(DESCRIBED).replace(b"\xa3one", b"\xc4\x03one")
    with pytest.raises(CorruptStore) as refused:
        decode_operation(data)
    assert "one" not in str(refused.value)
