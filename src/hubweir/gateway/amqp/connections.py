"""The AMQP connections of one process: made as peers come, told what brokers push, closed together when it stops.

Connections have numbers in the process, whichever namespace they are for, since brokers know them by their numbers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.broker.commands.command import Push, nobody_waits
from hubweir.broker.commands.forwarding import TransferOpen
from hubweir.broker.commands.fragment import MessagesGiven, SessionLost
from hubweir.broker.commands.reader import ConfirmReaderClosed, ReaderClosed
from hubweir.broker.commands.transaction import TransactionOpen
from hubweir.errors import CONNECTION_FORCED, ServiceError
from hubweir.gateway.amqp.connection_host import ConnectionHost
from hubweir.gateway.brokers import BrokerClient
from hubweir.gateway.gateway_process import GatewayProcess

CONTAINER_ID = "hubweir"  # ours, in open


class Connections:
    """See the module's text. Made once for a process: brokers push to it from then on."""

    def __init__(self, process: GatewayProcess) -> None:
        self._process = process
        self._settings = EndpointSettings(
            container_id=CONTAINER_ID,
            limits=process.limits,
            # Rights come by tokens on $cbs whatever SASL said; Azure's JavaScript client skips it when its connection
            # string holds a ready signature.
            sasl_may_be_left_out=True,
        )
        self._hosts: dict[int, ConnectionHost] = {}
        self._next_connection = 1
        self._on_all_closed: Callable[[], None] | None = None
        for broker in process.brokers:
            broker.listen(self._push_listener(broker))

    @property
    def count(self) -> int:
        """How many connections there are, of all namespaces."""
        return len(self._hosts)

    def new(self, peer: str, host: str = "") -> tuple[Endpoint, ConnectionHost]:
        """An endpoint and a host for a connection that was accepted from peer (for logs). Give both to a driver.

        host: what the peer named before AMQP began (WebSockets); in AMQP it may name another.
        """

        def describe(symbol: str, text: str) -> str:
            host = made()  # weakly: the host holds the endpoint, which holds this
            return text if host is None else host.describe_fault(symbol, text)

        now_ms = self._process.env.machine.monotonic_ms()
        endpoint = Endpoint(Role.SERVER, self._settings, now_ms=now_ms, describe_error=describe)
        connection_id = self._next_connection
        self._next_connection += 1
        connection = ConnectionHost(self._process, endpoint, connection_id, peer, on_over=self._ended)
        made = weakref.ref(connection)
        self._hosts[connection_id] = connection
        self._process.counters["gateway.connections_accepted"] += 1
        self._process.counters["gateway.connections"] = len(self._hosts)
        connection.choice.named(host)
        return endpoint, connection

    def _ended(self, host: ConnectionHost) -> None:
        """A host says that its connection is over."""
        self._hosts.pop(host.owner.connection, None)
        self._process.counters["gateway.connections"] = len(self._hosts)
        if not self._hosts and self._on_all_closed is not None:
            on_all_closed, self._on_all_closed = self._on_all_closed, None
            on_all_closed()

    def close_all(self, on_done: Callable[[], None]) -> None:
        """Tell every peer that the service stops; on_done when the last connection is over. Clients connect again."""
        if not self._hosts:
            on_done()
            return
        self._on_all_closed = on_done
        text = "The service is stopping. Connect again."
        for host in list(self._hosts.values()):
            host.close(ServiceError(CONNECTION_FORCED, text))

    def broker_gone(self, broker: BrokerClient) -> None:
        """A broker of another process went away: links that had something open there end, or go on without it."""
        for host in list(self._hosts.values()):
            host.broker_gone(broker)

    def _push_listener(self, broker: BrokerClient) -> Callable[[Push], None]:
        def pushed(push: Push) -> None:
            is_own = self._process.brokers.is_own(broker)
            if isinstance(push, TransactionOpen | TransferOpen) and not is_own:
                return  # the process that has the broker sees to it
            if isinstance(push, TransactionOpen):
                # Asked now, it would be answered inside the broker's own step.
                self._process.env.call_soon(lambda: self._process.transaction_endings.opened(push))
                return
            if isinstance(push, TransferOpen):
                for gateway in self._process.gateways:
                    gateway.forwarder.opened(push)
                return
            if push.owner.process != self._process.process_id:
                return
            host = self._hosts.get(push.owner.connection)
            if isinstance(push, MessagesGiven) and host is not None:
                host.joint.came(push)
            if isinstance(push, SessionLost) and host is not None:
                host.session_lost(broker, push)
            if isinstance(push, ReaderClosed):
                if host is not None:
                    host.reader_closed(broker, push)
                # Asked now, it runs behind the flush that the detach asked for: the detach goes out first.
                confirmed = ConfirmReaderClosed(push.log_id, push.reader_id)
                self._process.env.call_soon(lambda: broker.submit(confirmed, nobody_waits))

        return pushed
