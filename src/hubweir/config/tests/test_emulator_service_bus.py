"""Queues, topics, subscriptions and rules of a file: every member, at and beyond its bounds."""

from typing import Any

import pytest

from hubweir.config.emulator_entities import FilterType, MessagingProperties, Status
from hubweir.config.emulator_limits import OFFICIAL_EMULATOR, SERVICE
from hubweir.config.tests.emulator_texts import bus_file, namespace_of, told
from hubweir.namespace.iso_duration import written_duration


def topic(**subscription: Any) -> list[dict[str, Any]]:
    return [{"Name": "t", "Subscriptions": [{"Name": "s", **subscription}]}]


def properties_of(kind: str, values: dict[str, Any]) -> MessagingProperties:
    """Return the properties of a queue, a topic or a subscription with these members."""
    if kind == "queue":
        return namespace_of(bus_file(Queues=[{"Name": "q", "Properties": values}])).queues[0].properties
    if kind == "topic":
        return namespace_of(bus_file(Topics=[{"Name": "t", "Properties": values}])).topics[0].properties
    return namespace_of(bus_file(Topics=topic(Properties=values))).topics[0].subscriptions[0].properties


def wrong(kind: str, values: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    """Return the problems of these properties, paths from the properties on."""
    entity: dict[str, Any] = {
        "queue": {"Queues": [{"Name": "q", "Properties": values}]},
        "topic": {"Topics": [{"Name": "t", "Properties": values, "Subscriptions": [{"Name": "s"}]}]},
        "subscription": {"Topics": topic(Properties=values)},
    }[kind]
    return [(what, path.split("Properties.", 1)[-1]) for what, path in told(bus_file(**entity), **options)]


BOTH = ("queue", "topic", "subscription")
RECEIVES = ("queue", "subscription")
STORES = ("queue", "topic")
MEMBERS = [
    # member, attribute, value in the file, value read, kinds of entity that have it, values that are refused
    ("DefaultMessageTimeToLive", "default_message_time_to_live", "PT30M", written_duration("PT30M"), BOTH,
     ("PT0S", "PT", 5)),
    ("DeadLetteringOnMessageExpiration", "dead_lettering_on_message_expiration", "True", True, RECEIVES, (1,)),
    ("ForwardTo", "forward_to", "other", "other", RECEIVES, ("-x", 5)),
    ("ForwardDeadLetteredMessagesTo", "forward_dead_lettered_messages_to", "", None, RECEIVES, ("a b",)),
    ("LockDuration", "lock_duration", "PT5S", written_duration("PT5S"), RECEIVES, ("PT4S", "PT301S")),
    ("MaxDeliveryCount", "max_delivery_count", "2000", 2_000, RECEIVES, (0, 2_001, "ten")),
    ("RequiresSession", "requires_session", True, True, RECEIVES, ("yes",)),
    ("DuplicateDetectionHistoryTimeWindow", "duplicate_detection_history_time_window", "P7D", written_duration("P7D"),
     STORES, ("PT4S", "P8D")),
    ("RequiresDuplicateDetection", "requires_duplicate_detection", False, False, STORES, (0,)),
    ("EnablePartitioning", "enable_partitioning", True, True, STORES, ("",)),
    ("MaxSizeInMegabytes", "max_size_in_megabytes", 1024, 1024, STORES, (0, 81_921)),
    ("MaxMessageSizeInKilobytes", "max_message_size_in_kilobytes", 1024, 1024, STORES, (0, 102_401)),
    ("SupportOrdering", "support_ordering", True, True, ("topic",), (1,)),
    ("AutoDeleteOnIdle", "auto_delete_on_idle", "PT5M", written_duration("PT5M"), BOTH, ("PT299S",)),
    ("Status", "status", "Disabled", Status.DISABLED, BOTH, ("Deleted",)),
    ("UserMetadata", "user_metadata", "m", "m", BOTH, (5,)),
    ("EnableBatchedOperations", "enable_batched_operations", False, False, BOTH, ("no",)),
]  # fmt: skip


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("row", MEMBERS, ids=[row[0] for row in MEMBERS])
def test_every_property_is_read_where_it_belongs(
    row: tuple[str, str, Any, Any, tuple[str, ...], Any], kind: str
) -> None:
    member, attribute, value, read, kinds, refused = row
    if kind in kinds:
        assert getattr(properties_of(kind, {member: value}), attribute) == read
        for bad in refused:
            assert [path for _, path in wrong(kind, {member: bad})] == [member]
    elif (kind, member) == ("subscription", "DuplicateDetectionHistoryTimeWindow"):
        assert properties_of(kind, {member: "whatever"}) == MessagingProperties()
    else:
        assert wrong(kind, {member: value}) == [("unknown member", member)]


@pytest.mark.parametrize(
    ("member", "least", "most", "outside"),
    [
        ("DefaultMessageTimeToLive", "PT5M", "PT1H", ("PT299S", "PT3601S")),
        ("LockDuration", "PT5S", "PT5M", ("PT4S", "PT301S")),
        ("DuplicateDetectionHistoryTimeWindow", "PT5S", "PT5M", ("PT4S", "PT301S")),
        ("MaxDeliveryCount", 1, 10, (0, 11)),
    ],
)
def test_the_official_emulators_bounds(member: str, least: Any, most: Any, outside: tuple[Any, ...]) -> None:
    for value in (least, most):
        assert wrong("queue", {member: value}, limits=OFFICIAL_EMULATOR) == []
    for value in outside:
        assert wrong("queue", {member: value}, limits=OFFICIAL_EMULATOR) == [("bad value", member)]


def test_a_time_to_live_without_end_is_taken() -> None:
    values = {"DefaultMessageTimeToLive": "P10675199DT2H48M5.4775807S", "AutoDeleteOnIdle": "10675199.02:48:05.4775807"}
    assert wrong("queue", values) == []


def test_rules_of_a_queue_are_read() -> None:
    rules = [{"KeyName": "k", "Rights": ["Send"]}]
    assert [rule.name for rule in properties_of("queue", {"AuthorizationRules": rules}).rules] == ["k"]
    assert wrong("subscription", {"AuthorizationRules": rules}) == [("unknown member", "AuthorizationRules")]


@pytest.mark.parametrize("value", [None, [], ...])
def test_lists_may_be_missing_null_or_empty(value: Any) -> None:
    lists = {} if value is ... else {"Queues": value, "Topics": value}
    namespace = namespace_of(bus_file(**lists))
    assert (namespace.queues, namespace.topics) == ((), ())
    inner = {} if value is ... else {"Subscriptions": value}
    assert namespace_of(bus_file(Topics=[{"Name": "t", **inner}])).topics[0].subscriptions == ()
    rules = {} if value is ... else {"Rules": value}
    assert namespace_of(bus_file(Topics=topic(**rules))).topics[0].subscriptions[0].rules == ()


def test_names_are_unique_where_they_meet() -> None:
    assert told(bus_file(Queues=[{"Name": "a"}], Topics=[{"Name": "A"}])) == [("duplicate name", "Topics[0].Name")]
    two = [
        {"Name": "t", "Subscriptions": [{"Name": "s"}, {"Name": "S"}]},
        {"Name": "u", "Subscriptions": [{"Name": "s"}]},
    ]
    assert told(bus_file(Topics=two)) == [("duplicate name", "Topics[0].Subscriptions[1].Name")]
    sql = {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}}
    rules = [{"Name": "r", "Properties": sql}, {"Name": "R", "Properties": sql}]
    path = "Topics[0].Subscriptions[0].Rules[1].Name"
    assert told(bus_file(Topics=topic(Rules=rules))) == [("duplicate name", path)]


