"""The catalog as a state machine."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hubweir.errors import CorruptStore
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import (
    ChangeEntity,
    CommitCreate,
    CommitDelete,
    DescribeNamespace,
    IntendCreate,
    IntendDelete,
    MoveLog,
    Operation,
    RecordUsage,
    decode_operation,
    encode,
)
from hubweir.namespace.entity import EntityKind, EntityStatus, Placement
from hubweir.namespace.event_hub_description import EventHubDescription, GroupDetails
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret

RULE = AuthorizationRuleDescription("r", Rights.SEND | Rights.LISTEN, Secret("k1"), Secret("k2"))
PLACED = (Placement("a" * 32, 0), Placement("b" * 32, 1))
MOVED = (Placement("a" * 32, 0), Placement("b" * 32, 2))
NAMESPACE = NamespaceDescription("hubweir", (RULE,), 5, UnitsDescription(3, 10, 1), ("h.example",), "basic", 2)
MADE = EventHubDescription("Hub", 2, created_at_ms=7)
CHANGED = replace(
    MADE,
    retention_ms=7_200_000,
    durability=Durability.RELAXED,
    consumer_groups=("$Default", "g"),
    group_details=(GroupDetails("g", 7, 10, "mine"),),
    capture=CaptureDescription(enabled=True, container="films"),
    revoked_publishers=("p",),
    rules=(RULE,),
)
HISTORY: list[Operation] = [
    DescribeNamespace(NamespaceDescription("first", created_at_ms=4)),
    DescribeNamespace(NAMESPACE),
    IntendCreate("1" * 32, MADE, PLACED),
    CommitCreate("1" * 32),
    ChangeEntity("1" * 32, replace(MADE, retention_ms=7_200_000)),
    ChangeEntity("1" * 32, CHANGED),
    IntendCreate("2" * 32, EventHubDescription("other", 1), (Placement("c" * 32, 0),)),
    IntendDelete("2" * 32),
    CommitDelete("2" * 32),
    IntendCreate("3" * 32, EventHubDescription("third", 1), (Placement("d" * 32, 0),)),
    MoveLog("1" * 32, "b" * 32, 2),
    RecordUsage(((3_600_000, 2, 5), (7_200_000, 3, 1)), 0),
    RecordUsage(((7_200_000, 3, 9), (10_800_000, 3, 0)), 7_200_000),
]


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
    assert len(catalog.unfinished()) == len(whole.unfinished())


def test_a_history_leaves_what_it_says() -> None:
    catalog = replay(HISTORY)
    # Secrets are not compared: their bytes are.
    assert encode(DescribeNamespace(catalog.namespace)) == encode(DescribeNamespace(NAMESPACE))
    assert catalog.namespace.rules[0].secondary.reveal() == "k2"
    hub, third = catalog.entities()
    assert catalog.find("HUB") is catalog.get("1" * 32) is hub
    assert catalog.find("other") is catalog.get("2" * 32) is None
    assert (hub.kind, hub.status, hub.is_served) == (EntityKind.EVENT_HUB, EntityStatus.ACTIVE, True)
    assert encode(ChangeEntity("", hub.description)) == encode(ChangeEntity("", CHANGED)) and hub.placements == MOVED
    assert (third.status, third.is_served) == (EntityStatus.CREATING, False)
    assert catalog.unfinished() == (third,)
    assert catalog.usage == ((7_200_000, 3, 9), (10_800_000, 3, 0))


@pytest.mark.parametrize(
    "operation",
    [
        CommitCreate("9" * 32),
        IntendDelete("9" * 32),
        CommitDelete("9" * 32),
        ChangeEntity("9" * 32, MADE),
        ChangeEntity("1" * 32, replace(MADE, name="hub")),
        MoveLog("1" * 32, "c" * 32, 1),
        MoveLog("9" * 32, "a" * 32, 1),
        IntendCreate("1" * 32, EventHubDescription("new", 1), ()),
        IntendCreate("9" * 32, EventHubDescription("HUB", 1), ()),
    ],
)
def test_an_operation_that_does_not_fit_the_history_is_corruption(operation: Operation) -> None:
    catalog = replay(HISTORY)
    before = catalog.snapshot()
    with pytest.raises(CorruptStore):
        catalog.apply(operation)
    assert catalog.snapshot() == before and catalog.version == len(HISTORY)


def test_a_change_leaves_status_and_placements_alone() -> None:
    catalog = replay([*HISTORY, IntendDelete("1" * 32), ChangeEntity("1" * 32, MADE)])
    hub = catalog.get("1" * 32)
    assert hub is not None and (hub.status, hub.placements) == (EntityStatus.DELETING, MOVED)


def test_a_log_is_its_entitys_wherever_it_lies() -> None:
    catalog = replay(HISTORY)
    for placed in (*PLACED, *MOVED):
        assert catalog.owner_of(placed.log_id) is catalog.get("1" * 32)
    assert catalog.owner_of("c" * 32) is None, "its entity is gone"
    hub = catalog.get("1" * 32)
    assert hub is not None and hub.placement("b" * 32) == MOVED[1] and hub.placement("d" * 32) is None


def test_a_snapshot_holds_what_the_namespace_used() -> None:
    catalog = replay([DescribeNamespace(NAMESPACE), RecordUsage(((3_600_000, 1, 2), (7_200_000, 3, 4)), 0)])
    assert catalog.usage == Catalog.restore(catalog.snapshot()).usage == ((3_600_000, 1, 2), (7_200_000, 3, 4))
