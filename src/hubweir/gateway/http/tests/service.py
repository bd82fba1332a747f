"""A live service for the tests of the HTTP door: requests by the standard library or byte by byte, events read back."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import time
from dataclasses import dataclass
from typing import Any

from hubweir.amqp.messaging.message import Message
from hubweir.auth.shared_access_signature import make_token
from hubweir.client.connection import Connection
from hubweir.client.receiver import Receiver, address_of
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.testing.running_namespace import RunningNamespace

ROOT, KEY = "RootManageSharedAccessKey", "SAS_KEY_VALUE"
BATCH = "application/vnd.microsoft.servicebus.json"
WAIT_S = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def token(path: str = "", *, rule: str = ROOT, key: str = KEY, seconds: int = 600, host: str = "localhost") -> str:
    return make_token(f"https://{host}/{path}", rule, key, int(time.time()) + seconds)


class Http:
    """Requests to one running namespace; with a token for all of it unless another one, or None, is given."""

    def __init__(self, namespace: RunningNamespace) -> None:
        self.namespace = namespace

    def call(self, method: str, path: str, body: bytes | str = b"", *, auth: str | None = "", **headers: str) -> Answer:
        """headers: `content_type` stands for content-type."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if auth is not None:
            named["Authorization"] = auth or token()
        connection = http.client.HTTPConnection(self.namespace.host, self.namespace.port, timeout=WAIT_S)
        try:
            connection.request(method, path, body if isinstance(body, bytes) else body.encode(), named)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def raw(self, data: bytes, *, end: bool = False) -> bytes:
        """Send bytes on a connection of their own, and return everything that comes until it is closed.

        end: close our half behind them, as a peer that asks nothing more.
        """
        with socket.create_connection((self.namespace.host, self.namespace.port), WAIT_S) as connection:
            with contextlib.suppress(ConnectionError):  # it was refused before all was sent
                connection.sendall(data)
            if end:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def events(self, hub: str, partition: int = 0) -> list[Message]:
        """All events of a partition, from its first."""
        return asyncio.run(self._events(hub, str(partition)))

    async def _events(self, hub: str, partition: str) -> list[Message]:
        target = ConnectionString.parse(self.namespace.connection_string())
        connection = await Connection.open(target)
        receiver = await Receiver.open(connection, address_of(hub, "$Default", partition))
        messages: list[Message] = []
        while (run := await receiver.receive(max_wait_s=0.3)) is not None:
            messages += [run.open_message(place) for place in range(len(run))]
        await connection.close()
        return messages

    def set_rule(self, hub: str | None, name: str, rights: Rights, key: str = "its own key") -> None:
        rule = AuthorizationRuleDescription(name, rights, Secret(key), Secret(""))

        async def change() -> Any:
            done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self.namespace.service.gateway.keeper.change_rules(hub, lambda level: level.set(rule), done.set_result)
            return await done

        self.namespace.run(change())


def read_all(connection: socket.socket) -> bytes:
    """What comes until the peer closes; a reset is an end, too."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            received += piece
    return received


def statuses(answers: bytes) -> list[int]:
    """The status of each answer in the bytes of a connection."""
    return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]
