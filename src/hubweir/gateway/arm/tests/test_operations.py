"""The table of operations: what a path leads to, what leads nowhere, and what the page says of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hubweir.errors import NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.arm.operation import RightOf
from hubweir.gateway.arm.operations import OPERATIONS, find_operation
from hubweir.gateway.arm.resource_path import ArmPath, is_arm, parse_arm

PAGE = (Path(__file__).resolve().parents[5] / "docs/arm.md").read_text()
BASE = "subscriptions/S/resourceGroups/G/providers/Microsoft.EventHub"


def path_of(text: str) -> ArmPath:
    found = parse_arm(tuple(text.split("/")))
    assert found is not None
    return found


def test_a_path_is_read_in_any_case_and_names_keep_theirs() -> None:
    path = path_of("SUBSCRIPTIONS/S/resourcegroups/G/Providers/microsoft.eventhub/NameSpaces/Shop/EventHubs/Orders")
    assert path == ArmPath("S", "G", "Microsoft.EventHub", ("NameSpaces", "Shop", "EventHubs", "Orders"))
    operation, names = find_operation("PUT", path)
    assert names == {"namespace": "Shop", "hub": "Orders"} and operation.of is RightOf.NAMESPACE
    expected = "/subscriptions/S/resourceGroups/G/providers/Microsoft.EventHub/namespaces/Shop/eventhubs/a%2Fb"
    assert path.id_of("namespaces", "Shop", "eventhubs", "a/b") == expected


def test_a_whole_subscription_has_its_namespaces() -> None:
    path = path_of("subscriptions/S/providers/Microsoft.ServiceBus/namespaces")
    assert (path.group, path.provider) == ("", "Microsoft.ServiceBus")
    assert find_operation("GET", path)[0].of is RightOf.SERVICE


@pytest.mark.parametrize(
    "text",
    ["subscriptions/S/resourceGroups", "subscriptions/S/resourceGroups/G/providers/Microsoft.Storage/storageAccounts",
     "subscriptions/S/providers/Microsoft.EventHub", "subscriptions/S/x/y/z"],
)  # fmt: skip
def test_other_resources_have_no_path_here(text: str) -> None:
    segments = tuple(text.split("/"))
    assert is_arm(segments) and parse_arm(segments) is None


def test_an_entitys_path_is_none_of_arms() -> None:
    for text in ("orders/messages", "orders/subscriptions/all", "subscriptions", "$namespaces/shop"):
        assert not is_arm(tuple(text.split("/")))


@pytest.mark.parametrize(
    ("method", "rest"),
    [("GET", "namespaces/n/applicationGroups/a"), ("POST", "namespaces/n/failover"), ("GET", "clusters"),
     ("PATCH", "namespaces/n/eventhubs/h"), ("GET", "namespaces/n/queues/q"), ("DELETE", "namespaces")],
)  # fmt: skip
def test_what_is_not_served_is_named_and_refused(method: str, rest: str) -> None:
    with pytest.raises(ServiceError, match="is not served here") as refused:
        find_operation(method, path_of(f"{BASE}/{rest}"))
    assert refused.value.condition is NOT_IMPLEMENTED and method in refused.value.text


def test_making_and_deleting_namespaces_needs_the_services_right() -> None:
    needing = {(each.method, "/".join(each.path)) for each in OPERATIONS if each.of is RightOf.SERVICE}
    assert needing == {
        ("GET", "namespaces"), ("POST", "checknameavailability"), ("PUT", "namespaces/{namespace}"),
        ("DELETE", "namespaces/{namespace}"),
    }  # fmt: skip


def test_the_page_has_every_operation_and_no_other() -> None:
    rows = re.findall(r"^\| `([^`]+)`[^|]*\| ([A-Z, ]+) \|", PAGE, re.MULTILINE)
    told = {(method, path) for path, methods in rows for method in methods.split(", ")}
    told |= {("POST", path.replace("listkeys", "regeneratekeys")) for method, path in told if "listkeys" in path}
    served = set()
    for each in OPERATIONS:
        path = "/".join(each.path)
        rules, slash, rest = path.partition("/authorizationrules")
        if slash:
            path = "namespaces/{namespace}/authorizationrules" if not rest else f"…/authorizationrules{rest}"
        served.add((each.method, path))
    assert told == served
