"""The two ways in which events go out on a consumer's link: a delivery each, or stored batches as they are.

Both send from a run and a cursor, and say how many events may go at all, which is what a node looks at before it reads.
"""

from __future__ import annotations

from typing import Protocol

from hubweir.amqp.messaging.annotations import ENABLE_RECEIVER_RUNTIME_METRIC, STORED_BATCHES
from hubweir.amqp.transport.sender_link import SenderLink, SendProgress
from hubweir.amqp.types.values import Symbol
from hubweir.gateway.amqp.reader_attach import read_event_limit, takes_batches
from hubweir.gateway.amqp.runtime_metrics import wants_metrics
from hubweir.kernels.contract import RunCursor

_ENDLESS = 2**63 - 1


class OutgoingEvents(Protocol):
    """Of one link."""

    wants_metrics: bool
    offered: tuple[Symbol, ...] | None

    @property
    def wanted(self) -> int:
        """How many events may go out as far as the peer is concerned; 0: nothing has to be read now."""

    def send(
        self,
        run: bytes | memoryview,
        cursor: RunCursor,
        *,
        max_events: int,
        max_bytes: int,
        delivery_annotations: bytes,
    ) -> SendProgress:
        """Send events of the run from cursor on; see SenderLink.send_run. delivery_annotations: those of metrics."""


class SingleEvents:
    """A delivery an event, and so a credit."""

    def __init__(self, link: SenderLink) -> None:
        self._credit = link.sender_credit
        self.send = link.send_run
        self.wants_metrics = wants_metrics(link)
        self.offered: tuple[Symbol, ...] | None = (ENABLE_RECEIVER_RUNTIME_METRIC,) if self.wants_metrics else None

    @property
    def wanted(self) -> int:
        return self._credit.credit


class BatchedEvents:
    """Deliveries full of stored batches, up to the number of events that the receiver named at its attach."""

    wants_metrics = False

    def __init__(self, link: SenderLink) -> None:
        """ServiceError when that number is none."""
        self._link = link
        limit = read_event_limit(link)
        self._left = _ENDLESS if limit is None else limit
        self.offered: tuple[Symbol, ...] | None = (STORED_BATCHES,)

    @property
    def wanted(self) -> int:
        return self._left if self._link.credit > 0 else 0

    def send(
        self,
        run: bytes | memoryview,
        cursor: RunCursor,
        *,
        max_events: int,
        max_bytes: int,
        delivery_annotations: bytes,
    ) -> SendProgress:
        progress = self._link.send_batches(run, cursor, max_events=min(max_events, self._left), max_bytes=max_bytes)
        self._left -= progress.events
        return progress


def outgoing_events(link: SenderLink) -> OutgoingEvents:
    """As the receiver asked for at its attach. Metrics stand in deliveries of single events only, so they go first."""
    if takes_batches(link) and not wants_metrics(link):
        return BatchedEvents(link)
    return SingleEvents(link)
