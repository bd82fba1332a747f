"""AMQP inside WebSocket messages: the handshake, the stream, the limits, and the official client over TLS.

Frames are written byte by byte, so that the library under the driver is not tested against itself.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from hubweir.amqp.security.protocol_header import SASL_HEADER
from hubweir.drivers.websocket_driver import FRAGMENT_COUNT, MESSAGE_BYTES, PING_BURST
from hubweir.testing.frames import sasl_start
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY = base64.b64encode(b"sixteen bytes 16").decode()
ACCEPT = base64.b64encode(hashlib.sha1(f"{KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()
WAIT_S = 30.0


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as running:
        yield running


def frame(opcode: int, data: bytes = b"", *, fin: bool = True, mask: bool = True, length: int | None = None) -> bytes:
    """A client's frame; mask and length may be wrong on purpose."""
    size = len(data) if length is None else length
    bit = 0x80 if mask else 0
    if size < 126:
        head = bytes((opcode | 0x80 * fin, bit | size))
    elif size < 65_536:
        head = bytes((opcode | 0x80 * fin, bit | 126)) + struct.pack(">H", size)
    else:
        head = bytes((opcode | 0x80 * fin, bit | 127)) + struct.pack(">Q", size)
    if not mask:
        return head + data
    key = os.urandom(4)
    stretched = (key * (len(data) // 4 + 1))[: len(data)]
    return head + key + (int.from_bytes(data, "big") ^ int.from_bytes(stretched, "big")).to_bytes(len(data), "big")


class Peer:
    """A client's socket."""

    def __init__(self, namespace: RunningNamespace) -> None:
        self._socket = socket.create_connection((namespace.host, namespace.port), WAIT_S)
        self._received = b""

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # told to go before it was done
            self._socket.sendall(data)

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            piece = self._socket.recv(65_536)
            if not piece:
                raise EOFError
            self._received += piece
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def shake_hands(
        self, path: str = "/$servicebus/websocket", *, protocols: str | None = "AMQPWSB10", method: str = "GET",
        **more: str,
    ) -> tuple[int, dict[str, str]]:  # fmt: skip
        """Status and headers of the answer."""
        head = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade"}
        head |= {"Sec-WebSocket-Key": KEY, "Sec-WebSocket-Version": "13"}
        head |= {name.replace("_", "-"): value for name, value in more.items()}
        if protocols is not None:
            head["Sec-WebSocket-Protocol"] = protocols
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self._take(1)
        first, *fields = answer.decode().split("\r\n")
        pairs = (field.split(": ", 1) for field in fields if field)
        return int(first.split(" ")[1]), {name.lower(): value for name, value in pairs}

    def read_frame(self) -> tuple[int, bytes]:
        """Opcode and payload of one frame of the server, which is never masked."""
        first, second = self._take(2)
        assert not second & 0x80
        size = second & 0x7F
        if size == 126:
            size = struct.unpack(">H", self._take(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self._take(8))[0]
        return first & 0x0F, self._take(size)

    def read_stream(self, size: int) -> bytes:
        """That many bytes of the binary messages that come."""
        stream = b""
        while len(stream) < size:
            opcode, data = self.read_frame()
            assert opcode == BINARY
            stream += data
        return stream

    def close_code(self) -> int | None:
        """The code of the close frame that comes, whatever comes before it; None when the connection just ends."""
        try:
            while True:
                opcode, data = self.read_frame()
                if opcode == CLOSE:
                    return int(struct.unpack(">H", data[:2])[0])
        except (EOFError, ConnectionError):
            return None


@pytest.fixture
def peer(namespace: RunningNamespace) -> Iterator[Peer]:
    """A peer whose handshake succeeded."""
    with Peer(namespace) as connected:
        assert connected.shake_hands()[0] == 101
        yield connected


@pytest.mark.parametrize(
    "path",
    [
        "/$servicebus/websocket",
        "/$servicebus/websocket/",
        "/%24servicebus/websocket",
        "https://localhost/$servicebus/websocket",  # as the Java client writes it
    ],
)
@pytest.mark.parametrize(("offered", "echoed"), [("AMQPWSB10", "AMQPWSB10"), ("amqp", "amqp"), ("soap, amqp", "amqp")])
def test_the_offered_subprotocol_is_echoed(namespace: RunningNamespace, path: str, offered: str, echoed: str) -> None:
    """Attack 85: a foreign origin and deflate change nothing."""
    with Peer(namespace) as connected:
        status, headers = connected.shake_hands(
            path, protocols=offered, Origin="https://elsewhere", Sec_WebSocket_Extensions="permessage-deflate"
        )
        assert status == 101
        assert headers["sec-websocket-accept"] == ACCEPT
        assert headers["sec-websocket-protocol"] == echoed
        assert "sec-websocket-extensions" not in headers


@pytest.mark.parametrize(
    ("request_of", "status"),
    [
        ({"protocols": None}, 400),
        ({"protocols": "soap"}, 400),
        ({"Sec_WebSocket_Version": "8"}, 400),
        ({"Sec_WebSocket_Key": "short"}, 400),
        ({"path": "/$servicebus/other"}, 404),
        ({"method": "POST"}, 404),
    ],
)
def test_other_handshakes_are_refused(namespace: RunningNamespace, request_of: dict[str, str], status: int) -> None:
    """Attack 85."""
    with Peer(namespace) as connected:
        assert connected.shake_hands(**request_of)[0] == status


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ("Host: a@b\r\n", b"400"),
        ("", b"400"),
        ("Host: a\r\nHost: b\r\n", b"400"),
        ("Host: a\r\n" + "X: y\r\n" * 70, b"431"),
        ("Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", b"400"),
    ],
    ids=["a bad host", "no host", "two hosts", "too many fields", "two lengths"],
)
def test_a_handshake_whose_head_is_refused_is_a_refusal_and_no_fault_of_ours(
    namespace: RunningNamespace, caplog: pytest.LogCaptureFixture, fields: str, status: bytes
) -> None:
    request = (
        "GET /$servicebus/websocket HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n"
        f"Sec-WebSocket-Protocol: AMQPWSB10\r\n{fields}\r\n"
    )
    with socket.create_connection((namespace.host, namespace.port), timeout=30) as stream:
        stream.sendall(request.encode())
        answer = b""
        while piece := stream.recv(4096):
            answer += piece
    assert answer.split(b" ")[1] == status
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
def test_the_stream_may_be_cut_anywhere_across_messages(peer: Peer, size: int) -> None:
    sent = sasl_start()
    for at in range(0, len(sent), size):
        peer.send(frame(BINARY, sent[at : at + size]))
    assert peer.read_stream(8).startswith(SASL_HEADER)


def test_the_stream_may_be_cut_into_fragments_with_pings_between(peer: Peer) -> None:
    sent = sasl_start()
    peer.send(frame(BINARY, sent[:3], fin=False) + frame(PING, b"between") + frame(CONT, sent[3:9], fin=False))
    assert peer.read_frame() == (PONG, b"between")
    peer.send(frame(CONT, sent[9:]))
    assert peer.read_stream(8).startswith(SASL_HEADER)


def test_a_message_of_the_largest_size_is_taken_and_one_byte_more_is_not(namespace: RunningNamespace) -> None:
    for size, code in ((MESSAGE_BYTES, 1000), (MESSAGE_BYTES + 1, 1009)):
        with Peer(namespace) as connected:
            connected.shake_hands()
            connected.send(frame(BINARY, b"\0" * size))
            # Zeros are no AMQP: the engine ends the connection, as politely as any.
            assert connected.close_code() == code


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(BINARY, SASL_HEADER, mask=False), 1002),
        (frame(BINARY, length=2**63 - 1), 1009),
        (frame(BINARY, length=2**64 - 1), 1009),
        (frame(TEXT, b"AMQP"), 1003),
        (frame(CONT, b"AMQP"), 1002),
        (frame(3, b"AMQP"), 1002),
        (frame(BINARY | 0x40, b"AMQP"), 1002),
        (frame(PING, b"p" * 126), 1002),
        (frame(PING, fin=False), 1002),
        (frame(PING) * (PING_BURST + 1), 1008),
        (frame(BINARY, b"", fin=False) + frame(CONT, b"", fin=False) * FRAGMENT_COUNT, 1008),
        (frame(BINARY, b"AM", fin=False) + frame(BINARY, b"QP"), 1002),
        (frame(BINARY, sasl_start(), fin=False) + frame(CONT, length=MESSAGE_BYTES), 1009),
    ],
    ids=[
        "unmasked", "2^63 bytes", "2^64 bytes", "text", "continuation of nothing", "unknown opcode", "reserved bit",
        "long ping", "ping in fragments", "ping flood", "endless fragments", "message inside a message",
        "fragments over the limit",
    ],
)  # fmt: skip
def test_who_breaks_the_rules_is_told_and_dropped(peer: Peer, data: bytes, code: int) -> None:
    """Attack 85."""
    peer.send(data)
    assert peer.close_code() == code


