"""`hubweir serve --brokers N`: starts N broker processes, watches them, and keeps the catalogs.

It alone holds the lock of the data folder and changes catalogs; for each namespace it has a gateway without listeners,
whose keeper does so. Clients never reach it. What it asks brokers goes over their sockets, and every broker process
follows its catalogs over keeper.sock.

A start: the data folder with its lock and format → catalogs → certificate → the ports, which nobody else may have →
broker processes → gateways, which have every log opened → keeper.sock → each process takes clients. It is ready when
all of them do, and follow it. A stop: every process lets its clients go → then each ends, with the idle marks of its
logs → the catalogs → the lock. A broker process that ends is started again; its logs are opened before it takes
clients, but for those that take long.

When it dies, broker processes serve on, and changes of catalogs wait. The next one takes the lock, keeps those
processes that answer and were started with the same settings, and ends the others before it starts any. It is ready
when those that it keeps follow it; one that does not is killed for that (heartbeat.py), and another one is waited for.
A start of processes that cannot be done ends (process_starts.py). What tests ordered of them stands.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from hubweir.auth.sign_in_ledger import SignInLedger
from hubweir.broker.commands.broker_process import AskProcess, ChangeSettings
from hubweir.broker.commands.testcontrol import OrdersKept, StandingOrders
from hubweir.broker.remote_broker import RemoteBroker
from hubweir.broker.shared_broker import SharedBroker
from hubweir.config.namespace_settings import SaidNamespaces, said_namespaces
from hubweir.config.settings import BadSetting, Settings
from hubweir.config.token_issuer import token_issuer
from hubweir.drivers.listening_socket import hold_address
from hubweir.drivers.tasks import Tasks
from hubweir.drivers.watched_process import WatchedProcess
from hubweir.errors import ServiceError
from hubweir.gateway.brokers import Brokers
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.keeper.server import KeeperServer
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.namespace.entity import EntityDescription
from hubweir.service.bounded_stop import EXIT_LEFT, StopLimit
from hubweir.service.certificate import ReadCertificate, ServiceCertificate
from hubweir.service.data_folder import store_count, store_folder
from hubweir.service.found_process import Found, Left, end_found, find_left, newest_orders
from hubweir.service.gateway_start import OPENING_WAIT_S
from hubweir.service.namespace_door import NamespaceDoor
from hubweir.service.opened_stores import OpenedStores
from hubweir.service.parts import Parts
from hubweir.service.process_start import ProcessStart, own_stores
from hubweir.service.process_starts import ProcessStarts
from hubweir.service.runtime_folder import RuntimeFolder
from hubweir.service.served_stores import no_store_answers
from hubweir.service.supervised_process import SupervisedProcess
from hubweir.service.supervisor_door import SupervisorDoor
from hubweir.service.told_alarms import standing_alarms
from hubweir.service.whole_start import whole_start

logger = logging.getLogger(__name__)

PROGRAM = (sys.executable, "-m", "hubweir.service.broker_process")
PROCESS_ID_BYTES = 4
KILL_WAIT_S = 7.0  # behind the limit of a process: it is killed after 2 s of it, and is to be gone


class Supervisor(Parts):
    """See the module's text. Made by `start`, on a running loop; used on that loop."""

    _folder: RuntimeFolder
    _keeper: KeeperServer

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.processes_s = KILL_WAIT_S
        self.processes: tuple[SupervisedProcess, ...] = ()
        self._stores = 1
        self._named_at_start: frozenset[int] = frozenset()
        self._tasks = Tasks("supervisor")
        self._starts = ProcessStarts()
        self._is_open = asyncio.Event()  # gateways are there, and had the logs opened
        self._opened = OpenedStores()
        self._namespaces: NamespaceDoor | None = None  # of the keeper, once it has gateways

    @classmethod
    async def start(
        cls, settings: Settings, said: SaidNamespaces | None = None, *, limit: StopLimit | None = None
    ) -> Supervisor:
        """Start everything; HubweirError says what is in the way, and nothing stays open then. As of Service."""
        said = said_namespaces(settings) if said is None else said
        supervisor = cls(settings)
        async with whole_start(supervisor, limit):
            await supervisor._start(said)
        return supervisor

    def take_settings(self, settings: Settings) -> None:
        """Have every process go by these, and read certificate, key and the CAs of clients again."""
        super().take_settings(settings)
        command = ChangeSettings(settings.log_level, settings.tls_cert, settings.tls_key, settings.tls_client_ca)
        for process in self.processes:
            process.change_settings(command)

    def read_certificate(self) -> None:
        """The processes do: here nobody connects."""

    def _take_certificate(self, read: ReadCertificate) -> None:
        """Its files are there, which each process reads when it hears of the namespaces."""

    def leave(self) -> None:
        """See StoppingProcess. A process that was left alive would serve on without anybody who keeps the catalogs."""
        for process in self.processes:
            process.kill()

    @property
    def exit_code(self) -> int:
        """See StoppingProcess. Of its processes, one that left a disk, or had to be killed, counts."""
        return EXIT_LEFT if any(process.has_left for process in self.processes) else 0

    # Steps

    async def _start(self, said: SaidNamespaces) -> None:
        if sys.platform != "linux":
            raise BadSetting("brokers is above 1, and only Linux spreads connections over processes: leave it out here")
        token_issuer(self.settings)  # what is wrong with it is told once, here
        self._start_traces()  # it makes no spans; that they cannot be made is told once, too
        self._own_data_folder()
        self._folder = RuntimeFolder.of(self.settings.data)
        self._ends.callback(self._folder.leave)
        left = await find_left(self._folder, self._env)
        self.own_orders.take(newest_orders(left))  # before stores are opened, which are not to see time run back
        stored = await self._open_catalogs()
        self._named_at_start = stored.stores
        hosts = self._choose_namespaces(said, stored)
        self._certificate = ServiceCertificate(self.settings, self.namespaces)
        self._stores = max(
            self.settings.stores,
            self.settings.brokers,
            store_count(self._files),
            max(stored.stores, default=0) + 1,
        )
        found = await self._keep_or_end(left)
        self._hold_addresses(found)
        keeper, ways = self._reach()
        self._keep_processes(ways, found)
        await self._starts.all(self.processes, lambda each: each.is_up)
        if not any(way.is_up for way in ways):
            raise no_store_answers(self.settings)
        served = await self._start_gateways(stored, hosts, None)
        self._namespaces = NamespaceDoor(served, self._keeper.push, self._keeper.dead)
        self._ends.push_async_callback(self._namespaces.close)
        known = tuple(each.state.process_id for each in found.values())
        self._keeper.expect(known)
        served.followers.expect(known)
        keeper.serve(self._folder.keeper)
        self._is_open.set()
        await self._starts.all(self.processes, lambda each: each.is_serving)
        self.ready = True

    async def _keep_or_end(self, left: Iterable[Left]) -> dict[int, Found]:
        """The processes of an earlier supervisor that serve on, by index; all others that it left are ended."""
        found: dict[int, Found] = {}
        useless = []
        for each in left:
            state, index = each.state, each.index
            is_ours = state is not None and state.start == self._document(index, 0).digest
            if state is not None and is_ours and state.index == index < self.settings.brokers:
                found[index] = Found(state, each.life)
            else:
                useless.append(each)
        await end_found(useless, self._env, clients_s=self.clients_s)
        return found

    def _hold_addresses(self, found: Mapping[int, Found]) -> None:
        """Keep the ports for the processes. Those that were found have them already."""
        known = next((each.state.addresses for each in found.values()), ())
        asked = [(host, port) for host in self.settings.host for port in self.settings.port]
        for place, (host, port) in enumerate(asked):
            if known:
                port = int(known[place].rpartition(":")[2])
            held = hold_address(host, port, is_free=not known)
            self._ends.callback(held.close)
            self.addresses.append((host, held.getsockname()[1]))

    def _reach(self) -> tuple[SharedBroker, list[RemoteBroker]]:
        """The keeper behind its socket, which nobody can connect to yet, and the ways to all brokers."""
        ways = [self._way(self._folder.broker(index)) for index in range(self._stores)]
        for index, way in enumerate(ways):
            way.on_change(lambda _, index=index: self._opened.changed(index))  # type: ignore[misc]
        self.process = self._new_process(Brokers(ways, own=()), self._new_id())
        self._keeper = KeeperServer(self.process)
        door = SupervisorDoor(
            self._keeper,
            lambda: self.processes,
            self._scrape.encoded,
            self.alarms,
            lambda: self._namespaces,
            sign_ins=SignInLedger(self._env),
            orders=self._judge_orders(self._tell_orders),
        )
        shared = SharedBroker(door)
        self._ends.push_async_callback(door.close)
        self._keeper.on_dead = shared.end_streams_of
        self._ends.push_async_callback(shared.close)
        return shared, ways

    def _keep_processes(self, ways: Sequence[RemoteBroker], found: Mapping[int, Found]) -> None:
        count = self.settings.brokers
        self.processes = tuple(
            SupervisedProcess(
                index,
                self._env,
                self._way(self._folder.process(index)),
                [ways[store] for store in own_stores(index, processes=count, stores=self._stores)],
                stores=own_stores(index, processes=count, stores=self._stores),
                spawn=partial(self._spawn, index),
                on_up=self._open_logs,
                on_ended=self._ended,
                on_change=self._starts.changed,
                is_kept=self._is_open.is_set,
                question=partial(self._question, index),
                orders=lambda: self.own_orders.standing,
                clients_s=self.clients_s,
            )
            for index in range(count)
        )
        self._ends.push_async_callback(self._end_processes)
        for process in self.processes:
            one = found.get(process.index)
            known = None if one is None else (one.state.process_id, one.life)
            self._tasks.start(process.keep(known), name=f"broker process {process.index}")

    def _way(self, path: Path) -> RemoteBroker:
        way = RemoteBroker(path, self._env)
        way.on_change(lambda _: self._starts.changed())
        self._ends.push_async_callback(way.stop)
        way.start()
        return way

    def _new_id(self) -> int:
        """Of one life of a process: no other has had it."""
        return int.from_bytes(self._env.random_bytes(PROCESS_ID_BYTES)) >> 1

    def _document(self, index: int, process_id: int) -> ProcessStart:
        return ProcessStart(
            settings=self.settings,
            namespaces=self.namespaces,
            index=index,
            process_id=process_id,
            supervisor=os.getpid(),
            stores=self._stores,
            addresses=tuple(self.addresses),
            named=tuple(sorted(self._named_stores())),
            orders=self.own_orders.standing,
        )

    def _spawn(self, index: int) -> tuple[int, WatchedProcess]:
        process_id = self._new_id()
        return process_id, WatchedProcess.spawn((*PROGRAM, str(index)), self._document(index, process_id).encode())

    # What happens to processes

    async def _open_logs(self, stores: Sequence[int]) -> None:
        """Have all logs opened that lie in these stores. Comes back when they are, or after OPENING_WAIT_S.

        Then all else is served. Those that are not open yet are opened all the same; an alarm stands for each of them.
        """
        await self._is_open.wait()
        are_open = asyncio.Event()
        self._begin_opening(stores, are_open.set)
        try:
            async with asyncio.timeout(OPENING_WAIT_S):
                await are_open.wait()
        except TimeoutError:
            index, names = stores[0] % self.settings.brokers, ", ".join(map(store_folder, stores))
            logger.warning("broker process %d: logs in %s are still being opened; all else is served", index, names)

    def _begin_opening(self, stores: Sequence[int], on_open: Callable[[], None]) -> None:
        """Have the brokers open the logs, and tell them what those before were told."""
        brokers, gateways = self.process.brokers, tuple(self.process.gateways)
        began = self._opened.opening(store for store in stores if brokers.of_store(store).is_up)
        left = len(gateways)

        def opened(problems: Sequence[ServiceError]) -> None:
            nonlocal left
            left -= 1
            for problem in problems:
                logger.error("not served yet: %s", problem.text)
            if not left:
                self._opened.opened(began)
                on_open()

        for gateway in gateways:
            assert isinstance(gateway.keeper, CatalogKeeper) and isinstance(gateway.units, NamespaceUnits)
            for store in stores:
                gateway.units.broker_came(brokers.of_store(store))
            gateway.keeper.open_stores(stores, opened)

    def _named_stores(self) -> frozenset[int]:
        """The stores in which catalogs name logs, now."""
        if not self._is_open.is_set():
            return self._named_at_start
        return frozenset(
            placement.store_index
            for gateway in self.process.gateways
            for entity in gateway.namespace.entities(EntityDescription)
            for placement in entity.placements
        )

    def _question(self, index: int) -> AskProcess:
        """What a broker process is asked, and told: what stands here and in the others, and which stores are open."""
        others = [each for each in self.processes if each.index != index]
        elsewhere = dict.fromkeys(chain(standing_alarms(self.alarms), *(each.alarms for each in others)))
        wants_portal = any(each.has_portal for each in others)
        return AskProcess(tuple(elsewhere), self._opened.indexes, wants_portal)

    async def _tell_orders(self, orders: StandingOrders) -> list[OrdersKept]:
        """Have every process that lives go by what tests ordered; the others are told when they come."""
        kept = await asyncio.gather(*(process.keep_orders(orders) for process in self.processes))
        return [each for each in kept if each is not None]

    def _ended(self, process: SupervisedProcess) -> None:
        self._keeper.gone(process.process_id)
        if self._namespaces is not None:
            self._namespaces.gone(process.process_id)
        self._starts.ended(process)

    async def _end_processes(self) -> None:
        """First all let their clients go: what those sent is answered by brokers of any process."""
        await asyncio.gather(*(process.let_clients_go() for process in self.processes))
        await asyncio.gather(*map(self._stop_process, self.processes))
        await self._tasks.stop()

    async def _stop_process(self, process: SupervisedProcess) -> None:
        with self.stop_waits.on(f"broker process {process.index}"):
            await process.stop()
