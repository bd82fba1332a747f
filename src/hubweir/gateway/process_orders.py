"""Orders of tests, as one process goes by them: its clock is set forward, its links are struck by faults."""

from __future__ import annotations

from typing import Protocol

from msgspec import structs

from hubweir.broker.commands.testcontrol import StandingOrders
from hubweir.env import Ahead, Env
from hubweir.gateway.faults import Faults

# A hundred thousand locks that end at once take less.
RUNG_S = 5.0


class ProcessClock(Protocol):
    """The clock of a process; see drivers/service_clock.py."""

    ahead: Ahead

    def forward(self, by_ms: int, *, tokens_by_ms: int = 0) -> None: ...

    async def rung(self, *, limit_s: float) -> None: ...


class ServedNamespace(Protocol):
    """A gateway of the process. faults: that strike there now."""

    faults: Faults | None

    @property
    def name(self) -> str: ...

    def order_faults(self, faults: Faults | None) -> None: ...


class ProcessOrders:
    """See the module's text. index: of the process among those of the service, each of which draws for itself.

    standing: all that it goes by.
    """

    def __init__(self, env: Env, clock: ProcessClock, index: int = 0) -> None:
        self.standing = StandingOrders()
        self._env = env
        self._clock = clock
        self._index = index
        self._served: dict[str, ServedNamespace] = {}

    def take(self, orders: StandingOrders) -> None:
        """Go by these from now on."""
        ahead = self._clock.ahead
        by_ms, tokens_by_ms = orders.clock_ms - ahead.clock_ms, orders.tokens_ms - ahead.tokens_ms
        if by_ms or tokens_by_ms:
            self._clock.forward(by_ms, tokens_by_ms=tokens_by_ms)
        self.standing = orders
        for served in self._served.values():
            self._strike(served)

    async def rung(self) -> None:
        """Wait until what is due by the clock has happened, or begun; RUNG_S at most."""
        await self._clock.rung(limit_s=RUNG_S)

    def came(self, served: ServedNamespace) -> None:
        """A namespace is served from now on."""
        self._served[served.name] = served
        self._strike(served)

    def left(self, served: ServedNamespace) -> None:
        """A namespace is served no more: another one of its name begins without faults."""
        del self._served[served.name]
        faults = {name: ordered for name, ordered in self.standing.faults.items() if name != served.name}
        self.standing = structs.replace(self.standing, faults=faults)

    @property
    def struck(self) -> dict[str, dict[str, int]]:
        """By namespace, how often each fault did."""
        return {
            name: {fault.value: count for fault, count in served.faults.struck.items()}
            for name, served in self._served.items()
            if served.faults is not None
        }

    def _strike(self, served: ServedNamespace) -> None:
        """Have the faults strike there that stand; those that do so already go on with their draws."""
        ordered = self.standing.faults.get(served.name)
        number = None if ordered is None else ordered.number
        if number != (None if served.faults is None else served.faults.number):
            served.order_faults(None if ordered is None else Faults(ordered, self._env, self._index))
