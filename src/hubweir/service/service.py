"""One running service in one process: settings in, what clients reach out.

A start goes from the disk up: the data folder with its lock and format → catalogs → certificate → broker with its
store → a gateway for each namespace, which has every partition of its catalog opened (gateway_start.py) → listeners.
So nobody can connect before everything is there but partitions that take long to open. A stop goes the opposite way:
no new connections and /ready says so → what was received is settled → connections are closed with a condition that
makes clients connect again → idle marks → locks are released. A start that fails stops what it had started.
"""

from __future__ import annotations

import socket

from hubweir.broker.broker import Broker
from hubweir.broker.server import BrokerServer
from hubweir.broker.socket_broker import SocketBroker
from hubweir.config.namespace_settings import SaidNamespaces, said_namespaces
from hubweir.config.settings import Settings
from hubweir.config.token_issuer import token_issuer
from hubweir.drivers.broker_driver import connect
from hubweir.gateway.brokers import BrokerClient, Brokers, InProcessBroker
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.service.certificate import ServiceCertificate
from hubweir.service.parts import OpenStore, Parts, unusable


class Service(Parts):
    """One running service. Made by `start`, on a running loop; used on that loop."""

    broker: Broker

    @classmethod
    async def start(
        cls,
        settings: Settings,
        said: SaidNamespaces | None = None,
        *,
        open_store: OpenStore = MessagingStore.open,
    ) -> Service:
        """Start everything; HubweirError says what is in the way, and nothing stays open then.

        said: of namespaces, with what a Config.json wants to be there before the first client comes; None: what the
        settings say. open_store: which engine its logs lie in; segment files in the data folder.
        """
        said = said_namespaces(settings) if said is None else said
        try:
            service = cls(settings, open_store)
            try:
                await service._start(said)
            except BaseException:
                await service.stop()
                raise
        except OSError as error:
            raise unusable(settings.data, error) from error
        return service

    async def _start(self, said: SaidNamespaces) -> None:
        """Each step starts one part, and says how the part ends."""
        issuer = token_issuer(self.settings)
        self._own_data_folder()
        stored = await self._open_catalogs()
        hosts = self._choose_namespaces(said, stored)
        self._certificate = ServiceCertificate(self.settings, self.namespaces)
        self.broker = self._start_broker()
        self.process = self._new_process(Brokers([await self._reach(self.broker)]))
        self._listeners = self._new_listeners()
        await self._start_gateways(stored, hosts, issuer)
        self.addresses = self._listeners.open()
        self._watch_loop()
        if issuer is not None:
            self._follow(issuer)
        self.ready = True

    async def _reach(self, broker: Broker) -> BrokerClient:
        """The gateways' way to their broker: a call, or all through bytes on a socket pair, to prove that both do."""
        if self.settings.broker_seam == "call":
            return InProcessBroker(broker)
        far, near = BrokerServer(broker), SocketBroker()
        self._ends.callback(far.close)
        self._ends.callback(near.close)
        broker.on_push = far.push
        for end, driver in zip(socket.socketpair(), (far.driver, near.driver), strict=True):
            end.setblocking(False)
            await connect(end, driver)
        return near
