"""The service under attack, its doors and its operator: $cbs and links over TCP, requests over HTTPS, rules and clock.

One service stands for all attacks, so each must leave it as it was. Waits have limits.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import itertools
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from hubweir.amqp.messaging.message import DataBody, Message, Properties, ValueBody, encode_message
from hubweir.auth.high_water_time import HighWaterTime
from hubweir.broker.commands.partition import PartitionInfo
from hubweir.errors import ServiceError
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.raw_client import KEY, ROOT, RawClient, status_of

LATE = 2_000_000_000  # in 2033
WAIT_S = 30.0
UNAUTHORIZED = "amqp:unauthorized-access"
# Refusals of the HTTP parser come before any token is looked at.
REFUSED = (400, 401, 431)


def build(
    sr: str = "sb%3A%2F%2Flocalhost%2Fhub1",
    *,
    se: str = str(LATE),
    skn: str = ROOT,
    key: str | bytes = KEY,
    signed: str | None = None,
) -> str:
    """A token with raw fields, signed over exactly them, or over signed: wrong only in what an attack changes."""
    text = f"{sr}\n{se}" if signed is None else signed
    secret = key.encode() if isinstance(key, str) else key
    signature = base64.b64encode(hmac.digest(secret, text.encode("utf-8", "surrogateescape"), "sha256")).decode()
    return f"SharedAccessSignature sr={sr}&sig={quote(signature, safe='')}&se={se}&skn={skn}"


def resource(path: str, host: str = "localhost") -> str:
    """A path as sr holds it."""
    return quote(f"sb://{host}/{path}", safe="")


def event(body: bytes = b"x", **sections: Any) -> bytes:
    return encode_message(Message(body=DataBody((body,)), **sections))


class Target:
    """See the module's text."""

    def __init__(self, namespace: RunningNamespace) -> None:
        self.namespace = namespace
        self.gateway = namespace.service.gateway
        self._tls = ssl.create_default_context(cafile=str(namespace.ca_file))
        self._names = itertools.count()

    # Doors

    def dial(self, *, tls: bool = False) -> RawClient:
        """A connection on which nothing was said."""
        plain = self._connect()
        return RawClient(self._tls.wrap_socket(plain, server_hostname="localhost") if tls else plain)

    def _connect(self) -> socket.socket:
        """A script writes small pieces: without this each would wait 40 ms for an acknowledgement."""
        connection = socket.create_connection((self.namespace.host, self.namespace.port), WAIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @contextmanager
    def client(self, *, trusted: bool = False) -> Iterator[RawClient]:
        """A connection with a session: of a stranger, or of who may do everything."""
        with self.dial() as client:
            yield client.trusted() if trusted else client.start()

    def put(self, client: RawClient, token: str, audience: str = "hub1") -> tuple[int, str]:
        """put-token: status and description."""
        return status_of(client.put_token(f"sb://localhost/{audience}", token=token))

    def https(
        self,
        token: str | None,
        path: str = "hub1/messages",
        *,
        method: str = "POST",
        body: bytes = b"x",
        more: str = "",
    ) -> int:
        """The status of a request; 0 when the service ends the connection without one. more: further header lines."""
        auth = "" if token is None else f"Authorization: {token}\r\n"
        head = f"{method} /{path} HTTP/1.1\r\nHost: localhost\r\n{auth}{more}Content-Length: {len(body)}\r\n"
        with (
            self._connect() as plain,
            self._tls.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            with contextlib.suppress(OSError):  # it is refused before all is sent
                connection.sendall(head.encode("utf-8", "surrogateescape") + b"Connection: close\r\n\r\n" + body)
            answer = b""
            with contextlib.suppress(OSError):
                while piece := connection.recv(65_536):
                    answer += piece
        return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0

    def pipelined(self, authorizations: tuple[str, ...]) -> list[int]:
        """The statuses of as many sends on one connection, all written before the first answer; header lines each."""
        last = len(authorizations) - 1
        requests = "".join(
            f"POST /hub1/messages HTTP/1.1\r\nHost: localhost\r\n{line}"
            f"Connection: {'close' if number == last else 'keep-alive'}\r\nContent-Length: 1\r\n\r\nx"
            for number, line in enumerate(authorizations)
        )
        with self._connect() as plain, self._tls.wrap_socket(plain, server_hostname="localhost") as connection:
            connection.sendall(requests.encode())
            answer = b""
            with contextlib.suppress(OSError):
                while piece := connection.recv(65_536):
                    answer += piece
        return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]

    def management(self, client: RawClient, operation: str, kind: str, name: str, body: Any = None, **more: Any) -> int:
        """The status of a request on $management."""
        properties = {"operation": operation, "type": f"com.microsoft:{kind}", "name": name, **more}
        request = Message(
            properties=Properties(message_id="m"), application_properties=properties, body=ValueBody(body)
        )
        return status_of(client.request("$management", request))[0]

    # What most attacks come to

    def refuses(self, token: str, control: str, *words: str, statuses: tuple[int, ...] = (401,)) -> None:
        """The token opens nothing at either door, in these first words; the control opens both."""
        with self.client() as client:
            code, text = self.put(client, token)
            assert code == 401, text
            assert text.startswith(words or "Malformed"), text
            assert KEY not in text
            assert client.refused("hub1", sends=True).condition == UNAUTHORIZED
            assert self.put(client, control)[0] == 202
            client.sender("hub1")
        assert self.https(token) in statuses
        assert self.https(control) == 201

    def misses(self, token: str, audience: str, address: str, *, sends: bool = True, text: str = "Invalid") -> None:
        """A good token that does not reach this far: neither as an audience nor, put where it is good, as a link."""
        with self.client() as client:
            code, said = self.put(client, token, audience)
            assert code == 401, said
            assert said.startswith(text), said
            assert client.refused(address, sends=sends).condition == UNAUTHORIZED

    def opens(self, token: str, audience: str, address: str, *, sends: bool = True) -> None:
        """The positive control of misses."""
        with self.client() as client:
            assert self.put(client, token, audience)[0] == 202
            (client.sender if sends else client.receiver)(address)

    # The operator

    @contextmanager
    def rule(self, rights: Rights, *, hub: str | None = None, name: str = "", secondary: str = "") -> Iterator[str]:
        """A rule for one attack, with the key `its key`; its name."""
        name = name or f"rule{next(self._names)}"
        self.set_rule(name, rights, hub=hub, secondary=secondary)
        try:
            yield name
        finally:
            with contextlib.suppress(ServiceError):
                self.change(lambda done: self.gateway.keeper.change_rules(hub, lambda level: level.remove(name), done))

    def set_rule(
        self, name: str, rights: Rights, *, hub: str | None = None, key: str = "its key", secondary: str = ""
    ) -> None:
        rule = AuthorizationRuleDescription(name, rights, Secret(key), Secret(secondary))
        self.change(lambda done: self.gateway.keeper.change_rules(hub, lambda level: level.set(rule), done))

    def change(self, start: Callable[[Callable[[Any], None]], None]) -> Any:
        """A change by the operator, waited for; raises its ServiceError."""

        async def changed() -> Any:
            answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            start(answered.set_result)
            return await answered

        result = self.namespace.run(changed())
        if isinstance(result, ServiceError):
            raise result
        return result

    def stored(self, hub: str = "hub1") -> int:
        """How many events a hub of one partition has taken."""
        info: PartitionInfo = self.change(lambda done: self.gateway.management.partition_info(hub, "0", done))
        return info.last_sequence_number + 1

    @contextmanager
    def clock(self, ahead_ms: int) -> Iterator[None]:
        """The wall clock that tokens are checked by, moved: for the time of the with statement."""
        authorization: Any = self.gateway.authorization
        env = authorization._env
        moved = SimpleNamespace(now_ms=lambda: env.machine.now_ms() + ahead_ms)
        authorization._env = SimpleNamespace(machine=moved, ahead=env.ahead)
        try:
            yield
        finally:
            authorization._env = env

    @contextmanager
    def from_elsewhere(self) -> Iterator[None]:
        """Peers that come meanwhile have the address of another machine, as far as the service can see."""
        with patch("hubweir.drivers.amqp_driver.is_local", lambda address: False):
            yield

    @contextmanager
    def own_hosts(self, *hosts: str) -> Iterator[None]:
        """As where the namespace's host names are configured; the development profile takes any."""
        authorization: Any = self.gateway.authorization
        authorization.hosts, before = HostNames(frozenset(hosts), is_open=False), authorization.hosts
        try:
            yield
        finally:
            authorization.hosts = before

    def forget_time(self) -> None:
        """As a new process: the latest time that was seen counts no more."""
        authorization: Any = self.gateway.authorization
        authorization._time = HighWaterTime()