@pytest.mark.parametrize(
    ("entity", "kind", "path"),
    [
        ({"Queues": [{}]}, "missing", "Queues[0].Name"),
        ({"Queues": [{"Name": "q" * 261}]}, "bad value", "Queues[0].Name"),
        ({"Queues": [{"Name": "-"}]}, "bad value", "Queues[0].Name"),
        ({"Queues": ["q"]}, "wrong type", "Queues[0]"),
        ({"Queues": {}}, "wrong type", "Queues"),
        ({"Queues": [{"Name": "q", "Properties": []}]}, "wrong type", "Queues[0].Properties"),
        ({"Queues": [{"Name": "q", "Rules": []}]}, "unknown member", "Queues[0].Rules"),
        ({"Topics": [{"Subscriptions": []}]}, "missing", "Topics[0].Name"),
        ({"Topics": topic(Name="s" * 51)}, "bad value", "Topics[0].Subscriptions[0].Name"),
        ({"Topics": [{"Name": "t", "Subscriptions": 1}]}, "wrong type", "Topics[0].Subscriptions"),
        ({"Entities": []}, "unknown member", "Entities"),
    ],
)
def test_an_entity_that_cannot_be_is_told(entity: dict[str, Any], kind: str, path: str) -> None:
    assert told(bus_file(**entity)) == [(kind, path)]


