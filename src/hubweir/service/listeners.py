"""The ports that peers of a service connect to, each of which speaks AMQP and HTTP, with TLS and without."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from hubweir.config.settings import DoorSettings
from hubweir.drivers.amqp_driver import AmqpDriver
from hubweir.drivers.http_driver import HttpDriver
from hubweir.drivers.loop_turn import LoopTurn
from hubweir.drivers.open_connections import OpenConnections
from hubweir.drivers.passed_connections import PassedConnections
from hubweir.drivers.port_switch import PortSwitch
from hubweir.drivers.tls import BadCertificate, CertificateFiles
from hubweir.env import Lane, Result
from hubweir.gateway.amqp.connections import Connections
from hubweir.gateway.brokers import BrokerClient
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.application import Application
from hubweir.gateway.http.metrics_page import MetricsPage
from hubweir.gateway.http.open_metrics import ProcessSamples
from hubweir.service.certificate import ReadCertificate, ServiceCertificate
from hubweir.service.connection_spread import ConnectionSpread
from hubweir.service.portal_on_demand import PortalOnDemand
from hubweir.service_log import READ_AGAIN

logger = logging.getLogger(__name__)

CLOSE_MS = 2_000  # for peers to answer our close; then their connections are dropped


class Listeners:
    """Of one service. Made and used on its loop. Brokers push to its connections from the moment that it is made."""

    def __init__(
        self,
        settings: DoorSettings,
        process: GatewayProcess,
        certificate: ServiceCertificate,
        loop_turn: LoopTurn,
        *,
        is_ready: Callable[[], bool],
        portal_samples: Callable[[], Awaitable[Sequence[ProcessSamples]]] | None = None,
        metrics: MetricsPage | None = None,
    ) -> None:
        """Listens to nothing yet. is_ready: what /ready answers. portal_samples: what the charts of /portal ask; None:
        there is no portal. metrics: the page of it; None: there is none."""
        connections, drivers = Connections(process), OpenConnections(loop_turn)

        def new_connection(peer: str, host: str = "") -> AmqpDriver:
            return drivers.new_driver(*connections.new(peer, host))

        self.certificate = certificate
        self._settings = settings
        self._process = process
        self._connections = connections
        self._drivers = drivers
        self._portal = None if portal_samples is None else PortalOnDemand(process, portal_samples)
        self._spread: ConnectionSpread | None = None
        self._passed: PassedConnections | None = None
        portal = None if self._portal is None else self._portal.answer
        self._http = HttpDriver(Application(process, is_ready, portal, metrics), amqp=new_connection, limits=settings)
        self._switch = PortSwitch(
            amqp=new_connection, http=self._http.new_protocol, tls=certificate.tls, limits=settings
        )

    @property
    def connection_count(self) -> int:
        """How many AMQP connections there are."""
        return self._connections.count

    @property
    def has_portal(self) -> bool:
        """Whether the portal is loaded, or being loaded."""
        return self._portal is not None and self._portal.is_wanted

    def load_portal(self) -> None:
        """Load the portal before anybody asks for it here; of none there is nothing to load."""
        if self._portal is not None:
            self._portal.load()

    def open(self) -> list[tuple[str, int]]:
        """Listen on every host and port of the settings; returns what was bound. AddressTaken names what cannot be."""
        return [self._switch.listen(host, port) for host in self._settings.host for port in self._settings.port]

    def share(self, addresses: Iterable[tuple[str, int]], paths: Sequence[Path], own: int) -> None:
        """Listen on addresses that other processes of this service listen on, too. AddressTaken as `open`.

        It may be called again after an error, which leaves nothing open.
        paths: on which the processes take connections from each other, this one on that of the place `own`.
        """
        loop = asyncio.get_running_loop()
        self._spread = ConnectionSpread(paths, own, self._switch.adopt, loop.time)
        self._passed = PassedConnections(paths[own], self._switch.adopt, loop)
        try:
            for host, port in addresses:
                self._switch.listen(host, port, share=self._spread.accepted)
        except BaseException:
            self._stop_taking()
            raise

    def broker_gone(self, broker: BrokerClient) -> None:
        """Tell connections of a broker that went away."""
        self._connections.broker_gone(broker)

    def read_certificate(self) -> None:
        """Read it again, away from the loop: it holds for connections that come from then on.

        What cannot be used changes nothing; the log says either.
        """

        def taken(read: Result[ReadCertificate]) -> None:
            try:
                files = self.take_certificate(read.value())
            except (BadCertificate, OSError) as error:
                outcome = f"stays as it was: {error}"
                READ_AGAIN.say(logger, level=logging.ERROR, what="the certificate", outcome=outcome)
            else:
                READ_AGAIN.say(logger, what="the certificate", outcome=f"read from {files.certificate}")

        self._process.env.offload(Lane.MAINTENANCE, self.certificate.read, taken)

    def take_certificate(self, read: ReadCertificate) -> CertificateFiles:
        """It holds for connections that come from now on; returns where it lies."""
        files, self._switch.tls = read
        return files

    async def close(self, *, grace_ms: int) -> None:
        """Take no more peers and end those that are there. grace_ms: for what they sent to be settled."""
        self._stop_taking()
        await self._drivers.end(
            is_settled=lambda: self._process.budget.used == 0,
            say_goodbye=lambda: self._connections.close_all(lambda: None),
            grace_ms=grace_ms,
            close_ms=CLOSE_MS,
        )
        await self._http.close(grace_ms=min(grace_ms, CLOSE_MS))
        await self._switch.close()

    def _stop_taking(self) -> None:
        """Neither new connections nor those that other processes pass on."""
        self._switch.stop_listening()
        if self._spread is not None:
            self._spread.close()
        if self._passed is not None:
            self._passed.close()
