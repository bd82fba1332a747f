"""Changes are judged against the catalog as it is: each becomes one operation, or a refusal that leaves it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replace_fields
from functools import partial

import pytest
from msgspec.structs import replace

from hubweir.errors import (
    ARGUMENT_ERROR,
    ARGUMENT_OUT_OF_RANGE,
    ENTITY_EXISTS,
    NOT_FOUND,
    RESOURCE_LIMIT,
    Condition,
    ServiceError,
)
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import Operation
from hubweir.namespace.changes import Changes
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.event_hub_description import PARTITIONS_LIMIT, EventHubDescription, EventHubEntity
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DEVELOPMENT, PROFILES, Profile
from hubweir.testing.simulated_env import SimulatedEnv


class World:
    """A catalog in memory, and the judge of its changes. done: judge and apply, as the log would."""

    def __init__(self, profile: Profile = DEVELOPMENT) -> None:
        self.catalog = Catalog()
        self.env = SimulatedEnv(3)
        self.judge = Changes(
            self.catalog,
            self.env,
            profile=profile,
            host="ns.local",
            partitions_limit=PARTITIONS_LIMIT,
            capture_account="",
        )
        self.done(self.judge.describe(lambda known: replace_fields(known, name="ns")))

    def done(self, operation: Operation) -> None:
        self.catalog.apply(operation)

    def begin(self, name: str, partitions: int = 2, stores: tuple[int, ...] = (0,)) -> EventHubEntity:
        self.done(self.judge.create(EventHubDescription(name, partitions), stores))
        return self.judge.entity(name, EventHubDescription)

    def make(self, name: str, partitions: int = 2, stores: tuple[int, ...] = (0,)) -> EventHubEntity:
        self.done(self.judge.commit_create(self.begin(name, partitions, stores)))
        return self.judge.served(name, EventHubDescription)

    def refusal(self, change: Callable[[], object]) -> Condition:
        with pytest.raises(ServiceError) as refused:
            change()
        return refused.value.condition


def test_logs_of_entities_go_round_the_stores_and_begin_where_the_last_one_did_not() -> None:
    world = World()
    made = [world.make(name, 4, (5, 6, 7)) for name in ("a", "b")]
    assert [[placement.store_index for placement in entity.placements] for entity in made] == [
        [5, 6, 7, 5],
        [6, 7, 5, 6],
    ]
    assert len({placement.log_id for entity in made for placement in entity.placements}) == 8


@pytest.mark.parametrize("name", ["ORDERS", "orders/daily", "Orders/a/b"])
def test_no_entity_is_made_twice_or_inside_another(name: str) -> None:
    world = World()
    world.make("orders")
    assert world.refusal(lambda: world.judge.create(EventHubDescription(name, 1), (0,))) is ENTITY_EXISTS
    world.make("orders-daily")
    world.make("team/metrics")
    assert world.refusal(lambda: world.judge.create(EventHubDescription("Team", 1), (0,))) is ENTITY_EXISTS


def test_a_name_is_taken_from_intent_to_intent_and_free_after_the_commit() -> None:
    world, again = World(), EventHubDescription("orders", 1)
    made = world.begin("orders")
    assert world.refusal(lambda: world.judge.create(again, (0,))) is ENTITY_EXISTS
    assert world.refusal(lambda: world.judge.served("orders", EventHubDescription)) is NOT_FOUND
    assert world.refusal(lambda: world.judge.commit_delete(made)) is ARGUMENT_ERROR
    world.done(world.judge.commit_create(made))
    world.done(world.judge.delete("ORDERS", EventHubDescription))
    assert world.refusal(lambda: world.judge.commit_create(made)) is ARGUMENT_ERROR, "it is not served again"
    assert world.refusal(lambda: world.judge.create(again, (0,))) is ENTITY_EXISTS
    world.done(world.judge.commit_delete(made))
    assert world.refusal(lambda: world.judge.entity("orders", EventHubDescription)) is NOT_FOUND
    assert world.make("orders").entity_id != made.entity_id


def test_a_step_for_one_entity_is_none_for_another_that_has_its_name_by_now() -> None:
    world = World()
    first = world.make("orders")
    world.done(world.judge.delete("orders", EventHubDescription))
    world.done(world.judge.commit_delete(first))
    second = world.make("orders")
    for step in (world.judge.commit_create, world.judge.take_back, world.judge.commit_delete, world.judge.now):
        assert world.refusal(lambda step=step: step(first)) is NOT_FOUND
    assert world.judge.now(second) == second


def test_an_entity_is_no_entity_of_another_kind() -> None:
    class Other(EntityDescription, frozen=True):
        pass

    world = World()
    world.make("orders")
    for step in (
        lambda: world.judge.entity("orders", Other),
        lambda: world.judge.delete("orders", Other),
        lambda: world.judge.change("orders", Other, lambda known, context: known),
    ):
        assert world.refusal(step) is NOT_FOUND
    assert world.judge.entity("orders", EntityDescription).name == "orders"


def test_a_change_is_judged_with_what_is_known_and_what_time_it_is() -> None:
    world = World(PROFILES["basic"])
    made = world.make("orders")
    world.env.run_for(1_000)
    seen = []

    def change(known: EventHubDescription, context: object) -> EventHubDescription:
        seen.append((known, context))
        return replace(known, user_metadata="mine")

    world.done(world.judge.change("ORDERS", EventHubDescription, change))
    [(known, context)] = seen
    assert known == made.description and context == world.judge.context()
    assert (context.profile, context.host, context.now_ms) == (PROFILES["basic"], "ns.local", world.env.now_ms())
    assert world.judge.now(made).description.user_metadata == "mine"


def test_the_quota_of_hubs_holds_for_those_that_are_being_made_too() -> None:
    world = World(PROFILES["basic"])
    for number in range(9):
        world.make(f"hub-{number}")
    world.begin("the-tenth")
    assert world.refusal(lambda: world.judge.create(EventHubDescription("one-more", 1), (0,))) is RESOURCE_LIMIT


def test_what_makes_an_entity_says_nothing_of_when() -> None:
    world = World()
    world.done(world.judge.create(EventHubDescription("orders", 1, created_at_ms=1, changed_at_ms=2), (0,)))
    made = world.judge.entity("orders", EventHubDescription).description
    assert (made.created_at_ms, made.changed_at_ms) == (world.env.now_ms(), 0)


def test_a_namespace_keeps_the_day_it_was_made_and_has_a_legal_name() -> None:
    world = World()
    made_at_ms = world.catalog.namespace.created_at_ms
    world.env.run_for(1_000)
    world.done(world.judge.describe(lambda known: replace_fields(known, name="other", created_at_ms=1)))
    assert (world.catalog.namespace.name, world.catalog.namespace.created_at_ms) == ("other", made_at_ms)
    assert (
        world.refusal(lambda: world.judge.describe(lambda known: replace_fields(known, name="a b")))
        is ARGUMENT_OUT_OF_RANGE
    )


def _only(rule: AuthorizationRuleDescription, _: object) -> tuple[AuthorizationRuleDescription]:
    return (rule,)


def test_a_namespace_tells_when_it_was_changed_last_and_what_repeats_it_is_no_change() -> None:
    world = World()
    made = world.catalog.namespace
    assert (made.changed_at_ms, made.updated_at_ms) == (0, made.created_at_ms)
    world.env.run_for(1_000)
    world.done(world.judge.describe(lambda known: replace_fields(known, created_at_ms=1, changed_at_ms=2)))
    assert world.catalog.namespace == made
    world.done(world.judge.describe(lambda known: replace_fields(known, location="here")))
    changed_at_ms = world.env.now_ms()
    assert world.catalog.namespace.updated_at_ms == changed_at_ms > made.created_at_ms
    world.env.run_for(1_000)
    world.done(world.judge.describe(lambda known: known))
    assert world.catalog.namespace.updated_at_ms == changed_at_ms
    for number in (1, 2):
        world.env.run_for(1_000)
        key = Secret(f"key {number}")
        rule = AuthorizationRuleDescription("ours", Rights.SEND, key, Secret(""))
        world.done(world.judge.change_rules(None, partial(_only, rule)))
        assert world.catalog.namespace.updated_at_ms == world.env.now_ms() > changed_at_ms
