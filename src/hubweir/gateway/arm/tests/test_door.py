"""Who may ask for what, and what a refusal says: the same whether a namespace is there or not."""

from __future__ import annotations

from hubweir.gateway.arm.tests.arm_client import HUBS, ArmClient
from hubweir.namespace.secret import Secret


def said_of(client: ArmClient, namespace: str, token: str | None) -> tuple[int, str, str]:
    """A refusal without the reference at its end, which is new each time."""
    status, code, message = client.refused("GET", f"{HUBS}/{namespace}/eventhubs", token=token)
    return status, code, message.partition(", TrackingId:")[0]


def test_who_may_not_manage_the_service_does_not_hear_which_namespaces_there_are(client: ArmClient) -> None:
    client.signed_by("there")
    stranger = client.signed_by("stranger")
    nobody = client.signed("RootManageSharedAccessKey", Secret("bm90IGEga2V5IG9mIGFueWJvZHkgaGVyZSBhdCBhbGwhISE="))
    rule = f"{HUBS}/stranger/authorizationRules/listener"
    client.ask("PUT", rule, {"properties": {"rights": ["Listen"]}}, token=stranger)
    _, keys = client.ask("POST", f"{rule}/listKeys", token=stranger)
    listener = client.signed("listener", Secret(keys["primaryKey"]))
    part = client.signed("listener", Secret(keys["primaryKey"]), "orders")
    for token, expected in ((stranger, 403), (nobody, 401), (listener, 403), (part, 403), (None, 401), ("none", 401)):
        there, absent = said_of(client, "there", token), said_of(client, "absent", token)
        assert there == absent and there[0] == expected, token
        assert "there" not in there[2].split() and "hubweir'" not in there[2]
    assert client.ask("GET", f"{HUBS}/stranger/eventhubs", token=stranger) == (200, {"value": []})
    assert client.refused("GET", f"{HUBS}/absent/eventhubs")[:2] == (404, "ResourceNotFound")


def test_a_namespace_is_made_and_deleted_by_the_default_ones_rule_alone(client: ArmClient) -> None:
    token = client.signed_by("alone")
    for method, path in (("PUT", f"{HUBS}/more"), ("DELETE", f"{HUBS}/alone"), ("GET", HUBS)):
        assert client.refused(method, path, {}, token=token)[:2] == (403, "AuthorizationFailed")
    assert client.ask("GET", f"{HUBS}/alone", token=token)[0] == 200
    assert client.refused("GET", f"{HUBS}/more")[0] == 404


def test_a_rule_without_manage_may_nothing(client: ArmClient) -> None:
    client.ask("PUT", f"{HUBS}/hubweir/authorizationRules/sender", {"properties": {"rights": ["Send"]}})
    _, keys = client.ask("POST", f"{HUBS}/hubweir/authorizationRules/sender/listKeys")
    token = client.signed("sender", Secret(keys["primaryKey"]))
    assert client.refused("GET", f"{HUBS}/hubweir", token=token)[:2] == (403, "AuthorizationFailed")


def test_other_providers_and_operations_are_named_and_not_served(client: ArmClient) -> None:
    status, code, message = client.refused("GET", f"{HUBS}/hubweir/applicationGroups")
    assert (status, code) == (501, "OperationNotSupported") and "namespaces/applicationGroups" in message
    path = "/subscriptions/S/resourceGroups/G/providers/Microsoft.Storage/storageAccounts/a"
    assert client.refused("GET", path)[:2] == (501, "OperationNotSupported")


def test_a_body_that_is_too_large_or_no_json_is_refused_in_arms_way(client: ArmClient) -> None:
    assert client.refused("PUT", f"{HUBS}/hubweir/eventhubs/h", b" " * (256 * 1024 + 1))[0] == 413
    assert client.refused("PUT", f"{HUBS}/hubweir/eventhubs/h", b"[]")[:2] == (400, "BadRequest")