def test_the_official_emulators_counts() -> None:
    queues = [{"Name": f"q{number}"} for number in range(50)]
    topics = [{"Name": "t", "Subscriptions": [{"Name": f"s{number}"} for number in range(50)]}]
    assert told(bus_file(Queues=queues[:49], Topics=topics), limits=OFFICIAL_EMULATOR) == []
    assert told(bus_file(Queues=queues, Topics=topics), limits=OFFICIAL_EMULATOR) == [("wrong count", "Topics")]
    assert told(bus_file(Queues=[*queues, {"Name": "more"}]), limits=OFFICIAL_EMULATOR) == [("wrong count", "Queues")]
    assert told(bus_file(Queues=queues, Topics=topics)) == []
    topics[0]["Subscriptions"].append({"Name": "more"})  # type: ignore[attr-defined]
    place = "Topics[0].Subscriptions"
    assert told(bus_file(Topics=topics), limits=OFFICIAL_EMULATOR) == [("wrong count", place)]
    empty = bus_file(Topics=[{"Name": "t", "Subscriptions": []}])
    assert told(empty, limits=OFFICIAL_EMULATOR) == [("wrong count", place)]
    assert told(bus_file(Topics=[{"Name": "t"}]), limits=OFFICIAL_EMULATOR) == [("missing", place)]


def rule_problems(properties: Any) -> list[tuple[str, str]]:
    rules = [{"Name": "r", "Properties": properties}]
    found = told(bus_file(Topics=topic(Rules=rules)))
    return [(kind, path.removeprefix("Topics[0].Subscriptions[0].Rules[0].Properties")) for kind, path in found]


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        (None, ("missing", "")),
        ({}, ("missing", ".FilterType")),
        ({"FilterType": "Xpath"}, ("bad value", ".FilterType")),
        ({"FilterType": "Correlation"}, ("missing", ".CorrelationFilter")),
        ({"FilterType": "Correlation", "CorrelationFilter": {}}, ("missing", ".CorrelationFilter")),
        ({"FilterType": "Correlation", "CorrelationFilter": {"Label": 1}}, ("wrong type", ".CorrelationFilter.Label")),
        ({"FilterType": "Correlation", "CorrelationFilter": {"Label": "l", "Subject": "s"}},
         ("unknown member", ".CorrelationFilter.Subject")),
        ({"FilterType": "Correlation", "CorrelationFilter": {"Properties": {}}},
         ("missing", ".CorrelationFilter.Properties")),
        ({"FilterType": "Correlation", "CorrelationFilter": {"Properties": {"p": []}}},
         ("wrong type", ".CorrelationFilter.Properties.p")),
        ({"FilterType": "Sql"}, ("missing", ".SqlFilter")),
        ({"FilterType": "Sql", "SqlFilter": {}}, ("missing", ".SqlFilter.SqlExpression")),
        ({"FilterType": "Sql", "SqlFilter": {"SqlExpression": "x" * 1025}}, ("bad value", ".SqlFilter.SqlExpression")),
        ({"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1", "Parameters": 1}},
         ("unknown member", ".SqlFilter.Parameters")),
        ({"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}, "Action": {}},
         ("missing", ".Action.SqlExpression")),
        ({"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}, "Actoin": {}}, ("unknown member", ".Actoin")),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_is_told_by_its_path(properties: Any, problem: tuple[str, str]) -> None:
    assert rule_problems(properties) == [problem]


def test_a_rule_keeps_both_filters_and_says_which_is_used() -> None:
    properties = {
        "FilterType": "correlation",
        "CorrelationFilter": {"Properties": {"text": "t", "whole": 1, "part": 0.5, "flag": True}},
        "SqlFilter": {"SqlExpression": "x" * 1024},
        "Action": {"SqlExpression": "SET a = 1"},
    }
    namespace = namespace_of(bus_file(Topics=topic(Rules=[{"Name": "r", "Properties": properties}])))
    [rule] = namespace.topics[0].subscriptions[0].rules
    assert (rule.name, rule.filter_type, rule.action) == ("r", FilterType.CORRELATION, "SET a = 1")
    assert rule.sql_expression == "x" * 1024
    assert rule.correlation_filter is not None
    assert rule.correlation_filter.properties == (("text", "t"), ("whole", 1), ("part", 0.5), ("flag", True))
    assert rule.location.path.endswith("Subscriptions[0].Rules[0].Name")


def test_the_number_of_rules_is_bounded() -> None:
    sql = {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}}
    rules = [{"Name": f"r{number}", "Properties": sql} for number in range(SERVICE.rules_limit + 1)]
    path = "Topics[0].Subscriptions[0].Rules"
    assert told(bus_file(Topics=topic(Rules=rules))) == [("wrong count", path)]
    assert told(bus_file(Topics=topic(Rules=rules[:1001])), limits=OFFICIAL_EMULATOR) == [("wrong count", path)]
    assert told(bus_file(Topics=topic(Rules=rules[:1000])), limits=OFFICIAL_EMULATOR) == []
