"""Authorization rules: of the namespace and of an entity, their keys, and new keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hubweir.gateway.arm.tests.arm_client import BUS, HUBS, ArmClient
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


@pytest.fixture(scope="module")
def running() -> Iterator[RunningNamespace]:
    with running_namespace() as started:
        started.create_queue("orders")
        started.create_event_hub("events", partition_count=1)
        yield started


SPACE, QUEUE = f"{BUS}/hubweir/authorizationRules", f"{BUS}/hubweir/queues/orders/authorizationRules"


def test_a_rule_is_made_changed_told_and_deleted(client: ArmClient) -> None:
    made = client.ask("PUT", f"{QUEUE}/app", {"properties": {"rights": ["Send"]}})
    kind = "Microsoft.ServiceBus/Namespaces/queues/AuthorizationRules"
    assert made == (200, {"id": f"{QUEUE}/app", "name": "app", "type": kind, "properties": {"rights": ["Send"]}})
    _, before = client.ask("POST", f"{QUEUE}/app/listKeys")
    assert client.ask("PUT", f"{QUEUE}/APP", {"properties": {"rights": ["Send", "Listen"]}})[0] == 200
    _, rules = client.ask("GET", QUEUE)
    assert [(each["name"], each["properties"]["rights"]) for each in rules["value"]] == [("app", ["Listen", "Send"])]
    assert client.ask("POST", f"{QUEUE}/app/listKeys") == (200, before), "other rights are no other keys"
    assert [client.ask("DELETE", f"{QUEUE}/app")[0] for _ in range(2)] == [200, 204]
    assert client.refused("GET", f"{QUEUE}/app")[:2] == (404, "ResourceNotFound")


def test_rules_of_an_entity_are_none_of_the_namespaces(client: ArmClient) -> None:
    client.ask("PUT", f"{QUEUE}/mine", {"properties": {"rights": ["Send"]}})
    _, rules = client.ask("GET", SPACE)
    assert [each["name"] for each in rules["value"]] == ["RootManageSharedAccessKey"]
    for path in (f"{HUBS}/hubweir/eventhubs/orders", f"{BUS}/hubweir/topics/orders", f"{BUS}/hubweir/queues/events"):
        assert client.refused("GET", f"{path}/authorizationRules")[:2] == (404, "ResourceNotFound"), path


def test_the_connection_string_leads_where_the_request_came(client: ArmClient) -> None:
    client.ask("PUT", f"{QUEUE}/told", {"properties": {"rights": ["Send"]}})
    _, keys = client.ask("POST", f"{QUEUE}/told/listKeys")
    told = ConnectionString.parse(keys["secondaryConnectionString"])
    assert told.key is not None and told.key.reveal() == keys["secondaryKey"] != keys["primaryKey"]
    assert (told.key_name, told.entity_path) == ("told", "orders") and told.port is not None
    _, keys = client.ask("POST", f"{SPACE}/RootManageSharedAccessKey/listKeys")
    assert ConnectionString.parse(keys["primaryConnectionString"]).entity_path is None


@pytest.mark.parametrize(("kind", "other"), [("PrimaryKey", "secondaryKey"), ("secondarykey", "primaryKey")])
def test_one_key_is_drawn_anew_and_the_other_stays(client: ArmClient, kind: str, other: str) -> None:
    client.ask("PUT", f"{QUEUE}/renewed", {"properties": {"rights": ["Send"]}})
    _, before = client.ask("POST", f"{QUEUE}/renewed/listKeys")
    status, after = client.ask("POST", f"{QUEUE}/renewed/regenerateKeys", {"keyType": kind})
    renewed = ({"primaryKey", "secondaryKey"} - {other}).pop()
    assert status == 200 and after[other] == before[other] and after[renewed] != before[renewed]
    assert client.ask("POST", f"{QUEUE}/renewed/listKeys") == (200, after)


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("POST", "/renewed/regenerateKeys", {"keyType": "third"}, "PrimaryKey or SecondaryKey"),
        ("POST", "/renewed/regenerateKeys", {}, "PrimaryKey or SecondaryKey"),
        ("PUT", "/bad", {"properties": {"rights": ["Fly"]}}, "Fly"),
        ("PUT", "/bad", {"properties": {"rights": []}}, "right"),
        ("PUT", "/bad", {"properties": {"rights": "Send"}}, "a list of texts"),
    ],
)
def test_what_is_no_rule_is_refused(client: ArmClient, method: str, path: str, body: object, says: str) -> None:
    client.ask("PUT", f"{QUEUE}/renewed", {"properties": {"rights": ["Send"]}})
    status, code, message = client.refused(method, QUEUE + path, body)
    assert (status, code) == (400, "BadRequest") and says in message


def test_the_rule_that_a_start_gives_stays(client: ArmClient) -> None:
    root = f"{SPACE}/RootManageSharedAccessKey"
    for method, path, body in (
        ("DELETE", root, None), ("PUT", root, {"properties": {"rights": ["Listen"]}}),
        ("POST", f"{root}/regenerateKeys", {"keyType": "PrimaryKey"}),
    ):  # fmt: skip
        assert "A start of the service gives" in client.refused(method, path, body)[2]
    assert client.ask("GET", root)[1]["properties"]["rights"] == ["Listen", "Manage", "Send"]
