"""Host names lead to one namespace each; what leads nowhere is the default's, or anyone's who takes it."""

import pytest

from hubweir.namespace.host_names import HostNames, HostNameTaken, bare_host, divide


def test_a_name_that_was_given_leads_to_its_namespace_alone() -> None:
    hosts = divide({"plain": ["plain.example"], "large": ["Large.Example:5671"]})
    assert "large.example" in hosts["large"]
    assert "large.example" not in hosts["plain"]
    assert "plain.example" in hosts["plain"]
    assert "plain.example" not in hosts["large"]


def test_a_namespace_is_found_under_its_own_name_unless_another_was_given_it() -> None:
    hosts = divide({"Plain": [], "large": ["plain"]})
    assert hosts["large"].names == {"plain", "large", "large.localhost"}
    assert "plain" not in hosts["Plain"]
    assert "plain.localhost" in hosts["Plain"].names


def test_a_host_that_leads_nowhere_is_taken_by_open_namespaces_only() -> None:
    hosts = divide({"plain": [], "large": ["large.example"]}, closed=frozenset(("large",)))
    assert "elsewhere.example" in hosts["plain"]
    assert "elsewhere.example" not in hosts["large"]


def test_the_default_namespace_takes_the_addresses_even_when_it_is_closed() -> None:
    hosts = divide({"plain": ["plain.example"]}, addresses=["127.0.0.9"], closed=frozenset(("plain",)))
    assert [name in hosts["plain"] for name in ("127.0.0.9", "localhost", "127.0.0.8")] == [True, True, False]


def test_an_address_that_was_given_to_another_namespace_is_not_the_defaults() -> None:
    hosts = divide({"plain": [], "large": ["127.0.0.9"]}, addresses=["127.0.0.9"])
    assert "127.0.0.9" not in hosts["plain"]
    assert "127.0.0.9" in hosts["large"].names


def test_two_namespaces_with_one_host_name_are_refused_with_both_names() -> None:
    with pytest.raises(HostNameTaken, match=r"h\.example leads to the namespace one and cannot lead to two"):
        divide({"one": ["h.example"], "two": ["H.EXAMPLE"]})


def test_alone_and_open_every_host_is_taken() -> None:
    assert "anything" in HostNames(frozenset(("localhost",)))


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Hubs.Example:443", "hubs.example"),
        ("hubs.example/$servicebus/websocket", "hubs.example"),
        ("hubs.example.", "hubs.example"),
        ("[::1]:5671", "[::1]"),
        ("::1", "[::1]"),
        ("", ""),
    ],
)
def test_a_host_is_bared_of_port_and_path(text: str, host: str) -> None:
    assert bare_host(text) == host
