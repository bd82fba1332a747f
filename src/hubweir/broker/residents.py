"""The residents of a broker: what lives on its open logs, one object a log.

A resident is everything that a broker keeps of one log while it is open: it handles the commands about the log, is told
the end of those for whom it holds something open, and visited by the sweep. The kinds: a partition of an event hub
(hosted_partition.py), a fragment of a queue (hosted_fragment.py), a topic, whose subscriptions are residents of the
same log (hosted_topic.py). Logs become residents by openings.py, and are given up by deletions.py.

What a store holds says nothing of entities: whoever keeps the catalog names every log once after each start. So damage
and loss are found and reported at the start, no first send waits for a recovery that nobody began, and a log that no
catalog names stays closed and untouched. After a crash residents are what their logs say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol

from hubweir.broker.commands.command import LogCommand, OnAnswer, OwnedCommand, Owner
from hubweir.counters import Counters, GaugeShare
from hubweir.messaging_store.log import Log, Refused
from hubweir.metrics import Samples

# A resident of the class, the command, and what gets its answer.
Handler = Callable[[Any, Any, OnAnswer], None]


class Resident(Protocol):
    """What lives on one log. Every call comes on the broker's loop.

    handlers: by the class of the command. A HubweirError that a handler raises is the refusal; else it answers once,
    now or later. Functions of the class and no bound methods: an object that holds its own methods is left to garbage
    collections.
    """

    handlers: ClassVar[Mapping[type[LogCommand], Handler]]

    @property
    def log(self) -> Log: ...

    @property
    def resident_id(self) -> str:
        """By what commands name it: the id of its log, or its own where several live on one."""

    def settle(self, on_done: Callable[[Refused | None], None]) -> None:
        """Read what it has to know, and make durable what has to be, before it is hosted; on_done, maybe at once.

        It is hosted then, and begins; or it is ended or stopped, and its log is closed: always when it said Refused.
        """

    def begin(self) -> None:
        """It is hosted from now on: commands come."""

    def measure(self, samples: Samples) -> None:
        """Say what is here now. Asking changes nothing."""

    def owner_gone(self, owner: Owner) -> None:
        """Close what this owner has open here, as of one that may have nothing. It may cover many (Owner.covers)."""

    def sweep(self, now_ms: int) -> None:
        """Expire and trim; called every SWEEP_MS (retention_sweep.py). now_ms: of the store's clock."""

    def end(self, on_idle: Callable[[], None]) -> None:
        """The log is to be removed: refuse what waits, tell who has something open. No command comes any more.

        on_idle: called once, maybe at once, when nothing of the log is used any more.
        """

    def stop(self, on_idle: Callable[[], None]) -> None:
        """The broker stops, or could not host it: answer what waits, begin nothing. on_idle as of `end`."""


class Residents:
    """By log id. by_log_id: for looking up; who is in it is changed here alone."""

    def __init__(self, counters: Counters) -> None:
        self._gauge = GaugeShare(counters, "broker.partitions")
        self.by_log_id: dict[str, Resident] = {}
        # On which logs an owner may have something open, from its first command until its end: so that the end of one
        # connection costs by what it did, and not by how many logs there are.
        self._logs_of: dict[Owner, dict[str, None]] = {}
        self._sweeping: list[str] = []

    def __len__(self) -> int:
        return len(self.by_log_id)

    def __iter__(self) -> Iterator[Resident]:
        """All of them, in the order they came."""
        return iter(tuple(self.by_log_id.values()))

    def add(self, resident: Resident) -> None:
        """Host it from now on."""
        self.by_log_id[resident.resident_id] = resident
        self._count()
        resident.begin()

    def drop(self, log_id: str) -> Resident | None:
        """Host it no longer; its log stays open. None when it was not hosted."""
        resident = self.by_log_id.pop(log_id, None)
        if resident is not None:
            self._count()
            for logs in self._logs_of.values():
                logs.pop(log_id, None)
        return resident

    def opens(self, command: OwnedCommand) -> None:
        """The command is about to open something for its owner."""
        self._logs_of.setdefault(command.owner, {})[command.log_id] = None

    def owner_gone(self, owner: Owner) -> None:
        """Tell every resident that may have something of the owner."""
        covered = [owner] if owner.connection != -1 else [each for each in self._logs_of if owner.covers(each)]
        logs: dict[str, None] = {}
        for each in covered:
            logs |= self._logs_of.pop(each, {})
        for log_id in logs:
            self.by_log_id[log_id].owner_gone(owner)

    def sweep_next(self, now_ms: int) -> bool:
        """Visit the next resident of this sweep; False when the sweep is through."""
        if not self._sweeping:
            self._sweeping = list(self.by_log_id)
        if self._sweeping:
            resident = self.by_log_id.get(self._sweeping.pop())
            if resident is not None:
                try:
                    resident.sweep(now_ms)
                except Exception as fault:  # of ours: it stops this log, and the sweep goes on (rule R4)
                    resident.log.stop(fault)
        return bool(self._sweeping)

    def stop(self, on_idle: Callable[[], None]) -> None:
        """Stop all of them; on_idle, maybe at once, when nothing of them is under way."""
        left = 1 + len(self.by_log_id)

        def idle() -> None:
            nonlocal left
            left -= 1
            if not left:
                on_idle()

        for resident in self:
            resident.stop(idle)
        idle()

    def _count(self) -> None:
        self._gauge.set(len(self.by_log_id))
