"""PATCH of a queue, a topic, a subscription or a rule: what it names is changed, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from hubweir.gateway.http.atom import SERVICE_BUS
from hubweir.gateway.http.tests.messaging_forms import (
    ANY,
    INSTANCE,
    QUEUE,
    SUBSCRIPTION,
    TOPIC,
    content,
    described,
    detail,
    rule,
    sql_action,
    sql_filter,
    text,
)
from hubweir.gateway.http.tests.service import Http, token
from hubweir.namespace.rights import Rights

RULE = (
    '<AuthorizationRules><AuthorizationRule i:type="SharedAccessAuthorizationRule"><Rights><AccessRights>Send'
    "</AccessRights></Rights><KeyName>r</KeyName></AuthorizationRule></AuthorizationRules>"
)
COMMON = (
    "<DefaultMessageTimeToLive>PT6H</DefaultMessageTimeToLive><Status>SendDisabled</Status>"
    "<AutoDeleteOnIdle>PT7H</AutoDeleteOnIdle><EnableBatchedOperations>false</EnableBatchedOperations>"
    "<UserMetadata>mine &amp; yours</UserMetadata>"
)
DELIVERY = (
    "<LockDuration>PT45S</LockDuration><MaxDeliveryCount>3</MaxDeliveryCount><RequiresSession>true</RequiresSession>"
    "<DeadLetteringOnMessageExpiration>true</DeadLetteringOnMessageExpiration>"
)
STORAGE = (
    "<MaxSizeInMegabytes>2048</MaxSizeInMegabytes><RequiresDuplicateDetection>true</RequiresDuplicateDetection>"
    "<DuplicateDetectionHistoryTimeWindow>PT5M</DuplicateDetectionHistoryTimeWindow>"
    "<EnablePartitioning>true</EnablePartitioning>"
)
# By address: the kind, and a description that has hardly a default.
ENTITIES = {
    "/q": (QUEUE, DELIVERY + STORAGE + COMMON + RULE),
    "/t": (TOPIC, STORAGE + COMMON + RULE),
    "/t/subscriptions/s": (
        SUBSCRIPTION,
        f"{DELIVERY}{COMMON}<DeadLetteringOnFilterEvaluationExceptions>false</DeadLetteringOnFilterEvaluationExceptions>",
    ),
}
# The service tells these anew at each look.
TOLD = ("UpdatedAt", "AccessedAt")


def members(http: Http, path: str) -> dict[str, str]:
    """A description as it is told, with what stands in each of its elements."""
    found = content(http.call("GET", path).body, ENTITIES[path][0])
    told = {child.tag.rpartition("}")[2]: "".join(child.itertext()) for child in found}
    return {name: value for name, value in told.items() if name not in TOLD}


@pytest.fixture
def made(clean: Http) -> Http:
    for path, (kind, inside) in ENTITIES.items():
        assert clean.call("PUT", path, described(kind, inside)).status == 201
    return clean


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("/q", {"LockDuration": "PT30S"}),
        ("/q", {"MaxDeliveryCount": "10", "Status": "Active"}),
        ("/q", {"MaxSizeInMegabytes": "3072"}),
        ("/t", {"UserMetadata": "other"}),
        ("/t", {"DefaultMessageTimeToLive": "PT1H", "EnableBatchedOperations": "true"}),
        ("/t/subscriptions/s", {"DeadLetteringOnFilterEvaluationExceptions": "true"}),
        ("/t/subscriptions/s", {"AutoDeleteOnIdle": "PT8H"}),
    ],
)
def test_what_it_names_is_changed_and_all_else_stays(made: Http, path: str, changes: Mapping[str, str]) -> None:
    before, kind = members(made, path), ENTITIES[path][0]
    inside = "".join(f"<{name}>{value}</{name}>" for name, value in changes.items())
    answer = made.call("PATCH", path, described(kind, inside), **ANY)
    assert answer.status == 200, answer.text
    after = members(made, path)
    assert {name: value for name, value in after.items() if value != before[name]}.keys() == changes.keys()
    for name, value in changes.items():
        assert (text(answer.body, name), name == "MaxSizeInMegabytes" or after[name] == value) == (after[name], True)
    assert made.call("PATCH", path, described(kind, inside)).status == 200, "without a condition, and again"
    assert members(made, path) == after


def test_an_empty_element_has_its_default_and_rules_may_be_named(made: Http) -> None:
    answer = made.call("PATCH", "/q", described(QUEUE, "<UserMetadata/><MaxDeliveryCount/><AuthorizationRules/>"))
    assert [text(answer.body, name) for name in ("UserMetadata", "MaxDeliveryCount", "KeyName")] == [None, "10", None]
    assert text(answer.body, "LockDuration") == "PT45S"


def test_rules_that_come_at_the_same_time_stay(made: Http) -> None:
    with ThreadPoolExecutor(2) as senders:
        for number in range(8):
            rule = senders.submit(made.set_rule, "q", f"rule-{number}", Rights.SEND)
            metadata = f"<UserMetadata>{number}</UserMetadata>"
            patched = senders.submit(made.call, "PATCH", "/q", described(QUEUE, metadata))
            rule.result()
            assert patched.result().status == 200
            told = members(made, "/q")
            assert f"rule-{number}" in told["AuthorizationRules"] and told["UserMetadata"] == str(number)


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/none", described(QUEUE), 404, "40400"),
        ("/t/subscriptions/none", described(SUBSCRIPTION), 404, ""),
        ("/q", described(TOPIC), 400, "it holds no QueueDescription"),
        ("/q", "", 400, "no element found"),
        ("/q", described(QUEUE, "<MaxDeliveryCount>few</MaxDeliveryCount>"), 400, "MaxDeliveryCount is no number"),
        ("/q", described(QUEUE, "<RequiresSession>false</RequiresSession>"), 400, "RequiresSession property"),
        (
            "/q",
            described(QUEUE, "<EnablePartitioning>false</EnablePartitioning>"),
            400,
            "Partitioning cannot be",
        ),
        ("/hub", described(QUEUE), 400, "A PUT with 'If-Match: *'"),
    ],
)
def test_what_cannot_be_changed_so_is_refused_and_nothing_is(
    made: Http, path: str, body: str, status: int, said: str
) -> None:
    made.call("PUT", "/hub")
    before = members(made, "/q")
    answer = made.call("PATCH", path, body)
    assert (answer.status, said in detail(answer.body)) == (status, True), answer.text
    assert members(made, "/q") == before
    for tagged, (kind, _) in ENTITIES.items():
        assert made.call("PATCH", tagged, described(kind), If_Match='"tag"').status == 412


def told_of_rule(http: Http, path: str) -> tuple[str | None, ...]:
    """The types and texts of its filter and its action, and when it was made."""
    found = content(http.call("GET", path).body, "RuleDescription")
    parts = {child.tag.rpartition("}")[2]: child for child in found}
    texts = (parts[name].findtext(f"{{{SERVICE_BUS}}}SqlExpression") for name in ("Filter", "Action"))
    types = (parts[name].get(f"{{{INSTANCE}}}type") for name in ("Filter", "Action"))
    return *types, *texts, parts["CreatedAt"].text


def test_of_a_rule_the_filter_the_action_or_both_are_changed(made: Http) -> None:
    path = "/t/subscriptions/s/rules/r"
    assert made.call("PUT", path, rule(sql_filter("a = 1") + sql_action("SET b = 1"))).status == 201
    made_at = told_of_rule(made, path)[-1]
    for inside, *told in (
        (sql_filter("a = 2"), "SqlFilter", "SqlRuleAction", "a = 2", "SET b = 1"),
        (sql_action("SET b = 2"), "SqlFilter", "SqlRuleAction", "a = 2", "SET b = 2"),
        ("<Name>other</Name>", "SqlFilter", "SqlRuleAction", "a = 2", "SET b = 2"),
        ('<Action i:type="EmptyRuleAction"/>', "SqlFilter", "EmptyRuleAction", "a = 2", None),
        (sql_filter("a = 3") + sql_action("SET b = 3"), "SqlFilter", "SqlRuleAction", "a = 3", "SET b = 3"),
        ("<Filter/>", "TrueFilter", "SqlRuleAction", "1=1", "SET b = 3"),
        ("<Action/>", "TrueFilter", "EmptyRuleAction", "1=1", None),
    ):
        answer = made.call("PATCH", path, rule(inside), **ANY)
        assert (answer.status, told_of_rule(made, path)) == (200, (*told, made_at)), inside
        assert text(answer.body, "SqlExpression") == told[2]
    before = told_of_rule(made, path)
    for asked, body, status in (
        (path, rule(sql_filter("a =")), 400),
        (path, described(QUEUE), 400),
        ("/t/subscriptions/s/rules/none", rule(sql_filter("a = 1")), 404),
        ("/t/subscriptions/none/rules/r", rule(sql_filter("a = 1")), 404),
    ):
        assert made.call("PATCH", asked, body).status == status
    assert made.call("PATCH", path, rule(""), If_Match='"tag"').status == 412
    assert told_of_rule(made, path) == before


def test_it_asks_for_the_right_to_manage(made: Http) -> None:
    made.set_rule("q", "listener", Rights.LISTEN)
    refused = made.call("PATCH", "/q", described(QUEUE), auth=token("q", rule="listener", key="its own key"))
    assert refused.status == 401 and "Manage,EntityWrite" in detail(refused.body)
