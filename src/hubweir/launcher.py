"""Composition root: settings in, a running service out. The only module that knows gateway and broker both.

Starting: the data folder's lock → its format → catalogs → certificate → store → broker → a gateway for each namespace,
which has every partition of its catalog opened (served_namespaces.py) → listeners. So nobody can connect before
everything is there but partitions that take long to open, and a start that fails leaves nothing open. Stopping is the
same backwards: no new connections and /ready says so → what was received is settled → connections are closed with a
condition that makes clients connect again → idle marks → locks are released.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import logging
import socket
import ssl
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hubweir.alarms import Alarms
from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.broker.broker import Broker
from hubweir.broker.capture.blob_upload import BlobContainer, StorageAccount, parse_storage
from hubweir.broker.capture.places import CapturePlaces, CaptureQuota
from hubweir.broker.server import BrokerServer
from hubweir.broker.socket_broker import SocketBroker
from hubweir.config.development_key import check_development_key
from hubweir.config.namespace_settings import SaidNamespaces, said_namespaces
from hubweir.config.namespaces_at_start import NamespaceSettings, hosts_of, namespaces_at_start
from hubweir.config.settings import ROOT_RULE, Settings
from hubweir.config.token_issuer import token_issuer
from hubweir.counters import Counters
from hubweir.data_folder import CAPTURE_FOLDER, CATALOG_FOLDER, TLS_FOLDER, own_data_folder, store_folder, stored_logs
from hubweir.drivers.amqp_driver import AmqpDriver
from hubweir.drivers.broker_driver import connect
from hubweir.drivers.descriptor_limit import raise_descriptor_limit
from hubweir.drivers.development_certificate import development_certificate
from hubweir.drivers.http_driver import HttpDriver
from hubweir.drivers.loop_watch import LoopWatch
from hubweir.drivers.open_connections import OpenConnections
from hubweir.drivers.port_switch import PortSwitch
from hubweir.drivers.system_env import SystemEnv
from hubweir.drivers.tls import BadCertificate, CertificateFiles, server_context
from hubweir.env import Files, FolderLock, Lane, Result
from hubweir.errors import HubweirError
from hubweir.gateway.amqp.connections import Connections
from hubweir.gateway.brokers import BrokerClient, Brokers, InProcessBroker
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.application import Application
from hubweir.messaging_store.files import SystemFiles
from hubweir.messaging_store.log_state import LogSettings
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.namespace.connection_string import AMQP_PORT, AMQPS_PORT, ConnectionString
from hubweir.namespace.resource_path import fold
from hubweir.namespace.secret import Secret
from hubweir.served_namespaces import StoredNamespaces, gateway_settings, start_gateway

logger = logging.getLogger(__name__)

# A sync thread beside busy Python waited 10 ms for the interpreter with the default of 5 ms, 0.7 ms with this.
SWITCH_INTERVAL_S = 0.0005
CLOSE_MS = 2_000  # for peers to answer our close; then their connections are dropped
CATALOG_LOG = LogSettings(uses_reserve=True)


class DataFolderUnusable(HubweirError):
    """The disk refused something that a start needs: no folder can be there, no right to it, no space left."""


class Service:
    """One running service. Made by `start`, on a running loop; used on that loop.

    ready: listeners accept, and it does not stop. alarms: what the operator must know now, all of it.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.namespaces: tuple[NamespaceSettings, ...] = ()
        self.notes: tuple[str, ...] = ()
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
        self._process: GatewayProcess | None = None
        self._amqp: Connections | None = None
        self._issuer: IssuerKeys | None = None
        self._http: HttpDriver | None = None
        self._switch: PortSwitch | None = None
        self._files = SystemFiles(settings.data)
        self._env = SystemEnv(self._files, threads=settings.offload_threads)
        self.alarms = Alarms(self._env, self.counters)
        self._connections = OpenConnections(self._env.loop)
        self.watch = LoopWatch(
            self._env.loop.call_later, self.counters, lambda: 0 if self._amqp is None else self._amqp.count
        )

    @classmethod
    async def start(cls, settings: Settings, said: SaidNamespaces | None = None) -> Service:
        """Start everything; HubweirError says what is in the way, and nothing stays open then.

        said: of namespaces, with what a Config.json wants to be there before the first client comes; None: what the
        settings say.
        """
        said = said_namespaces(settings) if said is None else said
        try:
            service = cls(settings)
            try:
                await service._start(said)
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

    def read_certificate(self) -> None:
        """Read certificate, key and the CAs of clients again: they hold for connections that come from then on.

        What cannot be used changes nothing; the log says either.
        """

        def taken(read: Result[tuple[CertificateFiles, ssl.SSLContext]]) -> None:
            try:
                files, tls = read.value()
            except (BadCertificate, OSError) as error:
                logger.error("the certificate stays as it was: %s", error)
                return
            if self._switch is not None:
                self._switch.tls = tls
                logger.info("the certificate was read again: %s", files.certificate)

        if self._switch is not None:
            self._env.offload(Lane.MAINTENANCE, self._certificate, taken)

    def connection_string(self, namespace: str = "", *, plain: bool = True) -> str:
        """What a client pastes. plain: without TLS, by the emulators' flag. The port stands there when it must.

        namespace: its name; "": the default one.
        """
        default = self.namespaces[0]
        wanted = next((each for each in self.namespaces if fold(each.name) == fold(namespace)), default)
        host = self.addresses[0][0]
        ports = [port for address, port in self.addresses if address == host]
        usual = AMQP_PORT if plain else AMQPS_PORT
        # Nobody can connect to "every address": a name of this machine stands for it.
        name = "localhost" if host in ("0.0.0.0", "::") else host
        if wanted is not default:
            name = wanted.host_name
        elif not plain and default.hostnames:
            name = default.host_name
        return ConnectionString(
            host=name,
            port=None if usual in ports else ports[0],
            key_name=ROOT_RULE,
            key=Secret(wanted.key),
            emulator=plain,
        ).format()

    @property
    def process(self) -> GatewayProcess:
        """The gateways of the running service, one a namespace."""
        if self._process is None:
            raise HubweirError("the service does not run")
        return self._process

    @property
    def gateway(self) -> Gateway:
        """The gateway of the default namespace."""
        return self.process.default

    async def _start(self, said: SaidNamespaces) -> None:
        settings, env = self.settings, self._env
        self._issuer = token_issuer(settings)
        self._lock = own_data_folder(self._files, settings.data)
        catalog = self._catalog = MessagingStore.open(
            env, CATALOG_FOLDER, counters=self.counters, settings=CATALOG_LOG, alarms=self.alarms, has_retention=False
        )
        stored = StoredNamespaces(env, catalog, stored_logs(self._files))
        served = namespaces_at_start(said, stored.descriptions)
        self.namespaces, self.notes = served.namespaces, served.notes
        check_development_key(settings, [each.key for each in self.namespaces])
        hosts = hosts_of(settings, self.namespaces)
        self.certificate, tls = self._certificate()
        store = self._store = MessagingStore.open(
            env, store_folder(0), counters=self.counters, settings=log_settings(settings), alarms=self.alarms
        )
        account = storage_account(settings)
        broker = self._broker = Broker(
            env,
            store,
            self.counters,
            sweep_ms=settings.retention_sweep_ms,
            capture_places=capture_places(settings, self._files, account),
            alarms=self.alarms,
        )
        broker.start()
        brokers = Brokers([await self._reach(broker)])
        process = self._process = GatewayProcess(
            env, brokers, budget_bytes=settings.process_budget_bytes, counters=self.counters, alarms=self.alarms
        )
        account_name = "" if account is None else account.name
        amqp = self._amqp = Connections(process)
        for wanted in self.namespaces:
            writer = stored.open(wanted, partitions_max=settings.partitions_max, capture_account=account_name)
            values = gateway_settings(settings, wanted, hosts[wanted.name], self._issuer)
            await start_gateway(process, writer, wanted, values)

        def new_connection(peer: str, host: str = "") -> AmqpDriver:
            return self._connections.new_driver(*amqp.new(peer, host))

        application = Application(process, lambda: self.ready)
        self._http = HttpDriver(application, amqp=new_connection, head_time_ms=settings.http_head_ms)
        self._switch = PortSwitch(
            amqp=new_connection,
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
        self.watch.start()
        if self._issuer is not None:
            self._issuer.follow(env, settings.jwt_keys_check_ms, self.alarms)
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

    def _certificate(self) -> tuple[CertificateFiles, ssl.SSLContext]:
        """Where the certificate lies, and TLS with it. Blocks while files are read. Raises BadCertificate, OSError."""
        settings = self.settings
        if settings.tls_cert:
            files = CertificateFiles(Path(settings.tls_cert), Path(settings.tls_key))
        else:
            names = dict.fromkeys(("localhost", "127.0.0.1", *settings.host))
            for each in self.namespaces:
                names.update(dict.fromkeys(each.hostnames if each.is_default else (each.host_name, *each.hostnames)))
            now = datetime.datetime.now(datetime.UTC)
            files = development_certificate(Path(settings.data) / TLS_FOLDER, names, now)
        return files, server_context(files, Path(settings.tls_client_ca) if settings.tls_client_ca else None)

    async def _close_everything(self, *, grace_ms: int) -> None:
        self.ready = False
        self.watch.stop()
        self.alarms.close()
        if self._switch is not None:
            self._switch.stop_listening()
        if self._issuer is not None:
            self._issuer.stop()
        process, amqp = self._process, self._amqp
        if process is not None and amqp is not None:
            await self._connections.end(
                is_settled=lambda: process.budget.used == 0,
                say_goodbye=lambda: amqp.close_all(lambda: None),
                grace_ms=grace_ms,
                close_ms=CLOSE_MS,
            )
        if self._http is not None:
            await self._http.close(grace_ms=min(grace_ms, CLOSE_MS))
        if process is not None:
            for gateway in process.gateways:
                await done(partial(_stop_units, gateway))
        if self._switch is not None:
            await self._switch.close()
        self._process = self._amqp = self._http = self._switch = None
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


async def done(start: Callable[[Callable[[], None]], None]) -> None:
    """Wait for a completion that says nothing but that it is over."""
    ended = asyncio.Event()
    start(ended.set)
    await ended.wait()


def _stop_units(gateway: Gateway, on_done: Callable[[], None]) -> None:
    """Write what was used; that it could not be written is logged where it happens. Nothing is tried again."""
    gateway.keeper.stop()
    gateway.units.stop(lambda _: on_done())


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


def capture_places(settings: Settings, files: Files, account: StorageAccount | None) -> CapturePlaces:
    """Where captured files may go. files: of the data folder."""
    return CapturePlaces(
        files=SystemFiles(settings.capture_folder) if settings.capture_folder else files,
        folder="" if settings.capture_folder else CAPTURE_FOLDER,
        containers=None if account is None else functools.cache(functools.partial(BlobContainer, account)),
        quota=CaptureQuota(settings.capture_backlog_bytes, settings.capture_backlog_ms),
    )
