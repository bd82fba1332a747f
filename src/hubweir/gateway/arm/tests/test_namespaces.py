"""Namespaces: made, changed, told and deleted; and what of a wish cannot be."""

from __future__ import annotations

import time

import pytest

from hubweir.gateway.arm.tests.arm_client import BUS, HUBS, ArmClient


def test_a_namespace_is_one_for_both_providers_until_it_is_deleted(client: ArmClient) -> None:
    wanted = {"sku": {"name": "Premium", "tier": "Premium"}, "properties": {"kafkaEnabled": True}}
    status, made = client.ask("PUT", f"{HUBS}/both", wanted)
    assert status == 201 and (made["name"], made["sku"]["name"]) == ("both", "Premium")
    status, told = client.ask("PUT", f"{BUS}/BOTH")
    assert status == 200 and told["id"] == f"{BUS}/both" and told["type"] == "Microsoft.ServiceBus/Namespaces"
    assert client.ask("PUT", f"{BUS}/both", {"sku": {"tier": "premium"}})[0] == 200
    assert [client.ask("DELETE", f"{HUBS}/both")[0] for _ in range(2)] == [200, 204]


def test_a_change_of_units_changes_what_it_says(client: ArmClient) -> None:
    token = client.signed_by("units")
    steps = [
        ({"sku": {"name": "Standard", "capacity": 2}}, (2, False, 0)),
        ({"properties": {"isAutoInflateEnabled": True, "maximumThroughputUnits": 7}}, (2, True, 7)),
        ({"sku": {"capacity": 3}}, (3, True, 7)),
        ({"properties": {"isAutoInflateEnabled": False, "maximumThroughputUnits": 7}}, (3, False, 0)),
        ({}, (3, False, 0)),
    ]
    for body, expected in steps:
        status, told = client.ask("PATCH", f"{HUBS}/units", body, token=token)
        properties = told["properties"]
        assert status == 200 and expected == (
            told["sku"]["capacity"], properties["isAutoInflateEnabled"], properties["maximumThroughputUnits"],
        ), body  # fmt: skip


def test_a_namespace_is_told_with_the_time_of_its_newest_change(client: ArmClient) -> None:
    """Times are told in whole seconds, so changes go on until the second is over."""
    token, give_up = client.signed_by("dated"), time.monotonic() + 30

    def dates(method: str, body: object = None) -> tuple[str, str]:
        status, told = client.ask(method, f"{HUBS}/dated", body, token=token)
        assert status == 200, told
        return told["properties"]["createdAt"], told["properties"]["updatedAt"]

    created, first = newest = dates("GET")
    change = 0
    while newest[1] == first and time.monotonic() < give_up:
        change += 1
        newest = dates("PATCH", {"tags": {"change": str(change)}})
    assert newest[1] > first >= created == newest[0]
    assert dates("PATCH", {"tags": {"change": str(change)}}) == dates("GET") == newest


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"sku": {"name": "Premium"}}, "is of the Sku Standard, and stays so"),
        ({"sku": {"name": "Gold"}}, "Basic, Standard or Premium"),
        ({"properties": {"isAutoInflateEnabled": True}}, "maximumThroughputUnits"),
        ({"sku": {"capacity": -1}}, "throughput units"),
        ({"sku": {"capacity": 2**62}}, "throughput units"),
        ({"sku": {"capacity": "2"}}, "a whole number"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_and_changes_nothing(client: ArmClient, body: object, says: str) -> None:
    before = client.ask("GET", f"{HUBS}/hubweir")
    status, code, message = client.refused("PATCH", f"{HUBS}/hubweir", body)
    assert (status, code) == (400, "BadRequest") and says in message
    assert client.ask("GET", f"{HUBS}/hubweir") == before


def test_what_is_not_served_is_named(client: ArmClient) -> None:
    status, code, message = client.refused("PUT", f"{HUBS}/keys", {"properties": {"encryption": {"keySource": "x"}}})
    assert (status, code) == (501, "OperationNotSupported") and "properties.encryption" in message
    assert client.refused("GET", f"{HUBS}/keys")[0] == 404


@pytest.mark.parametrize(
    ("name", "reason"), [("free", "None"), ("HUBWEIR", "NameInUse"), ("-", "InvalidName"), ("a" * 300, "InvalidName")]
)
def test_a_name_is_free_taken_or_none(client: ArmClient, name: str, reason: str) -> None:
    status, told = client.ask("POST", f"{HUBS.removesuffix('/namespaces')}/checkNameAvailability", {"name": name})
    assert status == 200 and (told["nameAvailable"], told["reason"]) == (reason == "None", reason)
    assert bool(told["message"]) is (reason != "None")


def test_the_default_namespace_is_not_deleted(client: ArmClient) -> None:
    assert "is the default namespace" in client.refused("DELETE", f"{HUBS}/hubweir")[2]
    assert client.ask("GET", f"{HUBS}/hubweir")[0] == 200
