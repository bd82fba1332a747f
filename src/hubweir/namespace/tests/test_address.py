"""Addresses in every form that clients write, and forms that could mean two things."""

import pytest

from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.address import SEGMENTS_LIMIT, Address, parse_address
from hubweir.namespace.entity import AnyEntity, Entity, EntityStatus
from hubweir.namespace.event_hub_description import EventHubDescription


def entity(name: str) -> AnyEntity:
    return Entity(name, EventHubDescription(name, 1), (), EntityStatus.ACTIVE)


ENTITIES = {name.lower(): entity(name) for name in ("Hub", "team/metrics", "hub10")}


def resolve(text: str) -> Address:
    return parse_address(text, lambda name: ENTITIES.get(name.lower()), host="ns.local")


def named(address: Address) -> tuple[str | None, tuple[str, ...]]:
    return None if address.entity is None else address.entity.name, address.part


GROUP_0 = ("Hub", ("ConsumerGroups", "$Default", "Partitions", "0"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hub", ("Hub", ())),
        ("/hub", ("Hub", ())),
        ("hub/", ("Hub", ())),
        ("HUB", ("Hub", ())),
        ("amqps://localhost:5671/hub", ("Hub", ())),
        ("sb://ns.servicebus.windows.net/Hub/", ("Hub", ())),
        ("amqps://[::1]:5671/hub", ("Hub", ())),
        ("hub10", ("hub10", ())),
        ("hub/Partitions/1", ("Hub", ("Partitions", "1"))),
        ("hub/Publishers/dev%20a", ("Hub", ("Publishers", "dev a"))),
        ("hub/ConsumerGroups/$Default/Partitions/0", GROUP_0),
        ("/hub/ConsumerGroups/$Default/Partitions/0", GROUP_0),
        ("amqps://127.0.0.1:5671/hub/ConsumerGroups/%24Default/Partitions/0", GROUP_0),
        ("team/metrics", ("team/metrics", ())),
        ("team%2Fmetrics", ("team/metrics", ())),
        ("hub%2fPartitions%2f0", ("Hub", ("Partitions", "0"))),
        ("Team/Metrics/Partitions/3", ("team/metrics", ("Partitions", "3"))),
        ("hub/$cbs", ("Hub", ("$cbs",))),
        ("hub/what/ever", ("Hub", ("what", "ever"))),
    ],
)
def test_an_address_names_its_entity_in_every_form(text: str, expected: object) -> None:
    address = resolve(text)
    assert named(address) == expected
    assert not address.is_cbs and not address.is_management


@pytest.mark.parametrize("text", ["$cbs", "amqps://localhost/$CBS"])
def test_the_node_that_takes_tokens_is_the_namespace_s(text: str) -> None:
    address = resolve(text)
    assert (address.entity, address.is_cbs, address.is_management) == (None, True, False)


@pytest.mark.parametrize(
    ("text", "name"), [("$management", None), ("hub/$Management", "Hub"), ("team/metrics/$management", "team/metrics")]
)
def test_every_entity_and_the_namespace_have_a_management_node(text: str, name: str | None) -> None:
    address = resolve(text)
    assert (named(address)[0], address.is_management, address.is_cbs) == (name, True, False)


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
        "hub%2f",
        "hub%2f%2e%2e%2fhub",
        "hub/Partitions%5c0",
        "hub\\Partitions\\0",
        "hub/Publishers/a%00b",
        "hub/Publishers/a\nb",
        "hub/Publishers/%c0%af",
        "hub/Publishers/%zz",
        "hub/Publishers/%4",
        "hub/Partitions/0?x=1",
        "hub#f",
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
    assert resolve("hub/Publishers/%2541").part == ("Publishers", "%41")


def test_the_longest_name_that_exists_wins() -> None:
    names = {"a", "a/b", "a/b/c"}
    address = parse_address("a/b/c/Partitions/0", lambda name: entity(name) if name in names else None)
    assert named(address) == ("a/b/c", ("Partitions", "0"))


def test_an_address_of_very_many_segments_is_not_looked_up_at_every_depth() -> None:
    asked: list[str] = []
    with pytest.raises(ServiceError):
        parse_address("a/" * 1_000 + "a", lambda name: asked.append(name))
    assert len(asked) == SEGMENTS_LIMIT
