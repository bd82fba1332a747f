"""What tests of whole services need first: settings on a folder of the test, a hub, events sent and read."""

import ssl
from pathlib import Path
from typing import Any

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, address_of
from hubweir.client.sender import Sender
from hubweir.config.settings import Settings
from hubweir.namespace.connection_string import ConnectionString
from hubweir.service.service import Service


def settings(tmp_path: Path, **changes: Any) -> Settings:
    return Settings(**{"data": str(tmp_path / "data"), "port": (0,), "stop_grace_ms": 1_000, **changes})


def target(service: Service, *, plain: bool = True) -> ConnectionString:
    return ConnectionString.parse(service.connection_string(plain=plain))


async def publish_and_read(service: Service, hub: str, bodies: list[bytes], tls: ssl.SSLContext | None = None) -> None:
    connection = await Connection.open(target(service, plain=tls is None), tls=tls)
    await (await Sender.open(connection, f"{hub}/Partitions/0")).send(bodies)
    receiver = await Receiver.open(connection, address_of(hub, "$Default", "0"))
    seen: list[bytes] = []
    while len(seen) < len(bodies):
        run = await receiver.receive(max_wait_s=10)
        assert run is not None
        seen += [bytes(body) for body in run.bodies()]
    assert seen == bodies
    await connection.close()


async def create_hub(service: Service, hub: str, partition_count: int = 2) -> None:
    connection = await Connection.open(target(service))
    await Management(connection).create_hub(
        hub, partition_count=partition_count, retention_ms=3_600_000, durability="durable"
    )
    await connection.close()
