"""Options of an event processor: its handlers, and how it works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from hubweir.client.event_run import EventRun
from hubweir.client.load_balancer import Strategy
from hubweir.client.partition_context import PartitionContext
from hubweir.client.receiver import DEFAULT_CREDIT
from hubweir.event_hub.event_position import EARLIEST, EventPosition
from hubweir.namespace.names import DEFAULT_GROUP


class CloseReason(Enum):
    """Why a processor lets go of a partition."""

    SHUTDOWN = "the processor stops"
    OWNERSHIP_LOST = "another processor has it"


OnEvents = Callable[[PartitionContext, EventRun], Awaitable[None]]
OnError = Callable[[PartitionContext | None, Exception], Awaitable[None]]
OnClaimed = Callable[[PartitionContext], Awaitable[None]]
OnClosed = Callable[[PartitionContext, CloseReason], Awaitable[None]]


async def nothing(*_: object) -> None:
    """The handler of a user who did not give one."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """on_events: gets runs of one partition, one after the other; partitions run side by side.

    on_error: told of every failure, with no context when it is no partition's. on_claimed, on_closed: before a
    partition's first run, and behind its last.
    """

    on_events: OnEvents
    on_error: OnError
    on_claimed: OnClaimed = nothing
    on_closed: OnClosed = nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorOptions:
    """How a processor works; lease_s and interval_s are the same in all processors of a group, near enough.

    position: where a partition without a checkpoint begins. checkpoint_every: events; None: only when the handler calls
    context.checkpoint(). credit: see ReceiverOptions. lease_s: after so long without a round a processor is taken for
    dead. interval_s: between two rounds. grace_s: what a handler may still take when its partition is closed; then it
    is cancelled. owner_id: what the group's records call this processor; "": a name of its own is drawn.
    """

    group: str = DEFAULT_GROUP
    position: EventPosition = EARLIEST
    checkpoint_every: int | None = 1_000
    credit: int = DEFAULT_CREDIT
    # A round costs the store one list and one claim. With these, processors of the official clients, which come round
    # every 10 to 36 s by default, keep their leases in a group with ours.
    lease_s: float = 60.0
    interval_s: float = 10.0
    strategy: Strategy = Strategy.GREEDY
    grace_s: float = 10.0
    owner_id: str = ""

    def __post_init__(self) -> None:
        if self.checkpoint_every is not None and self.checkpoint_every < 1:
            raise ValueError(f"a checkpoint every {self.checkpoint_every} events: give 1 or more, or None")


DEFAULT_OPTIONS = ProcessorOptions()