def test_pings_within_the_burst_are_answered(peer: Peer) -> None:
    for number in range(PING_BURST):
        peer.send(frame(PING, str(number).encode()))
        assert peer.read_frame() == (PONG, str(number).encode())


def test_a_close_is_echoed_and_frees_the_connection(namespace: RunningNamespace) -> None:
    wait_for_connections(namespace, 0)
    with Peer(namespace) as connected:
        connected.shake_hands()
        connected.send(frame(BINARY, sasl_start()))
        connected.read_stream(8)
        wait_for_connections(namespace, 1)
        connected.send(frame(CLOSE, struct.pack(">H", 1000)))
        assert connected.close_code() == 1000
        with pytest.raises(EOFError):
            connected.read_frame()
    wait_for_connections(namespace, 0)


def wait_for_connections(namespace: RunningNamespace, count: int) -> None:
    """Let the service's loop turn until it holds that many connections."""
    end = time.monotonic() + WAIT_S
    while namespace.service.gateway.connection_count != count:
        assert time.monotonic() < end, f"{namespace.service.gateway.connection_count} connections, not {count}"
        namespace.run(asyncio.sleep(0))


def test_a_service_that_stops_says_good_bye() -> None:
    with running_namespace() as namespace:
        connected = Peer(namespace)
        connected.shake_hands()
        connected.send(frame(BINARY, sasl_start()))
        connected.read_stream(8)
        codes: list[int | None] = []
        reader = threading.Thread(target=lambda: codes.append(connected.close_code()))
        reader.start()
    reader.join(WAIT_S)
    connected.__exit__()
    assert codes == [1000]


