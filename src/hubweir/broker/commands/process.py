"""Commands and answers about a whole broker or a whole gateway process: refusals, ends, caps, counters."""

from __future__ import annotations

from hubweir.broker.commands.command import Answer, Command, Cost, Owner, answer, command
from hubweir.errors import Condition, ServiceError


@answer(70)
class Refusal(Answer, frozen=True):
    """The request was refused. text: for the person who reads it.

    known: nothing was stored. Not known: stored or not; a gateway then detaches with a timeout, and never settles.
    """

    condition: Condition
    text: str
    known: bool = True

    @property
    def error(self) -> ServiceError:
        """The same, to raise or to tell a peer."""
        return ServiceError(self.condition, self.text)


@answer(64)
class Done(Answer, frozen=True):
    """The answer of a command that returns nothing."""


@command(7, Done, cost=Cost.END)
class CloseOwner(Command, frozen=True):
    """Close all readers and producers of an owner; connection -1: of the whole process."""

    owner: Owner


@command(16, Done)
class CapPartitions(Command, frozen=True):
    """From now on every partition of this namespace carries at most one throughput unit, or as much as comes."""

    is_on: bool
    namespace: str = ""


@command(160, Done)
class RaiseEpoch(Command, frozen=True):
    """From now on the store writes above this writer epoch, also after a crash: logs that bear it come into the store.

    A store that has no epochs has nothing to do.
    """

    newest: int


@answer(69)
class CountersTaken(Answer, frozen=True):
    """values: by the counter's name."""

    values: dict[str, int]


@command(11, CountersTaken)
class AskCounters(Command, frozen=True):
    """Everything this broker counts."""
