"""Addresses in every form that clients write, and forms that could mean two things."""

import pytest

from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.address import (
    Address,
    CbsAddress,
    ConsumerAddress,
    GroupAddress,
    HubAddress,
    ManagementAddress,
    PartitionAddress,
    PublisherAddress,
    parse_address,
)

HUBS = {name.lower(): name for name in ("Hub", "team/metrics", "hub10")}


def resolve(text: str) -> Address:
    return parse_address(text, lambda name: HUBS.get(name.lower()), host="ns.local")


CONSUMER = ConsumerAddress("Hub", "$Default", "0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hub", HubAddress("Hub")),
        ("/hub", HubAddress("Hub")),
        ("hub/", HubAddress("Hub")),
        ("HUB", HubAddress("Hub")),
        ("amqps://localhost:5671/hub", HubAddress("Hub")),
        ("sb://ns.servicebus.windows.net/Hub/", HubAddress("Hub")),
        ("amqps://[::1]:5671/hub", HubAddress("Hub")),
        ("hub10", HubAddress("hub10")),
        ("hub/Partitions/1", PartitionAddress("Hub", "1")),
        ("/hub/partitions/1", PartitionAddress("Hub", "1")),
        ("hub/Partitions/-1", PartitionAddress("Hub", "-1")),
        ("hub/Partitions/XYZ", PartitionAddress("Hub", "XYZ")),
        ("hub/Publishers/dev%20a", PublisherAddress("Hub", "dev a")),
        ("hub/ConsumerGroups/g1", GroupAddress("Hub", "g1")),
        ("hub/ConsumerGroups/$Default/Partitions/0", CONSUMER),
        ("/hub/ConsumerGroups/$Default/Partitions/0", CONSUMER),
        ("amqps://127.0.0.1:5671/hub/ConsumerGroups/%24Default/Partitions/0", CONSUMER),
        ("HUB/consumergroups/$DEFAULT/partitions/0", ConsumerAddress("Hub", "$DEFAULT", "0")),
        ("team/metrics", HubAddress("team/metrics")),
        ("Team/Metrics/Partitions/3", PartitionAddress("team/metrics", "3")),
        ("$cbs", CbsAddress()),
        ("amqps://localhost/$cbs", CbsAddress()),
        ("$management", ManagementAddress(None)),
        ("hub/$management", ManagementAddress("Hub")),
    ],
)
def test_an_address_names_its_entity_in_every_form(text: str, expected: Address) -> None:
    assert resolve(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "nohub",
        "nohub/Partitions/0",
        "hub1",
        "hu",
        "team",
        "team/Partitions/0",
        "//hub",
        "hub//",
        "hub//Partitions/0",
        "hub/./Partitions/0",
        "hub/../hub/Partitions/0",
        "hub/%2e%2e/hub",
        "hub%2fPartitions%2f0",
        "hub/Partitions%5c0",
        "hub\\Partitions\\0",
        "hub/Publishers/a%00b",
        "hub/Publishers/a\nb",
        "hub/Publishers/%c0%af",
        "hub/Publishers/%zz",
        "hub/Publishers/%4",
        "hub/Publishers/a/b",
        "hub/Publishers/",
        "hub/Publishers",
        "hub/Partitions/0?x=1",
        "hub#f",
        "hub/ConsumerGroups/g/Partitions",
        "hub/ConsumerGroups/g/Partitions/0/1",
        "hub/Subscriptions/s",
        "hub/$cbs",
        "$cbs/hub",
        "ftp://localhost/hub",
        "amqps://user@localhost/hub",
        "amqps://localhost:99999x/hub",
        "amqps:///hub",
        "\u212aub",
        "\uff48ub",
        "hub\u2044Partitions\u20440",
        "h" * 5000,
    ],
)
def test_what_names_nothing_is_not_found_in_the_words_that_clients_match(text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        resolve(text)
    assert refused.value.condition is NOT_FOUND
    assert refused.value.text.startswith("The messaging entity 'sb://ns.local/")
    assert "' could not be found." in refused.value.text
    assert refused.value.text.isprintable()
    assert len(refused.value.text) < 600


def test_an_address_is_decoded_once_only() -> None:
    assert resolve("hub/Publishers/%2541") == PublisherAddress("Hub", "%41")


def test_the_longest_hub_that_exists_wins() -> None:
    names = {"a", "a/b", "a/b/c"}
    address = parse_address("a/b/c/Partitions/0", lambda name: name if name in names else None)
    assert address == PartitionAddress("a/b/c", "0")
