"""One broker process as its supervisor keeps it: started, found or ended, and started again whenever it ends.

A process that ends is started again at once; one that ends again and again, ever later, up to every 5 s. One that says
nothing for long, or does not follow the keeper, is killed, and waited for until it is gone: never are there two owners
of a store (rule R14). A store of it that is away keeps it from nothing; the logs of a store are opened whenever that
comes.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hubweir.broker.commands.broker_process import (
    AskProcess,
    BrokerFault,
    ChangeSettings,
    LetClientsGo,
    MarkStore,
    ProcessTold,
    StandingAlarm,
    TakeClients,
)
from hubweir.broker.commands.command import Answer, Command, nobody_waits
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.testcontrol import KeepOrders, OrdersKept, StandingOrders
from hubweir.broker.remote_broker import RemoteBroker
from hubweir.drivers.tasks import Tasks
from hubweir.drivers.watched_process import WatchedProcess
from hubweir.env import Env
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.status import ask_in_time
from hubweir.service.completions import answer
from hubweir.service.heartbeat import Heartbeat
from hubweir.service.process_end import ProcessEnd

logger = logging.getLogger(__name__)

FIRST_DELAY_S, LAST_DELAY_S = 0.05, 5.0
STEADY_S = 10.0  # who lived so long starts again at once
_SIGNALS = {BrokerFault.KILL: signal.SIGKILL, BrokerFault.STALL: signal.SIGSTOP}
ORDER_MS = 200  # who ordered it may be connected to that very process, and is answered first
ORDERS_S = 20.0  # one that stalls is killed within 13 s


class SupervisedProcess:
    """See the module's text. index: 0 … number of processes - 1. life: the process that there is now, or that ended
    in the service's stop. stores: of it.

    was_up: the life that ended last could be reached before. unserved: why that life was killed, where it never came
    to take clients; else "". has_left: in the service's stop it left a disk that hangs, or had to be killed; what came
    of an order before is none of that stop's.
    """

    def __init__(
        self,
        index: int,
        env: Env,
        door: RemoteBroker,
        brokers: Sequence[RemoteBroker],
        *,
        stores: Sequence[int],
        spawn: Callable[[], tuple[int, WatchedProcess]],
        on_up: Callable[[Sequence[int]], Coroutine[Any, Any, None]],
        on_change: Callable[[], None],
        on_ended: Callable[[SupervisedProcess], None],
        is_kept: Callable[[], bool] = lambda: True,
        question: Callable[[], AskProcess] = AskProcess,
        orders: Callable[[], StandingOrders] = StandingOrders,
        clients_s: float = 0.0,
    ) -> None:
        """door, brokers: the ways to the process itself and to the brokers that it has, connected by whoever made them;
        stores: of those.

        spawn: starts it, and says under which process id. on_up: of these of its stores; waited for when the process
        can be reached, before it takes clients, and later whenever one of them comes. is_kept: the keeper can be
        followed. on_change: called when it serves, and whenever `is_up` may be another thing. question: what it is
        asked twice a second, with what it is told of the other processes. orders: of tests that stand now.
        clients_s: what its clients may take of its end, where they were not let go before.
        """
        self.index = index
        self.process_id = 0
        self.life: WatchedProcess | None = None
        self.is_serving = self.was_up = self.has_left = False
        self.unserved = ""
        self.starts = 0
        self._env = env
        self._door = door
        self._brokers = tuple(brokers)
        self._spawn = spawn
        self._on_up = on_up
        self._on_change = on_change
        self._on_ended = on_ended
        self._is_kept = is_kept
        self._question = question
        self._orders = orders
        self._end = ProcessEnd(index, env, clients_s)
        self._has_opened = False  # in this life, what was there
        self._is_asked = False  # to take clients, and has not said yet that it does
        self._tasks = Tasks(f"broker process {index}")
        self.stores = tuple(stores)
        self._heart: Heartbeat | None = None
        self._to_end: WatchedProcess | None = None  # the life that was ordered to stop last
        self._may_live = asyncio.Event()  # not after it was stopped by order
        self._may_live.set()
        self._changed = asyncio.Event()
        for way in (door, *brokers):
            way.on_change(lambda _: self._changed.set())
        door.on_change(self._door_changed)
        for store, broker in zip(stores, brokers, strict=True):
            broker.on_change(partial(self._store_changed, store))

    @property
    def is_up(self) -> bool:
        """Whether it can be reached, and so can each of its brokers whose store is not away."""
        ways = zip(self.stores, self._brokers, strict=True)
        return self._door.is_up and all(broker.is_up or store in self.away for store, broker in ways)

    @property
    def away(self) -> tuple[int, ...]:
        """Those of its stores that are not served, as it said last."""
        heart = self._heart
        return () if heart is None or heart.state is None else heart.state.away

    @property
    def alarms(self) -> tuple[StandingAlarm, ...]:
        """Those that stand there, as it said last; none while it is gone."""
        heart, life = self._heart, self.life
        is_there = life is not None and not life.has_ended
        return heart.state.alarms if is_there and heart is not None and heart.state is not None else ()

    @property
    def has_portal(self) -> bool:
        """Whether people look at the portal there, as it said last, in this life or the one before."""
        heart = self._heart
        return heart is not None and heart.state is not None and heart.state.has_portal

    async def keep(self, found: tuple[int, WatchedProcess] | None = None) -> None:
        """Keep it alive until `stop`. found: one of an earlier supervisor, with its process id."""
        delay_s = FIRST_DELAY_S
        while new := found or await self._spawned():
            began_ms = self._env.machine.monotonic_ms()
            (self.process_id, self.life), found = new, None
            await self._live(self.life)
            if self._env.machine.monotonic_ms() - began_ms > STEADY_S * 1_000:
                delay_s = FIRST_DELAY_S
            if not self._end.is_last:
                await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, LAST_DELAY_S)

    async def let_clients_go(self) -> None:
        """Have it end its connections. From now on it is not started again."""
        self._end.begin_last()
        if self.is_serving:
            self.is_serving = False
            if await self._ask("let its clients go", LetClientsGo()):
                self._end.clients_are_gone()

    def told(self) -> ProcessTold:
        """How it is, for people."""
        life, state = self.life, None if self._heart is None else self._heart.state
        is_there = life is not None and not life.has_ended
        if not is_there:
            how = "starts" if self._may_live.is_set() and not self._end.is_last else "stopped"
        elif life is self._to_end or self._end.is_last:
            how = "stops"  # it may be silent, and still serve
        elif self._heart is not None and self._heart.is_silent:
            how = "silent"
        else:
            how = "serves" if self.is_serving else "starts"
        return ProcessTold(
            self.index,
            life.pid if life is not None and is_there else 0,
            self.stores,
            how,
            state.connections if state is not None and is_there else 0,
            self.starts,
            self.away if is_there else (),
            state.of_namespaces if state is not None and is_there else {},
        )

    def change_settings(self, command: ChangeSettings) -> None:
        """Have it go by other settings; one that is away is started with them."""
        if self._door.is_up:
            self._door.submit(command, self._answered)

    def _answered(self, said: Answer) -> None:
        if isinstance(said, Refusal):
            logger.error("broker process %d: its settings stay as they were: %s", self.index, said.text)

    async def keep_orders(self, orders: StandingOrders) -> OrdersKept | None:
        """Have it go by what tests ordered; None: it is not there, and is told before it takes clients.

        ServiceError TIMED_OUT: it lives, and does not answer.
        """
        if not self._door.is_up:
            return None
        said = await ask_in_time(self._door, KeepOrders(orders), within_s=ORDERS_S)
        if said is None:
            text = f"Broker process {self.index} does not answer: whether it goes by the order is not known."
            raise ServiceError(TIMED_OUT, text)
        return said if isinstance(said, OrdersKept) else None  # its stream ended, and with it the process

    def _door_changed(self, door: RemoteBroker) -> None:
        """It came: what was ordered since it was started, or before its supervisor was, reaches it first of all."""
        if door.is_up and self._orders().version:
            # One that ends meanwhile is told again when it is back.
            door.submit(KeepOrders(self._orders()), nobody_waits)

    def mark(self, command: MarkStore, on_answer: Callable[[Answer], None]) -> None:
        """Have it take a store away, or bring it back, for a test."""
        logger.warning("store %d is %s, by order", command.store, "taken away" if command.is_away else "brought back")
        self._door.submit(command, on_answer)

    def order(self, fault: BrokerFault) -> None:
        """Do what a user ordered for a test."""
        logger.warning("broker process %d: %s, by order", self.index, fault.value)
        if fault is BrokerFault.START:
            self._may_live.set()
        elif fault is BrokerFault.STOP:
            self._may_live.clear()
            self._to_end = self.life
        if self.life is not None and fault is not BrokerFault.START:
            self._env.machine.call_later(ORDER_MS, partial(self._follow, fault, self.life))

    async def stop(self) -> None:
        """End it, and wait until it is gone."""
        self._end.begin_last()
        self._may_live.set()
        await self._tasks.stop()
        if self.life is not None:
            await self._ended(self.life)

    def kill(self) -> None:
        """Have the system end it, if it is there; in any thread."""
        if self.life is not None:
            with suppress(OSError):  # it ends at this very moment
                self.life.send(signal.SIGKILL)

    # Inside

    def _follow(self, fault: BrokerFault, life: WatchedProcess) -> None:
        if fault is not BrokerFault.STOP:
            life.send(_SIGNALS[fault])
        elif not (life.has_ended or self._end.is_last):
            self._tasks.start(self._ended(life), name="end by order")

    async def _ended(self, life: WatchedProcess) -> None:
        """End a life, and wait until it is gone."""
        if self._heart is not None:
            self._heart.stop()  # it answers no more while its stores write what is pending
        left = await self._end.of(life)
        self.has_left = self.has_left or (left and self._end.is_last)

    async def _live(self, life: WatchedProcess) -> None:
        """One life, from its start to its end."""
        self.starts += 1
        life.when_ended(self._changed.set)
        heart = self._heart = Heartbeat(
            self._env,
            self._door,
            self._lost,
            on_state=self._told_state,
            is_kept=self._is_kept,
            is_asked=lambda: self._is_asked,
            question=self._question,
        )
        heart.start()
        # Its end is noticed whatever is waited for: its logs may wait for processes that are not there yet.
        serve_no_longer = self._tasks.start(self._serve(life), name="serve")
        await life.ended()
        serve_no_longer()
        heart.stop()
        self.is_serving, self.was_up, self._has_opened, self._is_asked = False, self._has_opened, False, False
        self.unserved = heart.lost if heart.is_unserved else ""
        self._on_ended(self)
        if not self._end.is_last:
            self.life = None
            if life is not self._to_end:
                logger.error("broker process %d ended: %s", self.index, life.how_it_ended)

    async def _spawned(self) -> tuple[int, WatchedProcess] | None:
        """A new life. The system may have no room for one now. None: the service stops, and nobody would end it."""
        while True:
            await self._may_live.wait()  # the order may have come while it waited for room
            if self._end.is_last:
                return None
            try:
                return self._spawn()
            except OSError as error:
                logger.error("broker process %d cannot be started now: %s", self.index, error)
                await asyncio.sleep(LAST_DELAY_S)

    async def _serve(self, life: WatchedProcess) -> None:
        """Have it take clients as soon as it can be reached; comes back at once when it ends before.

        It is asked until it does so, ever later, up to every 5 s: the way to it may break before it answers.
        """
        await self._reached(life)
        if life.has_ended or self._end.is_last:
            return
        self._has_opened = True
        await self._on_up(self._there())
        self._is_asked, delay_s = True, FIRST_DELAY_S
        while not (life.has_ended or self._end.is_last):
            if await self._ask("take clients", TakeClients()):
                self.is_serving, self._is_asked = True, False
                self._on_change()
                return
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, LAST_DELAY_S)
            await self._reached(life)

    async def _reached(self, life: WatchedProcess) -> None:
        """Returns when it can be reached, or has ended."""
        while not self.is_up and not life.has_ended:
            self._changed.clear()
            await self._changed.wait()

    async def _ask(self, what: str, command: Command) -> bool:
        """Whether it did so; the log says why not. what: the command does, in words."""
        said = await answer(partial(self._door.submit, command))
        if isinstance(said, Refusal):
            logger.error("broker process %d does not %s: %s", self.index, what, said.text)
        return not isinstance(said, Refusal)

    def _told_state(self) -> None:
        """Whether it is up may be another thing now: a store that it says is away is not waited for."""
        self._changed.set()
        self._on_change()

    def _there(self) -> tuple[int, ...]:
        """Those of its stores whose brokers can be reached."""
        return tuple(store for store, broker in zip(self.stores, self._brokers, strict=True) if broker.is_up)

    def _store_changed(self, store: int, broker: RemoteBroker) -> None:
        if broker.is_up and self._has_opened and not self._end.is_last:
            self._tasks.start(self._on_up((store,)), name=f"store {store}")

    def _lost(self, why: str) -> None:
        logger.error("broker process %d %s: it is killed", self.index, why)
        self.has_left = self.has_left or self._end.is_last
        if self.life is not None:
            self.life.send(signal.SIGKILL)
