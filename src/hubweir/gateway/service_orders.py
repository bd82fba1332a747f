"""Orders of tests to a service: its clock set forward, and faults in one namespace.

Only a namespace of the development profile takes orders, and the clock, which is the whole service's, goes forward only
where all of them are of that profile. One process judges what is ordered, the service's only one or the supervisor
of several, and is the only writer of what stands. An order is answered when every process that lives goes by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from msgspec import structs

from hubweir.broker.commands.testcontrol import ControlTold, FaultRates, OrderedFaults, OrdersKept, StandingOrders
from hubweir.env import Env
from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, NOT_FOUND, ServiceError
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.namespace.tiers import DEVELOPMENT, Profile

DAY_MS = 24 * 3_600_000
FORWARD_LIMIT_MS = 3_660 * DAY_MS  # ten years, all steps together: every calendar of a client still has the time
SEED_BYTES = 4

# Has all other processes go by orders; what each answers. ServiceError: one that lives does not answer.
TellOthers = Callable[[StandingOrders], Awaitable[Sequence[OrdersKept]]]


class Orders(Protocol):
    """Where a process gives what its clients order. Every method answers what stands for the namespace then."""

    async def forward(self, namespace: str, by_ms: int, *, ends_tokens: bool) -> ControlTold:
        """Set the clock forward; answered when every timer that was due by then has rung. ends_tokens: tokens that end
        by then do.
        """

    async def order_faults(self, namespace: str, rates: FaultRates | None) -> ControlTold:
        """From now on these strike there, in the place of those before; None: none do."""

    async def told(self, namespace: str) -> ControlTold: ...


async def nobody_else(orders: StandingOrders) -> Sequence[OrdersKept]:
    """Of a service that is one process."""
    return ()


class ServiceOrders:
    """See the module's text; Orders in the process that judges. profiles: of the namespaces that are served, by name.

    own: of this process.
    """

    def __init__(
        self,
        env: Env,
        own: ProcessOrders,
        profiles: Callable[[], Iterable[tuple[str, Profile]]],
        tell_others: TellOthers = nobody_else,
    ) -> None:
        self._env = env
        self._own = own
        self._profiles = profiles
        self._tell_others = tell_others

    async def forward(self, namespace: str, by_ms: int, *, ends_tokens: bool) -> ControlTold:
        for name, profile in self._profiles():
            check_profile(profile, f"'{name}'" if name == namespace else "another namespace of this service")
        standing = self._own.standing
        clock_ms, tokens_ms = standing.clock_ms + by_ms, standing.tokens_ms + (by_ms if ends_tokens else 0)
        if clock_ms > FORWARD_LIMIT_MS:
            days = FORWARD_LIMIT_MS // DAY_MS
            raise ServiceError(ARGUMENT_ERROR, f"The clock would be over {days} days ahead: start the service anew.")
        self._stand(clock_ms=clock_ms, tokens_ms=tokens_ms)
        return await self._all(namespace)

    async def order_faults(self, namespace: str, rates: FaultRates | None) -> ControlTold:
        self._check_one(namespace)
        faults = {name: ordered for name, ordered in self._own.standing.faults.items() if name != namespace}
        if rates is not None:
            if rates.seed is None:
                rates = structs.replace(rates, seed=int.from_bytes(self._env.random_bytes(SEED_BYTES)))
            faults[namespace] = OrderedFaults(self._own.standing.version + 1, rates)
        self._stand(faults=faults)
        return await self._all(namespace)

    async def told(self, namespace: str) -> ControlTold:
        self._check_one(namespace)
        return await self._all(namespace)

    def _check_one(self, namespace: str) -> None:
        profile = dict(self._profiles()).get(namespace)
        if profile is None:
            raise ServiceError(NOT_FOUND, f"There is no namespace '{namespace}'.")
        check_profile(profile, f"'{namespace}'")

    def _stand(self, **changed: object) -> None:
        standing = self._own.standing
        self._own.take(structs.replace(standing, version=standing.version + 1, **changed))

    async def _all(self, namespace: str) -> ControlTold:
        """Have every process go by what stands; answered when they do."""
        standing = self._own.standing
        kept = await self._tell_others(standing)
        await self._own.rung()
        struck: Counter[str] = Counter()
        for each in (self._own.struck, *(other.struck for other in kept)):
            struck.update(each.get(namespace, {}))
        return ControlTold(standing.clock_ms, standing.faults.get(namespace), dict(struck))


def check_profile(profile: Profile, name: str) -> None:
    """ServiceError unless a namespace is for development. name: as the one who asks is told it."""
    if profile is not DEVELOPMENT:
        text = f"Test control is of the development profile alone: {name} has the profile {profile.name}."
        raise ServiceError(NOT_ALLOWED, text)
