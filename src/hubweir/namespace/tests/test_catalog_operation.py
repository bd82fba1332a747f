"""catalog_operation.py: the bytes of each operation are those that were ever written; all others are refused."""

from __future__ import annotations

import msgspec
import pytest

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.catalog_operation import (
    CatalogState,
    ChangeHub,
    CommitCreate,
    CommitDelete,
    IntendCreate,
    IntendDelete,
    NameNamespace,
    Operation,
    RecordUsage,
    SetGroups,
    SetRevoked,
    SetRules,
    SetUnits,
    decode_operation,
    decode_state,
    encode,
)
from hubweir.namespace.descriptions import (
    AuthorizationRuleDescription,
    Availability,
    EntityStatus,
    EventHubDescription,
    GroupDetails,
    UnitsDescription,
)
from hubweir.namespace.event_hub_entry import EventHubEntry, Placement
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret

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
    "orders", 2, 3_600_000, Durability.RELAXED, ("$Default", "g"), 5, EntityStatus.CREATING, (RULE,), ("p",),
    Availability.SEND_DISABLED, "mine", 6, (GROUP,), CAPTURE,
)  # fmt: skip
HUB_MAP = {
    "name": "orders",
    "partition_count": 2,
    "retention_ms": 3_600_000,
    "durability": 2,
    "consumer_groups": ["$Default", "g"],
    "created_at_ms": 5,
    "status": 1,
    "rules": [RULE_MAP],
    "revoked_publishers": ["p"],
    "availability": 3,
    "user_metadata": "mine",
    "changed_at_ms": 6,
    "group_details": [GROUP_MAP],
    "capture": CAPTURE_MAP,
}
PLACED, PLACED_MAP = Placement("ab" * 16, 0), {"log_id": "ab" * 16, "store_index": 0}
UNITS, UNITS_MAP = UnitsDescription(2, 4, (1, 3)), {"held": 2, "maximum": 4, "from_settings": [1, 3]}
NAMED = NameNamespace("ns", 5)

ON_DISK: list[tuple[Operation, dict[str, object]]] = [
    (NAMED, {"type": "name-namespace", "name": "ns", "created_at_ms": 5}),
    (
        IntendCreate("h1", HUB, (PLACED,)),
        {"type": "intend-create", "hub_id": "h1", "description": HUB_MAP, "placements": [PLACED_MAP]},
    ),
    (CommitCreate("h1"), {"type": "commit-create", "hub_id": "h1"}),
    (IntendDelete("h1"), {"type": "intend-delete", "hub_id": "h1"}),
    (CommitDelete("h1"), {"type": "commit-delete", "hub_id": "h1"}),
    (
        ChangeHub("h1", 7_200_000, Durability.DURABLE, Availability.ACTIVE, "", 9, CAPTURE),
        {
            "type": "change-hub", "hub_id": "h1", "retention_ms": 7_200_000, "durability": 1, "availability": 1,
            "user_metadata": "", "changed_at_ms": 9, "capture": CAPTURE_MAP,
        },
    ),
    (
        SetGroups("h1", ("$Default", "g"), GROUP),
        {"type": "set-groups", "hub_id": "h1", "consumer_groups": ["$Default", "g"], "details": GROUP_MAP},
    ),
    (SetRevoked("h1", ("p",)), {"type": "set-revoked", "hub_id": "h1", "publishers": ["p"]}),
    (SetRules(None, (RULE,)), {"type": "set-rules", "hub_id": None, "rules": [RULE_MAP]}),
    (SetUnits(UNITS), {"type": "set-units", "units": UNITS_MAP}),
    (
        RecordUsage(((3_600_000, 1, 2),), 3_600_000),
        {"type": "record-usage", "hours": [[3_600_000, 1, 2]], "oldest_hour_ms": 3_600_000},
    ),
]  # fmt: skip
STATE = CatalogState(3, "ns", 5, (RULE,), (EventHubEntry("h1", HUB, (PLACED,)),), UNITS, ((1, 2),))
STATE_MAP = {
    "type": "state",
    "version": 3,
    "name": "ns",
    "created_at_ms": 5,
    "rules": [RULE_MAP],
    "hubs": [{"hub_id": "h1", "description": HUB_MAP, "placements": [PLACED_MAP]}],
    "units": UNITS_MAP,
    "usage": [[1, 2]],
}


def stored(document: dict[str, object]) -> bytes:
    return b"\x01" + msgspec.msgpack.encode(document)


@pytest.mark.parametrize(("operation", "document"), ON_DISK, ids=lambda value: type(value).__name__)
def test_the_bytes_of_an_operation_have_not_changed(operation: Operation, document: dict[str, object]) -> None:
    data = encode(operation)
    assert data[0] == 1 and msgspec.msgpack.decode(data[1:]) == document
    assert encode(decode_operation(stored(document))) == data


def test_the_bytes_of_a_snapshot_have_not_changed() -> None:
    data = encode(STATE)
    assert data[0] == 1 and msgspec.msgpack.decode(data[1:]) == STATE_MAP
    assert encode(decode_state(stored(STATE_MAP))) == data


def test_every_operation_is_in_the_table_above() -> None:
    assert {type(operation) for operation, _ in ON_DISK} == set(Operation.__args__)


def test_keys_come_back_as_secrets() -> None:
    rules = decode_operation(encode(SetRules(None, (RULE,))))
    assert isinstance(rules, SetRules) and isinstance(rules.rules[0].primary, Secret)
    assert rules.rules[0].primary.reveal() == "one" and not rules.rules[0].secondary


def test_a_field_that_is_not_known_yet_is_stepped_over_and_a_type_is_not() -> None:
    assert decode_operation(stored({"type": "commit-create", "hub_id": "h1", "later": 1})) == CommitCreate("h1")
    with pytest.raises(CorruptStore):
        decode_operation(stored({"type": "commit-rename", "hub_id": "h1"}))


def test_fields_that_came_later_have_defaults() -> None:
    old = {"type": "change-hub", "hub_id": "h1", "retention_ms": 3_600_000, "durability": 1}
    assert decode_operation(stored(old)) == ChangeHub("h1", 3_600_000, Durability.DURABLE, None, None, 0, None)
    state = {"type": "state", "version": 1, "name": "ns", "created_at_ms": 5, "rules": [], "hubs": []}
    assert decode_state(stored(state)) == CatalogState(1, "ns", 5, (), (), UnitsDescription(), ())


@pytest.mark.parametrize("cut", range(1, len(encode(ON_DISK[6][0]))))
def test_an_operation_that_is_cut_anywhere_is_corruption(cut: int) -> None:
    with pytest.raises(CorruptStore):
        decode_operation(encode(ON_DISK[6][0])[:cut])


def test_a_snapshot_is_no_operation() -> None:
    with pytest.raises(CorruptStore):
        decode_operation(encode(STATE))


def test_a_newer_format_is_refused_and_rubbish_is_corruption() -> None:
    data = encode(NAMED)
    with pytest.raises(NewerFormat):
        decode_operation(bytes([data[0] + 1]) + data[1:])
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
    data = encode(SetRules(None, (RULE,))).replace(b"\xa3one", b"\xc4\x03one")
    with pytest.raises(CorruptStore) as refused:
        decode_operation(data)
    assert "one" not in str(refused.value)
