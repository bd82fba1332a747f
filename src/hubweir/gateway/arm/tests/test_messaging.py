"""Queues, topics and subscriptions: a PUT replaces their settings, and numbers are numbers."""

from __future__ import annotations

import pytest

from hubweir.gateway.arm.tests.arm_client import BUS, ArmClient

SPACE = f"{BUS}/hubweir"


def test_a_put_replaces_all_settings(client: ArmClient) -> None:
    path = f"{SPACE}/queues/work"
    _, made = client.ask("PUT", path, {"properties": {"lockDuration": "PT30S", "maxDeliveryCount": 3}})
    told = made["properties"]
    assert (told["lockDuration"], told["maxDeliveryCount"], told["requiresSession"]) == ("PT30S", 3, False)
    assert set(told["countDetails"].values()) == {0} and told["messageCount"] == 0
    _, again = client.ask("PUT", path, {"properties": {"LockDuration": "PT45S", "countDetails": {"any": 1}}})
    assert (again["properties"]["lockDuration"], again["properties"]["maxDeliveryCount"]) == ("PT45S", 10)
    assert client.ask("PUT", path, again)[0] == 200, "what was told may be sent again"


def test_rules_of_a_queue_outlive_a_put(client: ArmClient) -> None:
    path = f"{SPACE}/queues/ruled"
    client.ask("PUT", path)
    client.ask("PUT", f"{path}/authorizationRules/app", {"properties": {"rights": ["Send"]}})
    client.ask("PUT", path, {"properties": {"maxDeliveryCount": 5}})
    assert [each["name"] for each in client.ask("GET", f"{path}/authorizationRules")[1]["value"]] == ["app"]


def test_a_subscription_lies_in_its_topic(client: ArmClient) -> None:
    client.ask("PUT", f"{SPACE}/topics/news")
    path = f"{SPACE}/topics/news/subscriptions"
    _, made = client.ask("PUT", f"{path}/all", {"properties": {"requiresSession": True}})
    assert (made["id"], made["name"]) == (f"{path}/all", "all") and made["properties"]["requiresSession"] is True
    assert client.ask("GET", f"{SPACE}/topics/news")[1]["properties"]["subscriptionCount"] == 1
    assert [each["name"] for each in client.ask("GET", path)[1]["value"]] == ["all"]
    assert client.refused("PUT", f"{SPACE}/topics/none/subscriptions/all")[0] == 404
    assert [client.ask("DELETE", f"{SPACE}/topics/news")[0] for _ in range(2)] == [200, 204]
    assert client.refused("GET", f"{path}/all")[0] == 404


@pytest.mark.parametrize(
    ("properties", "status", "says"),
    [
        ({"lockDuration": "soon"}, 400, "LockDuration"), ({"maxDeliveryCount": 0}, 400, "MaxDeliveryCount"),
        ({"maxDeliveryCount": [3]}, 400, "must be a text, a number"), ({"zone": "a"}, 501, "'properties.zone'"),
        ({"supportOrdering": True}, 501, "supportOrdering"), ({"status": True, "Status": "Active"}, 400, "twice"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_makes_no_queue(
    client: ArmClient, properties: dict[str, object], status: int, says: str
) -> None:
    found = client.refused("PUT", f"{SPACE}/queues/never", {"properties": properties})
    assert found[0] == status and says in found[2]
    assert client.refused("GET", f"{SPACE}/queues/never")[0] == 404


def test_lists_are_in_the_order_of_names(client: ArmClient) -> None:
    for name in ("b-list", "A-list", "c-list"):
        client.ask("PUT", f"{SPACE}/topics/{name}")
    _, page = client.ask("GET", f"{SPACE}/topics?$top=2")
    assert [each["name"] for each in page["value"]] == ["A-list", "b-list"] and "nextLink" in page
