"""What the doors of management show, and changes of a hub in one step, refused as a whole or done as a whole."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from hubweir.broker.commands.capture import CaptureState
from hubweir.broker.commands.partition import AskPartitionInfo, PartitionInfo
from hubweir.broker.commands.process import Refusal
from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, STORE_OFFLINE, ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.namespace.event_hub_changes import add_group, set_settings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription, Rules
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DAY_MS


def rule(name: str) -> AuthorizationRuleDescription:
    return AuthorizationRuleDescription(name, Rights.SEND, Secret("key"), Secret(""))


def change(world: World, wanted: EventHubDescription, rules: Rules | None = None) -> Any:
    its = partial(set_settings, wanted=wanted, rules=rules)
    return world.wait(lambda done: world.gateway.keeper.change("hub", EventHubDescription, its, done))


def test_settings_and_rules_change_together() -> None:
    world = World()
    management = world.gateway.management
    wanted = replace(management.hub("hub"), retention_ms=2 * DAY_MS)
    changed = change(world, wanted, (rule("a"), rule("b")))
    assert (changed.retention_ms, [known.name for known in changed.rules]) == (2 * DAY_MS, ["a", "b"])
    change(world, replace(wanted, retention_ms=DAY_MS))
    hub = management.hub("hub")
    assert (hub.retention_ms, len(hub.rules)) == (DAY_MS, 2)


def test_a_change_that_cannot_be_changes_nothing() -> None:
    world = World()
    management = world.gateway.management
    hub = management.hub("hub")
    for wanted, rules, condition in (
        (replace(hub, retention_ms=2 * DAY_MS), (rule("a"), rule("A")), ARGUMENT_OUT_OF_RANGE),
        (replace(hub, partition_count=8), (rule("a"),), ARGUMENT_ERROR),
    ):
        answer = change(world, wanted, rules)
        assert isinstance(answer, ServiceError) and answer.condition is condition
    assert (management.hub("hub").retention_ms, management.hub("hub").rules) == (hub.retention_ms, ())


def test_a_group_is_found_as_it_was_created() -> None:
    world = World()
    world.wait(
        lambda done: world.gateway.keeper.change("hub", EventHubDescription, partial(add_group, name="Readers"), done)
    )
    assert world.gateway.management.group("HUB", "readers") == "Readers"
    with pytest.raises(ServiceError):
        world.gateway.management.group("hub", "nobody")


def test_the_owner_of_a_partition_is_asked_and_its_refusal_told() -> None:
    world = World()
    view = world.gateway.management
    info = world.wait(partial(view.partition_info, "HUB", "1"))
    assert isinstance(info, PartitionInfo) and info.log_id == world.gateway.directory.partition("hub", "1").log_id
    assert isinstance(world.wait(partial(view.capture_state, "hub", "1")), CaptureState)
    world.gate.refuse[AskPartitionInfo] = Refusal(STORE_OFFLINE, "sick")
    refused = world.wait(partial(view.partition_info, "hub", "1"))
    assert isinstance(refused, ServiceError) and refused.condition is STORE_OFFLINE
    with pytest.raises(ServiceError):
        view.partition_info("hub", "99", pytest.fail)
