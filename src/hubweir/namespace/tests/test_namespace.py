"""A namespace on a real log: its changes and its refusals. (`process` and `start`: conftest.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.errors import (
    ARGUMENT_ERROR,
    ARGUMENT_OUT_OF_RANGE,
    ENTITY_EXISTS,
    NOT_FOUND,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    Condition,
    ServiceError,
)
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.namespace.catalog_log import WAITING_LIMIT
from hubweir.namespace.descriptions import (
    DAY_MS,
    HOUR_MS,
    AuthorizationRuleDescription,
    EntityStatus,
    EventHubDescription,
)
from hubweir.namespace.event_hub_entry import EventHubEntry
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import PROFILES
from hubweir.testing.simulated_env import SimulatedEnv

CATALOG = "c" * 32


def refused(process: Any, change: Callable[[Callable[[object], None]], None], condition: Condition) -> str:
    version = process.namespace.version
    with pytest.raises(ServiceError) as refusal:
        process.ask(change)
    assert refusal.value.condition is condition
    assert process.namespace.version == version
    return refusal.value.text


def test_a_hub_is_found_after_commit_and_not_before(process: Any) -> None:
    namespace, hub = process.namespace, EventHubDescription("Flights", 4, retention_ms=HOUR_MS)
    intent = process.ask(lambda done: namespace.begin_create_hub(hub, [0, 1], done))
    assert intent.description.status is EntityStatus.CREATING
    assert namespace.find_hub("flights") is None
    assert namespace.hubs() == ()
    assert namespace.unfinished() == (intent,)
    entry = process.ask(lambda done: namespace.commit_create_hub("FLIGHTS", done))
    assert namespace.find_hub("fLIGHTS") == entry
    assert namespace.hub_name("flights") == "Flights"
    assert namespace.unfinished() == ()
    assert entry.description.created_at_ms == process.env._start_ms
    assert entry.description.consumer_groups == ("$Default",)
    assert [placement.store_index for placement in entry.placements] == [0, 1, 0, 1]
    assert len({placement.log_id for placement in entry.placements}) == 4


def test_hubs_spread_their_first_partitions_over_the_stores(process: Any) -> None:
    for name in ("a", "b", "c"):
        process.ask(
            lambda done, name=name: process.namespace.begin_create_hub(EventHubDescription(name, 1), [4, 5], done)
        )
    assert [hub.placements[0].store_index for hub in process.namespace.unfinished()] == [4, 5, 4]


def test_a_deleted_hub_is_not_found_from_the_intent_on_and_its_name_is_free_after_commit(process: Any) -> None:
    first, namespace = process.create("hub"), process.namespace
    process.ask(lambda done: namespace.begin_delete_hub("hub", done))
    assert namespace.find_hub("hub") is None
    assert "is being deleted" in refused(
        process, lambda done: namespace.begin_create_hub(EventHubDescription("HUB", 1), [0], done), ENTITY_EXISTS
    )
    gone = process.ask(lambda done: namespace.commit_delete_hub("hub", done))
    assert gone.hub_id == first.hub_id
    second = process.create("HUB", 5)
    assert second.hub_id != first.hub_id
    assert not {p.log_id for p in first.placements} & {p.log_id for p in second.placements}


def test_a_creation_that_failed_is_taken_back(process: Any) -> None:
    process.ask(lambda done: process.namespace.begin_create_hub(EventHubDescription("hub", 1), [0], done))
    process.delete("hub")
    assert process.namespace.unfinished() == ()
    assert process.create("hub").description.status is EntityStatus.ACTIVE


def test_what_cannot_be_created_is_refused_with_the_reason(process: Any) -> None:
    process.create("Team/Hub", 2)
    namespace = process.namespace

    def create(name: str, partitions: int = 1, **settings: object) -> Callable[[Callable[[object], None]], None]:
        hub = EventHubDescription(name, partitions, **settings)  # type: ignore[arg-type]
        return lambda done: namespace.begin_create_hub(hub, [0], done)

    assert "'Team/Hub' exists already" in refused(process, create("TEAM/HUB"), ENTITY_EXISTS)
    assert "inside one another" in refused(process, create("team"), ENTITY_EXISTS)
    assert "inside one another" in refused(process, create("team/hub/more"), ENTITY_EXISTS)
    assert "1 to 32" in refused(process, create("h", 0), ARGUMENT_OUT_OF_RANGE)
    assert "1 to 32" in refused(process, create("h", 33), ARGUMENT_OUT_OF_RANGE)
    assert "90 days" in refused(process, create("h", 1, retention_ms=90 * DAY_MS + 1), ARGUMENT_OUT_OF_RANGE)
    assert "1 hour" in refused(process, create("h", 1, retention_ms=HOUR_MS - 1), ARGUMENT_OUT_OF_RANGE)
    refused(process, create("$cbs"), ARGUMENT_OUT_OF_RANGE)
    assert process.create("team/hub2", 32).description.partition_count == 32


def test_the_partition_count_never_changes(process: Any) -> None:
    process.create("hub", 4)
    text = refused(process, lambda done: process.namespace.change_hub("hub", done, partition_count=8), ARGUMENT_ERROR)
    assert "has 4 partitions for its whole life" in text
    entry = process.ask(lambda done: process.namespace.change_hub("hub", done, partition_count=4))
    assert entry.description.partition_count == 4


def test_retention_and_durability_change_one_at_a_time(process: Any) -> None:
    process.create("hub")
    namespace = process.namespace
    process.ask(lambda done: namespace.change_hub("hub", done, retention_ms=2 * DAY_MS))
    entry = process.ask(lambda done: namespace.change_hub("hub", done, durability=Durability.RELAXED))
    assert (entry.description.retention_ms, entry.description.durability) == (2 * DAY_MS, Durability.RELAXED)
    refused(process, lambda done: namespace.change_hub("hub", done, retention_ms=1), ARGUMENT_OUT_OF_RANGE)


def test_consumer_groups_come_and_go_in_any_case_and_default_stays(process: Any) -> None:
    process.create("hub")
    namespace = process.namespace
    entry = process.ask(lambda done: namespace.add_consumer_group("HUB", "Reports", done))
    assert entry.description.consumer_groups == ("$Default", "Reports")
    assert "'Reports' already" in refused(
        process, lambda done: namespace.add_consumer_group("hub", "REPORTS", done), ENTITY_EXISTS
    )
    refused(process, lambda done: namespace.add_consumer_group("hub", "$DEFAULT", done), ENTITY_EXISTS)
    refused(process, lambda done: namespace.add_consumer_group("hub", "a/b", done), ARGUMENT_OUT_OF_RANGE)
    assert "stays" in refused(
        process, lambda done: namespace.remove_consumer_group("hub", "$default", done), ARGUMENT_ERROR
    )
    text = refused(process, lambda done: namespace.remove_consumer_group("hub", "Other", done), NOT_FOUND)
    assert text.startswith("The messaging entity 'sb://ns.local/hub/consumergroups/other' could not be found.")
    entry = process.ask(lambda done: namespace.remove_consumer_group("hub", "reports", done))
    assert entry.description.consumer_groups == ("$Default",)


@pytest.mark.parametrize("change", ["change_hub", "begin_delete_hub", "commit_create_hub", "commit_delete_hub"])
def test_a_hub_that_is_not_there_is_not_found_in_the_words_that_clients_match(process: Any, change: str) -> None:
    text = refused(process, lambda done: getattr(process.namespace, change)("None", done), NOT_FOUND)
    assert text.startswith("The messaging entity 'sb://ns.local/none' could not be found.")
    with pytest.raises(ServiceError) as refusal:
        process.namespace.get_hub("None")
    assert refusal.value.condition is NOT_FOUND


def test_a_commit_without_its_intent_is_refused(process: Any) -> None:
    process.create("hub")
    refused(process, lambda done: process.namespace.commit_delete_hub("hub", done), ARGUMENT_ERROR)
    process.ask(lambda done: process.namespace.begin_delete_hub("hub", done))
    refused(process, lambda done: process.namespace.commit_create_hub("hub", done), ARGUMENT_ERROR)


def test_a_hub_that_is_not_served_is_not_changed(process: Any) -> None:
    namespace = process.namespace
    process.ask(lambda done: namespace.begin_create_hub(EventHubDescription("made", 1), [0], done))
    process.create("removed")
    process.ask(lambda done: namespace.begin_delete_hub("removed", done))
    for hub in ("made", "removed"):
        refused(process, lambda done, hub=hub: namespace.change_hub(hub, done, retention_ms=HOUR_MS), NOT_FOUND)
        refused(process, lambda done, hub=hub: namespace.add_consumer_group(hub, "g", done), NOT_FOUND)
        refused(process, lambda done, hub=hub: namespace.set_rule(hub, rule("r"), done), NOT_FOUND)


def rule(name: str, key: str = "key") -> AuthorizationRuleDescription:
    return AuthorizationRuleDescription(name, Rights.SEND, Secret(key), Secret(""))


def test_rules_are_kept_on_both_levels_and_the_hub_s_come_first(process: Any) -> None:
    process.create("Team/Hub")
    namespace = process.namespace
    process.ask(lambda done: namespace.set_rule(None, rule("policy", "namespace key"), done))
    process.ask(lambda done: namespace.set_rule("team/hub", rule("policy", "hub key"), done))
    process.ask(lambda done: namespace.set_rule(None, rule("POLICY", "rotated key"), done))
    process = process.restarted()

    def keys(*segments: str) -> list[list[str]]:
        return [[r.primary.reveal() for r in rules] for rules in process.namespace.rules_at(segments)]

    assert keys("team", "hub", "partitions", "0") == [["hub key"], ["rotated key"]]
    assert keys("team") == keys() == keys("other", "hub") == [["rotated key"]]
    process.ask(lambda done: process.namespace.remove_rule("team/hub", "Policy", done))
    assert keys("team", "hub") == [[], ["rotated key"]]
    refused(process, lambda done: process.namespace.remove_rule(None, "nobody", done), NOT_FOUND)


def test_a_level_has_at_most_twelve_rules_and_each_may_still_be_replaced(process: Any) -> None:
    for number in range(12):
        process.ask(lambda done, number=number: process.namespace.set_rule(None, rule(f"r{number}"), done))
    text = refused(process, lambda done: process.namespace.set_rule(None, rule("r12"), done), RESOURCE_LIMIT)
    assert "12 authorization rules" in text
    process.ask(lambda done: process.namespace.set_rule(None, rule("R3", "new"), done))
    assert len(process.namespace.description.rules) == 12


def test_all_rules_of_a_hub_are_replaced_at_once_or_not_at_all(process: Any) -> None:
    process.create("hub")
    namespace = process.namespace
    process.ask(lambda done: namespace.set_hub_rules("HUB", (rule("one"), rule("two")), done))

    def wrong(rules: tuple[AuthorizationRuleDescription, ...], condition: Condition) -> None:
        refused(process, lambda done: process.namespace.set_hub_rules("hub", rules, done), condition)

    wrong((rule("a"), rule("A")), ARGUMENT_OUT_OF_RANGE)
    wrong((rule(""),), ARGUMENT_OUT_OF_RANGE)
    wrong(tuple(rule(f"r{number}") for number in range(13)), RESOURCE_LIMIT)
    process = process.restarted()
    assert [known.name for known in process.namespace.get_hub("hub").description.rules] == ["one", "two"]
    process.ask(lambda done: process.namespace.set_hub_rules("hub", (), done))
    assert process.namespace.get_hub("hub").description.rules == ()


def test_a_hub_is_not_created_with_rules_that_are_not_legal(process: Any) -> None:
    wanted = EventHubDescription("hub", 1, rules=(rule("a"), rule("A")))
    refused(process, lambda done: process.namespace.begin_create_hub(wanted, (0,), done), ARGUMENT_OUT_OF_RANGE)


def test_quotas_of_a_profile_hold_at_their_limit(start: Any) -> None:
    process = start(SimulatedEnv(1), PROFILES["basic"])
    for number in range(10):
        process.create(f"hub{number}", 1)
    hub = EventHubDescription("one-more", 1)
    assert "the quota of profile 'basic' is 10" in refused(
        process, lambda done: process.namespace.begin_create_hub(hub, [0], done), RESOURCE_LIMIT
    )
    refused(process, lambda done: process.namespace.add_consumer_group("hub1", "g", done), RESOURCE_LIMIT)
    refused(process, lambda done: process.namespace.change_hub("hub1", done, retention_ms=2 * DAY_MS), RESOURCE_LIMIT)


def test_changes_asked_for_at_once_are_judged_one_after_another(process: Any) -> None:
    answers: list[EventHubEntry | ServiceError] = []
    for _ in range(3):
        process.namespace.begin_create_hub(EventHubDescription("hub", 1), [0], answers.append)
    process.env.run_for(5_000)
    assert [isinstance(answer, ServiceError) for answer in answers] == [False, True, True]
    assert process.namespace.version == 1


def test_waiting_changes_are_bounded(process: Any) -> None:
    answers: list[object] = []
    for _ in range(WAITING_LIMIT + 3):
        process.namespace.add_consumer_group("none", "g", answers.append)
        process.namespace.begin_create_hub(EventHubDescription("hub", 1), [0], answers.append)
    process.env.run_for(5_000)
    assert len(answers) == 2 * (WAITING_LIMIT + 3)
    assert any(isinstance(answer, ServiceError) and answer.condition is SERVER_BUSY for answer in answers)
    assert process.namespace.unfinished()


def test_every_change_is_told_before_it_is_answered(process: Any) -> None:
    seen: list[object] = []
    process.namespace.on_change(lambda: seen.append(process.namespace.version))
    process.namespace.begin_create_hub(EventHubDescription("hub", 1), [0], lambda _: seen.append("answered"))
    process.env.run_for(5_000)
    assert seen == [1, "answered"]


def test_the_namespace_keeps_its_name(process: Any) -> None:
    process.ask(lambda done: process.namespace.name_namespace("hubweir", done))
    assert process.restarted().namespace.description.name == "hubweir"


def test_a_relaxed_log_is_no_home_for_a_catalog() -> None:
    env = SimulatedEnv(3)
    log = MessagingStore.open(env, "catalog").create_log(CATALOG, durability=Durability.RELAXED)
    with pytest.raises(ValueError, match="DURABLE"):
        Namespace(log, env)
