"""A live namespace for one test: in this process on a loop of its own, with free ports and a folder of its own.

    with running_namespace() as namespace:
        namespace.create_event_hub("orders", partition_count=4)  # or create_queue
        client = EventHubProducerClient.from_connection_string(namespace.connection_string(), eventhub_name="orders")

Every wait has a limit. The service runs on a thread, so the test may block as it likes. With brokers=3 its supervisor
does, and clients come to three broker processes. Processes that are killed are in server_process.py.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from hubweir.config.namespace_settings import SaidNamespaces
from hubweir.config.settings import Settings
from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability, EntityDescription
from hubweir.namespace.event_hub_description import RETENTION_DEFAULT_MS, EventHubDescription
from hubweir.namespace.iso_duration import UNLIMITED_MS, written_duration_of
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.service.parts import OpenStore, Parts
from hubweir.service.service import Service
from hubweir.service.supervisor import Supervisor
from hubweir.testing.event_loops import LOOPS

T = TypeVar("T")
D = TypeVar("D", bound=EntityDescription)

WAIT_S = 30.0
START_S = 90.0  # a machine that is busy with other tests needs half a minute


class RunningNamespace:
    """A service on a thread. Methods may be called from any other thread.

    parts: what of it is in this process: all of it, or the supervisor of its broker processes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, parts: Parts) -> None:
        self._loop = loop
        self.parts = parts

    @property
    def service(self) -> Service:
        """The whole service; not to be had where it is several processes."""
        assert isinstance(self.parts, Service), "brokers and gateways are in processes of their own"
        return self.parts

    @property
    def host(self) -> str:
        """The first address that it listens on."""
        return self.parts.addresses[0][0]

    @property
    def port(self) -> int:
        """The first port; it speaks everything."""
        return self.parts.addresses[0][1]

    @property
    def ca_file(self) -> Path | None:
        """What a client has to trust for TLS; None when the certificate is not ours."""
        return self.parts.certificate.ca

    def connection_string(self, *, plain: bool = True) -> str:
        """For a client: without TLS by the emulators' flag, or over TLS."""
        return self.parts.connection_string(plain=plain)

    def run(self, coroutine: Coroutine[Any, Any, T], *, seconds: float = WAIT_S) -> T:
        """Run a coroutine on the service's loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)

    def create_event_hub(
        self,
        name: str,
        *,
        partition_count: int = 1,
        retention_ms: int = RETENTION_DEFAULT_MS,
        durability: Durability = Durability.DURABLE,
        consumer_groups: tuple[str, ...] = (),
        capture: CaptureDescription | None = None,
    ) -> EventHubDescription:
        """Make a hub, as the operator would; ServiceError when it cannot be."""
        wanted = EventHubDescription(
            name,
            partition_count,
            retention_ms=retention_ms,
            durability=durability,
            consumer_groups=consumer_groups,
            capture=capture,
        )
        return self.create(wanted)

    def delete_event_hub(self, name: str) -> EventHubDescription:
        """Remove a hub and its events."""
        return self._manage(
            EventHubDescription,
            lambda parts, on_done: parts.gateway.keeper.delete(name, EventHubDescription, on_done),
        )

    def create_queue(
        self,
        name: str,
        *,
        lock_duration_ms: int = 60_000,
        time_to_live_ms: int = UNLIMITED_MS,
        duplicate_window_ms: int | None = None,
        is_partitioned: bool = False,
        max_message_kilobytes: int = 0,
        availability: Availability = Availability.ACTIVE,
        **delivery: Any,
    ) -> QueueDescription:
        """Make a queue, as the operator would; ServiceError when it cannot be.

        duplicate_window_ms None: duplicates are not detected. delivery: further fields of DeliverySettings.
        """
        storage = StorageSettings(max_message_kilobytes=max_message_kilobytes, is_partitioned=is_partitioned)
        if duplicate_window_ms is not None:
            window = written_duration_of(duplicate_window_ms)
            storage = replace(storage, requires_duplicate_detection=True, duplicate_window=window)
        wanted = QueueDescription(
            name,
            delivery=DeliverySettings(lock_duration=written_duration_of(lock_duration_ms), **delivery),
            storage=storage,
            default_time_to_live=written_duration_of(time_to_live_ms),
            availability=availability,
        )
        return self.create(wanted)

    def change_queue(self, name: str, **settings: Any) -> QueueDescription:
        """Give a queue other settings: fields of QueueDescription."""

        return self.change(name, QueueDescription, lambda known, context: structs.replace(known, **settings))

    def delete_queue(self, name: str) -> QueueDescription:
        """Remove a queue and its messages."""
        return self._manage(
            QueueDescription, lambda parts, on_done: parts.gateway.keeper.delete(name, QueueDescription, on_done)
        )

    def create(self, wanted: D) -> D:
        """Make an entity of any kind, as the operator would; ServiceError when it cannot be."""
        return self._manage(type(wanted), lambda parts, on_done: parts.gateway.keeper.create(wanted, on_done))

    def change(self, name: str, kind: type[D], changed: Callable[[D, ChangeContext], D]) -> D:
        """Change an entity of a kind, as the operator would; ServiceError when it cannot be."""
        return self._manage(kind, lambda parts, on_done: parts.gateway.keeper.change(name, kind, changed, on_done))

    def _manage(self, kind: type[D], step: Callable[[Parts, Callable[[D | ServiceError], None]], None]) -> D:
        answered: Future[D | ServiceError] = Future()
        self._loop.call_soon_threadsafe(lambda: step(self.parts, answered.set_result))
        result = answered.result(WAIT_S)
        if isinstance(result, ServiceError):
            raise result
        return result


@contextmanager
def running_namespace(
    *, said: SaidNamespaces | None = None, open_store: OpenStore = MessagingStore.open, **settings: Any
) -> Iterator[RunningNamespace]:
    """Start a namespace and stop it at the end; settings as in config/settings.py, each with its default for tests.

    said: of several namespaces, as Service.start has it. open_store: which engine its logs lie in. port: one free port.
    data: a folder that is removed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="hubweir-") as folder:
        made = Settings(**{"data": str(Path(folder) / "data"), "port": (0,), **settings})
        names = sorted(LOOPS, reverse=True) if made.loop == "auto" else [made.loop]
        loop = LOOPS[names[0]]()
        thread = threading.Thread(target=_run, args=(loop,), name="hubweir", daemon=True)
        thread.start()
        try:
            parts = asyncio.run_coroutine_threadsafe(_started(made, said, open_store), loop).result(START_S)
            try:
                yield RunningNamespace(loop, parts)
            finally:
                asyncio.run_coroutine_threadsafe(parts.stop(), loop).result(WAIT_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(WAIT_S)


async def _started(settings: Settings, said: SaidNamespaces | None, open_store: OpenStore) -> Parts:
    if settings.brokers == 1:
        return await Service.start(settings, said, open_store=open_store)
    assert open_store == MessagingStore.open, "broker processes have segment files"
    return await Supervisor.start(settings, said)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and close it on its own thread: uvloop can hang when another one closes it."""
    try:
        loop.run_forever()
    finally:
        loop.close()
