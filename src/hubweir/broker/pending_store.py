"""One run on its way into a partition's log: what it was charged, and who is told how it ended.

After a crash nobody is told; the run is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import AppendEvents, EventsAppended
from hubweir.broker.commands.producer import AlreadyAppended, AppendNumbered
from hubweir.broker.partition_tools import PartitionTools
from hubweir.broker.refusals import refusal_of
from hubweir.messaging_store.log import Appended, Refused
from hubweir.throughput_unit.partition_cap import PartitionCap


class PendingStore(Struct):
    """cap: what the command was charged to; None: its partition has none, or the charge was given back."""

    tools: PartitionTools
    command: AppendEvents | AppendNumbered
    cap: PartitionCap | None
    on_answer: Callable[[Answer], None]

    def ended(self, outcome: Appended | Refused | None) -> None:
        """Answer the command, with the log's word; None: its events were stored before."""
        counters = self.tools.counters
        if isinstance(outcome, Appended):
            counters["broker.events_appended"] += outcome.next_index - outcome.first_index
            counters["broker.bytes_appended"] += len(self.command.run)
            self.on_answer(EventsAppended(outcome.first_index, outcome.next_index))
        elif outcome is None:
            self.give_back()
            counters["broker.duplicates_accepted"] += 1
            self.on_answer(AlreadyAppended())
        else:
            if outcome.known:
                self.give_back()
            counters["broker.appends_refused"] += 1
            self.on_answer(refusal_of(outcome.error, known=outcome.known))

    def give_back(self) -> None:
        """It is certainly not stored now, and takes nothing of its partition's unit; a second time does nothing."""
        cap, self.cap = self.cap, None
        if cap is not None:
            cap.give_back(self.command.size_bytes, self.command.events, self.tools.env.monotonic_ms())
