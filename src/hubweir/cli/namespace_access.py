"""Gives a command its namespace: the options that say where it is, and one connection for one job."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from hubweir.client.administration import Administration
from hubweir.client.connection import Connection
from hubweir.client.queue_client import QueueClient
from hubweir.client.retry import RetryPolicy
from hubweir.namespace.connection_string import ConnectionString

T = TypeVar("T")

DEVELOPMENT = (
    "Endpoint=sb://127.0.0.1;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
)


@dataclass(frozen=True, slots=True)
class NamespaceAccess:
    """A namespace, and how to trust its certificate."""

    connection_string: ConnectionString
    ca_file: Path | None

    def tls(self) -> ssl.SSLContext | None:
        """None for a development connection string, which speaks plain AMQP. ClickException: ca_file is no CA's."""
        if self.connection_string.emulator:
            return None
        try:
            return ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
        except OSError as error:
            raise click.ClickException(f"cannot read the CA certificate {self.ca_file}: {error}") from None

    def administration(self) -> Administration:
        """The management of queues and topics of the namespace."""
        return Administration(self.connection_string, tls=self.tls())

    def run(self, job: Callable[[Connection], Awaitable[T]]) -> T:
        """Connect, do the job, close."""
        return asyncio.run(self._run(job))

    def run_queues(self, job: Callable[[QueueClient], Awaitable[T]]) -> T:
        """The same for a job with queues; what fails is not tried again."""
        return asyncio.run(self._run_queues(job))

    async def _run_queues(self, job: Callable[[QueueClient], Awaitable[T]]) -> T:
        async with QueueClient(self.connection_string, tls=self.tls(), retry=RetryPolicy(attempts=1)) as client:
            return await job(client)

    async def _run(self, job: Callable[[Connection], Awaitable[T]]) -> T:
        connection = await Connection.open(self.connection_string, tls=self.tls())
        try:
            return await job(connection)
        finally:
            await connection.close()


def takes_target(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command --connection-string and --ca-file, and hand it a NamespaceAccess as its first argument."""

    @click.option(
        "--connection-string",
        envvar="HUBWEIR_CONNECTION_STRING",
        default=DEVELOPMENT,
        show_default="the development namespace on this machine",
        help="Where the namespace is and what key to use.",
    )
    @click.option(
        "--ca-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        envvar="HUBWEIR_CA_FILE",
        help="Trust this CA for TLS, such as tls/ca.pem in the data folder of a development service.",
    )
    def with_target(connection_string: str, ca_file: Path | None, **rest: object) -> None:
        command(NamespaceAccess(ConnectionString.parse(connection_string), ca_file), **rest)

    with_target.__name__ = command.__name__
    with_target.__doc__ = command.__doc__
    if hasattr(command, "__click_params__"):
        with_target.__click_params__ += command.__click_params__  # type: ignore[attr-defined]  # click keeps options there
    return with_target
