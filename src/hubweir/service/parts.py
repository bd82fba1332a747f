"""The parts of a service, whatever its processes are: each step starts one of them, and says how it ends.

The only module that knows gateways and brokers both.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Protocol

from hubweir.alarms import Alarms
from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.broker.broker import Broker
from hubweir.broker.capture.places import CapturePlaces
from hubweir.broker.store_look import StoreLook
from hubweir.config.development_key import check_development_key, has_portal
from hubweir.config.namespace_settings import SaidNamespaces
from hubweir.config.namespaces_at_start import NamespaceSettings, hosts_of, namespaces_at_start
from hubweir.config.settings import Settings
from hubweir.counters import Counters
from hubweir.drivers.descriptor_limit import raise_descriptor_limit
from hubweir.drivers.loop_watch import LoopWatch
from hubweir.drivers.system_env import SystemEnv
from hubweir.drivers.tls import BadCertificate, CertificateFiles
from hubweir.env import Env, Lane, Result
from hubweir.gateway.brokers import Brokers
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.metrics_page import MetricsPage
from hubweir.gateway.http.open_metrics import ProcessSamples
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.gateway.service_orders import ServiceOrders, TellOthers, nobody_else
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.log_store import LogStore
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.host_names import HostNames
from hubweir.service.bounded_stop import StoppingProcess
from hubweir.service.certificate import ReadCertificate, ServiceCertificate
from hubweir.service.client_string import client_string
from hubweir.service.completions import answer
from hubweir.service.data_folder import (
    ABOUT_CATALOGS,
    CATALOG_FOLDER,
    about_store,
    own_data_folder,
    store_folder,
    stored_logs,
    unusable,
)
from hubweir.service.gateway_start import start_gateway, stop_gateways
from hubweir.service.listeners import Listeners
from hubweir.service.log_output import set_level
from hubweir.service.part_settings import (
    capture_account,
    capture_places,
    gateway_settings,
    log_settings,
    metrics_access,
)
from hubweir.service.scrape import Scrape
from hubweir.service.served_namespaces import ServedNamespaces
from hubweir.service.stored_namespaces import StoredNamespaces
from hubweir.service.trace_export import SpanExport, span_export

logger = logging.getLogger(__name__)

# A sync thread beside busy Python waited 10 ms for the interpreter with the default of 5 ms, 0.7 ms with this.
SWITCH_INTERVAL_S = 0.0005
CATALOG_LOG = LogSettings(uses_reserve=True)


class OpenStore(Protocol):
    """What opens a store of logs; see MessagingStore.open. It may block."""

    def __call__(
        self,
        env: Env,
        folder: str,
        *,
        counters: Counters,
        settings: LogSettings,
        alarms: Alarms,
        has_retention: bool = True,
    ) -> LogStore: ...


class Parts(StoppingProcess):
    """See the module's text. Made on a running loop; used on that loop.

    ready: clients may come, and it does not stop. alarms: what the operator must know now, all of it. namespaces: as
    they are served, the default one first. notes: what people are told of the start. addresses: host and port of each
    socket that clients come to, in the order of the settings. process: the gateways, one a namespace. watch: of the
    loop, where clients come to it. own_orders: of tests, as this process goes by them; index: of it among those of the
    service.
    """

    process: GatewayProcess
    watch: LoopWatch
    _certificate: ServiceCertificate
    _listeners: Listeners

    def __init__(self, settings: Settings, open_store: OpenStore = MessagingStore.open, *, index: int = 0) -> None:
        super().__init__(clients_s=settings.stop_grace_ms / 1_000)
        self.settings = settings
        self._open_store = open_store
        self.namespaces: tuple[NamespaceSettings, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.counters = Counters()
        self.ready = False
        try:
            self._files = SystemFiles(settings.data)
        except OSError as error:
            raise unusable(settings.data, error) from error
        self._env = SystemEnv(self._files, threads=settings.offload_threads)
        self.alarms = Alarms(self._env, self.counters)
        self.own_orders = ProcessOrders(self._env, self._env.clock, index)
        self.addresses: list[tuple[str, int]] = []
        self._scrape = Scrape(
            self.counters, self.alarms, process=lambda: self.process, brokers=lambda: self._own_brokers()
        )
        self._traces: SpanExport | None = None
        # What ends each part that was started. The last one started ends first.
        self._ends = AsyncExitStack()

    async def stop(self) -> None:
        """Settle, say good-bye, write what is pending, give everything free. The second call does nothing."""
        self.ready = False
        self.alarms.close()
        await self._ends.aclose()

    def read_certificate(self) -> None:
        """Read certificate, key and the CAs of clients again: they hold for connections that come from then on.

        What cannot be used changes nothing; the log says either. Does nothing when the service does not run.
        """
        if self.ready:
            self._listeners.read_certificate()

    @property
    def served_namespaces(self) -> ServedNamespaces:
        """What makes, changes and deletes its namespaces; of a process that keeps their catalogs."""
        assert isinstance(self.process.namespaces, ServedNamespaces), "a process that follows changes none"
        return self.process.namespaces

    def take_settings(self, settings: Settings) -> None:
        """Go by these settings, which differ in what may change while it runs; the certificate is read again."""
        self.settings = settings
        set_level(settings.log_level)
        self._certificate.go_by(settings)
        self.read_certificate()

    def connection_string(self, namespace: str = "", *, plain: bool = True) -> str:
        """What a client pastes. namespace: its name, "" for the default one. plain: without TLS, as of an emulator."""
        return client_string(self.namespaces, self.addresses, namespace, plain=plain)

    @property
    def certificate(self) -> CertificateFiles:
        """Where the files of its certificate lie."""
        return self._certificate.files

    @property
    def gateway(self) -> Gateway:
        """The gateway of the default namespace."""
        return self.process.default

    # Steps

    def _own_data_folder(self) -> None:
        lock = own_data_folder(self._files, self.settings.data)
        self._ends.callback(lock.release)
        self._ends.callback(self._env.close)

    async def _open_catalogs(self) -> StoredNamespaces:
        catalogs = self._open_store(
            self._env,
            CATALOG_FOLDER,
            counters=self.counters,
            settings=CATALOG_LOG,
            alarms=self.alarms,
            has_retention=False,
        )
        self._ends.push_async_callback(self.stop_waits.until_done, ABOUT_CATALOGS, catalogs.close)
        look = StoreLook(self._env, catalogs.look_at_syncs)
        self._ends.callback(look.stop)
        look.start()
        return await StoredNamespaces.read(self._env, catalogs, self.alarms, stored_logs(self._files))

    def _choose_namespaces(self, said: SaidNamespaces, stored: StoredNamespaces) -> Mapping[str, HostNames]:
        """What is served, by the start and the folder; returns the hosts that lead to each, by its name."""
        served = namespaces_at_start(said, stored.descriptions)
        self.namespaces, self.notes = served.namespaces, served.notes
        check_development_key(self.settings, [each.key for each in self.namespaces])
        return hosts_of(self.settings, self.namespaces)

    def _start_traces(self, process_id: int = 0) -> None:
        """Before brokers and gateways, which tell of what clients trace until they end."""
        self._traces = span_export(self._env, self.settings.traces, str(process_id))
        if self._traces is not None:
            self._ends.push_async_callback(self._traces.stop)

    def _start_broker(self, store_index: int = 0) -> Broker:
        broker = self._new_broker(capture_places(self.settings, self._files), store_index, self._env)
        self._ends.push_async_callback(self.stop_waits.until_done, about_store(store_index), broker.stop)
        broker.start()
        return broker

    def _new_broker(self, places: CapturePlaces, store_index: int, env: Env) -> Broker:
        """A store, opened, and the broker on it, which is not started yet."""
        store = self._open_store(
            env,
            store_folder(store_index),
            counters=self.counters,
            settings=log_settings(self.settings),
            alarms=self.alarms,
        )
        return Broker(
            env,
            store,
            self.counters,
            sweep_ms=self.settings.retention_sweep_ms,
            capture_places=places,
            alarms=self.alarms,
            tracer=self._traces,
        )

    def _new_process(self, brokers: Brokers, process_id: int = 0) -> GatewayProcess:
        process = GatewayProcess(
            self._env,
            brokers,
            limits=self.settings,
            counters=self.counters,
            alarms=self.alarms,
            process_id=process_id,
            tracer=self._traces,
            own_orders=self.own_orders,
        )
        self._ends.push_async_callback(stop_gateways, process, self.stop_waits)
        return process

    def _judge_orders(self, tell_others: TellOthers = nobody_else) -> ServiceOrders:
        """What tests order is judged here. tell_others: has all other processes go by it."""
        return ServiceOrders(
            self._env,
            self.own_orders,
            lambda: [(gateway.name, gateway.settings.profile) for gateway in self.process.gateways],
            tell_others,
        )

    def _new_listeners(self) -> Listeners:
        """Not listening yet. It takes what brokers push from now on, so it is there before any gateway has readers."""
        access = metrics_access(self.settings)
        is_shown = has_portal(self.settings, [each.key for each in self.namespaces])
        listeners = Listeners(
            self.settings,
            self.process,
            self._certificate,
            self._env.loop_turn,
            is_ready=lambda: self.ready,
            portal_samples=self._all_samples if is_shown else None,
            metrics=None if access is None else MetricsPage(self._all_samples, access),
        )
        self._ends.push_async_callback(self._end_clients)
        return listeners

    async def _end_clients(self) -> None:
        with self.stop_waits.on("clients"):
            await self._listeners.close(grace_ms=self.settings.stop_grace_ms)

    async def _start_gateways(
        self, stored: StoredNamespaces, hosts: Mapping[str, HostNames], issuer: IssuerKeys | None
    ) -> ServedNamespaces:
        settings = self.settings
        for wanted in self.namespaces:
            account = capture_account(settings)
            writer = await stored.open(wanted, partitions_limit=settings.partitions_limit, capture_account=account)
            values = gateway_settings(settings, wanted, hosts[wanted.name], issuer)
            await start_gateway(self.process, writer, wanted, values)
        served = ServedNamespaces(
            self._env,
            settings,
            self.process,
            stored,
            issuer,
            self.namespaces,
            prepare=self._name_certificate,
            on_change=self._namespaces_changed,
        )
        self._ends.push_async_callback(served.stop)
        self.process.namespaces = served
        served.carry_on()
        return served

    def _namespaces_changed(self, namespaces: tuple[NamespaceSettings, ...]) -> None:
        """Namespaces came or went while the service runs."""
        self.namespaces = namespaces

    async def _name_certificate(self, namespaces: tuple[NamespaceSettings, ...]) -> None:
        """Have a development certificate for the names of these, too. Without it they are served all the same."""
        if not self._certificate.name(namespaces):
            return
        read: Result[ReadCertificate] = await answer(
            partial(self._env.offload, Lane.MAINTENANCE, self._certificate.read)
        )
        try:
            self._take_certificate(read.value())
        except (BadCertificate, OSError) as error:
            logger.error("the development certificate has not the names of new namespaces: %s", error)

    def _take_certificate(self, read: ReadCertificate) -> None:
        """It holds for connections that come from now on."""
        self._listeners.take_certificate(read)

    def _own_brokers(self) -> list[Broker]:
        """The brokers of this process that are up."""
        return []

    async def _all_samples(self) -> list[ProcessSamples]:
        """What all processes of the service measure."""
        return await self._scrape.alone()

    def _watch_loop(self) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        raise_descriptor_limit()
        listeners = self._listeners
        self.watch = LoopWatch(self._env.loop.call_later, self.counters, lambda: listeners.connection_count)
        self._ends.callback(self.watch.stop)
        self.watch.start()

    def _follow(self, issuer: IssuerKeys) -> None:
        self._ends.callback(issuer.stop)
        issuer.follow(self._env, self.settings.jwt_keys_check_ms, self.alarms)
