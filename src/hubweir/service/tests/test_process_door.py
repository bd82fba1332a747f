"""What a broker process answers its supervisor."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hubweir.broker.commands.broker_process import (
    AskConnections,
    AskMeasures,
    AskProcess,
    ConnectionsTold,
    LetClientsGo,
    MarkStore,
    MeasuresTaken,
    ProcessState,
    StandingAlarm,
    TakeClients,
)
from hubweir.broker.commands.command import Answer, Command, Owner
from hubweir.broker.commands.process import AskCounters, CloseOwner, Done, Refusal
from hubweir.broker.commands.testcontrol import AskOrders, KeepOrders, OrdersKept, OrdersTold, StandingOrders
from hubweir.drivers.listening_socket import AddressTaken
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.service.process_door import ProcessDoor
from hubweir.testing.event_loops import run_on
from hubweir.testing.settable_clock import SettableClock
from hubweir.testing.simulated_env import SimulatedEnv

STATE = ProcessState(1, 0, "d", ("127.0.0.1:1",), 3, is_serving=True, follows=True, away=())


class Process:
    """Waits, when it is asked, until it is let go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.error: Exception | None = None
        self.did: list[str] = []
        self.heard: list[AskProcess] = []
        self.clock = SettableClock()
        self.orders = ProcessOrders(SimulatedEnv(), self.clock)
        self.door = ProcessDoor(
            lambda: STATE,
            {},
            self.orders,
            hear=self.heard.append,
            take_clients=lambda: self._do("take"),
            let_clients_go=lambda: self._do("let go"),
            measure=self._measure,
            connections=lambda asked: ConnectionsTold((), asked.skipped),
        )

    async def _do(self, what: str) -> None:
        self.did.append(what)
        await self.go_on.wait()
        if self.error is not None:
            raise self.error

    async def _measure(self) -> bytes:
        await self._do("measure")
        return b"measured"

    def ask(self, command: Command) -> list[Answer]:
        answers: list[Answer] = []
        self.door.submit(command, answers.append)
        return answers


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        run_on("asyncio", test())

    run.__name__ = test.__name__
    return run


@on_a_loop
async def test_it_says_at_once_how_it_is() -> None:
    process, full = Process(), AskProcess((StandingAlarm("disk-full", "store-2"),), (1, 2))
    assert process.ask(full) == process.ask(AskProcess()) == [STATE]
    assert process.heard == [full, AskProcess()], "and hears each time how the others are"


@on_a_loop
async def test_it_says_who_is_connected() -> None:
    assert Process().ask(AskConnections("a namespace", 7, 50)) == [ConnectionsTold((), 7)]


@on_a_loop
async def test_it_measures_itself_when_it_is_asked() -> None:
    process = Process()
    answers = process.ask(AskMeasures())
    await asyncio.sleep(0)
    assert (process.did, answers) == (["measure"], [])
    process.go_on.set()
    await asyncio.sleep(0.01)
    assert answers == [MeasuresTaken(b"measured")]


@on_a_loop
async def test_clients_are_taken_and_let_go_and_the_answer_comes_when_that_is_done() -> None:
    process = Process()
    answers = process.ask(TakeClients()), process.ask(LetClientsGo())
    await asyncio.sleep(0)
    assert (process.did, answers) == (["take", "let go"], ([], []))
    process.go_on.set()
    await asyncio.sleep(0.01)
    assert answers == ([Done()], [Done()])


@on_a_loop
async def test_what_keeps_it_from_listening_is_the_answer() -> None:
    process = Process()
    process.error = AddressTaken("cannot listen on 127.0.0.1 port 5671")
    answers = process.ask(TakeClients())
    process.go_on.set()
    await asyncio.sleep(0.01)
    assert isinstance(answers[0], Refusal)
    assert answers[0].text == "cannot listen on 127.0.0.1 port 5671"


@on_a_loop
async def test_commands_of_brokers_are_refused_and_the_end_of_a_supervisor_is_nothing() -> None:
    process = Process()
    [refusal] = process.ask(AskCounters())
    assert isinstance(refusal, Refusal)
    assert "takes no AskCounters" in refusal.text
    assert process.ask(CloseOwner(Owner(1, -1))) == [Done()]
    assert process.did == []


@on_a_loop
async def test_the_end_of_the_process_answers_nobody() -> None:
    process = Process()
    answers = process.ask(TakeClients())
    await asyncio.sleep(0)
    await process.door.close()
    assert answers == []


@on_a_loop
async def test_a_store_that_it_does_not_have_is_not_taken_away() -> None:
    [refusal] = Process().ask(MarkStore(3, is_away=True))
    assert isinstance(refusal, Refusal) and refusal.text == "there is no messaging store 3 here"


def test_it_goes_by_what_tests_order_at_once_and_answers_when_its_timers_have_rung() -> None:
    async def scenario() -> None:
        process = Process()
        orders = StandingOrders(1, 60_000, 5)
        answers = process.ask(KeepOrders(orders))
        assert (process.clock.ahead.clock_ms, process.clock.ahead.tokens_ms) == (60_000, 5), "before anything else"
        assert answers == [] and process.clock.waits == 0
        await asyncio.sleep(0.01)
        assert answers == [OrdersKept({})] and process.clock.waits == 1
        assert process.ask(AskOrders()) == [OrdersTold(orders)]
        await process.door.close()

    run_on("asyncio", scenario())
