"""The table of attacks: each has a number, a name, and a scenario that runs it.

A scenario runs the attack and its positive control, the same without the attack, which must succeed: a service that
refuses everything fails every one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.attacks.target import Target

Scenario = Callable[[Target], None]
LAST = 71

# Numbers without a scenario, and why.
NOT_APPLICABLE = {
    42: "queues: no dead-letter or transfer paths here",
    43: "subscriptions: there are no topics here",
    65: "transactions: there is no coordinator here; an attach to one is refused as not implemented",
    66: "queues: nothing here has a lock token",
    70: "queues: no via or forward-to here",
}


@dataclass(frozen=True, slots=True)
class Attack:
    """One line of the table."""

    number: int
    name: str
    run: Scenario

    def __str__(self) -> str:
        return f"{self.number} {self.name}"


ATTACKS: list[Attack] = []


def attack(number: int, name: str) -> Callable[[Scenario], Scenario]:
    """Put a scenario into the table."""

    def put(run: Scenario) -> Scenario:
        ATTACKS.append(Attack(number, name, run))
        return run

    return put
