"""The events of one read, while they are being put together: deliveries of one link become one event."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from hubweir.amqp.transport.events import DeliveriesReceived, Event

if TYPE_CHECKING:  # links write into a report: the import would go round
    from hubweir.amqp.transport.receiver_link import ReceiverLink


class Report:
    """Collects events in order. Whoever feeds bytes takes them out and hands them to the host."""

    __slots__ = ("_events", "_open")

    def __init__(self) -> None:
        self._events: list[Event] = []
        # Where in the list each link's deliveries of this read stand, while more may join them.
        self._open: dict[ReceiverLink, int] = {}

    def add_event(self, event: Event) -> None:
        """Add an event; deliveries that come after it do not move before it."""
        self._open.clear()
        self._events.append(event)

    def deliveries(self, link: ReceiverLink, data: memoryview, rows: array[int], count: int) -> None:
        """Add deliveries whose rows point into data; rows is given away."""
        at = self._open.get(link)
        if at is not None:
            event = self._events[at]
            # Rows of one event point into one buffer: a delivery joined from frames lies in another.
            if isinstance(event, DeliveriesReceived) and event.data is data:
                event.rows.extend(rows)
                self._events[at] = DeliveriesReceived(link, data, event.rows, event.count + count)
                return
        self._open[link] = len(self._events)
        self._events.append(DeliveriesReceived(link, data, rows, count))

    def take_events(self) -> list[Event]:
        """All events so far, and start anew."""
        events, self._events = self._events, []
        self._open.clear()
        return events
