"""The tools that the partitions of a broker share: one object, made by the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from hubweir.broker.capping import CappedNamespaces
from hubweir.broker.capture.captures import Captures
from hubweir.broker.commands.command import Push
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.messaging_store.trusted_clock import TrustedClock


@dataclass(frozen=True, slots=True)
class PartitionTools:
    """clock: what stamps events. push: what gateways are told unasked.

    reader_ids, opening_ids: give each id once in the broker's life, also over the deletion of a partition: whoever
    holds one of a partition that is gone holds nothing of another.
    """

    env: Env
    deadlines: BrokerDeadlines
    clock: TrustedClock
    counters: Counters
    push: Callable[[Push], None]
    captures: Captures
    capped: CappedNamespaces = field(default_factory=CappedNamespaces)
    reader_ids: Iterator[int] = field(default_factory=lambda: count(1))
    opening_ids: Iterator[int] = field(default_factory=lambda: count(1))
