"""The processes of `hubweir serve --brokers 3` in virtual time: a supervisor that keeps the catalog, and three broker
processes with a gateway and a broker each, on a disk of their own.

The parts are the real ones, put together as service/supervisor.py and service/broker_process.py do, without what those
take from the system: processes are simulated ones, streams stand in for sockets, and there is no TLS.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from hubweir.alarms import Alarms
from hubweir.auth.sign_in_ledger import SignInLedger
from hubweir.broker.broker import Broker
from hubweir.broker.commands.broker_process import AskProcess, ProcessState
from hubweir.broker.remote_broker import RemoteBroker
from hubweir.broker.shared_broker import SharedBroker
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.counters import Counters
from hubweir.drivers.amqp_driver import AmqpDriver, ReceiveBuffer
from hubweir.env import Env
from hubweir.errors import ServiceError
from hubweir.gateway.amqp.connections import Connections
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.keeper.client import KeeperClient
from hubweir.gateway.keeper.followed_namespace import FollowedNamespace
from hubweir.gateway.keeper.server import KeeperServer
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.gateway.service_orders import ServiceOrders
from hubweir.gateway.settings import GatewaySettings
from hubweir.limits import GatewayLimits
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.tiers import DEVELOPMENT
from hubweir.service.completions import answer
from hubweir.service.data_folder import CATALOG_FOLDER, store_folder
from hubweir.service.gateway_start import start_gateway
from hubweir.service.parts import CATALOG_LOG
from hubweir.service.process_door import ProcessDoor
from hubweir.service.scrape import Scrape
from hubweir.service.served_store import ServedStore
from hubweir.service.stored_namespaces import StoredNamespaces
from hubweir.service.supervised_process import SupervisedProcess
from hubweir.service.supervisor_door import SupervisorDoor
from hubweir.service.told_alarms import hear_alarms, standing_alarms
from hubweir.testing.settable_clock import SettableClock
from tests.simulation.many_processes import SimulatedProcess
from tests.simulation.simulated_streams import Network, StreamEnd

BROKERS = 3
NAMESPACE = "localhost"
KEY = "SAS_KEY_VALUE"
SETTINGS = GatewaySettings(namespace=NAMESPACE, profile=DEVELOPMENT)
KEEPER = Path("keeper.sock")


def broker_path(index: int) -> Path:
    return Path(f"broker-{index}.sock")


def process_path(index: int) -> Path:
    return Path(f"process-{index}.sock")


class SimulatedLife:
    """Stands where drivers.watched_process.WatchedProcess stands: a simulated process, watched until it ends."""

    exit_code, how_it_ended = None, "as its world has it"

    def __init__(self, process: SimulatedProcess, kill: Callable[[SimulatedProcess], None]) -> None:
        self.process = process
        self.pid = id(process)
        self._kill = kill
        self._waiting: list[asyncio.Event] = []
        self._calls: list[Callable[[], object]] = []

    @property
    def has_ended(self) -> bool:
        return not self.process.is_alive

    def when_ended(self, call: Callable[[], object]) -> None:
        if self.has_ended:
            call()
        else:
            self._calls.append(call)

    async def ended(self) -> None:
        if not self.has_ended:
            event = asyncio.Event()
            self._waiting.append(event)
            await event.wait()

    def send(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self._kill(self.process)

    async def kill(self) -> None:
        self.send(signal.SIGKILL)
        await self.ended()

    def is_over(self) -> None:
        """The system says that it ended."""
        calls, self._calls = self._calls, []
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()
        for call in calls:
            call()


class BrokerPart:
    """What a broker process has; see service/broker_process.py."""

    def __init__(self, process: SimulatedProcess, network: Network, index: int, process_id: int) -> None:
        self.index, self.process_id = index, process_id
        self._network, self._simulated = network, process
        env = process.env
        self._counters = Counters()
        self._alarms = Alarms(env, self._counters)
        self.store = ServedStore(index, env, self._alarms, open_broker=self._open, has_logs=False)
        self._own = SharedBroker(self.store)
        self._away = {other: RemoteBroker(broker_path(other), env) for other in range(BROKERS) if other != index}
        keeper = RemoteBroker(KEEPER, env)
        clients: list[BrokerClient] = [self._away.get(other) or self._own for other in range(BROKERS)]
        self.orders = ProcessOrders(env, SettableClock(), index)  # the world gives them; no client does here
        self.process = GatewayProcess(
            env,
            Brokers(clients, own=(self._own,)),
            limits=GatewayLimits(),
            counters=self._counters,
            alarms=self._alarms,
            process_id=process_id,
            own_orders=self.orders,
        )
        self.process.supervisor = keeper
        self.process.has_all = False
        self._buffer = ReceiveBuffer()
        self._connections = Connections(self.process)
        self._followed = asyncio.Event()
        self.is_serving = False
        self.keeper = KeeperClient(env, keeper, process_id)
        keeper.on_change(lambda broker: self.keeper.came() if broker.is_up else self.keeper.went())
        self.keeper.follow(NAMESPACE, profile=DEVELOPMENT, host=NAMESPACE, on_first=self._known)
        self._own.is_up = False
        self.store.on_change(self._store_changed)
        self.store.start()
        for remote in self._away.values():
            remote.on_change(self._broker_changed)
        for remote in (*self._away.values(), keeper):
            remote.start()
        door = ProcessDoor(
            self._state,
            {index: self.store},
            self.orders,
            hear=lambda told: hear_alarms(self._alarms, told.elsewhere),
            take_clients=self._take_clients,
            let_clients_go=self._let_clients_go,
            measure=Scrape(self._counters, self._alarms, process=lambda: self.process, brokers=self._brokers).encoded,
        )
        SharedBroker(door).serve(process_path(index))

    @property
    def gateway(self) -> Gateway | None:
        """Once the catalog is known."""
        return self.process.gateways[0] if self.process.gateways else None

    def _open(self, env: Env) -> Broker:
        store = MessagingStore.open(env, store_folder(self.index), counters=self._counters, alarms=self._alarms)
        return Broker(env, store, self._counters, alarms=self._alarms)

    def _known(self, followed: FollowedNamespace) -> None:
        Gateway(self.process, followed, SETTINGS)
        self.process.has_all = True
        self._followed.set()

    def _store_changed(self, store: ServedStore) -> None:
        if store.is_up and not self._own.is_up:
            self._own.is_up = True
            self._own.serve(broker_path(self.index))

    def _broker_changed(self, broker: RemoteBroker) -> None:
        if not broker.is_up:
            self._connections.broker_gone(broker)

    def _state(self) -> ProcessState:
        return ProcessState(
            process_id=self.process_id,
            index=self.index,
            start="",
            addresses=(),
            connections=self._connections.count,
            is_serving=self.is_serving,
            follows=self.process.has_all and all(gateway.keeper.is_current for gateway in self.process.gateways),
            away=() if self.store.is_up else (self.index,),
            alarms=standing_alarms(self._alarms),
        )

    def _brokers(self) -> list[Broker]:
        return [] if self.store.broker is None else [self.store.broker]

    async def _take_clients(self) -> None:
        await self._followed.wait()
        if not self.is_serving:
            self.is_serving = True
            for gateway in self.process.gateways:
                gateway.forwarder.start()
            self._network.gates[self._simulated] = self._accepted

    async def _let_clients_go(self) -> None:
        """No life here ends in order."""

    def _accepted(self, end: StreamEnd) -> None:
        endpoint, host = self._connections.new(end.peer.name)
        end.put_on(AmqpDriver(endpoint, host, self._buffer))


class SupervisorPart:
    """What the supervisor has; see service/supervisor.py. spawn: starts a broker process; found: those that live."""

    def __init__(
        self,
        process: SimulatedProcess,
        *,
        spawn: Callable[[int], tuple[int, SimulatedLife]],
        found: dict[int, tuple[int, SimulatedLife]],
    ) -> None:
        self._env = process.env
        self._simulated = process
        self._spawn = spawn
        self._found = found
        self._changed = asyncio.Event()
        self._is_open = asyncio.Event()
        self.gateway: Gateway | None = None

    async def start(
        self,
        entities: Sequence[EntityDescription],
        rule: AuthorizationRuleDescription,
        on_kept: Callable[[], None],
        on_ready: Callable[[], None],
    ) -> None:
        """Open the catalog, have the processes, serve. on_kept: called when the keeper takes changes.

        entities, rule: that are there when on_ready is called.
        """
        env, counters = self._env, Counters()
        alarms = Alarms(env, counters)
        catalogs = MessagingStore.open(
            env, CATALOG_FOLDER, counters=counters, settings=CATALOG_LOG, alarms=alarms, has_retention=False
        )
        stored = await StoredNamespaces.read(env, catalogs, alarms)
        is_new = not stored.descriptions
        wanted = NamespaceSettings(name=NAMESPACE, stored_name="" if is_new else NAMESPACE, key=KEY)
        writer = await stored.open(wanted)
        ways = [self._way(broker_path(index)) for index in range(BROKERS)]
        self.process = GatewayProcess(
            env,
            Brokers(ways, own=()),
            limits=GatewayLimits(),
            counters=counters,
            alarms=alarms,
            process_id=self._new_id(),
        )
        self.keeper = KeeperServer(self.process)
        self.processes = [
            SupervisedProcess(
                index,
                env,
                self._way(process_path(index)),
                [ways[index]],
                stores=(index,),
                spawn=partial(self._spawn, index),  # type: ignore[arg-type]  # stands in for a watched process
                on_up=self._open_logs,
                on_change=self._changed.set,
                on_ended=self._ended,
                is_kept=self._is_open.is_set,
                question=partial(self._question, index, alarms),
            )
            for index in range(BROKERS)
        ]
        scrape = Scrape(counters, alarms, process=lambda: self.process, brokers=list)
        door = SupervisorDoor(
            self.keeper,
            lambda: self.processes,
            scrape.encoded,
            alarms,
            sign_ins=SignInLedger(env),
            orders=ServiceOrders(env, ProcessOrders(env, SettableClock()), tuple),
        )
        shared = SharedBroker(door)
        self.keeper.on_dead = shared.end_streams_of
        for each in self.processes:
            self._simulated.start(each.keep(self._found.get(each.index)))  # type: ignore[arg-type]  # the same
        await self._until(lambda: all(each.is_up for each in self.processes))
        self.gateway = await start_gateway(self.process, writer, wanted, SETTINGS)
        self.keeper.expect(process_id for process_id, _ in self._found.values())
        shared.serve(KEEPER)
        self._is_open.set()
        on_kept()
        await self._until(lambda: all(each.is_serving for each in self.processes))
        if is_new:
            for entity in entities:
                made: object = await answer(partial(self.gateway.keeper.create, entity))
                assert not isinstance(made, ServiceError), made.text
            change = partial(RuleLevel.create, rule=rule)
            ruled: object = await answer(partial(self.gateway.keeper.change_rules, None, change))
            assert not isinstance(ruled, ServiceError), ruled.text
        on_ready()

    def _question(self, index: int, alarms: Alarms) -> AskProcess:
        others = (each.alarms for each in self.processes if each.index != index)
        return AskProcess(tuple(dict.fromkeys(chain(standing_alarms(alarms), *others))))

    def _way(self, path: Path) -> RemoteBroker:
        way = RemoteBroker(path, self._env)
        way.on_change(lambda _: self._changed.set())
        way.start()
        return way

    def _new_id(self) -> int:
        return int.from_bytes(self._env.random_bytes(4)) >> 1

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def _open_logs(self, stores: Sequence[int]) -> None:
        await self._is_open.wait()
        gateway = self.gateway
        assert gateway is not None and isinstance(gateway.keeper, CatalogKeeper)
        units: Any = gateway.units
        await answer(partial(gateway.keeper.open_stores, stores))
        for store in stores:
            units.broker_came(self.process.brokers.of_store(store))

    def _ended(self, process: SupervisedProcess) -> None:
        self.keeper.gone(process.process_id)
        self._changed.set()
