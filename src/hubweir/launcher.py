"""Composition root: settings in, a running service out. The only module that knows gateway and broker both.

Starting: the data folder's lock → its format → certificate → catalog → store → broker → gateway, which has every
partition of the catalog opened → listeners. So nobody can connect before everything is there, and a start that fails
leaves nothing open. Stopping is the same backwards: no new connections and /ready says so → what was received is
settled → connections are closed with a condition that makes clients connect again → idle marks → locks are released.
Long because every step of a start and of a stop stands here, in its order.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import gc
import hmac
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hubweir.broker.blob_upload import BlobContainer, StorageAccount, parse_storage
from hubweir.broker.broker import Broker
from hubweir.broker.capture_places import CapturePlaces, CaptureQuota
from hubweir.broker.server import BrokerServer
from hubweir.broker.socket_broker import SocketBroker
from hubweir.config.emulator_entities import NamespaceConfig
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE, BadSetting, Settings
from hubweir.config.token_issuer import token_issuer
from hubweir.counters import Counters
from hubweir.desired_entities import make_entities
from hubweir.drivers.amqp_driver import AmqpDriver, ReceiveBuffer
from hubweir.drivers.broker_driver import connect
from hubweir.drivers.descriptor_limit import raise_descriptor_limit
from hubweir.drivers.development_certificate import development_certificate
from hubweir.drivers.http_driver import HttpDriver
from hubweir.drivers.port_switch import PortSwitch
from hubweir.drivers.system_env import SystemEnv
from hubweir.drivers.tls import CertificateFiles, server_context
from hubweir.env import Files, FolderLock
from hubweir.errors import HubweirError, NewerFormat, ServiceError
from hubweir.gateway.brokers import BrokerClient, Brokers, InProcessBroker
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.application import Application
from hubweir.gateway.settings import GatewaySettings
from hubweir.messaging_store.files import SystemFiles
from hubweir.messaging_store.log_state import LogSettings
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.messaging_store.whole_file import read_whole, write_whole
from hubweir.namespace.connection_string import AMQP_PORT, AMQPS_PORT, ConnectionString
from hubweir.namespace.descriptions import AuthorizationRuleDescription
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import PROFILES

T = TypeVar("T")

logger = logging.getLogger(__name__)

FORMAT_NAME, FORMAT_TEXT = "FORMAT", b"hubweir data 1\n"
CATALOG_FOLDER, STORE_FOLDER, TLS_FOLDER, CAPTURE_FOLDER = "catalog", "store-0", "tls", "capture"
# A sync thread beside busy Python waited 10 ms for the interpreter with the default of 5 ms, 0.7 ms with this.
SWITCH_INTERVAL_S = 0.0005
CLOSE_MS = 2_000  # for peers to answer our close; then their connections are dropped


class DataFolderUnusable(HubweirError):
    """The disk refused something that a start needs: no folder can be there, no right to it, no space left."""


class Service:
    """One running service. Made by `start`, on a running loop; used on that loop."""

    def __init__(self, settings: Settings, entities: NamespaceConfig | None = None) -> None:
        self.settings = settings
        self._entities = entities
        self.counters = Counters()
        self.ready = False
        self.addresses: list[tuple[str, int]] = []
        self.certificate: CertificateFiles | None = None
        self._lock: FolderLock | None = None
        self._catalog: MessagingStore | None = None
        self._store: MessagingStore | None = None
        self._broker: Broker | None = None
        self._far: BrokerServer | None = None
        self._near: SocketBroker | None = None
        self._gateway: Gateway | None = None
        self._http: HttpDriver | None = None
        self._switch: PortSwitch | None = None
        # In the order in which they came.
        self._drivers: dict[AmqpDriver, None] = {}
        self._buffer = ReceiveBuffer()
        self._files = SystemFiles(settings.data)
        self._env = SystemEnv(self._files, threads=settings.offload_threads)

    @classmethod
    async def start(cls, settings: Settings, entities: NamespaceConfig | None = None) -> Service:
        """Start everything; HubweirError says what is in the way, and nothing stays open then.

        entities: what a Config.json wants to be there before the first client comes.
        """
        check_development_key(settings)
        try:
            service = cls(settings, entities)
            try:
                await service._start()
            except BaseException:
                await service._close_everything(grace_ms=0)
                raise
        except OSError as error:
            # Taken ports and bad certificates have errors of their own: what is left is the disk.
            place = error.filename or Path(settings.data).absolute()
            text = f"the service cannot start on the data folder {settings.data}: {place}: {error.strerror or error}"
            raise DataFolderUnusable(text) from error
        return service

    async def stop(self) -> None:
        """Settle, say good-bye, write what is pending, give everything free. The second call does nothing."""
        await self._close_everything(grace_ms=self.settings.stop_grace_ms)

    def connection_string(self, *, plain: bool = True) -> str:
        """What a client pastes. plain: without TLS, by the emulators' flag. The port stands there when it must."""
        host = self.addresses[0][0]
        ports = [port for address, port in self.addresses if address == host]
        usual = AMQP_PORT if plain else AMQPS_PORT
        # Nobody can connect to "every address": a name of this machine stands for it.
        name = "localhost" if host in ("0.0.0.0", "::") else host
        return ConnectionString(
            host=name if plain else (self.settings.hostname or (name,))[0],
            port=None if usual in ports else ports[0],
            key_name=ROOT_RULE,
            key=Secret(self.settings.key),
            emulator=plain,
        ).format()

    @property
    def gateway(self) -> Gateway:
        """The gateway of the running service."""
        if self._gateway is None:
            raise HubweirError("the service does not run")
        return self._gateway

    @property
    def alarms(self) -> list[str]:
        """What the operator must know: damage found, odd files."""
        found = [alarm for store in (self._catalog, self._store) if store is not None for alarm in store.alarms]
        found += [] if self._broker is None else self._broker.alarms
        units = None if self._gateway is None else self._gateway.units.warning
        return [*found, units] if units is not None else found

    async def _start(self) -> None:
        settings, env = self.settings, self._env
        self._lock = self._files.lock_folder("")
        check_data_format(self._files)
        tls = server_context(self._certificate_files())
        catalog = self._catalog = MessagingStore.open(
            env, CATALOG_FOLDER, counters=self.counters, settings=LogSettings(uses_reserve=True)
        )
        ids = catalog.log_ids()
        namespace = Namespace(
            catalog.create_log(ids[0] if ids else env.new_id()),
            env,
            profile=PROFILES[settings.profile],
            host=settings.namespace,
        )
        store = self._store = MessagingStore.open(
            env, STORE_FOLDER, counters=self.counters, settings=log_settings(settings)
        )
        broker = self._broker = Broker(
            env,
            store,
            self.counters,
            sweep_ms=settings.retention_sweep_ms,
            capture_places=capture_places(settings, self._files),
        )
        broker.start()
        await self._name_namespace(namespace)
        brokers = Brokers([await self._reach(broker)])
        gateway = self._gateway = Gateway(env, namespace, brokers, gateway_settings(settings), counters=self.counters)
        problems: list[ServiceError] = await called_back(gateway.keeper.start)
        for problem in problems:
            logger.error("not served: %s", problem.text)
        held, maximum = settings.throughput_units, settings.maximum_throughput_units
        raise_if_refused(await called_back(lambda done: gateway.units.apply_settings(held, maximum, done)))
        if self._entities is not None:
            await make_entities(gateway, self._entities)
        application = Application(gateway, lambda: self.ready)
        self._http = HttpDriver(application, amqp=self._new_connection, head_time_ms=settings.http_head_ms)
        self._switch = PortSwitch(
            amqp=self._new_connection,
            http=self._http.new_protocol,
            tls=tls,
            first_bytes_ms=settings.first_bytes_ms,
            undecided_limit=settings.undecided_connections,
        )
        for host in settings.host:
            for port in settings.port:
                self.addresses.append(self._switch.listen(host, port))
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        raise_descriptor_limit()
        gc.collect()
        gc.freeze()
        self.ready = True

    async def _reach(self, broker: Broker) -> BrokerClient:
        """The gateway's way to its broker: a call, or all through bytes on a socket pair, to prove that both do."""
        if self.settings.broker_seam == "call":
            return InProcessBroker(broker)
        self._far, self._near = BrokerServer(broker), SocketBroker()
        broker.on_push = self._far.push
        ends = socket.socketpair()
        for end, driver in zip(ends, (self._far.driver, self._near.driver), strict=True):
            end.setblocking(False)
            await connect(end, driver)
        return self._near

    def _certificate_files(self) -> CertificateFiles:
        settings = self.settings
        if settings.tls_cert:
            self.certificate = CertificateFiles(Path(settings.tls_cert), Path(settings.tls_key))
        else:
            names = dict.fromkeys(("localhost", "127.0.0.1", *settings.host, *settings.hostname))
            now = datetime.datetime.now(datetime.UTC)
            self.certificate = development_certificate(Path(settings.data) / TLS_FOLDER, names, now)
        return self.certificate

    async def _name_namespace(self, namespace: Namespace) -> None:
        """The namespace's name and the key of its root rule are what the settings say; the rest is the catalog's."""
        settings = self.settings
        if namespace.description.name != settings.namespace:
            raise_if_refused(await called_back(lambda done: namespace.name_namespace(settings.namespace, done)))
        found = next((rule for rule in namespace.description.rules if rule.name == ROOT_RULE), None)
        if found is None or not hmac.compare_digest(found.primary.reveal().encode(), settings.key.encode()):
            secondary = found.secondary if found is not None else Secret("")
            rule = AuthorizationRuleDescription(ROOT_RULE, Rights.ALL, Secret(settings.key), secondary)
            raise_if_refused(await called_back(lambda done: namespace.set_rule(None, rule, done)))

    def _new_connection(self, peer: str) -> AmqpDriver:
        endpoint, host = self.gateway.new_connection(peer)
        driver = AmqpDriver(
            endpoint, host, self._buffer, loop=self._env.loop, on_lost=lambda gone: self._drivers.pop(gone, None)
        )
        self._drivers[driver] = None
        return driver

    async def _close_everything(self, *, grace_ms: int) -> None:
        self.ready = False
        if self._switch is not None:
            self._switch.stop_listening()
        if self._gateway is not None:
            await self._close_connections(self._gateway, grace_ms)
        if self._http is not None:
            await self._http.close(grace_ms=min(grace_ms, CLOSE_MS))
        if self._gateway is not None:
            await called_back(self._gateway.units.stop)
        if self._switch is not None:
            await self._switch.close()
        self._gateway = self._http = self._switch = None
        if self._near is not None:
            self._near.close()
        if self._far is not None:
            self._far.close()
        self._near = self._far = None
        if self._broker is not None:
            await done(self._broker.stop)
        elif self._store is not None:
            await done(self._store.close)
        if self._catalog is not None:
            await done(self._catalog.close)
        self._broker = self._store = self._catalog = None
        self._env.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def _close_connections(self, gateway: Gateway, grace_ms: int) -> None:
        """Read no more, settle what was read, close every connection; drop those that do not answer."""
        for driver in list(self._drivers):
            driver.stop_reading()
        await self._until(lambda: gateway.process_budget.used == 0, grace_ms)
        # What was answered in this very turn of the loop is on its way before the close.
        await asyncio.sleep(0)
        gateway.close_all(lambda: None)
        await self._until(lambda: not self._drivers, CLOSE_MS if grace_ms else 0)
        for driver in list(self._drivers):
            driver.abort()
        await self._until(lambda: not self._drivers, CLOSE_MS)

    async def _until(self, holds: Callable[[], bool], limit_ms: int) -> None:
        end_ms = self._env.monotonic_ms() + limit_ms
        while not holds() and self._env.monotonic_ms() < end_ms:
            await asyncio.sleep(0.005)