@pytest.mark.conformance
@pytest.mark.parametrize("plain", [True, False], ids=["ws", "wss"])
def test_the_official_python_client_sends_and_reads(namespace: RunningNamespace, plain: bool) -> None:
    from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient, TransportType

    hub = f"official-{plain}"
    namespace.create_event_hub(hub)
    options = {
        "eventhub_name": hub,
        "transport_type": TransportType.AmqpOverWebsocket,
        "custom_endpoint_address": f"sb://{namespace.host}:{namespace.port}",
        "connection_verify": str(namespace.ca_file),
    }
    string = namespace.connection_string(plain=plain)
    with EventHubProducerClient.from_connection_string(string, **options) as producer:
        batch = producer.create_batch()
        batch.add(EventData("one"))
        batch.add(EventData("x" * 200_000))
        producer.send_batch(batch)
        assert producer.get_partition_ids() == ["0"]
    received: list[str] = []
    both = threading.Event()
    consumer = EventHubConsumerClient.from_connection_string(string, "$Default", **options)

    def on_event(_: object, event: EventData | None) -> None:
        if event is not None:
            received.append(event.body_as_str())
        if len(received) == 2:
            both.set()

    reader = threading.Thread(target=lambda: consumer.receive(on_event, starting_position="-1"))
    reader.start()
    arrived = both.wait(20)
    consumer.close()
    reader.join(20)
    assert arrived
    assert received == ["one", "x" * 200_000]
