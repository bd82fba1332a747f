"""Faults that a test orders for one namespace: how often each strikes, and what it does.

| fault | drawn for | what it does |
|---|---|---|
| `server_busy` | each run of events or messages on its way to its log | refuses it as `com.microsoft:server-busy` |
| `delay` | each answer to such a run, and to what receivers settled together | holds it back by `delay_ms` |
| `detach` | each step of a link: deliveries, credit, settlements of its peer | detaches it: `amqp:link:detach-forced` |
| `drop` | the same | ends the connection without a word |

Each kind of fault draws from a source of its own with the same seed, so the rate of one changes nothing about another;
so does each process of a service.
What came in one turn for one log is one run. Links to nodes of the service (`$cbs`, `$management`) are spared. Sends of
idempotent producers, through a via entity and in transactions meet `detach` and `drop` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum
from functools import partial
from random import Random
from typing import TypeVar

from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.testcontrol import OrderedFaults
from hubweir.env import Env
from hubweir.errors import DETACH_FORCED, SERVER_BUSY, ServiceError
from hubweir.gateway.append_queue import PendingAppend, Taker

Store = TypeVar("Store", bound=Command)
Append = Callable[[Taker, Store, PendingAppend], None]

BUSY = Refusal(SERVER_BUSY, "The service is busy: a fault that a test ordered. Nothing was stored; send again.")
FORCED = ServiceError(DETACH_FORCED, "The link is detached: a fault that a test ordered. Attach again.")


class FaultKind(Enum):
    """A kind of fault; the value is the name of its rate."""

    __hash__ = object.__hash__

    SERVER_BUSY = "server_busy"
    DELAY = "delay"
    DETACH = "detach"
    DROP = "drop"


class Faults:
    """Those of one namespace in one process, from one order to the next. The same seed gives the same draws, in a
    process of the same index.
    """

    def __init__(self, ordered: OrderedFaults, env: Env, index: int = 0) -> None:
        self.number = ordered.number
        self.rates = rates = ordered.rates
        self.struck: Counter[FaultKind] = Counter()
        self._env = env
        self._rate_of = {fault: float(getattr(rates, fault.value)) for fault in FaultKind}
        # The first process draws as a service does that is one process.
        whose = f"{rates.seed} {index}" if index else f"{rates.seed}"
        self._source_of = {fault: Random(f"{fault.value} {whose}") for fault in FaultKind}

    def strikes(self, fault: FaultKind) -> bool:
        """Draw once; True when the fault is to happen now."""
        rate = self._rate_of[fault]
        if not rate or self._source_of[fault].random() >= rate:
            return False
        self.struck[fault] += 1
        return True

    def around(self, append: Append[Store]) -> Append[Store]:
        """The same with faults: what takes a run to its broker (AppendQueue.append)."""

        def with_faults(broker: Taker, command: Store, pending: PendingAppend) -> None:
            if self.strikes(FaultKind.SERVER_BUSY):
                pending.answered(BUSY)
            else:
                append(_LateTaker(broker, self), command, pending)

        return with_faults

    def late(self, on_answer: OnAnswer) -> OnAnswer:
        """The same, or one that hears later."""
        if not self.strikes(FaultKind.DELAY):
            return on_answer

        def held_back(answer: Answer) -> None:
            self._env.call_later(self.rates.delay_ms, partial(on_answer, answer))

        return held_back


class _LateTaker:
    """A broker whose answers may come late."""

    def __init__(self, broker: Taker, faults: Faults) -> None:
        self._broker = broker
        self._faults = faults

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        self._broker.submit(command, self._faults.late(on_answer))
