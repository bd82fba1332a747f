"""Rules of subscriptions: what a filter says comes back, and one rule has one filter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hubweir.gateway.arm.tests.arm_client import BUS, ArmClient
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

RULES = f"{BUS}/hubweir/topics/news/subscriptions/all/rules"


@pytest.fixture(scope="module")
def running() -> Iterator[RunningNamespace]:
    with running_namespace() as started:
        made = ArmClient(started)
        made.ask("PUT", RULES.partition("/subscriptions/all")[0])
        made.ask("PUT", RULES.removesuffix("/rules"))
        yield started


CITIES = {"label": "late", "properties": {"city": "Rome", "City": "Oslo"}}


@pytest.mark.parametrize(
    ("asked", "kind", "told"),
    [
        ({"sqlFilter": {"sqlExpression": "a = 1"}}, "SqlFilter", "a = 1"), ({}, "SqlFilter", "1=1"),
        ({"filterType": "SqlFilter", "sqlFilter": {"sqlExpression": "1=0"}}, "SqlFilter", "1=0"),
        ({"correlationFilter": CITIES}, "CorrelationFilter", CITIES),
        ({"filterType": "CorrelationFilter", "correlationFilter": {"messageId": "7"}}, "CorrelationFilter",
         {"messageId": "7"}),
    ],
)  # fmt: skip
def test_a_filter_comes_back_as_it_was_given(client: ArmClient, asked: object, kind: str, told: object) -> None:
    assert client.ask("PUT", f"{RULES}/one", {"properties": asked})[0] == 200
    status, found = client.ask("GET", f"{RULES}/one")
    properties = found["properties"]
    assert status == 200 and properties["filterType"] == kind
    filter_told = properties["sqlFilter"]["sqlExpression"] if kind == "SqlFilter" else properties["correlationFilter"]
    assert filter_told == told and found["id"] == f"{RULES}/one"


def test_an_action_is_kept_and_goes_with_the_next_put(client: ArmClient) -> None:
    action = {"action": {"sqlExpression": "SET a = 1"}}
    assert client.ask("PUT", f"{RULES}/acts", {"properties": action})[1]["properties"]["action"] == {
        "sqlExpression": "SET a = 1", "compatibilityLevel": 20,
    }  # fmt: skip
    assert client.ask("PUT", f"{RULES}/acts", {"properties": {}})[1]["properties"]["action"] == {}
    assert [client.ask("DELETE", f"{RULES}/acts")[0] for _ in range(2)] == [200, 204]


@pytest.mark.parametrize(
    "asked",
    [
        {"filterType": "Other"}, {"filterType": "CorrelationFilter"}, {"filterType": "SqlFilter"},
        {"sqlFilter": {"sqlExpression": "1=1"}, "correlationFilter": {"to": "x"}},
        {"sqlFilter": {"sqlExpression": "a ="}}, {"action": {"sqlExpression": "SET"}},
        {"correlationFilter": {"properties": {"n": 1}}}, {"correlationFilter": {"properties": ["n"]}},
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(client: ArmClient, asked: object) -> None:
    assert client.refused("PUT", f"{RULES}/never", {"properties": asked})[:2] == (400, "BadRequest")
    assert client.refused("GET", f"{RULES}/never")[0] == 404
