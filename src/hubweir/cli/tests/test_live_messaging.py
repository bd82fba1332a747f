"""Queues and topics of a live namespace as a Config.json, and what differs from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hubweir.cli.live_messaging import live_queues_and_topics, messaging_differences
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.config.emulator_entities import NamespaceConfig
from hubweir.config.tests.emulator_texts import parse_emulator_file
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import running_namespace

CORRELATION = (
    '<Filter i:type="CorrelationFilter"><Label>x</Label><Properties><KeyValueOfstringanyType><Key>n</Key>'
    '<Value i:type="d6p1:int" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">3</Value></KeyValueOfstringanyType>'
    "</Properties></Filter>"
    '<Action i:type="SqlRuleAction"><SqlExpression>SET a = 1</SqlExpression></Action>'
)
RIGHTS = (
    '<AuthorizationRules><AuthorizationRule i:type="SharedAccessAuthorizationRule"><Rights><AccessRights>Send'
    "</AccessRights></Rights><KeyName>r</KeyName><PrimaryKey>its key</PrimaryKey></AuthorizationRule>"
    "</AuthorizationRules>"
)


@pytest.fixture(scope="module")
def administration() -> Iterator[Administration]:
    """A namespace with everything that a Config.json can name."""
    with running_namespace() as running:
        found = Administration(ConnectionString.parse(running.connection_string()))
        settings = {"LockDuration": "PT90S", "EnablePartitioning": "true", "MaxSizeInMegabytes": "2048"}
        found.create(EntityType.QUEUE, "work", settings, RIGHTS)
        found.create(EntityType.QUEUE, "from", {"ForwardTo": "work", "UserMetadata": "mine"})
        found.create(EntityType.TOPIC, "news", {"SupportOrdering": "false"})
        found.create(EntityType.SUBSCRIPTION, "news/Subscriptions/all", {"MaxDeliveryCount": "4"})
        found.create(EntityType.SUBSCRIPTION, "news/Subscriptions/some", {})
        found.delete("news/Subscriptions/some/Rules/$Default")
        found.create(EntityType.RULE, "news/Subscriptions/some/Rules/same", {}, CORRELATION)
        yield found


def read(document: Any) -> NamespaceConfig:
    user_config = {"Namespaces": [{"Name": "sbemulatorns", **document}], "Logging": {"Type": "Console"}}
    config = parse_emulator_file(json.dumps({"UserConfig": user_config}).encode(), file="live", strict=True)
    assert config.warnings == ()
    (namespace,) = config.namespaces
    return namespace


def test_the_document_is_a_config_file_and_differs_from_nothing(administration: Administration) -> None:
    document = live_queues_and_topics(administration, with_keys=False)
    assert "its key" not in json.dumps(document)
    namespace = read(document)
    assert messaging_differences(namespace, document) == []
    first, second = namespace.queues
    assert (first.name, first.properties.forward_to, first.properties.user_metadata) == ("from", "work", "mine")
    assert second.properties.max_size_in_megabytes == 2048, "the size that was asked for, not of all fragments"
    everything, some = namespace.topics[0].subscriptions
    assert everything.rules == () and everything.properties.max_delivery_count == 4
    (rule,) = some.rules
    assert rule.correlation_filter is not None and rule.correlation_filter.properties == (("n", 3),)
    assert rule.action == "SET a = 1"


def test_keys_are_there_when_they_are_asked_for(administration: Administration) -> None:
    namespace = read(live_queues_and_topics(administration, with_keys=True))
    (rule,) = namespace.queues[1].properties.rules
    assert rule.primary is not None and rule.primary.reveal() == "its key"


def test_each_difference_has_its_line(administration: Administration) -> None:
    document = live_queues_and_topics(administration, with_keys=False)
    wanted = json.loads(json.dumps(document))
    work, news = wanted["Queues"][1], wanted["Topics"][0]
    wanted["Queues"] = [{"Name": "new"}, {**work, "Properties": {"LockDuration": "PT30S"}}]
    everything, some = news["Subscriptions"]
    some["Rules"][0]["Properties"]["CorrelationFilter"] = {"Label": "y"}
    some["Rules"].append({"Name": "more", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "a = 1"}}})
    news["Subscriptions"] = [some, {"Name": "third"}]
    assert messaging_differences(read(wanted), document) == [
        "+ queue new",
        '~ queue work: LockDuration is "PT30S" in the files, "PT90S" in the namespace',
        "- queue work: authorization rule r",
        "~ subscription some of topic news: rule same has another filter or action",
        "+ subscription some of topic news: rule more",
        "+ subscription third of topic news",
        "- subscription all of topic news",
        "- queue from",
    ]
    assert messaging_differences(read({"Topics": []}), {}) == []


@pytest.mark.parametrize(("profile", "told"), [("premium", 81920), ("development", 16 * 10240)])
def test_the_size_of_a_partitioned_queue_is_the_one_that_was_asked_for_in_every_tier(profile: str, told: int) -> None:
    asked = 81920 if profile == "premium" else 10240
    with running_namespace(profile=profile) as namespace:
        administration = Administration(ConnectionString.parse(namespace.connection_string()))
        members = {"EnablePartitioning": "true", "MaxSizeInMegabytes": str(asked)}
        made = administration.create(EntityType.QUEUE, "orders", members)
        assert made.members["MaxSizeInMegabytes"] == str(told)
        (queue,) = read(live_queues_and_topics(administration, with_keys=False)).queues
        assert (queue.properties.enable_partitioning, queue.properties.max_size_in_megabytes) == (True, asked)
