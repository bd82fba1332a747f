"""What a supervisor answers broker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hubweir.alarms import Alarms
from hubweir.auth.lockout import FIRST_WAIT_MS, FREE_FAILURES
from hubweir.auth.sign_in_ledger import SignInLedger
from hubweir.broker.commands.broker_process import (
    AskMeasures,
    AskProcesses,
    BrokerFault,
    MarkStore,
    MeasuresTaken,
    OrderFault,
    ProcessesTold,
    ProcessTold,
)
from hubweir.broker.commands.command import Answer, Command, Owner, Push
from hubweir.broker.commands.process import CloseOwner, Done, Refusal
from hubweir.broker.commands.sign_in import AskSession, EndSession, SessionTold, SignInSucceeded, SignInTried, TrySignIn
from hubweir.broker.commands.testcontrol import AskControl, ControlTold, FaultRates, ForwardClock, OrderFaultRates
from hubweir.counters import Counters
from hubweir.errors import NOT_ALLOWED, NOT_FOUND, ServiceError
from hubweir.service.supervisor_door import SupervisorDoor
from hubweir.testing.simulated_env import SimulatedEnv


async def measured() -> bytes:
    return b"measured"


class Keeper:
    def __init__(self) -> None:
        self.on_push: Callable[[Push], None] | None = None
        self.asked: list[Command] = []

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        self.asked.append(command)
        on_answer(Done())


class Orders:
    """Keeps what is ordered; a namespace "real" takes none."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    async def forward(self, namespace: str, by_ms: int, *, ends_tokens: bool) -> ControlTold:
        return self._hear(namespace, by_ms, ends_tokens)

    async def order_faults(self, namespace: str, rates: FaultRates | None) -> ControlTold:
        return self._hear(namespace, rates)

    async def told(self, namespace: str) -> ControlTold:
        return self._hear(namespace)

    def _hear(self, *what: Any) -> ControlTold:
        self.heard.append(what)
        if what[0] == "real":
            raise ServiceError(NOT_ALLOWED, "not there")
        return ControlTold(len(self.heard), None, {})


class Kept:
    """Stands for a SupervisedProcess."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.stores = (index, index + 2)
        self.orders: list[BrokerFault] = []
        self.marks: list[MarkStore] = []

    def told(self) -> ProcessTold:
        return ProcessTold(self.index, 100 + self.index, (self.index,), "serves", 2, 1, ())

    def mark(self, command: MarkStore, on_answer: Callable[[Answer], None]) -> None:
        self.marks.append(command)
        on_answer(Done())

    def order(self, fault: BrokerFault) -> None:
        self.orders.append(fault)


def world() -> tuple[Any, list[Any], Callable[[Command], Answer]]:
    keeper, kept = Keeper(), [Kept(0), Kept(1)]
    alarms = Alarms(SimulatedEnv(1), Counters())
    door = SupervisorDoor(
        keeper, lambda: kept, measured, alarms, sign_ins=SignInLedger(SimulatedEnv(1)), orders=Orders()
    )  # type: ignore[arg-type, return-value]

    def ask(command: Command) -> Answer:
        answers: list[Answer] = []
        door.submit(command, answers.append)
        [answer] = answers
        return answer

    keeper.door = door  # type: ignore[attr-defined]
    return keeper, kept, ask


def test_it_tells_of_all_processes() -> None:
    _, kept, ask = world()
    assert ask(AskProcesses()) == ProcessesTold(tuple(each.told() for each in kept))


def test_a_fault_goes_to_the_process_that_it_is_for() -> None:
    _, kept, ask = world()
    assert ask(OrderFault(1, BrokerFault.KILL)) == Done()
    assert [each.orders for each in kept] == [[], [BrokerFault.KILL]]
    refusal = ask(OrderFault(2, BrokerFault.KILL))
    assert isinstance(refusal, Refusal)
    assert (refusal.condition, refusal.text) == (NOT_FOUND, "there is no broker process 2")


def test_everything_else_is_the_keepers_also_its_pushes() -> None:
    keeper, _, ask = world()
    gone = CloseOwner(Owner(1, -1))
    assert ask(gone) == Done()
    assert keeper.asked == [gone]
    heard: list[Push] = []
    keeper.door.on_push = heard.append
    assert keeper.on_push == keeper.door.on_push == heard.append


def test_a_mark_goes_to_the_process_that_has_the_store() -> None:
    _, kept, ask = world()
    mark = MarkStore(3, is_away=True)
    assert ask(mark) == Done()
    assert [each.marks for each in kept] == [[], [mark]]
    refusal = ask(MarkStore(4, is_away=True))
    assert isinstance(refusal, Refusal)
    assert (refusal.condition, refusal.text) == (NOT_FOUND, "there is no messaging store 4")


def test_it_measures_itself_when_a_broker_process_asks() -> None:
    async def scenario() -> None:
        alarms, answers = Alarms(SimulatedEnv(1), Counters()), list[Answer]()
        door = SupervisorDoor(
            Keeper(), lambda: [], measured, alarms, sign_ins=SignInLedger(SimulatedEnv(1)), orders=Orders()
        )
        door.submit(AskMeasures(), answers.append)
        await asyncio.sleep(0.01)
        assert answers == [MeasuresTaken(b"measured")]
        await door.close()

    asyncio.run(scenario())


def test_it_knows_for_all_processes_who_failed_to_sign_in_and_who_signed_out() -> None:
    keeper, _, ask = world()
    for _ in range(FREE_FAILURES):
        assert ask(TrySignIn("10.0.0.1")) == SignInTried(0)
    assert ask(TrySignIn("10.0.0.1")) == SignInTried(FIRST_WAIT_MS) and ask(TrySignIn("10.0.0.2")) == SignInTried(0)
    assert ask(SignInSucceeded("10.0.0.1")) == Done() and ask(TrySignIn("10.0.0.1")) == SignInTried(0)
    assert ask(AskSession("mark")) == SessionTold(is_over=False)
    assert ask(EndSession("mark")) == Done() and ask(AskSession("mark")) == SessionTold(is_over=True)
    assert ask(AskSession("other")) == SessionTold(is_over=False) and not keeper.asked


def test_what_tests_order_is_judged_here_and_refusals_go_back() -> None:
    async def scenario() -> None:
        alarms, answers, orders = Alarms(SimulatedEnv(1), Counters()), list[Answer](), Orders()
        door = SupervisorDoor(
            Keeper(), lambda: [], measured, alarms, sign_ins=SignInLedger(SimulatedEnv(1)), orders=orders
        )
        rates = FaultRates(drop=0.5)
        for command in (
            ForwardClock("a", 5, ends_tokens=True), OrderFaultRates("b", rates), OrderFaultRates("b", None),
            AskControl("c"), AskControl("real"),
        ):  # fmt: skip
            door.submit(command, answers.append)
            await asyncio.sleep(0.01)
        assert orders.heard == [("a", 5, True), ("b", rates), ("b", None), ("c",), ("real",)]
        assert answers[:4] == [ControlTold(number, None, {}) for number in (1, 2, 3, 4)]
        assert answers[4:] == [Refusal(NOT_ALLOWED, "not there")]
        await door.close()

    asyncio.run(scenario())
