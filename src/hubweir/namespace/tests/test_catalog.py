"""The catalog as a state machine, whatever version wrote its records."""

from __future__ import annotations

import msgspec
import pytest

from hubweir.errors import CorruptStore
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import (
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
from hubweir.namespace.event_hub_entry import Placement
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret

RULE = AuthorizationRuleDescription("r", Rights.SEND | Rights.LISTEN, Secret("k1"), Secret("k2"))
PLACED = (Placement("a" * 32, 0), Placement("b" * 32, 1))
HISTORY: list[Operation] = [
    NameNamespace("hubweir", 5),
    SetRules(None, (RULE,)),
    IntendCreate(
        "1" * 32, EventHubDescription("Hub", 2, created_at_ms=7), (Placement("a" * 32, 0), Placement("b" * 32, 1))
    ),
    CommitCreate("1" * 32),
    ChangeHub("1" * 32, 7_200_000, Durability.RELAXED),
    ChangeHub("1" * 32, 7_200_000, Durability.RELAXED, Availability.SEND_DISABLED, "mine", 8),
    ChangeHub("1" * 32, 7_200_000, Durability.RELAXED),
    SetGroups("1" * 32, ("$Default", "g")),
    SetGroups("1" * 32, ("$Default", "g", "h"), GroupDetails("h", 9)),
    SetGroups("1" * 32, ("$Default", "g", "h"), GroupDetails("g", 7, 10, "mine")),
    ChangeHub("1" * 32, 7_200_000, Durability.RELAXED, capture=CaptureDescription(enabled=True, container="films")),
    SetGroups("1" * 32, ("$Default", "g")),
    SetRevoked("1" * 32, ("p",)),
    SetRules("1" * 32, (RULE,)),
    IntendCreate("2" * 32, EventHubDescription("other", 1), (Placement("c" * 32, 0),)),
    IntendDelete("2" * 32),
    CommitDelete("2" * 32),
    SetUnits(UnitsDescription(3, 10, (2, 10))),
    RecordUsage(((3_600_000, 2, 5), (7_200_000, 3, 1)), 0),
    RecordUsage(((7_200_000, 3, 9), (10_800_000, 3, 0)), 7_200_000),
]


def test_a_catalog_of_before_capture_is_read() -> None:
    """Its records have no such field: nothing is captured."""
    description = msgspec.to_builtins(EventHubDescription("Hub", 1))
    del description["capture"]
    created = {"type": "intend-create", "hub_id": "1" * 32, "description": description, "placements": [PLACED[0]]}
    changed = {"type": "change-hub", "hub_id": "1" * 32, "retention_ms": 3_600_000, "durability": 1}
    catalog = Catalog()
    for operation in (created, changed):
        catalog.apply(decode_operation(b"\x01" + msgspec.msgpack.encode(operation)))
    [hub] = catalog.hubs()
    assert (hub.description.capture, hub.description.retention_ms) == (None, 3_600_000)


def replay(operations: list[Operation]) -> Catalog:
    catalog = Catalog()
    for operation in operations:
        catalog.apply(decode_operation(memoryview(encode(operation))))
    return catalog


@pytest.mark.parametrize("cut", range(len(HISTORY) + 1))
def test_a_snapshot_at_any_point_and_the_rest_of_the_history_give_the_same_state(cut: int) -> None:
    whole = replay(HISTORY)
    catalog = Catalog.restore(replay(HISTORY[:cut]).snapshot())
    for operation in HISTORY[cut:]:
        catalog.apply(operation)
    assert catalog.version == whole.version == len(HISTORY)
    assert catalog.snapshot() == whole.snapshot()


def test_a_history_leaves_what_it_says() -> None:
    catalog = replay(HISTORY)
    assert (catalog.namespace.name, catalog.namespace.created_at_ms) == ("hubweir", 5)
    assert catalog.namespace.rules[0].rights == Rights.SEND | Rights.LISTEN
    assert catalog.namespace.rules[0].secondary.reveal() == "k2"
    (hub,) = catalog.hubs()
    assert catalog.find("HUB") is hub
    assert catalog.find("other") is None
    assert hub.description.status is EntityStatus.ACTIVE
    assert hub.description.retention_ms == 7_200_000
    assert hub.description.durability is Durability.RELAXED
    assert hub.description.consumer_groups == ("$Default", "g")
    assert hub.description.rules[0].primary.reveal() == "k1"
    assert hub.placements == PLACED
    assert catalog.namespace.units == UnitsDescription(3, 10, (2, 10))
    assert catalog.usage == ((7_200_000, 3, 9), (10_800_000, 3, 0))


@pytest.mark.parametrize(
    "operation",
    [CommitCreate("9" * 32), IntendDelete("9" * 32), CommitDelete("9" * 32), SetGroups("9" * 32, ()), HISTORY[2]],
)
def test_an_operation_that_does_not_fit_the_history_is_corruption(operation: Operation) -> None:
    catalog = replay(HISTORY)
    with pytest.raises(CorruptStore):
        catalog.apply(operation)
    assert catalog.version == len(HISTORY)


class OldChangeHub(msgspec.Struct, tag="change-hub"):
    """As versions without status and metadata wrote it."""

    hub_id: str
    retention_ms: int
    durability: int


def test_a_catalog_of_before_status_and_metadata_opens_unchanged() -> None:
    old = b"\x01" + msgspec.msgpack.encode(OldChangeHub("1" * 32, 7_200_000, 2))
    catalog = Catalog()
    made = {**msgspec.to_builtins(EventHubDescription("Hub", 2, created_at_ms=7)), "durability": 1, "status": 2}
    for newer in ("availability", "user_metadata", "changed_at_ms", "group_details"):
        del made[newer]
    intent = {"type": "intend-create", "hub_id": "1" * 32, "description": made, "placements": []}
    groups = {"type": "set-groups", "hub_id": "1" * 32, "consumer_groups": ["$Default", "g"]}
    for record in (b"\x01" + msgspec.msgpack.encode(intent), old, b"\x01" + msgspec.msgpack.encode(groups)):
        catalog.apply(decode_operation(record))
    (entry,) = catalog.hubs()
    hub = entry.description
    assert (hub.availability, hub.user_metadata, hub.updated_at_ms) == (Availability.ACTIVE, "", 7)
    assert (hub.retention_ms, hub.durability) == (7_200_000, Durability.RELAXED)
    assert hub.consumer_groups == ("$Default", "g") and hub.details_of("g") == GroupDetails("g", 7)


def test_what_is_kept_about_a_group_goes_with_it_and_not_with_another() -> None:
    hub = replay(HISTORY).hubs()[0].description
    assert hub.group_details == (GroupDetails("g", 7, 10, "mine"),)
    assert (hub.details_of("g").updated_at_ms, hub.details_of("$Default").updated_at_ms) == (10, 7)
