"""Changes are judged against the catalog as it is: each becomes one operation, or a refusal that leaves it alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.errors import ARGUMENT_ERROR, ENTITY_EXISTS, NOT_FOUND, RESOURCE_LIMIT, Condition, ServiceError
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import Operation
from hubweir.namespace.changes import Changes
from hubweir.namespace.descriptions import (
    PARTITIONS_MAX,
    REVOKED_PUBLISHERS_MAX,
    EventHubDescription,
)
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.namespace.tiers import DEVELOPMENT, PROFILES, Profile
from hubweir.testing.simulated_env import SimulatedEnv


class World:
    """A catalog in memory, and the judge of its changes. done: judge and apply, as the log would."""

    def __init__(self, profile: Profile = DEVELOPMENT) -> None:
        self.catalog = Catalog()
        env = SimulatedEnv(3)
        self.judge = Changes(self.catalog, env, profile=profile, host="ns.local", partitions_max=PARTITIONS_MAX)
        self.done(self.judge.name_namespace("ns"))

    def done(self, operation: Operation) -> None:
        self.catalog.apply(operation)

    def make(self, name: str, partitions: int = 2, stores: tuple[int, ...] = (0,)) -> None:
        self.done(self.judge.create(EventHubDescription(name, partitions), stores))
        self.done(self.judge.commit_create(name))

    def refusal(self, change: Callable[[], object]) -> Condition:
        with pytest.raises(ServiceError) as refused:
            change()
        return refused.value.condition


def test_partitions_of_hubs_go_round_the_stores_and_begin_where_the_last_hub_did_not() -> None:
    world = World()
    placed = []
    for name in ("a", "b"):
        intent = world.judge.create(EventHubDescription(name, 4), (5, 6, 7))
        placed.append([placement.store_index for placement in intent.placements])
        assert len({placement.log_id for placement in intent.placements}) == 4
        world.done(intent)
        world.done(world.judge.commit_create(name))
    assert placed == [[5, 6, 7, 5], [6, 7, 5, 6]]


@pytest.mark.parametrize("name", ["ORDERS", "orders/daily", "Orders/a/b"])
def test_no_hub_is_made_twice_or_inside_another(name: str) -> None:
    world = World()
    world.make("orders")
    assert world.refusal(lambda: world.judge.create(EventHubDescription(name, 1), (0,))) is ENTITY_EXISTS
    world.make("orders-daily")
    world.make("team/metrics")
    assert world.refusal(lambda: world.judge.create(EventHubDescription("Team", 1), (0,))) is ENTITY_EXISTS


def test_a_name_is_taken_from_intent_to_intent_and_free_after_the_commit() -> None:
    world, again = World(), EventHubDescription("orders", 1)
    world.done(world.judge.create(again, (0,)))
    assert world.refusal(lambda: world.judge.create(again, (0,))) is ENTITY_EXISTS
    assert world.refusal(lambda: world.judge.add_group("orders", "g")) is NOT_FOUND, "not served before its commit"
    assert world.refusal(lambda: world.judge.commit_delete("orders")) is ARGUMENT_ERROR
    world.done(world.judge.commit_create("orders"))
    world.done(world.judge.delete("ORDERS"))
    assert world.refusal(lambda: world.judge.commit_create("orders")) is ARGUMENT_ERROR, "it is not served again"
    assert world.refusal(lambda: world.judge.create(again, (0,))) is ENTITY_EXISTS
    world.done(world.judge.commit_delete("orders"))
    assert world.refusal(lambda: world.judge.entry("orders")) is NOT_FOUND
    world.make("orders")


def test_the_quotas_of_the_profile_hold_for_changes_too() -> None:
    world = World(PROFILES["basic"])
    world.make("orders")
    kept_ms = world.judge.entry("orders").description.retention_ms
    assert world.refusal(lambda: world.judge.add_group("orders", "more")) is RESOURCE_LIMIT
    refused = world.refusal(lambda: world.judge.change("orders", kept_ms * 30, None, None))
    assert not refused.retriable
    for number in range(9):
        world.make(f"hub-{number}")
    assert world.refusal(lambda: world.judge.create(EventHubDescription("one-more", 1), (0,))) is RESOURCE_LIMIT


def test_groups_are_found_in_any_case_and_the_default_one_stays() -> None:
    world = World()
    world.make("orders")
    world.done(world.judge.add_group("orders", "Billing", "mine"))
    assert world.refusal(lambda: world.judge.add_group("orders", "BILLING")) is ENTITY_EXISTS
    world.done(world.judge.change_group("orders", "billing", "yours"))
    assert world.judge.entry("orders").description.details_of("Billing").user_metadata == "yours"
    assert world.refusal(lambda: world.judge.remove_group("orders", DEFAULT_GROUP)) is ARGUMENT_ERROR
    world.done(world.judge.remove_group("orders", "bILLING"))
    assert world.judge.entry("orders").description.consumer_groups == (DEFAULT_GROUP,)
    assert world.refusal(lambda: world.judge.change_group("orders", "billing", "x")) is NOT_FOUND


def test_a_publisher_is_revoked_once_in_any_case_and_up_to_the_limit() -> None:
    world = World()
    world.make("orders")
    world.done(world.judge.revoke_publisher("orders", "Device"))
    assert world.judge.revoke_publisher("orders", "DEVICE").publishers == ("Device",)
    for number in range(REVOKED_PUBLISHERS_MAX - 1):
        world.done(world.judge.revoke_publisher("orders", f"d{number}"))
    assert world.refusal(lambda: world.judge.revoke_publisher("orders", "one-more")) is RESOURCE_LIMIT
    world.done(world.judge.restore_publisher("orders", "device"))
    world.done(world.judge.revoke_publisher("orders", "one-more"))
    assert world.refusal(lambda: world.judge.restore_publisher("orders", "device")) is NOT_FOUND


def test_the_number_of_partitions_never_changes_and_naming_it_again_is_no_change() -> None:
    world = World()
    world.make("orders", partitions=2)
    assert world.judge.change("orders", None, None, 2).hub_id == world.judge.entry("orders").hub_id
    assert world.refusal(lambda: world.judge.change("orders", None, None, 3)) is ARGUMENT_ERROR
