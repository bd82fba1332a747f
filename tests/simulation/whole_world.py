"""The whole service in a simulated world (T3): a supervisor with the catalog, three brokers, and 15 clients.

A seed draws what goes wrong, and when: processes end, with or without their machine, or are stopped; ways between
processes are blocked, in both directions or one; clients lose their connections; disks fail; clocks jump; the
supervisor is away for a while; catalogs are changed meanwhile. Then the world is healed. All clients must be done
within 60 s, and no checker of their histories may find a broken promise: `Violation` is raised at the first one.

The supervisor's process ends and is begun again by the world, broker processes by the supervisor.

Long because a world is one thing: its processes, what ends with them, and its course.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest
from msgspec import structs

from hubweir.broker.commands.testcontrol import FaultRates, OrderedFaults, StandingOrders
from hubweir.client.queue_client import QueueClient
from hubweir.gateway.amqp.queue_receiver_node import QueueReceiverNode
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import WrittenDuration
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import SqlFilterDescription, SubscriptionRuleDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.queue.fragment import Fragment
from hubweir.testing.history_values import Violation
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.seen_messages import left_in
from hubweir.testing.simulated_env import START_MS
from tests.simulation.many_processes import Processes, SimulatedProcess, current_process
from tests.simulation.simulated_service import BROKERS, NAMESPACE, BrokerPart, SimulatedLife, SupervisorPart
from tests.simulation.simulated_streams import Network, StreamEnd, StreamLoop
from tests.simulation.virtual_time import set_clocks
from tests.simulation.world_catalog import GUEST, CatalogChanges
from tests.simulation.world_clients import (
    CONNECTION_STRING,
    FEED,
    FEED_ALL,
    FEED_ODD,
    HUB,
    KINDS,
    LATE_MS,
    LATEST_SCHEDULE_MS,
    LOCK_MS,
    NEWS,
    ONE,
    ORDERS,
    PARTITIONS,
    PROMPT_MS,
    TIMEOUT_S,
    TURNS,
    TWO,
    WINDOW_MS,
)
from tests.simulation.world_faults import CLIENTS, SUPERVISOR, Faults, broker_name
from tests.simulation.world_hub_clients import SeenHub, publish, read, read_again
from tests.simulation.world_queue_clients import SeenQueue, Sending, hold_sessions, receive
from tests.simulation.world_transaction_clients import PLACES, SeenTokens, check_tokens, move_tokens, put_tokens

BROKER_SOCKET = "broker-"
CHANGED, KILLED = "catalog changed", "killed by the supervisor"
DONE_S = 60.0  # after the world is healed
READY_S = 30.0
# Fewer than the 16 of the standard tier: each of the stores has one of each queue.
FRAGMENTS = 3
LEAST_ACCEPTED = 4


class WholeWorld:
    """See the module's text. `run` plays it. met: how often each kind of fault happened; digest: of all that did.

    rates: of the faults that strike clients at every process until the world is healed, as a test orders them
    (gateway/faults.py); the seed of their draws is this world's.
    """

    def __init__(self, seed: int, rates: FaultRates | None = None) -> None:
        self.seed = seed
        self._ordered = StandingOrders()
        if rates is not None:
            ordered = OrderedFaults(1, structs.replace(rates, seed=seed))
            self._ordered = StandingOrders(1, faults={NAMESPACE: ordered})
        self.random = Random(f"whole world {seed}")
        self.processes = Processes()
        self.processes.on_end = self._ended
        self.loop = StreamLoop(self.processes)
        self.network = self.loop.network = Network(self.processes, self.random)
        self.network.on_stream_end = self._stream_ended
        self.disks = [MemoryFiles(f"{seed} {number}") for number in range(BROKERS + 1)]
        self.lives: dict[int, tuple[int, SimulatedLife]] = {}
        self.parts: dict[int, BrokerPart] = {}
        self.supervisor: SupervisorPart | None = None
        self.supervisor_process: SimulatedProcess | None = None
        self.is_healed = False
        self.met: Counter[str] = Counter()
        self.trace = hashlib.sha256()
        self.digest = ""
        self.is_late = self.random.random() < 2 / 3 or rates is not None
        slack_ms = LATE_MS if self.is_late else PROMPT_MS
        self.is_scheduling = self.random.random() < 0.5
        self.hub, self.tokens = SeenHub(), SeenTokens()
        self.orders = SeenQueue(ORDERS, has_ids=self.random.random() < 0.5, slack_ms=slack_ms)
        self.turns = SeenQueue(TURNS, has_sessions=True, slack_ms=slack_ms)
        self.feed = [
            SeenQueue(FEED_ALL, sent_to=FEED, slack_ms=slack_ms),
            SeenQueue(FEED_ODD, sent_to=FEED, slack_ms=slack_ms, kind=KINDS[0]),
        ]
        self.queues = {queue.name: queue for queue in (self.orders, self.turns, *self.feed)}
        self.catalog, self.faults = CatalogChanges(self), Faults(self)
        self.violation: Violation | None = None
        self._lives = 0
        self._faults: list[dict[str, Any]] = []

    # What clients know

    @property
    def now_ms(self) -> int:
        return self.processes.now_ms

    def note(self, text: str) -> None:
        self.trace.update(f"{self.now_ms} {text}\n".encode())

    def gateway_of(self, client: str) -> SimulatedProcess | None:
        ends = [end for end in self.network.ends if end.name == client and not end.is_closing()]
        return ends[-1].peer.process if ends else None

    def found(self, violation: Violation) -> None:
        """A promise is broken, which was seen where raising would reach the service."""
        self.violation = self.violation or violation

    def _expect_whole(self) -> None:
        if self.violation is not None:
            raise self.violation

    # A life

    def run(self) -> None:
        """Play it to its end."""
        self.loop.set_exception_handler(lambda _, context: self._faults.append(context))
        try:
            self.loop.run_until_complete(self._live())
        finally:
            self.processes.close()
            self.loop.close()
        if self._faults:
            raise AssertionError(f"a fault of the service: {self._faults[0]}") from self._faults[0].get("exception")
        for process in self.processes.ended:
            self.trace.update(process.env.trace.digest())
        for disk in self.disks:
            self.trace.update(disk.trace.digest())
            for plan in disk.plans:
                self.met[plan.fault.name] += plan.fired
        self.met[CHANGED] = self.catalog.answered
        self.digest = self.trace.hexdigest()

    async def _live(self) -> None:
        await asyncio.wait_for(self._supervise(), READY_S)
        self._place()
        await put_tokens()
        tasks = self._clients()
        changes = self.loop.create_task(self.catalog.run(), name="catalog")
        await self.faults.run()
        self.catalog.is_over = True
        await changes
        self._heal()
        await self._until_done(tasks)
        await self._check()

    def _clients(self) -> list[asyncio.Task[None]]:
        hub, orders, turns = self.hub, self.orders, self.turns
        works = {
            "publisher": publish(self, hub, LEAST_ACCEPTED),
            **{f"reader {number}": read(self, hub, hub.partitions[number]) for number in range(PARTITIONS)},
            "o": Sending(self, [orders], "o", LEAST_ACCEPTED).run(),
            "t": Sending(self, [turns], "t", LEAST_ACCEPTED).run(),
            "f": Sending(self, self.feed, "f", LEAST_ACCEPTED).run(),
            **{name: receive(self, orders, name) for name in ("orders 1", "orders 2")},
            **{name: hold_sessions(self, turns, name) for name in ("turns 1", "turns 2")},
            **{f"feed {number}": receive(self, each, f"feed {number}") for number, each in enumerate(self.feed, 1)},
            **{name: move_tokens(self, self.tokens, name) for name in ("mover 1", "mover 2")},
        }
        assert set(works) == set(CLIENTS)
        return [self.loop.create_task(work, name=name) for name, work in works.items()]

    async def _until_done(self, tasks: list[asyncio.Task[None]]) -> None:
        await asyncio.wait(tasks, timeout=DONE_S, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done():
                task.result()
        self._expect_whole()
        late = [task.get_name() for task in tasks if not task.done()]
        if late:
            raise Violation(f"T3: not done {DONE_S:.0f} s after the world was healed: {', '.join(late)}")

    async def _check(self) -> None:
        await self.catalog.settle()
        self._expect_whole()
        # What is scheduled, and nobody was told of it, has another number from its time on.
        await asyncio.sleep(LATEST_SCHEDULE_MS / 1_000)
        async with QueueClient.from_connection_string(CONNECTION_STRING, timeout_s=TIMEOUT_S) as client:
            for queue in self.queues.values():
                queue.history.left(await left_in(client, queue.name), self.now_ms)
        self._expect_copies()
        await check_tokens(self, self.tokens)
        for partition in self.hub.partitions:
            wrong = await read_again(partition)
            if wrong:
                raise Violation(f"P1 to P4: {wrong[0]}")

    def _expect_copies(self) -> None:
        """Of what nobody answered for, each subscription has its copies, or none has any."""
        whole, part = (queue.history for queue in self.feed)
        for group in part.groups:
            if whole.is_there(group) is not part.is_there(group):
                raise Violation(f"P2: group {group} is in one of {FEED_ALL} and {FEED_ODD}, and not in the other one")

    # Processes

    async def _supervise(self) -> None:
        """Begin the supervisor's process; returns when it serves."""
        process = self._begin(SUPERVISOR, BROKERS)
        self.supervisor_process = process
        ready: asyncio.Future[None] = self.loop.create_future()
        part = process.context.run(SupervisorPart, process, spawn=self._spawn, found=dict(self.lives))
        self.supervisor = part

        def over(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and task.exception() is not None and not ready.done():
                ready.set_exception(task.exception() or AssertionError)

        def serves() -> None:
            if not ready.done():
                ready.set_result(None)

        rule = AuthorizationRuleDescription(GUEST, Rights.SEND, Secret("key 0"), Secret(""))
        started = part.start(_entities(self.orders.has_ids), rule, self.catalog.keeper_came, serves)
        process.start(started).add_done_callback(over)
        await ready

    def _spawn(self, index: int) -> tuple[int, SimulatedLife]:
        """The supervisor starts a broker process."""
        name = broker_name(index)
        if any(process.name == name for process in self.processes.alive):
            self.found(Violation(f"R14: {name} is started, and owns its store already"))
        process = self._begin(name, index)
        process_id = 1_000 + self._lives
        life = SimulatedLife(process, self._killed)
        self.lives[index] = process_id, life

        def begin() -> None:
            part = self.parts[index] = BrokerPart(process, self.network, index, process_id)
            part.orders.take(self._ordered)

        process.context.run(process.call, begin)
        return process_id, life

    def _begin(self, name: str, place: int) -> SimulatedProcess:
        self._lives += 1
        return self.processes.begin(
            name, self.disks[place], f"{self.seed} {self._lives}", jumped_ms=self.faults.jumped_ms[place]
        )

    def _killed(self, process: SimulatedProcess) -> None:
        """The supervisor kills a broker process."""
        self.met[KILLED] += 1
        self.processes.end(process)

    def _ended(self, process: SimulatedProcess) -> None:
        self.note(f"{process.name} ended")
        self.network.died(process)
        for index, (_, life) in tuple(self.lives.items()):
            if life.process is process:
                del self.lives[index]
                self._count_strikes(self.parts.pop(index, None))
                life.is_over()
        if process is self.supervisor_process:
            self.supervisor = self.supervisor_process = None
            self.loop.call_soon(self._come_back, context=_nobody())

    def _come_back(self) -> None:
        """The supervisor is away for a while; healed, it comes at once."""
        if not self.is_healed:
            self.loop.call_later(self.random.uniform(0.5, 5.0), self._supervise_again)
        else:
            self._supervise_again()

    def _supervise_again(self) -> None:
        if self.supervisor is None and not self.loop.is_closed():
            task = self.loop.create_task(self._supervise(), name="supervisor")
            task.add_done_callback(self._supervised)

    def _supervised(self, task: asyncio.Task[None]) -> None:
        """What ends a start of it, as an error of its disk, ends its process: it is started again."""
        if task.cancelled() or task.exception() is None:
            return
        self.note(f"the supervisor does not start: {type(task.exception()).__name__}")
        if self.supervisor_process is not None:
            self.processes.end(self.supervisor_process)

    # What ends

    def fragment_opened(self, entity: str, number: int, secret: bytes) -> None:
        self.tokens.opened(entity, number, secret)
        queue = self.queues.get(entity)
        if queue is not None:
            self.note(f"{entity} {number} opened")
            try:
                queue.opened(number, secret)
            except Violation as violation:
                self.found(violation)

    def link_ended(self, node: QueueReceiverNode) -> None:
        """A gateway ends a link, or hears of its end."""
        queue = self.queues.get(node.entity)
        if queue is not None and node.session_id is not None:
            queue.link_ended(node.host.peer, current_process(), node.link.name, node.session_id)

    def _stream_ended(self, end: StreamEnd, peer: StreamEnd) -> None:
        """What was open over it is over for its broker, or its gateway, which may not know yet."""
        asker = end if end.asks or end.process is None else peer
        for queue in self.queues.values():
            if asker.process is None:
                name = asker.name
                queue.broke(("client", name), lambda client, gateway, fragment, name=name: client == name)
            elif asker.asks.startswith(BROKER_SOCKET):
                store = int(asker.asks[len(BROKER_SOCKET)])
                queue.broke(("way", asker.name, store), partial(_goes_over, asker.process, queue, store))

    def _place(self) -> None:
        """Which store has which fragment."""
        assert self.supervisor is not None and self.supervisor.gateway is not None
        for queue in self.queues.values():
            entity = self.supervisor.gateway.namespace.get(queue.sent_to, MessagingDescription)
            assert len(entity.placements) == FRAGMENTS
            queue.stores = tuple(placement.store_index for placement in entity.placements)

    # Its end

    def _heal(self) -> None:
        self.note("healed")
        self.is_healed = True
        self.network.heal()
        for disk in self.disks:
            disk.heal()
        self._ordered = StandingOrders(2)
        for part in self.parts.values():
            self._count_strikes(part)
            part.orders.take(self._ordered)
        self._supervise_again()

    def _count_strikes(self, part: BrokerPart | None) -> None:
        self.met.update({} if part is None else part.orders.struck.get(NAMESPACE, {}))


def _goes_over(
    process: SimulatedProcess,
    queue: SeenQueue,
    store: int,
    client: str,
    gateway: SimulatedProcess | None,
    fragment: int,
) -> bool:
    return gateway is process and queue.stores[fragment] == store


def _nobody() -> contextvars.Context:
    return contextvars.Context()


def _entities(has_ids: bool) -> list[Any]:
    delivery = DeliverySettings(lock_duration=WrittenDuration(LOCK_MS, "PT45S"), max_delivery_count=1_000)
    storage = StorageSettings(is_partitioned=True)
    return [
        EventHubDescription(HUB, PARTITIONS),
        QueueDescription(
            ORDERS,
            delivery=delivery,
            storage=StorageSettings(
                is_partitioned=True,
                requires_duplicate_detection=has_ids,
                duplicate_window=WrittenDuration(WINDOW_MS, "PT1M"),
            ),
        ),
        QueueDescription(TURNS, delivery=_with_sessions(delivery), storage=storage),
        TopicDescription(FEED, storage),
        SubscriptionDescription(FEED_ALL, delivery),
        SubscriptionDescription(
            FEED_ODD,
            delivery,
            first_rule=SubscriptionRuleDescription("odd", SqlFilterDescription(f"kind = '{KINDS[0]}'")),
        ),
        QueueDescription(ONE, delivery=delivery, storage=storage),
        QueueDescription(TWO, delivery=delivery),
        TopicDescription(NEWS, storage),
        SubscriptionDescription(PLACES[NEWS], delivery),
    ]


def _with_sessions(delivery: DeliverySettings) -> DeliverySettings:
    return replace(delivery, requires_session=True)


def play(seed: int, rates: FaultRates | None = None) -> WholeWorld:
    """A whole history."""
    with pytest.MonkeyPatch.context() as patch:
        world = WholeWorld(seed, rates)
        set_clocks(patch, world.processes.monotonic_ms, lambda: START_MS + world.now_ms)
        patch.setattr("hubweir.broker.remote_broker.connect_unix", world.network.connect)
        patch.setattr("hubweir.broker.shared_broker.UnixListener", world.network.listen)
        patch.setattr("hubweir.namespace.messaging_tier.STANDARD_FRAGMENTS", FRAGMENTS)
        patch.setattr(Fragment, "__init__", _telling(world, Fragment.__init__))
        patch.setattr(QueueReceiverNode, "closed", _telling_of_ends(world, QueueReceiverNode.closed))
        world.run()
    return world


def _telling(world: WholeWorld, make: Callable[..., None]) -> Callable[..., None]:
    def made(
        fragment: Fragment, *arguments: Any, entity: str, secret: bytes, fragment_number: int = 0, **how: Any
    ) -> None:
        make(fragment, *arguments, entity=entity, secret=secret, fragment_number=fragment_number, **how)
        world.fragment_opened(entity, fragment_number, secret)

    return made


def _telling_of_ends(world: WholeWorld, close: Callable[..., None]) -> Callable[..., None]:
    def closed(node: QueueReceiverNode) -> None:
        world.link_ended(node)
        close(node)

    return closed
