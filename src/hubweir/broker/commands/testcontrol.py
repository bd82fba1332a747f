"""Orders of tests (docs/testing.md), as the processes of one service tell them to each other.

A process that a client gave an order asks the supervisor. That judges it, and has every process go by all that stands:
always the whole of it, so that to tell it twice changes nothing, and a process that comes later is as the others are.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from hubweir.broker.commands.broker_process import ProcessCommand
from hubweir.broker.commands.command import Answer, answer, command

DELAY_LIMIT_MS = 3_600_000

Rate = Annotated[float, Meta(ge=0, le=1)]


class FaultRates(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a test orders: rates from 0 (never) to 1 (always). seed None: one is drawn."""

    server_busy: Rate = 0
    delay: Rate = 0
    detach: Rate = 0
    drop: Rate = 0
    delay_ms: Annotated[int, Meta(ge=0, le=DELAY_LIMIT_MS)] = 1_000
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class OrderedFaults(Struct, frozen=True):
    """Faults that strike in a namespace. number: another for each order, so that the same rates begin anew. rates: with
    their seed.
    """

    number: int
    rates: FaultRates


class StandingOrders(Struct, frozen=True):
    """All that tests ordered of a service and that stands. version: grows with each order.

    clock_ms, tokens_ms: how far the clocks are ahead (env.Ahead). faults: by namespace.
    """

    version: int = 0
    clock_ms: int = 0
    tokens_ms: int = 0
    faults: dict[str, OrderedFaults] = {}


# What processes ask the supervisor


@answer(238)
class ControlTold(Answer, frozen=True):
    """What stands for one namespace. ahead_ms: of the clock. struck: how often each fault did, in all processes."""

    ahead_ms: int
    faults: OrderedFaults | None
    struck: dict[str, int]


@command(213, ControlTold)
class ForwardClock(ProcessCommand, frozen=True):
    """Set the clock of the service forward. namespace: that the client asked. Answered when every process did."""

    namespace: str
    by_ms: int
    ends_tokens: bool


@command(214, ControlTold)
class OrderFaultRates(ProcessCommand, frozen=True):
    """From now on these faults strike in a namespace; None: none do. Answered when they do in every process."""

    namespace: str
    rates: FaultRates | None


@command(216, ControlTold)
class AskControl(ProcessCommand, frozen=True):
    """What stands for a namespace."""

    namespace: str


# What the supervisor asks processes


@answer(239)
class OrdersKept(Answer, frozen=True):
    """They hold here. struck: by namespace, how often each fault did in this process."""

    struck: dict[str, dict[str, int]]


@command(218, OrdersKept)
class KeepOrders(ProcessCommand, frozen=True):
    """Go by these from now on. Answered when what was due by then has happened, or begun."""

    orders: StandingOrders


@answer(240)
class OrdersTold(Answer, frozen=True):
    """What a process goes by."""

    orders: StandingOrders


@command(217, OrdersTold)
class AskOrders(ProcessCommand, frozen=True):
    """What it goes by: asked by a supervisor that finds it."""
