"""Orders of tests at a process that has a supervisor: what is asked of it, and what a client hears of each answer."""

from __future__ import annotations

import asyncio

import pytest

from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.commands.testcontrol import AskControl, ControlTold, FaultRates, ForwardClock, OrderFaultRates
from hubweir.errors import ARGUMENT_ERROR, INTERNAL_ERROR, STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.gateway import asked_orders
from hubweir.gateway.asked_orders import AskedOrders
from hubweir.gateway.brokers import OnPush

TOLD = ControlTold(5_000, None, {"drop": 2})
RATES = FaultRates(drop=0.5)


class Supervisor:
    """answer: what it says to everything; None: nothing."""

    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.is_up = True
        self.asked: list[Command] = []

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        self.asked.append(command)
        if self.answer is not None:
            on_answer(self.answer)

    def listen(self, on_push: OnPush) -> None:
        """It pushes nothing here."""


def test_each_order_is_asked_of_the_supervisor_and_its_answer_is_told() -> None:
    supervisor = Supervisor(TOLD)
    orders = AskedOrders(supervisor)

    async def ask() -> list[ControlTold]:
        return [
            await orders.forward("space", 5_000, ends_tokens=True),
            await orders.order_faults("space", RATES),
            await orders.told("space"),
        ]

    assert asyncio.run(ask()) == [TOLD] * 3
    wanted = [ForwardClock("space", 5_000, True), OrderFaultRates("space", RATES), AskControl("space")]
    assert supervisor.asked == wanted


@pytest.mark.parametrize(
    ("answer", "condition"),
    [
        (Refusal(ARGUMENT_ERROR, "no such namespace"), ARGUMENT_ERROR),
        (Refusal(STORE_OFFLINE, "the stream ended", known=False), TIMED_OUT),
        (None, TIMED_OUT),
        (Done(), INTERNAL_ERROR),
    ],
)
def test_an_order_that_was_not_carried_out_for_certain_is_an_error(
    monkeypatch: pytest.MonkeyPatch, answer: Answer | None, condition: object
) -> None:
    monkeypatch.setattr(asked_orders, "ANSWER_S", 0.01)
    with pytest.raises(ServiceError) as refused:
        asyncio.run(AskedOrders(Supervisor(answer)).told("space"))
    assert refused.value.condition is condition


def test_while_the_supervisor_is_away_nothing_is_ordered() -> None:
    supervisor = Supervisor(TOLD)
    supervisor.is_up = False
    with pytest.raises(ServiceError, match="nothing was ordered") as refused:
        asyncio.run(AskedOrders(supervisor).forward("space", 1, ends_tokens=False))
    assert refused.value.condition is STORE_OFFLINE and supervisor.asked == []
