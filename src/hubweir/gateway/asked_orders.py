"""Orders of tests at a process that has a supervisor, which judges them and has all processes go by them."""

from __future__ import annotations

from hubweir.broker.commands.command import Command
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.testcontrol import AskControl, ControlTold, FaultRates, ForwardClock, OrderFaultRates
from hubweir.errors import STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.status import ask_in_time

# The supervisor waits for processes that stall, until they are killed for it after 10 s or so.
ANSWER_S = 30.0

AWAY = "The process that has all others go by what tests order is away: nothing was ordered. Try again."
UNKNOWN = "Whether all processes go by the order is not known: look at the state, then order again."


class AskedOrders:
    """See the module's text, and Orders of service_orders.py."""

    def __init__(self, supervisor: BrokerClient) -> None:
        self._supervisor = supervisor

    async def forward(self, namespace: str, by_ms: int, *, ends_tokens: bool) -> ControlTold:
        return await self._ask(ForwardClock(namespace, by_ms, ends_tokens))

    async def order_faults(self, namespace: str, rates: FaultRates | None) -> ControlTold:
        return await self._ask(OrderFaultRates(namespace, rates))

    async def told(self, namespace: str) -> ControlTold:
        return await self._ask(AskControl(namespace))

    async def _ask(self, command: Command) -> ControlTold:
        if not self._supervisor.is_up:
            raise ServiceError(STORE_OFFLINE, AWAY)
        said = await ask_in_time(self._supervisor, command, within_s=ANSWER_S)
        if said is None or (isinstance(said, Refusal) and not said.known):
            raise ServiceError(TIMED_OUT, UNKNOWN)
        if not isinstance(said, ControlTold):
            raise error_of(said)
        return said
