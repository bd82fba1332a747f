"""One of the processes of `hubweir serve --brokers N`: brokers of its stores, and gateways that follow the keeper.

It is started by a supervisor, with one JSON document on standard input (process_start.py), and serves on when that
dies, unless nobody could find it by then. A store of it that is away (served_store.py) has no socket until it comes;
all else goes on. A start: brokers with their stores → sockets, so that the supervisor and the other processes reach
them → the catalogs are followed → clients are taken when the supervisor says so, which has had the logs opened by then.
A stop begins with the clients, so that what they sent is answered while all brokers are there.

It hears no signal of a terminal. SIGTERM stops it; SIGHUP has it read its certificate again.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import os
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from hubweir.alarms import STORE_AWAY
from hubweir.broker.broker import Broker
from hubweir.broker.commands.broker_process import AskProcess, ProcessCommand, ProcessState
from hubweir.broker.commands.command import Answer
from hubweir.broker.remote_broker import RemoteBroker
from hubweir.broker.shared_broker import SharedBroker
from hubweir.config.token_issuer import token_issuer
from hubweir.errors import HubweirError
from hubweir.gateway.asked_orders import AskedOrders
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.gateway.connections import own_connections
from hubweir.gateway.http.open_metrics import ProcessSamples
from hubweir.gateway.keeper.client import KeeperClient
from hubweir.service.asked_process import ask_once
from hubweir.service.bounded_stop import StopLimit
from hubweir.service.certificate import ServiceCertificate
from hubweir.service.data_folder import store_folder
from hubweir.service.event_loop import loop_factory
from hubweir.service.followed_namespaces import FollowedNamespaces
from hubweir.service.log_output import LogOutput, begin_log
from hubweir.service.part_settings import capture_places
from hubweir.service.parts import Parts
from hubweir.service.process_door import ProcessDoor
from hubweir.service.process_start import ProcessStart
from hubweir.service.runtime_folder import RuntimeFolder
from hubweir.service.scrape import scrape_all
from hubweir.service.served_store import ServedStore
from hubweir.service.served_stores import ServedStores
from hubweir.service.stop_signal import StopSignal, hear_signals
from hubweir.service.told_alarms import hear_alarms, standing_alarms
from hubweir.service.whole_start import whole_start

logger = logging.getLogger(__name__)

OTHERS_S = 3.0  # for another process to answer: one that lives does so within milliseconds
TOLD_AFTER_MS = 5_000  # a process that was killed is back by then


class SupervisorGone(HubweirError):
    """Whoever started the process died before it could be reached."""


class BrokerProcess(Parts):
    """See the module's text. Made by `start`, on a running loop; used on that loop."""

    def __init__(self, start: ProcessStart) -> None:
        super().__init__(start.settings, index=start.index)
        self.own_orders.take(start.orders)
        self._start_document = start
        self.namespaces = start.namespaces
        self._followed = asyncio.Event()
        self._letting_go = asyncio.Lock()
        self._has_let_go = False

    @classmethod
    async def start(cls, start: ProcessStart, limit: StopLimit) -> BrokerProcess:
        """Own the stores and be reached; HubweirError says what is in the way, and nothing stays open then."""
        process = cls(start)
        async with whole_start(process, limit):
            await process._start()
        return process

    async def _start(self) -> None:
        start, folder = self._start_document, RuntimeFolder.of(self.settings.data)
        self._ends.callback(self._env.close)
        self._certificate = ServiceCertificate(self.settings, self.namespaces, is_owner=False)
        self._start_traces(start.process_id)
        stores = ServedStores(
            self._env,
            self.settings,
            self.alarms,
            partial(self._new_broker, capture_places(self.settings, self._files)),
            named=start.named,
            stop_waits=self.stop_waits,
        )
        self._ends.push_async_callback(stores.stop)
        self._stores = {store.index: store for store in await stores.start(start.own_stores)}
        own = {index: SharedBroker(store) for index, store in self._stores.items()}
        away = self._away = {
            index: RemoteBroker(folder.broker(index), self._env) for index in range(start.stores) if index not in own
        }
        keeper = RemoteBroker(folder.keeper, self._env)
        for remote in (keeper, *away.values()):
            self._ends.push_async_callback(remote.stop)
        for shared in own.values():
            self._ends.push_async_callback(shared.close)
        clients: list[BrokerClient] = [own.get(index) or away[index] for index in range(start.stores)]
        self.process = self._new_process(Brokers(clients, own=tuple(own.values())), start.process_id)
        self.process.supervisor = keeper
        self.process.orders = AskedOrders(keeper)
        self.process.processes = self.settings.brokers
        self.process.index = start.index
        self.process.ask_other = self._ask_other
        self.process.has_all = False
        self._listeners = self._new_listeners()
        self._ends.push_async_callback(self._let_clients_go)
        self._follow_catalogs(keeper)
        for index, shared in own.items():
            shared.is_up = False
            serve = partial(self._store_changed, shared, folder.broker(index))
            self._stores[index].on_change(serve)
            serve(self._stores[index])
        for index, remote in away.items():
            remote.on_change(partial(self._broker_changed, index))
        for remote in (*away.values(), keeper):
            remote.start()
        self._open_door(folder)

    def _open_door(self, folder: RuntimeFolder) -> None:
        door = ProcessDoor(
            self._state,
            self._stores,
            self.own_orders,
            hear=self._hear,
            take_clients=self._take_clients,
            let_clients_go=self._let_clients_go,
            measure=self._scrape.encoded,
            connections=partial(own_connections, self.process),
            change_settings=lambda changed: self.take_settings(
                replace(
                    self.settings,
                    log_level=changed.log_level,
                    tls_cert=changed.tls_cert,
                    tls_key=changed.tls_key,
                    tls_client_ca=changed.tls_client_ca,
                )
            ),
        )
        shared = SharedBroker(door)
        self._ends.push_async_callback(shared.close)
        self._ends.push_async_callback(door.close)
        shared.serve(folder.process(self._start_document.index))
        # The next supervisor may have looked for it before it listened, and starts another in its place.
        if os.getppid() != self._start_document.supervisor:
            raise SupervisorGone("its supervisor is gone, and the next one may not know of it")

    def _follow_catalogs(self, remote: RemoteBroker) -> None:
        """A gateway for each namespace, as soon as its catalog is known."""
        issuer = token_issuer(self.settings)
        keeper = KeeperClient(self._env, remote, self._start_document.process_id)
        self._ends.callback(keeper.stop)
        followed = self._catalogs = FollowedNamespaces(
            self.settings,
            self.process,
            keeper,
            issuer,
            prepare=self._name_certificate,
            on_change=self._namespaces_changed,
            on_whole=self._followed.set,
            is_serving=lambda: self.ready,
        )
        self._ends.push_async_callback(followed.stop)
        self.process.namespaces = followed

        def changed(broker: RemoteBroker) -> None:
            if broker.is_up:
                keeper.came()
                followed.came()
            else:
                keeper.went()
                followed.went()

        remote.on_change(changed)
        followed.begin(self.namespaces)
        if issuer is not None:
            self._follow(issuer)

    def _store_changed(self, shared: SharedBroker, path: Path, store: ServedStore) -> None:
        """A store of this process came or went: other processes, and connections here, see its broker so."""
        if store.is_up and not shared.is_up:
            shared.is_up = True
            shared.serve(path)
        elif shared.is_up and not store.is_up:
            shared.is_up = False
            shared.leave()
            self._listeners.broker_gone(shared)

    def _broker_changed(self, store_index: int, broker: RemoteBroker) -> None:
        if not broker.is_up:
            self._listeners.broker_gone(broker)
            self._env.machine.call_later(TOLD_AFTER_MS, partial(self._look_at, store_index, broker))

    def _look_at(self, store_index: int, broker: RemoteBroker) -> None:
        """Operators hear of a broker that stays away, and `/ready` says so everywhere, until its logs are open."""
        if not broker.is_up:
            text = "it is away, or the process that serves it is, which is started again"
            self.alarms.begin(STORE_AWAY, _about(store_index), text)

    # What the supervisor says and asks for

    def _hear(self, told: AskProcess) -> None:
        hear_alarms(self.alarms, told.elsewhere)
        if told.wants_portal:
            self._listeners.load_portal()
        for store_index in told.opened:
            if store_index in self._stores:
                self._stores[store_index].opened()
            elif self._away[store_index].is_up:
                self.alarms.end(STORE_AWAY, _about(store_index))

    async def _ask_other(self, index: int, command: ProcessCommand) -> Answer | None:
        path = RuntimeFolder.of(self.settings.data).process(index)
        return await ask_once(path, command, self._env, within_s=OTHERS_S)

    def _own_brokers(self) -> list[Broker]:
        return [store.broker for store in self._stores.values() if store.broker is not None]

    async def _all_samples(self) -> list[ProcessSamples]:
        start, folder = self._start_document, RuntimeFolder.of(self.settings.data)
        others = {str(index): folder.process(index) for index in range(self.settings.brokers) if index != start.index}
        return await scrape_all(str(start.index), self._scrape, others | {"keeper": folder.keeper}, self._env)

    def _state(self) -> ProcessState:
        start = self._start_document
        addresses = tuple(f"{host}:{port}" for host, port in start.addresses)
        count = self._listeners.connection_count
        return ProcessState(
            process_id=start.process_id,
            index=start.index,
            start=start.digest,
            addresses=addresses,
            connections=count,
            is_serving=self.ready,
            follows=self._catalogs.is_current,
            away=tuple(index for index, store in self._stores.items() if not store.is_up),
            alarms=standing_alarms(self.alarms),
            of_namespaces={
                gateway.settings.namespace: gateway.own_connection_count for gateway in self.process.gateways
            },
            has_portal=self._listeners.has_portal,
        )

    async def _take_clients(self) -> None:
        await self._followed.wait()
        if not self.ready and not self._has_let_go:
            start, folder = self._start_document, RuntimeFolder.of(self.settings.data)
            clients = [folder.clients(index) for index in range(self.settings.brokers)]
            self._listeners.share(start.addresses, clients, start.index)
            for gateway in self.process.gateways:
                gateway.forwarder.start()
            self.addresses = list(self._start_document.addresses)
            self._watch_loop()
            self.ready = True
        await self._catalogs.current()  # one that an earlier supervisor left serves, and may not follow this one yet

    async def _let_clients_go(self) -> None:
        async with self._letting_go:
            if not self._has_let_go:
                self.ready = False
                self._has_let_go = True
                await self._end_clients()
                self.clients_s = 0.0  # they have had their time when it stops from now on


def _about(store_index: int) -> str:
    return f"store {store_folder(store_index)}"


async def _run(start: ProcessStart, output: LogOutput, limit: StopLimit) -> None:
    loop, stop = asyncio.get_running_loop(), StopSignal((signal.SIGTERM,), limit)
    output.follow(loop)
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    process = await stop.started(BrokerProcess.start(start, limit))
    if process is None:
        return
    loop.add_signal_handler(signal.SIGHUP, process.read_certificate)
    await stop.wait()
    limit.begin(process)
    await process.stop()


def main() -> None:
    """The whole life of the process; exit code 1 when it cannot start, EXIT_LEFT when it left a disk that hangs: the
    log says why.
    """
    hear_signals()
    atexit.register(gc.freeze)  # as cli/main.py
    start = ProcessStart.decode(sys.stdin.buffer.read())
    settings = start.settings
    output = begin_log(settings.log_level, settings.log_format, process=start.index)
    try:
        with StopLimit() as limit, asyncio.Runner(loop_factory=loop_factory(settings.loop)) as runner:
            runner.run(_run(start, output, limit))
    except HubweirError as error:
        logger.error("it ends: %s", error)  # the text is for people
        os._exit(1)


if __name__ == "__main__":
    main()
