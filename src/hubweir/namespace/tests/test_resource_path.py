"""URIs and paths, cut once: what is one name, and what could be two."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest

from hubweir.namespace.resource_path import URI_LIMIT, IllegalPath, ResourcePath, fold, parse_path, percent_decode


@pytest.mark.parametrize(
    ("text", "host", "segments"),
    [
        ("orders", None, ("orders",)),
        ("/orders/", None, ("orders",)),
        ("", None, ()),
        ("/", None, ()),
        ("sb://NS.Example:5671/Orders/Partitions/0", "ns.example", ("Orders", "Partitions", "0")),
        ("AMQPS://ns.example", "ns.example", ()),
        ("https://[::1]:8080/a%2Eb/", "[::1]", ("a.b",)),
        ("a+b", None, ("a+b",)),
        ("gr%C3%B6%C3%9Fe", None, ("größe",)),
        ("txt%2F.-_123", None, ("txt", ".-_123")),
        ("sb://ns.example/a%2fb%2Fc/d", "ns.example", ("a", "b", "c", "d")),
    ],
)
def test_host_and_segments_are_what_stands_there(text: str, host: str | None, segments: tuple[str, ...]) -> None:
    assert parse_path(text) == ResourcePath(host, segments)


@pytest.mark.parametrize(
    "text",
    [
        *("a//b", "//a", "a/../b", "a/.", "..", "%2e%2e/a", "a/%2E"),
        *("a%2F", "%2Fa", "a%2F%2Fb", "a%2F..%2Fb", "a%2F%2e%2fb", "a%5Cb", "a\\b", "a%00b", "a\nb", "a%0Ab"),
        *("a%", "a%4", "a%zz", "a%+1", "%C3", "%ff"),
        *("a?b=c", "a#b"),
        *("ftp://host/a", "sb://user@host/a", "sb:///a", "sb://ho%73t/a", "sb://host:/a", "sb://host:x/a"),
        *("sb://host:123456/a", "sb://.host/a", "sb://host./a", "sb://a..b/a", "sb://hö/a", "sb://[::1/a", "sb://a b/"),
    ],
)
def test_what_could_name_two_things_is_refused_and_never_repaired(text: str) -> None:
    with pytest.raises(IllegalPath):
        parse_path(text)


def test_a_text_is_decoded_once_and_no_more() -> None:
    assert parse_path("a%2541").segments == ("a%41",)
    assert parse_path("größe", decoded=True).segments == ("größe",)
    with pytest.raises(IllegalPath, match="twice"):
        parse_path("a%41", decoded=True)


@pytest.mark.parametrize("text", ["plain", "with space", "100%", "größe/and ~ more", "\N{SNOWMAN}", "a+b&c=d", "%25"])
def test_every_text_that_is_encoded_comes_back(text: str) -> None:
    assert percent_decode(quote(text, safe="")) == text == unquote(quote(text))


def test_the_limit_is_exact() -> None:
    assert len(parse_path("a" * URI_LIMIT).segments[0]) == URI_LIMIT
    with pytest.raises(IllegalPath, match=str(URI_LIMIT)):
        parse_path("a" * (URI_LIMIT + 1))


def test_no_letter_of_another_script_folds_to_an_ascii_one() -> None:
    assert fold("ORDERS-Z") == "orders-z"
    for other in ("\N{KELVIN SIGN}", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "\N{GREEK CAPITAL LETTER ALPHA}"):
        assert fold(other) == other and not fold(other).isascii()
