"""One running service in one process: settings in, what clients reach out.

A start goes from the disk up: the data folder with its lock and format → catalogs → certificate → a broker on each
messaging store (served_stores.py) → a gateway for each namespace, which has every partition of its catalog opened
(gateway_start.py) → listeners. So nobody can connect before everything is there but partitions that take long to open.
A stop goes the opposite way: no new connections and /ready says so → what was received is settled → connections are
closed with a condition that makes clients connect again → idle marks → locks are released. A start that fails stops
what it had started.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from functools import partial

from hubweir.broker.broker import Broker
from hubweir.broker.server import BrokerServer, CommandTarget
from hubweir.broker.socket_broker import SocketBroker
from hubweir.config.namespace_settings import SaidNamespaces, said_namespaces
from hubweir.config.settings import Settings
from hubweir.config.token_issuer import token_issuer
from hubweir.drivers.broker_driver import connect_stream
from hubweir.errors import ServiceError
from hubweir.gateway.brokers import BrokerClient, Brokers, InProcessBroker
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.service.bounded_stop import StopLimit
from hubweir.service.certificate import ServiceCertificate
from hubweir.service.data_folder import store_count
from hubweir.service.found_process import end_left
from hubweir.service.part_settings import capture_places
from hubweir.service.parts import OpenStore, Parts
from hubweir.service.served_store import ServedStore
from hubweir.service.served_stores import ServedStores
from hubweir.service.stored_namespaces import StoredNamespaces
from hubweir.service.stores_door import StoresDoor
from hubweir.service.whole_start import whole_start

logger = logging.getLogger(__name__)


class Service(Parts):
    """One running service. Made by `start`, on a running loop; used on that loop.

    broker: of its one messaging store. stores: of several; then there is no such broker.
    """

    broker: Broker
    stores: tuple[ServedStore, ...] = ()

    @classmethod
    async def start(
        cls,
        settings: Settings,
        said: SaidNamespaces | None = None,
        *,
        open_store: OpenStore = MessagingStore.open,
        limit: StopLimit | None = None,
    ) -> Service:
        """Start everything; HubweirError says what is in the way, and nothing stays open then.

        said: of namespaces, with what a Config.json wants to be there before the first client comes; None: what the
        settings say. open_store: which engine its logs lie in; segment files in the data folder. limit: of the process,
        which ends at it when a start that failed waits for a disk.
        """
        said = said_namespaces(settings) if said is None else said
        service = cls(settings, open_store)
        async with whole_start(service, limit):
            await service._start(said)
        return service

    async def _start(self, said: SaidNamespaces) -> None:
        """Each step starts one part, and says how the part ends."""
        issuer = token_issuer(self.settings)
        self._own_data_folder()
        await end_left(self.settings.data, self._env, clients_s=self.clients_s)
        stored = await self._open_catalogs()
        hosts = self._choose_namespaces(said, stored)
        self._certificate = ServiceCertificate(self.settings, self.namespaces)
        self._start_traces()
        self.process = self._new_process(Brokers(await self._reach_stores(stored)))
        self.process.orders = self._judge_orders()
        self._listeners = self._new_listeners()
        for store in self.stores:
            store.on_change(self._store_changed)
            self._store_changed(store)  # it may have come already
        if self.stores:
            self.process.supervisor = StoresDoor(self.stores, lambda: self._listeners.connection_count)
        await self._start_gateways(stored, hosts, issuer)
        self.addresses = self._listeners.open()
        self._watch_loop()
        if issuer is not None:
            self._follow(issuer)
        self.ready = True

    async def _reach_stores(self, stored: StoredNamespaces) -> list[BrokerClient]:
        """The gateways' ways to the brokers of all stores. One store must be open; of several, one of them."""
        count = max(self.settings.stores, store_count(self._files), max(stored.stores, default=0) + 1)
        if count == 1:
            self.broker = self._start_broker()
            return [await self._reach(self.broker, InProcessBroker(self.broker))]
        # Another engine has no folders here.
        has_folders = self._open_store == MessagingStore.open
        new_broker = partial(self._new_broker, capture_places(self.settings, self._files))
        stores = ServedStores(
            self._env,
            self.settings,
            self.alarms,
            new_broker,
            named=stored.stores if has_folders else (),
            stop_waits=self.stop_waits,
        )
        self._ends.push_async_callback(stores.stop)
        self.stores = await stores.start(range(count))
        stores.check_one_is_up()
        return [await self._reach(store, store) for store in self.stores]

    def _own_brokers(self) -> list[Broker]:
        if self.stores:
            return [store.broker for store in self.stores if store.broker is not None]
        return [self.broker]

    def _store_changed(self, store: ServedStore) -> None:
        """A store came: what is placed on it is opened for the gateways that there are; later ones do so themselves.

        One that went has readers and receivers no more, whose numbers may be others' when it is back: links learn it.
        """
        if not store.is_up:
            self._listeners.broker_gone(self.process.brokers.of_store(store.index))
            return
        gateways, broker = tuple(self.process.gateways), store.broker
        left = len(gateways)
        if not gateways:
            store.opened()

        def opened(problems: Sequence[ServiceError]) -> None:
            nonlocal left
            left -= 1
            for problem in problems:
                logger.error("not served yet: %s", problem.text)
            if not left and store.broker is broker:  # else it went meanwhile
                store.opened()

        for gateway in gateways:
            assert isinstance(gateway.keeper, CatalogKeeper), "this process keeps its catalogs"
            assert isinstance(gateway.units, NamespaceUnits), "and its units"
            gateway.units.broker_came(store)
            gateway.keeper.open_stores((store.index,), opened)

    async def _reach(self, broker: CommandTarget, by_call: BrokerClient) -> BrokerClient:
        """The gateways' way to a broker: a call, or all through bytes on a socket pair, to prove that both do."""
        if self.settings.broker_seam == "call":
            return by_call
        far, near = BrokerServer(broker), SocketBroker()
        self._ends.callback(far.close)
        self._ends.callback(near.close)
        broker.on_push = far.push
        for end, driver in zip(socket.socketpair(), (far.driver, near.driver), strict=True):
            end.setblocking(False)
            await connect_stream(end, driver)
        return near
