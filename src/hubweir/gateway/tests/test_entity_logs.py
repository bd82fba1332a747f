"""The commands for the logs of an entity, one for each placement."""

from __future__ import annotations

import pytest

from hubweir.broker.commands.partition import ChangePartition, CreatePartition, DeletePartition, OpenPartition
from hubweir.gateway.entity_logs import LogCommands, logs_of
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.entity import Entity, EntityDescription, EntityKind, EntityStatus, Placement
from hubweir.namespace.event_hub_description import EventHubDescription

PLACED = (Placement("a" * 32, 0), Placement("b" * 32, 1))
CAPTURE = CaptureDescription(enabled=True)
SETTINGS = (Durability.RELAXED, 7_200_000)
HUB = EventHubDescription("orders", 2, 7_200_000, Durability.RELAXED, capture=CAPTURE)
LOGS = logs_of(Entity("e" * 32, HUB, PLACED, EntityStatus.ACTIVE))


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


def test_a_kind_that_no_broker_keeps_is_named() -> None:
    class Other(EntityDescription, frozen=True):
        kind = EntityKind.EVENT_HUB

    with pytest.raises(NotImplementedError, match="event hub"):
        logs_of(Entity("e" * 32, Other(name="other"), PLACED, EntityStatus.ACTIVE))
