"""A supervisor's answers to broker processes: as the keeper of the catalogs, and about the processes themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from hubweir.alarms import Alarms
from hubweir.auth.sign_in_ledger import SignInLedger
from hubweir.broker.commands.broker_process import AskMeasures, AskProcesses, MarkStore, OrderFault, ProcessesTold
from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.broker.commands.keeper import (
    AskRestore,
    CreateNamespace,
    DeleteNamespace,
    FollowNamespaces,
    NamespacesApplied,
    RestoreNamespace,
)
from hubweir.broker.commands.process import CloseOwner, Done
from hubweir.broker.commands.sign_in import AskSession, EndSession, SessionTold, SignInSucceeded, SignInTried, TrySignIn
from hubweir.broker.commands.status import alarms_told
from hubweir.broker.commands.testcontrol import AskControl, ForwardClock, OrderFaultRates
from hubweir.broker.refusals import refusal_of
from hubweir.broker.server import CommandTarget
from hubweir.drivers.tasks import Tasks
from hubweir.errors import NOT_FOUND, STORE_OFFLINE, ServiceError
from hubweir.gateway.service_orders import Orders
from hubweir.service.namespace_door import NamespaceDoor
from hubweir.service.process_door import answer_measures
from hubweir.service.supervised_process import SupervisedProcess


class SupervisorDoor:
    """A target of commands (broker/server.py), behind keeper.sock. alarms: of the supervisor."""

    def __init__(
        self,
        keeper: CommandTarget,
        processes: Callable[[], Sequence[SupervisedProcess]],
        measure: Callable[[], Awaitable[bytes]],
        alarms: Alarms,
        namespaces: Callable[[], NamespaceDoor | None] = lambda: None,
        *,
        sign_ins: SignInLedger,
        orders: Orders,
    ) -> None:
        """sign_ins: what the portals of all processes know together. orders: of tests, which are judged here.
        namespaces: None as long as the keeper has no gateways: nobody can connect then.
        """
        self._namespaces = namespaces
        self._sign_ins = sign_ins
        self._orders = orders
        self._keeper = keeper
        self._alarms = alarms
        self._processes = processes
        self._measure = measure
        self._tasks = Tasks("what broker processes asked for")

    async def close(self) -> None:
        """Give up what is being answered."""
        await self._tasks.stop()

    @property
    def on_push(self) -> Callable[[Push], None] | None:
        """What the keeper pushes."""
        return self._keeper.on_push

    @on_push.setter
    def on_push(self, on_push: Callable[[Push], None] | None) -> None:
        self._keeper.on_push = on_push

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        match command:
            case AskProcesses():
                told = tuple(process.told() for process in self._processes())
                on_answer(ProcessesTold(told, alarms_told(self._alarms)))
            case AskMeasures():
                self._tasks.start(answer_measures(self._measure, on_answer), name="measures")
            case OrderFault(index=index, fault=fault):
                process = next((each for each in self._processes() if each.index == index), None)
                if process is None:
                    on_answer(refusal_of(ServiceError(NOT_FOUND, f"there is no broker process {index}")))
                else:
                    process.order(fault)
                    on_answer(Done())
            case MarkStore(store=store):
                process = next((each for each in self._processes() if store in each.stores), None)
                if process is None:
                    on_answer(refusal_of(ServiceError(NOT_FOUND, f"there is no messaging store {store}")))
                else:
                    process.mark(command, on_answer)
            case ForwardClock() | OrderFaultRates() | AskControl():
                self._tasks.start(self._answer_order(command, on_answer), name="an order of a test")
            case TrySignIn(peer=peer):
                on_answer(SignInTried(self._sign_ins.try_now(peer)))
            case SignInSucceeded(peer=peer):
                self._sign_ins.succeeded(peer)
                on_answer(Done())
            case AskSession(mark=mark):
                on_answer(SessionTold(self._sign_ins.is_over(mark)))
            case EndSession(mark=mark):
                self._sign_ins.end_session(mark)
                on_answer(Done())
            case (
                FollowNamespaces()
                | NamespacesApplied()
                | CreateNamespace()
                | DeleteNamespace()
                | RestoreNamespace()
                | AskRestore()
            ):
                namespaces = self._namespaces()
                if namespaces is None:
                    on_answer(refusal_of(ServiceError(STORE_OFFLINE, "The namespaces are not known yet. Try again.")))
                else:
                    namespaces.submit(command, on_answer)
            case _:
                namespaces = self._namespaces()
                if isinstance(command, CloseOwner) and namespaces is not None:
                    namespaces.left(command.owner.process)
                self._keeper.submit(command, on_answer)

    async def _answer_order(
        self, command: ForwardClock | OrderFaultRates | AskControl, on_answer: Callable[[Answer], None]
    ) -> None:
        orders, namespace = self._orders, command.namespace
        try:
            match command:
                case ForwardClock(by_ms=by_ms, ends_tokens=ends_tokens):
                    on_answer(await orders.forward(namespace, by_ms, ends_tokens=ends_tokens))
                case OrderFaultRates(rates=rates):
                    on_answer(await orders.order_faults(namespace, rates))
                case AskControl():
                    on_answer(await orders.told(namespace))
        except ServiceError as error:
            on_answer(refusal_of(error))
