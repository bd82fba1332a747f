"""The tools that the fragments of a broker share: one object, made by the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from hubweir.broker.commands.command import Push
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.queue.fragment import Times
from hubweir.queue.traced_step import StepTracer


@dataclass(frozen=True, slots=True)
class FragmentTools:
    """clock: what stamps messages, and by which they expire. push: what gateways are told unasked.

    tracer: of what clients trace; None: nothing is looked at.
    receiver_ids: gives each id once in the broker's life, also over the deletion of a fragment.
    """

    env: Env
    deadlines: BrokerDeadlines
    clock: TrustedClock
    counters: Counters
    push: Callable[[Push], None]
    tracer: StepTracer | None = None
    receiver_ids: Iterator[int] = field(default_factory=lambda: count(1))

    def times(self) -> Times:
        """Now, on both clocks of a fragment."""
        return Times(self.clock.stamp_ms(), self.env.monotonic_ms())
