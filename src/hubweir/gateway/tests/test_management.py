"""What the doors of management share: changes of a hub in one step, refused as a whole or done as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.namespace.descriptions import DAY_MS, AuthorizationRuleDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret


def rule(name: str) -> AuthorizationRuleDescription:
    return AuthorizationRuleDescription(name, Rights.SEND, Secret("key"), Secret(""))


def test_settings_and_rules_change_together() -> None:
    world = World()
    management = world.gateway.management
    wanted = replace(management.hub("hub"), retention_ms=2 * DAY_MS)
    changed = world.wait(lambda done: management.change_hub(wanted, done, rules=(rule("a"), rule("b"))))
    assert (changed.retention_ms, [known.name for known in changed.rules]) == (2 * DAY_MS, ["a", "b"])
    world.wait(lambda done: management.change_hub(replace(wanted, retention_ms=DAY_MS), done))
    hub = management.hub("hub")
    assert (hub.retention_ms, len(hub.rules)) == (DAY_MS, 2)


def test_a_change_that_cannot_be_changes_nothing() -> None:
    world = World()
    management = world.gateway.management
    hub = management.hub("hub")
    with pytest.raises(ServiceError) as refusal:
        management.change_hub(replace(hub, retention_ms=2 * DAY_MS), pytest.fail, rules=(rule("a"), rule("A")))
    assert refusal.value.condition is ARGUMENT_OUT_OF_RANGE
    more = replace(hub, partition_count=8)
    answer = world.wait(lambda done: management.change_hub(more, done, rules=(rule("a"),)))
    assert isinstance(answer, ServiceError) and answer.condition is ARGUMENT_ERROR
    assert (management.hub("hub").retention_ms, management.hub("hub").rules) == (hub.retention_ms, ())


def test_a_group_is_found_as_it_was_created() -> None:
    world = World()
    world.wait(lambda done: world.gateway.management.create_group("hub", "Readers", done))
    assert world.gateway.management.group("HUB", "readers") == "Readers"
    with pytest.raises(ServiceError):
        world.gateway.management.group("hub", "nobody")
