"""A resource's URI or path, cut into segments: the one place that decodes what a client wrote.

Addresses on links, audiences of tokens and the resource a token was signed for are all cut here, so that none of them
is decoded twice or by another rule than the others (rule R21). A path is decoded once and then cut, so an encoded slash
is a slash: clients encode those in names. A path is refused, never repaired, when it holds what could name two things:
empty, `.` or `..` segments, a backslash, a control character, a `%` that is no escape, bytes that are no UTF-8, a
query, a fragment, user information in front of the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.errors import HubweirError

# Longest URI that is looked at: hub 256 + group 50 or publisher 128 + keywords, three bytes an escaped character.
URI_LIMIT = 2048
_SCHEMES = frozenset(("sb", "amqp", "amqps", "http", "https", "ws", "wss"))
_HEX = frozenset("0123456789abcdefABCDEF")
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class IllegalPath(HubweirError):
    """The text is no resource path. The text of the error says why, for people."""


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """host: lower case, without port; None when the text had no authority. segments: decoded, in the case they came."""

    host: str | None
    segments: tuple[str, ...]


def fold(text: str) -> str:
    """Lower case of A to Z and nothing else: no character of another script ever equals an ASCII letter."""
    return text.translate(_LOWER)


def parse_path(text: str, *, decoded: bool = False) -> ResourcePath:
    """Cut a URI or a path into host and segments.

    decoded: the caller has percent-decoded the whole text already; it is not decoded again, and a `%` is refused.
    One leading slash and one trailing slash mean nothing. Raises IllegalPath.
    """
    if len(text) > URI_LIMIT:
        raise IllegalPath(f"it has {len(text)} characters, over the limit of {URI_LIMIT}")
    if not text.isprintable() or "\\" in text:
        raise IllegalPath("it has a control character or a backslash")
    if "?" in text or "#" in text:
        raise IllegalPath("it has a query or a fragment")
    host, path = _split_authority(text)
    path = path.removeprefix("/").removesuffix("/")
    if not path:
        return ResourcePath(host, ())
    if decoded and "%" in path:
        raise IllegalPath("it was percent-encoded twice")
    text = path if decoded else percent_decode(path)
    return ResourcePath(host, tuple(_segment(piece) for piece in text.split("/")))


def percent_decode(text: str) -> str:
    """Decode every %XX once. `+` stays `+`. Raises IllegalPath for a broken escape or for bytes that are no UTF-8."""
    if "%" not in text:
        return text
    first, *rest = text.split("%")
    out = bytearray(first.encode())
    for piece in rest:
        if len(piece) < 2 or not _HEX.issuperset(piece[:2]):
            raise IllegalPath("it has a % that is not followed by two hexadecimal digits")
        out.append(int(piece[:2], 16))
        out += piece[2:].encode()
    try:
        return out.decode("utf-8")
    except UnicodeDecodeError:
        raise IllegalPath("its escapes are no UTF-8") from None


def _split_authority(text: str) -> tuple[str | None, str]:
    scheme, separator, rest = text.partition("://")
    if not separator:
        return None, text
    if fold(scheme) not in _SCHEMES:
        raise IllegalPath("its scheme is none of " + ", ".join(sorted(_SCHEMES)))
    authority, slash, path = rest.partition("/")
    return _host(authority), slash + path


def _host(authority: str) -> str:
    if "@" in authority or "%" in authority:
        raise IllegalPath("its host has user information or an escape in front")
    host, port = authority, ""
    if authority.startswith("["):
        host, bracket, port = authority.partition("]")
        host += bracket
        if not bracket or (port and not port.startswith(":")):
            raise IllegalPath("its host is no address in brackets")
        port = port[1:]
    elif ":" in authority:
        host, _, port = authority.partition(":")
        if not port:
            raise IllegalPath("its port is empty")
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise IllegalPath("its port is no number")
    if not host or not host.isascii() or host.startswith(".") or host.endswith(".") or ".." in host or " " in host:
        raise IllegalPath("its host is not one name or address")
    return fold(host)


def _segment(segment: str) -> str:
    if segment in ("", ".", ".."):
        raise IllegalPath("it has an empty segment, or one of . and ..")
    if "\\" in segment or not segment.isprintable():
        raise IllegalPath("a segment holds a backslash or a control character")
    return segment
