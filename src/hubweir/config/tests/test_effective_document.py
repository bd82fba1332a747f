"""Files with their defaults filled in, as a file again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hubweir.config.effective_document import effective_document
from hubweir.config.tests.emulator_texts import parse_emulator_file
from hubweir.namespace.tiers import DEVELOPMENT, OFFICIAL_EMULATOR

FILE = {
    "UserConfig": {
        "NamespaceConfig": [
            {
                "Name": "ns1",
                "Sku": "Standard",
                "Hostnames": ["one.example"],
                "ThroughputUnits": 1,
                "MaximumThroughputUnits": 4,
                "IsAutoInflateEnabled": True,
                "AuthorizationRules": [{"KeyName": "all", "PrimaryKey": "k", "Rights": ["Manage", "Send", "Listen"]}],
                "Entities": [
                    {"Name": "a", "PartitionCount": 2, "ConsumerGroups": [{"Name": "g"}], "MessageRetentionInDays": 2},
                    {
                        "Name": "b",
                        "PartitionCount": 1,
                        "Status": "Disabled",
                        "UserMetadata": "mine",
                        "CaptureDescription": {"Enabled": True, "IntervalInSeconds": 60},
                    },
                ],
            }
        ],
    }
}


def test_the_document_reads_back_as_the_same_configuration_and_holds_no_key() -> None:
    first = parse_emulator_file(json.dumps(FILE).encode(), file="f")
    document = effective_document(first)
    text = json.dumps(document)
    assert "PrimaryKey" not in text
    again = parse_emulator_file(text.encode(), file="f")
    assert effective_document(again) == document
    (before,), (after,) = first.namespaces, again.namespaces
    assert [hub.name for hub in after.hubs] == ["a", "b"]
    assert replace(after, hubs=()) == replace(before, hubs=())
    assert (after.hubs[0].retention_ms, after.hubs[0].consumer_groups) == (2 * 86_400_000, ("g",))
    assert (after.hubs[1].status, after.hubs[1].user_metadata) == (before.hubs[1].status, "mine")
    assert after.hubs[1].capture is not None
    assert (after.hubs[1].capture.interval_s, after.hubs[1].capture.size_limit_bytes) == (60, 314_572_800)


def test_the_profile_bounds_the_default_of_retention_and_not_what_a_file_says() -> None:
    document = effective_document(parse_emulator_file(json.dumps(FILE).encode(), file="f"), profile=OFFICIAL_EMULATOR)
    text = json.dumps(document)
    assert '"RetentionTimeInHours": 1,' in text and '"RetentionTimeInHours": 48,' in text


def test_queues_and_topics_read_back_as_the_same_and_have_their_defaults() -> None:
    sample = Path(__file__).parent / "samples/service_bus.json"
    first = parse_emulator_file(sample.read_bytes(), file="f")
    document = effective_document(first)
    again = parse_emulator_file(json.dumps(document).encode(), file="f", strict=True)
    assert effective_document(again) == document
    (before,), (after,) = first.namespaces, again.namespaces
    assert [each.rules for each in after.topics[0].subscriptions] == [
        each.rules for each in before.topics[0].subscriptions
    ]
    assert after.queues[0].properties.lock_duration == before.queues[0].properties.lock_duration
    assert after.queues[0].properties.max_size_in_megabytes == 1024


def test_a_file_of_both_services_is_shown_under_both_roots() -> None:
    both = {"UserConfig": {**FILE["UserConfig"], "Namespaces": [{"Name": "ns1", "Queues": [{"Name": "q"}]}]}}
    document = json.loads(json.dumps(effective_document(parse_emulator_file(json.dumps(both).encode(), file="f"))))
    (hubs,), (bus,) = document["UserConfig"]["NamespaceConfig"], document["UserConfig"]["Namespaces"]
    assert hubs["Name"] == bus["Name"] == "ns1" and len(hubs["Entities"]) == 2 and bus["Queues"][0]["Name"] == "q"


def test_what_is_partitioned_by_itself_is_shown() -> None:
    buses = {"Namespaces": [{"Name": "n", "Sku": "Standard", "Queues": [{"Name": "q"}], "Topics": [{"Name": "t"}]}]}
    for profile, shown in ((DEVELOPMENT, True), (OFFICIAL_EMULATOR, False)):
        found = parse_emulator_file(json.dumps({"UserConfig": buses}).encode(), file="f")
        document = json.loads(json.dumps(effective_document(found, profile=profile)))
        (namespace,) = document["UserConfig"]["Namespaces"]
        for each in (*namespace["Queues"], *namespace["Topics"]):
            assert each["Properties"]["EnablePartitioning"] is shown
