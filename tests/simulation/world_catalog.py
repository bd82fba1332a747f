"""Changes of the catalog in the whole world, and what must be true of its copies behind each answer (P17, P18).

Whoever is answered finds the change at every process that takes clients, but for one that the keeper may take for dead,
since it was stopped or cut off. In the end every copy is the keeper's own, and nothing is half made or half removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.gateway import Gateway
from hubweir.namespace.catalog_followers import APPLY_LIMIT_MS
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.rule_changes import RuleKey, RuleLevel
from hubweir.namespace.secret import Secret
from hubweir.testing.history_values import Violation
from tests.simulation.simulated_service import BROKERS

if TYPE_CHECKING:
    from tests.simulation.whole_world import WholeWorld

GUEST = "guest"  # the rule whose key is renewed
SETTLED_S = 60.0
REACHED_MS = APPLY_LIMIT_MS + 500  # who can be reached for so long is waited for: it connects within half a second


class CatalogChanges:
    """Makes hubs, removes them, changes the key of a rule: through any process. is_over: it is to end."""

    def __init__(self, world: WholeWorld) -> None:
        self._world = world
        self._made = self._keys = 0
        self._there: list[str] = []
        self._doubtful: set[str] = set()
        self._unanswered: set[int] = set()  # numbers of keys; of some nobody ever hears whether they hold
        self.answered = 0
        self.is_over = False
        self._keeper_came = asyncio.Event()

    def keeper_came(self) -> None:
        """A keeper takes changes."""
        self._keeper_came.set()

    async def run(self) -> None:
        """One change after the other. A new keeper makes one by itself, before anybody follows it."""
        random = self._world.random
        while not self.is_over:
            self._keeper_came.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._keeper_came.wait(), random.uniform(0.3, 3.0))
            gateways = self._gateways()
            if gateways:
                self._change(*(gateways[-1] if self._keeper_came.is_set() else random.choice(gateways)))

    def _gateways(self) -> list[tuple[Any, Gateway]]:
        """Of the processes that run now, the supervisor's last."""
        world = self._world
        found = [
            (world.lives[index][1].process, part.gateway)
            for index, part in sorted(world.parts.items())
            if index in world.lives
        ]
        found.append((world.supervisor_process, world.supervisor and world.supervisor.gateway))
        return [(process, gateway) for process, gateway in found if gateway is not None and process.runs]

    def _change(self, process: Any, gateway: Gateway) -> None:
        random = self._world.random
        kind = random.randrange(4)
        if kind <= 1 or not self._there:
            if random.random() < 0.4:
                self._renew(process, gateway)
                return
            self._made += 1
            name = f"extra-{self._made}"
            call = partial(gateway.keeper.create, EventHubDescription(name, 2), partial(self._created, name))
        else:
            name = self._there.pop(random.randrange(len(self._there)))
            call = partial(gateway.keeper.delete, name, EventHubDescription, partial(self._deleted, name))
        self._doubtful.add(name)  # until somebody is told
        process.context.copy().run(process.call, call)

    def _created(self, name: str, result: Any) -> None:
        if isinstance(result, ServiceError):
            self._world.note(f"{name} {result.condition.symbol}")
            return
        self._doubtful.discard(name)
        self._answered(f"{name} created", lambda gateway: gateway.namespace.find_any(name) is not None)
        self._there.append(name)

    def _deleted(self, name: str, result: Any) -> None:
        if isinstance(result, ServiceError):
            self._world.note(f"{name} {result.condition.symbol}")
            return
        self._doubtful.discard(name)
        self._answered(f"{name} deleted", lambda gateway: gateway.namespace.find_any(name) is None)

    def _renew(self, process: Any, gateway: Gateway) -> None:
        """A rule gets another key: from the answer on no process takes the old one.

        One that was asked for before, and not answered by then, may reach the keeper behind this one: it holds then.
        """
        self._keys += 1
        number, secret = self._keys, Secret(f"key {self._keys}")
        known = {f"key {each}" for each in (*self._unanswered, number)}
        self._unanswered.add(number)

        def done(result: Any) -> None:
            if not isinstance(result, ServiceError) or result.condition is not TIMED_OUT:
                self._unanswered.discard(number)
            if isinstance(result, ServiceError):
                self._world.note(f"key {number} {result.condition.symbol}")
                return
            if number == self._keys:  # else a later one may hold by now
                self._answered(f"key {number}", lambda gateway: _key_of(gateway) in known)

        change = partial(RuleLevel.renew, name=GUEST, key=RuleKey.PRIMARY, secret=secret)
        process.context.copy().run(process.call, partial(gateway.keeper.change_rules, None, change, done))

    def _answered(self, what: str, holds: Callable[[Gateway], bool]) -> None:
        """A change was answered: whoever takes clients goes by it."""
        world = self._world
        self.answered += 1
        world.note(what)
        for index, part in sorted(world.parts.items()):
            process = world.lives[index][1].process
            if not part.is_serving or not world.faults.may_reach_the_supervisor(process, REACHED_MS):
                continue
            if part.gateway is not None and not holds(part.gateway):
                world.found(Violation(f"P17, P18: {what}, and broker process {index}, which serves, does not know it"))

    async def settle(self) -> None:
        """The world is healed: all copies become the keeper's, and nothing is unfinished."""
        world = self._world
        end_ms = world.now_ms + int(SETTLED_S * 1_000)
        while (problem := self._problem()) is not None:
            if world.now_ms > end_ms:
                raise Violation(f"P18: {problem}")
            await asyncio.sleep(0.2)

    def _problem(self) -> str | None:
        supervisor = self._world.supervisor
        if supervisor is None or supervisor.gateway is None:
            return "the supervisor is away"
        keeper = supervisor.gateway.keeper
        assert isinstance(keeper, CatalogKeeper)
        if supervisor.gateway.namespace.unfinished():
            return "an entity is half made or half removed"
        for index in range(BROKERS):
            part = self._world.parts.get(index)
            if part is None or part.gateway is None or not part.is_serving:
                return f"broker process {index} does not serve"
            followed: Any = part.gateway.keeper
            if followed.catalog._catalog.snapshot() != keeper.snapshot()[1]:
                return f"the copy of broker process {index} is not the keeper's"
        names = {entity.name for entity in supervisor.gateway.namespace.entities(EventHubDescription)}
        if names - self._doubtful - {"hub"} != set(self._there) - self._doubtful:
            return f"hubs {sorted(names)}, and {sorted(self._there)} were made and not removed"
        return None


def _key_of(gateway: Gateway) -> str:
    return gateway.namespace.rule(None, GUEST).primary.reveal()
