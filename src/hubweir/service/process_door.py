"""A broker process's own answers to its supervisor and to the others (broker/commands/broker_process.py)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from hubweir.broker.commands.broker_process import (
    AskConnections,
    AskMeasures,
    AskProcess,
    ChangeSettings,
    ConnectionsTold,
    LetClientsGo,
    MarkStore,
    MeasuresTaken,
    ProcessState,
    TakeClients,
)
from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.broker.commands.process import CloseOwner, Done
from hubweir.broker.commands.testcontrol import AskOrders, KeepOrders, OrdersKept, OrdersTold
from hubweir.broker.refusals import refusal_of
from hubweir.drivers.tasks import Tasks
from hubweir.errors import NOT_ALLOWED, HubweirError, ServiceError
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.service.served_store import ServedStore, mark_store


class ProcessDoor:
    """A target of commands (broker/server.py). state: asked at each AskProcess. stores: of the process, by index.

    orders: of tests, as the process goes by them. hear: told of the other processes with each AskProcess.
    """

    def __init__(
        self,
        state: Callable[[], ProcessState],
        stores: Mapping[int, ServedStore],
        orders: ProcessOrders,
        *,
        hear: Callable[[AskProcess], None],
        take_clients: Callable[[], Awaitable[None]],
        let_clients_go: Callable[[], Awaitable[None]],
        measure: Callable[[], Awaitable[bytes]],
        connections: Callable[[AskConnections], ConnectionsTold] = lambda _: ConnectionsTold((), 0),
        change_settings: Callable[[ChangeSettings], None] = lambda _: None,
    ) -> None:
        self.on_push: Callable[[Push], None] | None = None
        self._state = state
        self._hear = hear
        self._stores = stores
        self._orders = orders
        self._take_clients = take_clients
        self._let_clients_go = let_clients_go
        self._measure = measure
        self._connections = connections
        self._change_settings = change_settings
        self._tasks = Tasks("what the supervisor asked for")

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        match command:
            case AskProcess():
                self._hear(command)
                on_answer(self._state())
            case TakeClients():
                self._tasks.start(self._answer_when(self._take_clients(), on_answer), name="take clients")
            case LetClientsGo():
                self._tasks.start(self._answer_when(self._let_clients_go(), on_answer), name="let clients go")
            case ChangeSettings():
                self._change_settings(command)
                on_answer(Done())
            case AskMeasures():
                self._tasks.start(answer_measures(self._measure, on_answer), name="measures")
            case AskConnections():
                on_answer(self._connections(command))
            case KeepOrders(orders=orders):
                self._orders.take(orders)
                self._tasks.start(self._orders_kept(on_answer), name="orders of tests")
            case AskOrders():
                on_answer(OrdersTold(self._orders.standing))
            case MarkStore():
                mark_store(self._stores, command, on_answer)
            case CloseOwner():
                on_answer(Done())  # nothing here belongs to anybody
            case _:
                text = f"a broker process itself takes no {type(command).__name__}; its brokers may"
                on_answer(refusal_of(ServiceError(NOT_ALLOWED, text)))

    async def close(self) -> None:
        """Give up what is being answered."""
        await self._tasks.stop()

    async def _orders_kept(self, on_answer: Callable[[Answer], None]) -> None:
        await self._orders.rung()
        on_answer(OrdersKept(self._orders.struck))

    async def _answer_when(self, done: Awaitable[None], on_answer: Callable[[Answer], None]) -> None:
        try:
            await done
        except (HubweirError, OSError) as error:
            on_answer(refusal_of(error))
        else:
            on_answer(Done())


async def answer_measures(measure: Callable[[], Awaitable[bytes]], on_answer: Callable[[Answer], None]) -> None:
    """Answer AskMeasures, a few turns of the loop later."""
    on_answer(MeasuresTaken(await measure()))
