"""Refuses the head of an HTTP request unless every proxy reads it as we do. (RFC 9112)

What two readers of one connection may understand differently is how requests are smuggled: two hosts, a target that
names another host than the Host field, an encoding of the body beside chunked. The parser refuses most of it (lengths
that are doubled, signed or stand beside chunked; bare line feeds, folded and spaced fields); this is the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

Headers = Sequence[tuple[bytes, bytes]]

WEBSOCKET_PATH = "/$servicebus/websocket"
# One of each at most: two would leave open which one counts.
_SINGLE = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"authorization", b"content-type", b"brokerproperties",
     b"content-encoding", b"if-match", b"expect")
)  # fmt: skip
_HOST_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]")


def head_fault(method: str, target: bytes, version: str, headers: Headers) -> tuple[str, str] | None:
    """The status line's end and a text when this head is refused; None when it is good. Names are in lower case."""
    if version not in ("1.0", "1.1"):
        return "505 HTTP Version Not Supported", "HTTP/1.1 is spoken here"
    seen: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _SINGLE and name in seen:
            return _bad(f"there is more than one {name.decode()} header")
        seen[name] = value
    host = seen.get(b"host")
    if host is None:
        if version == "1.1":
            return _bad("there is no host header")
    elif not host or not _HOST_BYTES.issuperset(host):
        return _bad("the host header is no host")
    if method == "CONNECT" or method == "TRACE":
        return "405 Method Not Allowed", f"{method} does not exist here"
    if not target.startswith(b"/") and not (method == "OPTIONS" and target == b"*"):
        authority = _authority(target)
        if authority is None or (host is not None and authority.lower() != host.lower()):
            return _bad("the request names another host than its host header")
    coding = seen.get(b"transfer-encoding")
    if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
        return "501 Not Implemented", "the only transfer-encoding is chunked, in HTTP/1.1"
    if seen.get(b"content-encoding", b"identity").lower() != b"identity":
        return "415 Unsupported Media Type", "bodies are not unpacked here: send them without content-encoding"
    if seen.get(b"expect", b"100-continue").lower() != b"100-continue":
        return "417 Expectation Failed", "the only expectation is 100-continue"
    return None


def is_websocket_path(target: bytes) -> bool:
    """True for the address of AMQP over WebSocket, in any case, with or without a slash at its end.

    The Java client writes the whole URI as the target. (RFC 9112, section 3.2.2)
    """
    authority = None if target.startswith(b"/") else _authority(target)
    if authority is not None:
        target = target.partition(b"://")[2][len(authority) :]
    path = target.partition(b"?")[0].decode("latin-1")
    return unquote(path).lower().removesuffix("/") == WEBSOCKET_PATH


def _authority(target: bytes) -> bytes | None:
    """The authority of an absolute target; None when it is no http or https URI, or names a user."""
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        return None
    return rest.partition(b"/")[0].partition(b"?")[0]


def _bad(text: str) -> tuple[str, str]:
    return "400 Bad Request", text
