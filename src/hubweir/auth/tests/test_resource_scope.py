"""What covers what: by segment, in any case, and never by text."""

import pytest

from hubweir.auth.resource_scope import Scope
from hubweir.namespace.resource_path import IllegalPath


@pytest.mark.parametrize(
    "audience",
    [
        "sb://host/hub1",
        "sb://host/hub1/",
        "sb://HOST:5671/HUB1",
        "amqp://host/hub1/Partitions/0",
        "amqps://host/hub1/ConsumerGroups/$Default/Partitions/0",
        "sb://host/hub1/consumergroups/%24Default",
        "https://host/hub1/$management",
        "sb://[::1]:5671/hub1/publishers/p",
    ],
)
def test_a_hub_covers_everything_below_it_in_any_form(audience: str) -> None:
    assert Scope.parse("sb://host/hub1").covers(Scope.parse(audience))
    assert Scope.parse("sb://host/").covers(Scope.parse(audience))
    assert Scope.parse("sb://host").covers(Scope.parse(audience))


@pytest.mark.parametrize(
    "audience",
    [
        "sb://host/hub10",
        "sb://host/hub1x",
        "sb://host/hub",
        "sb://host/",
        "sb://host",
        "sb://host/hub2/hub1",
        "sb://host/hub1+x",
        "sb://host/%68ub2",
        "sb://host/hub1%20",
        "sb://host/\u212aub1",
        "sb://host/h\u0075\u0308b1",
    ],
)
def test_a_hub_covers_no_other_hub_and_not_the_namespace(audience: str) -> None:
    assert not Scope.parse("sb://host/hub1").covers(Scope.parse(audience))


@pytest.mark.parametrize(
    ("scope", "audience", "covered"),
    [
        ("sb://h/hub/publishers/a", "sb://h/hub/publishers/a", True),
        ("sb://h/hub/publishers/a", "sb://h/hub/publishers/b", False),
        ("sb://h/hub/publishers/a", "sb://h/hub/publishers/ab", False),
        ("sb://h/hub/publishers/a", "sb://h/hub", False),
        ("sb://h/hub/publishers/a", "sb://h/hub/partitions/0", False),
        ("sb://h/hub/consumergroups/g", "sb://h/hub/ConsumerGroups/G/Partitions/0", True),
        ("sb://h/hub/consumergroups/g", "sb://h/hub/consumergroups/g2/partitions/0", False),
        ("sb://h/hub/consumergroups/g", "sb://h/hub/consumergroups/other/partitions/0", False),
        ("sb://h/hub/consumergroups/g", "sb://h/hub/$management", False),
        ("sb://h/hub/publishers/gr%C3%BC%C3%9Fe", "sb://h/hub/publishers/gr\u00fc\u00dfe", True),
        ("sb://h/hub/publishers/u%CC%88", "sb://h/hub/publishers/%C3%BC", False),
        ("sb://h/hub/publishers/%C4%B1", "sb://h/hub/publishers/i", False),
        ("sb://h/hub/publishers/%C5%BF", "sb://h/hub/publishers/s", False),
        ("sb://h/hub/publishers/%E2%84%AA", "sb://h/hub/publishers/k", False),
        ("sb://h/hub/publishers/a+b", "sb://h/hub/publishers/a%20b", False),
    ],
)
def test_a_narrow_scope_covers_itself_only(scope: str, audience: str, covered: bool) -> None:
    assert Scope.parse(scope).covers(Scope.parse(audience)) is covered
    assert Scope.parse("sb://h/hub").covers(Scope.parse(audience))


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/",
        "hub",
        "/hub",
        "sb://",
        "sb:///hub",
        "sb://h//hub",
        "sb://h/hub//",
        "sb://h/./hub",
        "sb://h/a/../hub",
        "sb://h/%2e%2e/hub",
        "sb://h/hub%2f",
        "sb://h/hub%2f..%2fx",
        "sb://h/hub%5cx",
        "sb://h/hub\\x",
        "sb://h/hub%00",
        "sb://h/hub\r\n",
        "sb://h/hub?x",
        "sb://h/hub#x",
        "sb://u@h/hub",
        "sb://u:p@h/hub",
        "sb://h:port/hub",
        "sb://h:/hub",
        "sb://h:123456/hub",
        "sb://h./hub",
        "sb://.h/hub",
        "sb://a..b/hub",
        "sb://h\u00e9/hub",
        "sb://[::1/hub",
        "sb://[::1]x/hub",
        "file://h/hub",
        "sb://h/%",
        "sb://h/%4",
        "sb://h/%c0%af",
        "sb://h/%ff",
        "sb://h/" + "a" * 3000,
    ],
)
def test_a_uri_that_could_mean_two_things_is_refused(uri: str) -> None:
    with pytest.raises(IllegalPath):
        Scope.parse(uri)


def test_an_audience_is_decoded_once_and_a_signed_resource_too() -> None:
    assert Scope.parse("sb://h/hub%2541").segments == ("hub%41",)
    assert Scope.of_signed("sb%3A%2F%2Fh%2Fhub%41").segments == ("huba",)
    with pytest.raises(IllegalPath):
        Scope.of_signed("sb%3A%2F%2Fh%2Fhub%2541")


@pytest.mark.parametrize(
    "resource", ["ns.example", "NS.example:5671", "ns.example%2Fhub", "https%3A%2F%2Fns.example%2Fhub"]
)
def test_a_host_of_the_namespace_may_be_signed_without_a_scheme(resource: str) -> None:
    scope = Scope.of_signed(resource, frozenset(("ns.example",)))
    assert scope.host == "ns.example"
    assert scope.segments == (("hub",) if "hub" in resource else ())


@pytest.mark.parametrize("resource", ["hub", "hub/partitions/0", "ns.example.evil", "/ns.example", "", "/"])
def test_any_other_bare_word_is_no_host(resource: str) -> None:
    """Taken for a host, the name of a hub would cover the whole namespace."""
    with pytest.raises(IllegalPath):
        Scope.of_signed(resource, frozenset(("ns.example",)))
