"""A namespace on a real log: its changes and its refusals. (`process` and `start`: conftest.py)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replace_fields
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

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
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_log import WAITING_LIMIT, LoadedCatalog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.entity import EntityDescription, EntityStatus, Placement
from hubweir.namespace.event_hub_changes import add_group, remove_group, set_settings
from hubweir.namespace.event_hub_description import EventHubDescription, EventHubEntity
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription, Rules
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DAY_MS, HOUR_MS, PROFILES
from hubweir.testing.answers import made_log
from hubweir.testing.simulated_env import SimulatedEnv

CATALOG = "c" * 32


def refused(process: Any, change: Callable[[Callable[[object], None]], None], condition: Condition) -> str:
    version = process.namespace.version
    with pytest.raises(ServiceError) as refusal:
        process.ask(change)
    assert refusal.value.condition is condition
    assert process.namespace.version == version
    return refusal.value.text


def creation(
    process: Any, name: str, partitions: int = 1, **settings: object
) -> Callable[[Callable[[object], None]], None]:
    hub = EventHubDescription(name, partitions, **settings)  # type: ignore[arg-type]
    return lambda done: process.writer.begin_create(hub, [0], done)


def changing(process: Any, hub: str, change: Any, **values: object) -> Callable[[Callable[[object], None]], None]:
    return lambda done: process.writer.change(hub, EventHubDescription, partial(change, **values), done)


def test_a_hub_is_found_after_commit_and_not_before(process: Any) -> None:
    namespace, writer = process.namespace, process.writer
    hub = EventHubDescription("Flights", 4, retention_ms=HOUR_MS)
    intent = process.ask(lambda done: writer.begin_create(hub, [0, 1], done))
    assert intent.status is EntityStatus.CREATING
    assert namespace.find("flights", EventHubDescription) is namespace.find_any("flights") is None
    assert namespace.entities(EntityDescription) == ()
    assert namespace.unfinished() == (intent,)
    entity = process.ask(lambda done: writer.commit_create(intent, done))
    assert namespace.find("fLIGHTS", EventHubDescription) == namespace.find("flights", EntityDescription) == entity
    assert namespace.find_any("FlightS") == entity and entity.name == "Flights"
    assert namespace.entities(EventHubDescription) == namespace.entities(EntityDescription) == (entity,)
    assert namespace.unfinished() == ()
    assert entity.description.created_at_ms == process.started_ms
    assert entity.description.consumer_groups == ("$Default",)
    assert [placement.store_index for placement in entity.placements] == [0, 1, 0, 1]
    assert len({placement.log_id for placement in entity.placements}) == 4


def test_an_entity_of_another_kind_is_not_found(process: Any) -> None:
    class Other(EntityDescription, frozen=True):
        pass

    process.create("hub")
    assert process.namespace.find("hub", Other) is None
    assert process.namespace.entities(Other) == ()
    with pytest.raises(ServiceError) as refusal:
        process.namespace.get("hub", Other)
    assert refusal.value.condition is NOT_FOUND
    refused(process, lambda done: process.writer.begin_delete("hub", Other, done), NOT_FOUND)


def test_a_deleted_hub_is_not_found_from_the_intent_on_and_its_name_is_free_after_commit(process: Any) -> None:
    first = process.create("hub")
    intent = process.begin_delete("hub")
    assert process.hub("hub") is None and intent.status is EntityStatus.DELETING
    assert "is being deleted" in refused(process, creation(process, "HUB"), ENTITY_EXISTS)
    gone = process.ask(lambda done: process.writer.commit_delete(intent, done))
    assert gone.entity_id == first.entity_id
    second = process.create("HUB", 5)
    assert second.entity_id != first.entity_id
    assert not {p.log_id for p in first.placements} & {p.log_id for p in second.placements}


def test_a_creation_that_failed_is_taken_back(process: Any) -> None:
    intent = process.begin("hub", 1)
    intent = process.ask(lambda done: process.writer.take_back(intent, done))
    assert intent.status is EntityStatus.DELETING
    process.ask(lambda done: process.writer.commit_delete(intent, done))
    assert process.namespace.unfinished() == ()
    assert process.create("hub").is_served


def test_what_cannot_be_created_is_refused_with_the_reason(process: Any) -> None:
    process.create("Team/Hub", 2)
    create = partial(creation, process)
    assert "'Team/Hub' exists already" in refused(process, create("TEAM/HUB"), ENTITY_EXISTS)
    assert "inside one another" in refused(process, create("team"), ENTITY_EXISTS)
    assert "inside one another" in refused(process, create("team/hub/more"), ENTITY_EXISTS)
    assert "1 to 32" in refused(process, create("h", 0), ARGUMENT_OUT_OF_RANGE)
    assert "1 to 32" in refused(process, create("h", 33), ARGUMENT_OUT_OF_RANGE)
    assert "90 days" in refused(process, create("h", 1, retention_ms=90 * DAY_MS + 1), ARGUMENT_OUT_OF_RANGE)
    assert "1 hour" in refused(process, create("h", 1, retention_ms=HOUR_MS - 1), ARGUMENT_OUT_OF_RANGE)
    refused(process, create("$cbs"), ARGUMENT_OUT_OF_RANGE)
    refused(process, create("h", 1, user_metadata="x" * 1_025), ARGUMENT_OUT_OF_RANGE)
    refused(process, create("h", 1, rules=(rule("a"), rule("A"))), ARGUMENT_OUT_OF_RANGE)
    azure = CaptureDescription(True, 60, 10_485_760, CaptureDestination.AZURE_BLOCK_BLOB, "films")
    assert "storage account" in refused(process, create("h", 1, capture=azure), ARGUMENT_ERROR)
    assert process.create("team/hub2", 32).description.partition_count == 32


def test_settings_change_one_at_a_time_and_the_partition_count_never(process: Any) -> None:
    process.create("hub", 4)
    process.set("hub", retention_ms=2 * DAY_MS)
    changed = process.set("HUB", durability=Durability.RELAXED).description
    assert (changed.retention_ms, changed.durability) == (2 * DAY_MS, Durability.RELAXED)
    wanted = replace(changed, partition_count=8)
    text = refused(process, changing(process, "hub", set_settings, wanted=wanted), ARGUMENT_ERROR)
    assert "has 4 partitions for its whole life" in text
    kept = process.restarted().hub("hub").description
    assert (kept.partition_count, kept.retention_ms, kept.durability) == (4, 2 * DAY_MS, Durability.RELAXED)


def test_consumer_groups_come_and_go_and_what_is_not_there_is_told_in_the_words_that_clients_match(
    process: Any,
) -> None:
    process.create("hub")
    assert process.change("HUB", add_group, name="Reports").description.consumer_groups == ("$Default", "Reports")
    text = refused(process, changing(process, "hub", remove_group, name="Other"), NOT_FOUND)
    assert text.startswith("The messaging entity 'sb://ns.local/hub/consumergroups/other' could not be found.")
    assert process.change("hub", remove_group, name="reports").description.consumer_groups == ("$Default",)


def test_an_entity_that_is_not_there_is_not_found_in_the_words_that_clients_match(process: Any) -> None:
    gone = process.create("None")
    process.delete("None")
    writer = process.writer
    for step in (
        changing(process, "None", add_group, name="g"),
        lambda done: writer.begin_delete("None", EventHubDescription, done),
        lambda done: writer.commit_create(gone, done),
        lambda done: writer.take_back(gone, done),
        lambda done: writer.commit_delete(gone, done),
        lambda done: writer.change_rules("None", lambda level: level.rules, done),
        lambda done: done(_raised(lambda: process.namespace.get("None", EventHubDescription))),
        lambda done: done(_raised(lambda: process.namespace.rule_level("None"))),
    ):
        answers: list[object] = []
        step(answers.append)
        process.env.run_for(1_000)
        (error,) = answers
        assert isinstance(error, ServiceError) and error.condition is NOT_FOUND
        assert error.text.startswith("The messaging entity 'sb://ns.local/none' could not be found.")


def _raised(look: Callable[[], object]) -> ServiceError:
    with pytest.raises(ServiceError) as refusal:
        look()
    return refusal.value


def test_a_commit_without_its_intent_is_refused(process: Any) -> None:
    made = process.create("hub")
    refused(process, lambda done: process.writer.commit_delete(made, done), ARGUMENT_ERROR)
    process.begin_delete("hub")
    refused(process, lambda done: process.writer.commit_create(made, done), ARGUMENT_ERROR)


def test_a_hub_that_is_not_served_is_not_changed(process: Any) -> None:
    process.begin("made", 1)
    process.create("removed")
    process.begin_delete("removed")
    for hub in ("made", "removed"):
        refused(process, changing(process, hub, add_group, name="g"), NOT_FOUND)
        refused(process, lambda done, hub=hub: process.writer.change_rules(hub, set_rule("r"), done), NOT_FOUND)


def test_a_log_moves_to_another_store_and_the_others_stay(process: Any) -> None:
    made = process.create("hub", 2)
    stay, moves = made.placements
    process.writer.check_move(moves.log_id, 3)
    moved = process.ask(lambda done: process.writer.move_log(moves.log_id, 3, done))
    assert moved.placements == (stay, Placement(moves.log_id, 3))
    assert process.namespace.get("hub", EventHubDescription) is moved is process.namespace.owner_of(moves.log_id)


def test_a_log_that_does_not_move_is_told_why(process: Any) -> None:
    made = process.create("hub", 1)
    (placed,) = made.placements

    def text(log_id: str, store_index: int, condition: Condition) -> str:
        with pytest.raises(ServiceError) as refusal:
            process.writer.check_move(log_id, store_index)
        told = refused(process, lambda done: process.writer.move_log(log_id, store_index, done), condition)
        assert told == refusal.value.text
        return told

    already = f"The log {placed.log_id} of event hub 'hub' lies in store 0 already."
    assert text(placed.log_id, placed.store_index, ARGUMENT_ERROR) == already
    assert text("9" * 32, 1, NOT_FOUND) == f"No entity has the log {'9' * 32}."
    half_made = process.begin("made", 1)
    assert "is being made" in text(half_made.placements[0].log_id, 1, ARGUMENT_ERROR)
    process.begin_delete("hub")
    assert "is being deleted" in text(placed.log_id, 1, ARGUMENT_ERROR)


def rule(name: str, key: str = "key") -> AuthorizationRuleDescription:
    return AuthorizationRuleDescription(name, Rights.SEND, Secret(key), Secret(""))


def set_rule(name: str, key: str = "key") -> Callable[[RuleLevel], Rules]:
    return lambda level: level.set(rule(name, key))


def test_rules_are_kept_on_both_levels_and_the_hub_s_come_first(process: Any) -> None:
    process.create("Team/Hub")
    writer = process.writer
    process.ask(lambda done: writer.change_rules(None, set_rule("policy", "namespace key"), done))
    process.ask(lambda done: writer.change_rules("team/hub", set_rule("policy", "hub key"), done))
    process.ask(lambda done: writer.change_rules(None, set_rule("POLICY", "rotated key"), done))
    process = process.restarted()

    def keys(*segments: str) -> list[list[str]]:
        return [[r.primary.reveal() for r in rules] for rules in process.namespace.rules_at(segments)]

    assert keys("team", "hub", "partitions", "0") == [["hub key"], ["rotated key"]]
    assert keys("team") == keys() == keys("other", "hub") == [["rotated key"]]
    process.ask(lambda done: process.writer.change_rules("team/hub", lambda level: level.remove("Policy"), done))
    assert keys("team", "hub") == [[], ["rotated key"]]
    refused(
        process, lambda done: process.writer.change_rules(None, lambda level: level.remove("nobody"), done), NOT_FOUND
    )


def test_a_level_has_at_most_twelve_rules_and_each_may_still_be_replaced(process: Any) -> None:
    for number in range(12):
        process.ask(lambda done, number=number: process.writer.change_rules(None, set_rule(f"r{number}"), done))
    text = refused(process, lambda done: process.writer.change_rules(None, set_rule("r12"), done), RESOURCE_LIMIT)
    assert "12 authorization rules" in text
    process.ask(lambda done: process.writer.change_rules(None, set_rule("R3", "new"), done))
    assert len(process.namespace.description.rules) == 12


def test_all_rules_of_a_hub_are_replaced_at_once_or_not_at_all(process: Any) -> None:
    process.create("hub")

    def wanted(*rules: AuthorizationRuleDescription) -> Callable[[Callable[[object], None]], None]:
        return changing(process, "HUB", set_settings, wanted=process.hub("hub").description, rules=rules)

    process.ask(wanted(rule("one"), rule("two")))
    refused(process, wanted(rule("a"), rule("A")), ARGUMENT_OUT_OF_RANGE)
    refused(process, wanted(rule("")), ARGUMENT_OUT_OF_RANGE)
    refused(process, wanted(*(rule(f"r{number}") for number in range(13))), RESOURCE_LIMIT)
    process = process.restarted()
    assert [known.name for known in process.hub("hub").description.rules] == ["one", "two"]
    process.ask(wanted())
    assert process.hub("hub").description.rules == ()


def test_quotas_of_a_profile_hold_at_their_limit(start: Any) -> None:
    process = start(SimulatedEnv(1), PROFILES["basic"])
    for number in range(10):
        process.create(f"hub{number}", 1)
    assert "the quota of profile 'basic' is 10" in refused(process, creation(process, "one-more"), RESOURCE_LIMIT)
    refused(process, changing(process, "hub1", add_group, name="g"), RESOURCE_LIMIT)


def test_changes_asked_for_at_once_are_judged_one_after_another(process: Any) -> None:
    answers: list[EventHubEntity | ServiceError] = []
    for _ in range(3):
        creation(process, "hub")(answers.append)
    process.env.run_for(5_000)
    assert [isinstance(answer, ServiceError) for answer in answers] == [False, True, True]
    assert process.namespace.version == 1


def test_waiting_changes_are_bounded(process: Any) -> None:
    answers: list[object] = []
    for _ in range(WAITING_LIMIT + 3):
        changing(process, "none", add_group, name="g")(answers.append)
        creation(process, "hub")(answers.append)
    process.env.run_for(5_000)
    assert len(answers) == 2 * (WAITING_LIMIT + 3)
    assert any(isinstance(answer, ServiceError) and answer.condition is SERVER_BUSY for answer in answers)
    assert process.namespace.unfinished()


def test_every_change_is_told_before_it_is_answered(process: Any) -> None:
    seen: list[object] = []
    process.namespace.on_change(lambda: seen.append(process.namespace.version))
    creation(process, "hub")(lambda _: seen.append("answered"))
    process.env.run_for(5_000)
    assert seen == [1, "answered"]


def test_the_namespace_keeps_its_name_and_what_belongs_to_it_and_the_day_it_was_made(process: Any) -> None:
    process.ask(lambda done: process.writer.describe(lambda known: replace_fields(known, name="first"), done))
    made_at_ms = process.namespace.description.created_at_ms
    process.env.run_for(1_000)
    more: dict[str, Any] = {"hostnames": ("h.example",), "profile": "basic", "default_rank": 2}
    process.ask(lambda done: process.writer.describe(lambda known: replace_fields(known, name="hubweir", **more), done))
    kept = process.restarted().namespace.description
    assert (kept.name, kept.hostnames, kept.profile, kept.default_rank) == ("hubweir", *more.values())
    assert kept.created_at_ms == made_at_ms > 0
    assert kept.changed_at_ms >= made_at_ms + 1_000


def test_a_relaxed_log_is_no_home_for_a_catalog() -> None:
    env = SimulatedEnv(3)
    log = made_log(env, MessagingStore.open(env, "catalog"), CATALOG, durability=Durability.RELAXED)
    with pytest.raises(ValueError, match="DURABLE"):
        CatalogWriter(log, env, LoadedCatalog(Catalog()))
