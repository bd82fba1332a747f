"""A scripted AMQP client on a blocking socket: writes what it is told, legal or not, and shows every frame it gets.

It has no state machine: a test says each step. What comes is kept as bytes too, so that encodings can be held against
what clients read. Every wait has a limit.

Long because one client has to write and show every kind of frame.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hubweir.amqp.messaging.annotations import SELECTOR_FILTER
from hubweir.amqp.messaging.message import Message, Properties, ValueBody, decode_message, encode_message
from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER
from hubweir.amqp.transport.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    Flow,
    Open,
    Transfer,
    decode_performative,
)
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.values import Described
from hubweir.auth.shared_access_signature import make_token
from hubweir.testing.frames import frame, sasl_start

P = TypeVar("P")
WAIT_S = 30.0
ROOT, KEY = "RootManageSharedAccessKey", "SAS_KEY_VALUE"


class NothingCame(AssertionError):
    """The frame that was waited for did not come in time."""


class ConnectionOver(AssertionError):
    """The server closed the connection while a frame was waited for."""


@dataclass(frozen=True)
class Frame:
    """One frame as it came. body: the performative's bytes and the payload, without the frame header."""

    channel: int
    kind: int
    body: bytes
    performative: Any
    payload: bytes


class RawClient:
    """One connection. Its session is channel 0 unless a test says otherwise."""

    def __init__(self, stream: Any) -> None:
        """stream: a connected socket, or what has its sendall, recv, settimeout and close."""
        self.socket: Any = stream
        self.frames: list[Frame] = []  # everything that came
        self._unseen: list[Frame] = []  # what no expect has taken
        self._buffer = b""
        self._handles = 0
        self._deliveries = 0

    @classmethod
    def connect(cls, address: tuple[str, int], *, tls: ssl.SSLContext | None = None) -> RawClient:
        """A connection of TCP, or of TLS when there is a context."""
        stream = socket.create_connection(address, timeout=WAIT_S)
        return cls(stream if tls is None else tls.wrap_socket(stream, server_hostname=address[0]))

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    # Bytes

    def write(self, *pieces: bytes) -> None:
        """Send bytes as one segment, as far as a stream has segments."""
        self.socket.sendall(b"".join(pieces))

    def read_exactly(self, size: int, *, seconds: float = WAIT_S) -> bytes:
        """Take so many bytes of the stream."""
        self._fill(size, time.monotonic() + seconds)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def is_closed_by_server(self, *, seconds: float = WAIT_S) -> bool:
        """Whether the server ends the stream in time; frames before the end are kept."""
        end = time.monotonic() + seconds
        try:
            while True:
                self._unseen.append(self._read_frame(end))
        except ConnectionOver:
            return True
        except NothingCame:
            return False

    # Frames

    def expect(
        self, kind: type[P], *, where: Callable[[P], bool] | None = None, seconds: float = WAIT_S, channel: int = -1
    ) -> P:
        """The next performative of this kind (that where agrees with); others are kept for later."""
        return self.expect_frame(kind, where=where, seconds=seconds, channel=channel).performative  # type: ignore[no-any-return]

    def expect_frame(
        self,
        kind: type[Any],
        *,
        where: Callable[[Any], bool] | None = None,
        seconds: float = WAIT_S,
        channel: int = -1,
    ) -> Frame:
        end = time.monotonic() + seconds
        at = 0
        while True:
            while at < len(self._unseen):
                found = self._unseen[at]
                fits = isinstance(found.performative, kind) and channel in (-1, found.channel)
                if fits and (where is None or where(found.performative)):
                    return self._unseen.pop(at)
                at += 1
            self._unseen.append(self._read_frame(end))

    def none_of(self, kind: type[Any], *, seconds: float = 0.3) -> bool:
        """True when no such frame comes for a while."""
        try:
            self.expect(kind, seconds=seconds)
        except NothingCame:
            return True
        return False

    def forget(self) -> None:
        """What came and was not asked for does not matter."""
        self._unseen.clear()

    # Steps that most tests take

    def start(
        self,
        mechanism: str = "ANONYMOUS",
        response: bytes = b"",
        *,
        idle_time_out: int | None = None,
        hostname: str = "localhost",
    ) -> RawClient:
        """Header, SASL, header, open, begin. hostname: what open names."""
        self.write(sasl_start(mechanism, response))
        assert self.sasl_outcome() == 0
        self.write(
            AMQP_HEADER,
            frame(Open(container_id="raw", hostname=hostname, idle_time_out=idle_time_out)),
            frame(Begin(next_outgoing_id=0, incoming_window=5_000, outgoing_window=5_000, handle_max=255)),
        )
        assert self.read_exactly(8) == AMQP_HEADER
        self.expect(Open)
        self.expect(Begin)
        return self

    def trusted(self) -> RawClient:
        """Start as a peer that may do everything, by SASL PLAIN."""
        return self.start("PLAIN", f"\0{ROOT}\0{KEY}".encode())

    def sasl_outcome(self) -> int:
        """The code of the SASL outcome."""
        assert self.read_exactly(8) == SASL_HEADER
        end = time.monotonic() + WAIT_S
        mechanisms, outcome = self._read_frame(end), self._read_frame(end)
        assert mechanisms.performative.descriptor == 0x40
        assert outcome.performative.descriptor == 0x44
        return int(outcome.performative.value[0])

    def attach(self, address: str, *, sends: bool, name: str = "", channel: int = 0, **fields: Any) -> int:
        """Ask for a link and return its handle, on our side."""
        handle = self._handles
        self._handles += 1
        here, there = f"raw-{handle}", address
        self.write(
            frame(
                Attach(
                    name=name or f"link-{handle}",
                    handle=handle,
                    role=not sends,
                    source=fields.pop("source", Source(address=here if sends else there)),
                    target=fields.pop("target", Target(address=there if sends else here)),
                    initial_delivery_count=0 if sends else None,
                    **fields,
                ),
                channel=channel,
            )
        )
        return handle

    def sender(self, address: str, **fields: Any) -> int:
        """A link to send on that stands, with credit; returns our handle, which is the server's too (see attach)."""
        handle = self.attach(address, sends=True, **fields)
        answer = self.expect(Attach)
        assert answer.target is not None, self.expect(Detach).error
        self.expect(Flow, where=lambda flow: flow.handle == answer.handle)
        return handle

    def receiver(self, address: str, *, credit: int = 0, selector: str | None = None, **fields: Any) -> int:
        """A link to receive on that stands."""
        if selector is not None:
            wanted = {SELECTOR_FILTER: Described(SELECTOR_FILTER, selector)}
            fields["source"] = Source(address=address, filter=wanted)
        handle = self.attach(address, sends=False, **fields)
        answer = self.expect(Attach)
        assert answer.source is not None, self.expect(Detach).error
        if credit:
            self.grant(handle, credit)
        return handle

    def refused(self, address: str, *, sends: bool, **fields: Any) -> Any:
        """Ask for a link that must be refused in the right form, and return the error."""
        self.attach(address, sends=sends, **fields)
        answer = self.expect(Attach)
        assert answer.source is None
        assert answer.target is None
        detach = self.expect(Detach)
        assert detach.handle == answer.handle
        assert detach.closed
        assert detach.error is not None
        assert isinstance(detach.error.description, str)
        self.write(frame(Detach(handle=self._handles - 1, closed=True)))
        return detach.error

    def grant(
        self, handle: int, credit: int, *, delivery_count: int = 0, drain: bool = False, echo: bool = False
    ) -> None:
        """Set the credit of a link that we receive on."""
        self.write(
            frame(
                Flow(
                    next_incoming_id=1,
                    incoming_window=5_000,
                    next_outgoing_id=0,
                    outgoing_window=5_000,
                    handle=handle,
                    delivery_count=delivery_count,
                    link_credit=credit,
                    drain=drain,
                    echo=echo,
                )
            )
        )

    def transfer(
        self,
        handle: int,
        payload: bytes,
        *,
        message_format: int = 0,
        settled: bool = False,
        channel: int = 0,
        state: TransactionalState | None = None,
    ) -> int:
        """Send a delivery in one frame and return its id. state: of one in a transaction."""
        delivery_id = self._deliveries
        self._deliveries += 1
        said = replace(self.transfer_of(handle, delivery_id, message_format, settled), state=state)
        self.write(frame(said, payload, channel=channel))
        return delivery_id

    def transfer_of(self, handle: int, delivery_id: int, message_format: int = 0, settled: bool = False) -> Transfer:
        """The performative of a transfer."""
        tag = delivery_id.to_bytes(4, "big")
        return Transfer(
            handle=handle, delivery_id=delivery_id, delivery_tag=tag, message_format=message_format, settled=settled
        )

    def outcome(self, delivery_id: int, *, seconds: float = WAIT_S) -> Disposition:
        """The disposition that holds a delivery."""
        return self.expect(
            Disposition,
            where=lambda d: d.first <= delivery_id <= (d.first if d.last is None else d.last),
            seconds=seconds,
        )

    def publish(
        self, handle: int, payload: bytes, *, message_format: int = 0, state: TransactionalState | None = None
    ) -> Disposition:
        """Send a delivery and wait for its outcome."""
        return self.outcome(self.transfer(handle, payload, message_format=message_format, state=state))

    def messages(self, count: int, *, seconds: float = WAIT_S) -> list[Message]:
        """The next deliveries, whole, as messages."""
        found: list[Message] = []
        payload = b""
        while len(found) < count:
            came = self.expect_frame(Transfer, seconds=seconds)
            payload += came.payload
            if not came.performative.more:
                found.append(decode_message(payload))
                payload = b""
        return found

    def request(self, node: str, message: Message, *, state: TransactionalState | None = None) -> Message:
        """A request on a node over two links of its own, and the answer. state: of its delivery."""
        reply = self.receiver(node, credit=1)
        ask = self.sender(node)
        self.transfer(ask, encode_message(message), settled=True, state=state)
        (answer,) = self.messages(1)
        for handle in (ask, reply):
            self.write(frame(Detach(handle=handle, closed=True)))
            self.expect(Detach)
        return answer

    def put_token(
        self,
        audience: str,
        *,
        rule: str = ROOT,
        key: str = KEY,
        resource: str = "",
        lifetime_s: int = 3_600,
        token: str = "",
        message_id: Any = "put",
        kind: str = "servicebus.windows.net:sastoken",
    ) -> Message:
        """put-token, and its answer."""
        text = token or make_token(resource or audience, rule, key, int(time.time()) + lifetime_s)
        return self.request(
            "$cbs",
            Message(
                properties=Properties(message_id=message_id),
                application_properties={"operation": "put-token", "type": kind, "name": audience},
                body=ValueBody(text),
            ),
        )

    # Inside

    def _fill(self, size: int, end: float) -> None:
        while len(self._buffer) < size:
            left = end - time.monotonic()
            if left <= 0:
                raise NothingCame(f"nothing came; so far: {[type(f.performative).__name__ for f in self.frames]}")
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(65_536)
            except TimeoutError:
                continue
            except OSError as error:
                raise ConnectionOver(str(error)) from None
            if not data:
                raise ConnectionOver("the server closed the connection")
            self._buffer += data

    def _read_frame(self, end: float) -> Frame:
        self._fill(8, end)
        size = int.from_bytes(self._buffer[:4], "big")
        self._fill(size, end)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        body = data[4 * data[4] :]
        performative: Any = None
        payload = b""
        if body and data[5] == 0:
            performative, at = decode_performative(body)
            payload = body[at:]
        elif body:
            performative, _ = decode(body)
        came = Frame(int.from_bytes(data[6:8], "big"), data[5], body, performative, payload)
        self.frames.append(came)
        return came


def status_of(answer: Message) -> tuple[int, str]:
    """Status code and description of a node's answer."""
    said = answer.application_properties or {}
    return int(str(said["status-code"])), str(said["status-description"])
