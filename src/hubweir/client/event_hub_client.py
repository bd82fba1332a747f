"""One event hub, whatever happens to connections: senders and receivers that attach again by themselves.

    async with EventHubClient.from_connection_string(text, "orders") as client:
        await client.sender().send([b"one", b"two"])
        receiver = client.receiver("0")
        run = await receiver.receive(max_wait_s=5)

All of them share one connection, which is opened when first needed and again after it ended (lasting_connection.py).
An error that a retry can cure is met with a wait and another try, as often as the RetryPolicy says; then it is raised.
Links of one connection, without any of this, are Connection, Sender and Receiver.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from hubweir.client.connection import DEFAULT_TIMEOUT_S, Connection
from hubweir.client.entity_info import HubInfo, PartitionState
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.management import Management
from hubweir.client.numbered_sender import NumberedSender
from hubweir.client.receiver import ALL_EVENTS, ReceiverOptions
from hubweir.client.resending_sender import ResendingSender
from hubweir.client.resuming_receiver import ResumingReceiver
from hubweir.client.retry import RetryPolicy
from hubweir.drivers.tls import client_context
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.names import DEFAULT_GROUP

T = TypeVar("T")


class EventHubClient:
    """One hub of one namespace. Everything on the loop that first uses it."""

    def __init__(
        self,
        target: ConnectionString,
        hub: str,
        *,
        tls: ssl.SSLContext | None = None,
        retry: RetryPolicy | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """tls: None speaks plain AMQP. timeout_s: for each try of each request."""
        self.target = target
        self.hub = hub
        self.retry = retry or RetryPolicy()
        self._connection = LastingConnection(
            target, f"this client of '{hub}'", tls=tls, retry=self.retry, timeout_s=timeout_s
        )

    @classmethod
    def from_connection_string(
        cls,
        text: str,
        hub: str | None = None,
        *,
        ca_file: Path | str | None = None,
        retry: RetryPolicy | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> EventHubClient:
        """hub: may be left out when the text has an EntityPath. ca_file: trust this CA instead of the system's.

        ServiceError ARGUMENT_ERROR when the text is no connection string, or names no hub or another one.
        """
        target = ConnectionString.parse(text)
        if hub is not None and target.entity_path is not None and hub.lower() != target.entity_path.lower():
            raise ServiceError(
                ARGUMENT_ERROR, f"the connection string is for the hub '{target.entity_path}', not for '{hub}'"
            )
        name = hub or target.entity_path
        if not name:
            raise ServiceError(ARGUMENT_ERROR, "no hub is named: give one, or a connection string with EntityPath")
        tls = None if target.emulator else client_context(None if ca_file is None else Path(ca_file))
        return cls(target, name, tls=tls, retry=retry, timeout_s=timeout_s)

    @property
    def namespace(self) -> str:
        """The namespace as checkpoint stores name it: host, with the port when the connection string has one."""
        return self.target.endpoint.removeprefix("sb://")

    def sender(
        self, *, partition_id: str | None = None, publisher: str | None = None, resend_unknown: bool = True
    ) -> ResendingSender:
        """Publishes to the hub, to one partition, or as one publisher. resend_unknown: see ResendingSender.

        Nothing is sent yet: a name that does not exist is refused at the first send. ServiceError ARGUMENT_ERROR: both.
        """
        if partition_id is not None and publisher is not None:
            raise ServiceError(ARGUMENT_ERROR, "a sender has a partition or a publisher, not both")
        address = self.hub
        if partition_id is not None:
            address += f"/Partitions/{partition_id}"
        elif publisher is not None:
            address += f"/Publishers/{publisher}"
        return ResendingSender(self._connection, address, resend_unknown=resend_unknown)

    async def numbered_sender(self, partition_id: str, *, producer_id: int, round: int) -> NumberedSender:
        """A link of a sink that resumes, on the connection of now; it ends with that. See numbered_sender.py."""
        return await self._connection.retried(
            lambda connection: NumberedSender.open(
                connection, self.hub, partition_id, producer_id=producer_id, round=round
            )
        )

    def receiver(
        self, partition_id: str, options: ReceiverOptions = ALL_EVENTS, *, group: str = DEFAULT_GROUP
    ) -> ResumingReceiver:
        """Reads one partition. Nothing is asked yet: a name that does not exist is refused at the first call."""
        return ResumingReceiver(self._connection, self.hub, partition_id, group=group, options=options)

    async def describe(self) -> HubInfo:
        """The hub: partitions, and what else the service tells. ServiceError NOT_FOUND when there is none."""
        return await self._managed(lambda management: management.hub(self.hub))

    async def partition(self, partition_id: str) -> PartitionState:
        """What a partition holds now. ServiceError ARGUMENT_OUT_OF_RANGE when the hub has no such partition."""
        return await self._managed(lambda management: management.partition(self.hub, partition_id))

    async def partitions(self, partition_ids: Sequence[str]) -> list[PartitionState]:
        """What several partitions hold now, in about the time that one takes; errors as of `partition`."""
        return await self._managed(lambda management: management.partitions(self.hub, partition_ids))

    async def connection(self) -> Connection:
        """The open connection; it is opened when there is none, or it ended. One try; ServiceError when it fails."""
        return await self._connection.now()

    async def close(self) -> None:
        """Close the connection and with it every sender and receiver. Safe to call twice."""
        await self._connection.close()

    async def __aenter__(self) -> EventHubClient:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    async def _managed(self, ask: Callable[[Management], Awaitable[T]]) -> T:
        return await self._connection.retried(lambda connection: ask(self._connection.management(connection)))
