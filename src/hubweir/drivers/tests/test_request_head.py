"""Heads that two readers could understand differently are refused; the plain ones beside them are not."""

import pytest

from hubweir.drivers.request_head import head_fault, is_websocket_path

HOST = (b"host", b"localhost:5671")


@pytest.mark.parametrize(
    ("method", "target", "version", "headers"),
    [
        ("GET", b"/health", "1.1", [HOST]),
        ("GET", b"/health", "1.0", []),
        ("GET", b"http://LOCALHOST:5671/health", "1.1", [HOST]),
        ("OPTIONS", b"*", "1.1", [HOST]),
        ("GET", b"/", "1.1", [(b"host", b"[::1]:5671")]),
        ("POST", b"/hub/messages", "1.1", [HOST, (b"transfer-encoding", b"Chunked")]),
        ("POST", b"/hub/messages", "1.1", [HOST, (b"expect", b"100-Continue"), (b"content-encoding", b"identity")]),
        ("POST", b"/hub/messages", "1.1", [HOST, (b"x-custom", b"1"), (b"x-custom", b"2")]),
    ],
)
def test_good_heads_pass(method: str, target: bytes, version: str, headers: list[tuple[bytes, bytes]]) -> None:
    assert head_fault(method, target, version, headers) is None


@pytest.mark.parametrize(
    ("status", "method", "target", "version", "headers"),
    [
        ("505", "GET", b"/", "0.9", []),
        ("505", "GET", b"/", "2.0", [HOST]),
        ("400", "GET", b"/", "1.1", []),
        ("400", "GET", b"/", "1.1", [HOST, HOST]),
        ("400", "GET", b"/", "1.1", [(b"host", b"")]),
        ("400", "GET", b"/", "1.1", [(b"host", b"localhost, evil")]),
        ("400", "GET", b"/", "1.1", [(b"host", b"user@localhost")]),
        ("400", "GET", b"http://evil/health", "1.1", [HOST]),
        ("400", "GET", b"http://localhost:5671@evil/health", "1.1", [HOST]),
        ("400", "GET", b"ftp://localhost:5671/health", "1.1", [HOST]),
        ("400", "GET", b"health", "1.1", [HOST]),
        ("400", "GET", b"*", "1.1", [HOST]),
        ("405", "CONNECT", b"evil:80", "1.1", [HOST]),
        ("405", "TRACE", b"/", "1.1", [HOST]),
        ("501", "POST", b"/", "1.1", [HOST, (b"transfer-encoding", b"gzip, chunked")]),
        ("501", "POST", b"/", "1.0", [HOST, (b"transfer-encoding", b"chunked")]),
        ("415", "POST", b"/", "1.1", [HOST, (b"content-encoding", b"gzip")]),
        ("417", "POST", b"/", "1.1", [HOST, (b"expect", b"more")]),
        *(
            ("400", "POST", b"/", "1.1", [HOST, (name, b"1"), (name, b"1")])
            for name in (b"authorization", b"content-length", b"content-type", b"brokerproperties", b"if-match")
        ),
    ],
)
def test_heads_with_two_meanings_are_refused(
    status: str, method: str, target: bytes, version: str, headers: list[tuple[bytes, bytes]]
) -> None:
    """Attacks 75, 80 and 81."""
    fault = head_fault(method, target, version, headers)
    assert fault is not None and fault[0].startswith(status)


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        (b"/$servicebus/websocket", True),
        (b"/$servicebus/websocket/", True),
        (b"/%24ServiceBus/WebSocket?sb-hc-action=connect", True),
        (b"https://localhost/$servicebus/websocket", True),
        (b"http://localhost:5671/%24servicebus/websocket/?a=b", True),
        (b"ftp://localhost/$servicebus/websocket", False),
        (b"https://user/$servicebus/websocket/more", False),
        (b"/$servicebus/websocket/more", False),
        (b"/servicebus/websocket", False),
        (b"/", False),
    ],
)
def test_the_websocket_has_one_address(target: bytes, is_one: bool) -> None:
    assert is_websocket_path(target) is is_one
