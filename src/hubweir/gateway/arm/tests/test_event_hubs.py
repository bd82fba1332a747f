"""Event hubs and consumer groups: a PUT changes what it says, and leaves the rest."""

from __future__ import annotations

import pytest

from hubweir.gateway.arm.tests.arm_client import HUBS, ArmClient

HUB = f"{HUBS}/hubweir/eventhubs"


def test_a_put_changes_what_it_says_and_nothing_else(client: ArmClient) -> None:
    status, made = client.ask("PUT", f"{HUB}/orders", {"properties": {"userMetadata": "ours", "partitionCount": 2}})
    assert status == 200 and made["properties"]["partitionIds"] == ["0", "1"]
    retention = {"retentionDescription": {"retentionTimeInHours": 36, "cleanupPolicy": "delete"}}
    _, changed = client.ask("PUT", f"{HUB}/orders", {"properties": retention})
    _, disabled = client.ask("PUT", f"{HUB}/ORDERS", {"properties": {"status": "SendDisabled"}})
    told = disabled["properties"]
    assert changed["properties"]["retentionDescription"]["retentionTimeInHours"] == 36
    assert (told["userMetadata"], told["status"], told["messageRetentionInDays"]) == ("ours", "SendDisabled", 2)
    assert told["retentionDescription"]["retentionTimeInHours"] == 36
    status, again = client.ask("PUT", f"{HUB}/orders", disabled)
    assert status == 200 and again["properties"]["retentionDescription"] == told["retentionDescription"]


def test_days_that_were_told_change_no_hours_and_other_days_do(client: ArmClient) -> None:
    hours = {"retentionDescription": {"retentionTimeInHours": 36}}
    _, made = client.ask("PUT", f"{HUB}/kept", {"properties": hours})
    assert made["properties"]["messageRetentionInDays"] == 2
    for days, expected in ((2, 36), (3, 72)):
        _, told = client.ask("PUT", f"{HUB}/kept", {"properties": {"messageRetentionInDays": days}})
        assert told["properties"]["retentionDescription"]["retentionTimeInHours"] == expected


def test_retention_that_nobody_said_is_the_usual_one_or_the_longest_of_a_profile_that_has_less(
    client: ArmClient,
) -> None:
    hours = []
    for profile in ("development", "premium", "basic"):
        token = client.signed_by(f"of-{profile}", profile=profile)
        status, made = client.ask("PUT", f"{HUBS}/of-{profile}/eventhubs/orders", token=token)
        assert status == 200, made
        hours.append(made["properties"]["retentionDescription"]["retentionTimeInHours"])
    usual, of_premium, of_basic = hours
    assert usual == of_premium >= of_basic == 24


def test_a_hub_has_four_partitions_where_none_are_said(client: ArmClient) -> None:
    assert client.ask("PUT", f"{HUB}/usual")[1]["properties"]["partitionCount"] == 4
    assert [client.ask("DELETE", f"{HUB}/usual")[0] for _ in range(2)] == [200, 204]


@pytest.mark.parametrize(
    "properties",
    [
        {"partitionCount": 3}, {"messageRetentionInDays": 0}, {"messageRetentionInDays": 2**62},
        {"retentionDescription": {"retentionTimeInHours": -1}}, {"retentionDescription": {"cleanupPolicy": "Compact"}},
        {"status": "Sleeping"}, {"captureDescription": {"enabled": True, "encoding": "Parquet?"}},
        {"captureDescription": {"enabled": True, "intervalInSeconds": 1}}, {"userMetadata": "x" * 5_000},
    ],
)  # fmt: skip
def test_a_wish_that_cannot_be_changes_nothing(client: ArmClient, properties: dict[str, object]) -> None:
    client.ask("PUT", f"{HUB}/fixed", {"properties": {"partitionCount": 1}})
    before = client.ask("GET", f"{HUB}/fixed")
    assert client.refused("PUT", f"{HUB}/fixed", {"properties": properties})[0] in (400, 501)
    assert client.ask("GET", f"{HUB}/fixed") == before


def test_capture_is_told_as_it_was_set_and_stays_where_a_put_says_nothing_of_it(client: ArmClient) -> None:
    capture = {"enabled": False, "encoding": "Avro", "intervalInSeconds": 120, "sizeLimitInBytes": 20_971_520}
    client.ask("PUT", f"{HUB}/captured", {"properties": {"captureDescription": capture}})
    _, told = client.ask("PUT", f"{HUB}/captured", {"properties": {"userMetadata": "x"}})
    found = told["properties"]["captureDescription"]
    assert {name: found[name] for name in capture} == capture


def test_groups_are_made_changed_and_deleted(client: ArmClient) -> None:
    client.ask("PUT", f"{HUB}/grouped")
    groups = f"{HUB}/grouped/consumergroups"
    _, made = client.ask("PUT", f"{groups}/billing", {"properties": {"userMetadata": "ours"}})
    assert made["id"] == f"{groups}/billing" and made["properties"]["userMetadata"] == "ours"
    assert client.ask("PUT", f"{groups}/Billing", {})[1]["properties"]["userMetadata"] == "ours", "nothing was said"
    assert [each["name"] for each in client.ask("GET", groups)[1]["value"]] == ["$Default", "billing"]
    assert [client.ask("DELETE", f"{groups}/billing")[0] for _ in range(2)] == [200, 204]
    assert client.refused("DELETE", f"{groups}/$Default")[0] in (400, 403)
