"""Topics, subscriptions and their rules in a catalog: made, changed, listed, deleted, and found again after a crash."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.errors import ENTITY_EXISTS, NOT_FOUND, RESOURCE_LIMIT, Condition, ServiceError
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import CommitDelete, IntendCreate, PutRule, RemoveRule
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.messaging_tier import MESSAGING_TIERS
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    KeptPart,
    NamedValue,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    ValueType,
    check_subscription_rule,
)
from hubweir.namespace.tests.conftest import Process
from hubweir.namespace.tiers import PROFILES
from hubweir.namespace.topic_description import TopicDescription
from hubweir.testing.simulated_env import SimulatedEnv

ALL = "News/Subscriptions/all"


def refused(condition: Condition, deed: object) -> str:
    with pytest.raises(ServiceError) as refusal:
        deed()  # type: ignore[operator]
    assert refusal.value.condition is condition, refusal.value.text
    return refusal.value.text


@pytest.fixture
def topic(process: Process) -> Process:
    """A process with the topic News and its subscription all."""
    process.make(TopicDescription("News"))
    process.make(SubscriptionDescription(ALL))
    return process


def names(process: Process, subscription: str = ALL) -> list[str]:
    return [rule.name for rule in process.namespace.subscription_rules(subscription).listed()]


def test_a_subscription_is_found_by_its_path_in_any_case_with_the_topic_s_spelling(process: Process) -> None:
    process.make(TopicDescription("News"))
    made = process.make(SubscriptionDescription("NEWS/Subscriptions/All"))
    assert made.name == "News/Subscriptions/All" and made.placements == ()
    assert process.namespace.find("news/subscriptions/ALL", SubscriptionDescription) == made
    assert process.namespace.subscriptions("news") == (made,)
    assert (made.description.parent, made.description.own_name) == ("News", "All")


def test_a_topic_with_slashes_in_its_name_has_subscriptions_as_any_other(process: Process) -> None:
    process.make(TopicDescription("team/news/Daily"))
    made = process.make(SubscriptionDescription("TEAM/news/daily/Subscriptions/all"))
    assert (made.name, made.description.parent, made.description.own_name) == (
        "team/news/Daily/Subscriptions/all", "team/news/Daily", "all",
    )  # fmt: skip
    assert process.namespace.subscriptions("team/news/daily") == (made,)


def test_a_queue_and_a_topic_lie_in_one_log_each_and_a_subscription_in_its_topic_s(process: Process) -> None:
    made = (process.make(QueueDescription("q")), process.make(TopicDescription("t")),
            process.make(SubscriptionDescription("t/Subscriptions/s")))  # fmt: skip
    assert [len(each.placements) for each in made] == [1, 1, 0]


def test_a_subscription_asks_for_its_topic(process: Process) -> None:
    process.make(QueueDescription("q"))
    for name in ("missing/Subscriptions/s", "q/Subscriptions/s"):
        refused(NOT_FOUND, lambda name=name: process.make(SubscriptionDescription(name)))


def test_names_are_taken_within_the_topic(topic: Process) -> None:
    assert "exists already" in refused(
        ENTITY_EXISTS, lambda: topic.make(SubscriptionDescription("news/Subscriptions/ALL"))
    )
    topic.make(TopicDescription("other"))
    topic.make(SubscriptionDescription("other/Subscriptions/all"))


def test_a_topic_goes_with_its_subscriptions_and_their_rules(topic: Process) -> None:
    topic.make(TopicDescription("other"))
    topic.make(SubscriptionDescription("other/Subscriptions/all"))
    topic.put_rule(ALL, SubscriptionRuleDescription("r", FalseFilterDescription()))
    topic.ask(lambda done: topic.writer.begin_delete("News", TopicDescription, done))
    assert topic.namespace.find(ALL, SubscriptionDescription) is None, "a topic that goes takes them along at once"
    refused(NOT_FOUND, lambda: topic.put_rule(ALL, SubscriptionRuleDescription("s")))
    topic = topic.restarted()
    (going,) = topic.namespace.unfinished()
    topic.ask(lambda done: topic.writer.commit_delete(going, done))
    assert [each.name for each in topic.namespace.entities(SubscriptionDescription)] == ["other/Subscriptions/all"]
    topic.make(TopicDescription("News"))
    assert topic.namespace.subscriptions("News") == ()
    topic.make(SubscriptionDescription(ALL))
    assert names(topic) == ["$Default"]


def test_a_subscription_begins_with_its_first_rule(process: Process) -> None:
    process.make(TopicDescription("News"))
    rule = SubscriptionRuleDescription("mine", SqlFilterDescription("a = 1"), SqlActionDescription("SET b = 2"))
    process.make(SubscriptionDescription(ALL, first_rule=rule))
    kept = process.namespace.subscription_rule(ALL, "MINE")
    assert kept == replace(rule, created_at_ms=kept.created_at_ms)
    assert process.started_ms <= kept.created_at_ms <= process.env.now_ms()


def test_rules_are_listed_default_first_then_as_they_were_made(topic: Process) -> None:
    topic.remove_rule(ALL, "$default")
    for name in ("z", "a", "$Default", "m"):
        topic.put_rule(ALL, SubscriptionRuleDescription(name))
    assert names(topic) == ["$Default", "z", "a", "m"]


def test_a_rule_that_is_replaced_keeps_its_place_its_spelling_and_its_time(topic: Process) -> None:
    first = topic.put_rule(ALL, SubscriptionRuleDescription("One"))
    topic.put_rule(ALL, SubscriptionRuleDescription("two"))
    second = topic.put_rule(ALL, SubscriptionRuleDescription("ONE", FalseFilterDescription()), keeps=KeptPart.NOTHING)
    assert second == replace(first, filter=FalseFilterDescription())
    assert names(topic) == ["$Default", "One", "two"]


def test_a_part_that_is_kept_is_the_newest_one_whatever_the_new_rule_says_of_it(topic: Process) -> None:
    """Two change the same rule: what the first one changed stays, though the other never saw it."""
    sql, action = SqlFilterDescription("a = 1"), SqlActionDescription("SET b = 1")
    topic.put_rule(ALL, SubscriptionRuleDescription("r", FalseFilterDescription(), SqlActionDescription("SET c = 1")))
    first = topic.put_rule(ALL, SubscriptionRuleDescription("r", sql), keeps=KeptPart.ACTION)
    assert (first.filter, first.action) == (sql, SqlActionDescription("SET c = 1"))
    other = SubscriptionRuleDescription("R", FalseFilterDescription(), action)
    second = topic.put_rule(ALL, other, keeps=KeptPart.FILTER)
    assert second == replace(first, action=action)
    assert topic.namespace.subscription_rule(ALL, "r") == second
    third = topic.put_rule(ALL, SubscriptionRuleDescription("r"), keeps=KeptPart.NOTHING)
    assert (third.filter, third.action) == (SubscriptionRuleDescription().filter, None)


def test_a_rule_is_made_once_and_what_is_not_there_is_not_changed(topic: Process) -> None:
    topic.put_rule(ALL, SubscriptionRuleDescription("r"))
    refused(ENTITY_EXISTS, lambda: topic.put_rule(ALL, SubscriptionRuleDescription("R")))
    refused(NOT_FOUND, lambda: topic.put_rule(ALL, SubscriptionRuleDescription("s"), keeps=KeptPart.NOTHING))
    refused(NOT_FOUND, lambda: topic.remove_rule(ALL, "s"))
    refused(NOT_FOUND, lambda: topic.put_rule("News", SubscriptionRuleDescription("s")))
    refused(NOT_FOUND, lambda: topic.namespace.subscription_rule(ALL, "s"))
    assert names(topic) == ["$Default", "r"]


def test_connections_are_not_told_of_rules_on_which_none_of_them_stands(topic: Process) -> None:
    told: list[int] = []
    topic.namespace.on_change(lambda: told.append(topic.namespace.version))
    topic.put_rule(ALL, SubscriptionRuleDescription("r"))
    topic.remove_rule(ALL, "r")
    assert told == []
    topic.make(SubscriptionDescription("News/Subscriptions/more"))
    assert len(told) == 2


@pytest.mark.parametrize("power_cut", [False, True])
def test_what_was_answered_is_there_after_a_crash(topic: Process, power_cut: bool) -> None:
    value = NamedValue("@p", ValueType.DATE_TIME, "2026-01-01T00:00:00Z")
    topic.put_rule(
        ALL,
        SubscriptionRuleDescription(
            "sql", SqlFilterDescription("a = @p", (value,)), SqlActionDescription("SET b = @p", (value,))
        ),
    )
    topic.put_rule(
        ALL, SubscriptionRuleDescription("same", CorrelationFilterDescription(label="x", properties=(value,)))
    )
    topic.remove_rule(ALL, "$Default")
    before = list(topic.namespace.subscription_rules(ALL))
    after = topic.restarted(power_cut=power_cut)
    assert list(after.namespace.subscription_rules(ALL)) == before and len(before) == 2


def test_a_snapshot_holds_rules_and_what_belongs_inside(topic: Process) -> None:
    for number in range(300):  # more operations than a snapshot waits for
        topic.put_rule(ALL, SubscriptionRuleDescription(f"r{number}", CorrelationFilterDescription(label=str(number))))
    after = topic.restarted()
    assert names(after) == ["$Default", *(f"r{number}" for number in range(300))]
    assert after.namespace.subscription_rules(ALL).correlation_count == 300
    assert [each.name for each in after.namespace.subscriptions("news")] == [ALL]


def standard(sql: int, correlation: int, monkeypatch: pytest.MonkeyPatch) -> Process:
    tier = replace(MESSAGING_TIERS["standard"], sql_rules=sql, correlation_rules=correlation, subscriptions=2)
    monkeypatch.setitem(MESSAGING_TIERS, "standard", tier)
    process = Process(SimulatedEnv(7), PROFILES["standard"])
    process.make(TopicDescription("News"))
    process.make(SubscriptionDescription(ALL))
    return process


def test_rules_of_a_topic_have_quotas_by_sort_over_all_its_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    process = standard(3, 1, monkeypatch)
    process.make(SubscriptionDescription("News/Subscriptions/b"))
    process.put_rule(ALL, SubscriptionRuleDescription("sql", SqlFilterDescription("a = 1")))
    assert "SQL filters; the quota of profile 'standard' is 3" in refused(
        RESOURCE_LIMIT,
        lambda: process.put_rule(
            "News/Subscriptions/b", SubscriptionRuleDescription("sql", SqlFilterDescription("a = 1"))
        ),
    )
    process.put_rule(ALL, SubscriptionRuleDescription("same", CorrelationFilterDescription(label="x")))
    refused(
        RESOURCE_LIMIT,
        lambda: process.put_rule(ALL, SubscriptionRuleDescription("more", CorrelationFilterDescription(label="y"))),
    )
    refused(
        RESOURCE_LIMIT,
        lambda: process.put_rule(
            ALL, SubscriptionRuleDescription("same", SqlFilterDescription("1=1")), keeps=KeptPart.NOTHING
        ),
    )
    process.put_rule(ALL, SubscriptionRuleDescription("sql", SqlFilterDescription("a = 2")), keeps=KeptPart.NOTHING)
    action = SubscriptionRuleDescription("same", action=SqlActionDescription("SET a = 1"))
    process.put_rule(ALL, action, keeps=KeptPart.FILTER)  # whose sort stays what it was
    process.remove_rule(ALL, "$Default")
    process.put_rule(ALL, SubscriptionRuleDescription("again"))


def test_subscriptions_of_a_topic_have_a_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    process = standard(9, 9, monkeypatch)
    process.make(SubscriptionDescription("News/Subscriptions/b"))
    assert "would have 3 subscriptions" in refused(
        RESOURCE_LIMIT, lambda: process.make(SubscriptionDescription("News/Subscriptions/c"))
    )


def test_a_basic_namespace_has_no_topics() -> None:
    process = Process(SimulatedEnv(7), PROFILES["basic"])
    assert "has no topics" in refused(RESOURCE_LIMIT, lambda: process.make(TopicDescription("t")))


def test_a_subscription_may_forward_to_its_own_topic(topic: Process) -> None:
    delivery = DeliverySettings(forward_to="sb://h/news")
    topic.make(SubscriptionDescription("News/Subscriptions/b", delivery))
    refused(NOT_FOUND, lambda: topic.make(QueueDescription("q", DeliverySettings(forward_to=f"sb://h/{ALL}"))))


VALUES = tuple(NamedValue(f"p{number}", ValueType.STRING, "") for number in range(257))


@pytest.mark.parametrize(
    "rule",
    [
        SubscriptionRuleDescription(""),
        SubscriptionRuleDescription("r", SqlFilterDescription("")),
        SubscriptionRuleDescription("r", SqlFilterDescription("x" * 1_025)),
        SubscriptionRuleDescription("r", SqlFilterDescription("a = 1", VALUES)),
        SubscriptionRuleDescription("r", action=SqlActionDescription("x" * 1_025)),
        SubscriptionRuleDescription("r", CorrelationFilterDescription(label="x" * 32_769)),
        SubscriptionRuleDescription("r", CorrelationFilterDescription(properties=VALUES)),
        SubscriptionRuleDescription(
            "r", CorrelationFilterDescription(properties=(NamedValue("p", ValueType.STRING, "x" * 32_769),))
        ),
    ],
    ids=lambda rule: str(rule)[:60],
)
def test_a_rule_that_is_too_long_is_refused(rule: SubscriptionRuleDescription) -> None:
    with pytest.raises(ServiceError):
        check_subscription_rule(rule)


def test_a_log_that_changes_rules_of_what_has_none_is_damaged() -> None:
    catalog = Catalog()
    catalog.apply(IntendCreate("q1", QueueDescription("q"), ()))
    for operation in (PutRule("q1", SubscriptionRuleDescription("r")), RemoveRule("q1", "r"), CommitDelete("x1")):
        with pytest.raises(Exception, match="the catalog changes"):
            catalog.apply(operation)
    catalog.apply(IntendCreate("s1", SubscriptionDescription("t/Subscriptions/s"), ()))
    with pytest.raises(Exception, match="removes a rule of s1 that is not there"):
        catalog.apply(RemoveRule("s1", "r"))