async def called_back(start: Callable[[Callable[[T], None]], None]) -> T:
    """Wait for a completion: start(on_done) is called, and what on_done gets is returned."""
    answered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    start(lambda value: None if answered.done() else answered.set_result(value))
    return await answered


async def done(start: Callable[[Callable[[], None]], None]) -> None:
    """Wait for a completion that says nothing but that it is over."""
    ended = asyncio.Event()
    start(ended.set)
    await ended.wait()


def check_data_format(files: Files) -> None:
    """Mark a fresh data folder with its format; NewerFormat, and nothing touched, when it has another one."""
    found = read_whole(files, FORMAT_NAME)
    if found is None:
        write_whole(files, "", FORMAT_NAME, FORMAT_TEXT)
    elif found != FORMAT_TEXT:
        raise NewerFormat(
            f"the data folder says {printable(found)!r}, and this version reads {printable(FORMAT_TEXT)!r}: "
            "nothing was changed; "
            "use the version that wrote it, or another --data folder"
        )


def printable(line: bytes) -> str:
    """The first line of a small file, for a message."""
    return line[:40].decode("ascii", "replace").strip()


def raise_if_refused(result: object) -> None:
    if isinstance(result, ServiceError):
        raise result


def check_development_key(settings: Settings) -> None:
    """Everybody knows the development key: with it the service listens on this machine only, unless told otherwise."""
    if settings.key != DEVELOPMENT_KEY or settings.allow_development_key or settings.profile == "official-emulator":
        return
    for host in settings.host:
        if not is_loopback(host):
            raise BadSetting(
                f"host {host} can be reached from other machines, and everybody knows the development key "
                f"{DEVELOPMENT_KEY}: give a key of your own, or --allow-development-key if that is meant"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. Of names only localhost is trusted to be so."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log_settings(settings: Settings) -> LogSettings:
    """What the settings say about every partition's log."""
    return LogSettings(
        segment_bytes=settings.log_segment_bytes,
        tail_bytes=settings.log_tail_bytes,
        queue_bytes=settings.log_queue_bytes,
    )


def storage_account(settings: Settings) -> StorageAccount | None:
    """The storage account that captured files may go to; BadStorage when its connection string is none."""
    return parse_storage(settings.capture_storage) if settings.capture_storage else None


def capture_places(settings: Settings, files: Files) -> CapturePlaces:
    """Where captured files may go. files: of the data folder."""
    account = storage_account(settings)
    return CapturePlaces(
        namespace=settings.namespace,
        files=SystemFiles(settings.capture_folder) if settings.capture_folder else files,
        folder="" if settings.capture_folder else CAPTURE_FOLDER,
        containers=None if account is None else functools.cache(functools.partial(BlobContainer, account)),
        quota=CaptureQuota(settings.capture_backlog_bytes, settings.capture_backlog_ms),
    )


def gateway_settings(settings: Settings) -> GatewaySettings:
    """What the settings say about the gateway, with the quotas of the profile."""
    profile = PROFILES[settings.profile]
    account = storage_account(settings)
    return GatewaySettings(
        namespace=settings.namespace,
        host_name=(settings.hostname or settings.host)[0],
        settings_rule=ROOT_RULE,
        issuer=token_issuer(settings),
        max_frame_size_bytes=settings.max_frame_size_bytes,
        max_message_size_bytes=min(
            settings.max_message_size_bytes,
            settings.max_message_size_bytes if profile.connections is None else profile.message_size_bytes,
        ),
        connections_max=profile.connections,
        partition_cap=settings.partition_cap,
        max_throughput_units=settings.max_throughput_units,
        capture_account="" if account is None else account.name,
        idle_timeout_ms=settings.idle_timeout_ms,
        unauthorized_connection_ms=settings.unauthorized_connection_ms,
        idle_link_ms=settings.idle_link_ms,
        connection_budget_bytes=settings.connection_budget_bytes,
        process_budget_bytes=settings.process_budget_bytes,
    )
