from __future__ import annotations

from array import array
from typing import cast

from hubweir.amqp.transport.events import Closed, DeliveriesReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.report import Report


class NamedLink:
    """Stands for a link: a report only tells links apart."""


A, B = (cast(ReceiverLink, NamedLink()) for _ in range(2))
DATA, OTHER = memoryview(b"data"), memoryview(b"data")


def row(number: int) -> array[int]:
    return array("q", (number, 0, 4, 0, 0))


def test_deliveries_of_one_link_in_one_buffer_become_one_event() -> None:
    report = Report()
    for number in range(3):
        report.deliveries(A, DATA, row(number), 1)
        report.deliveries(B, DATA, row(10 + number), 1)
    first, second = report.take_events()
    assert isinstance(first, DeliveriesReceived) and isinstance(second, DeliveriesReceived)
    assert (first.link, first.count, list(first.rows[::5])) == (A, 3, [0, 1, 2])
    assert (second.link, second.count, list(second.rows[::5])) == (B, 3, [10, 11, 12])
    assert report.take_events() == []


def test_rows_of_another_buffer_stand_alone() -> None:
    report = Report()
    report.deliveries(A, DATA, row(0), 1)
    report.deliveries(A, OTHER, row(1), 1)
    report.deliveries(A, DATA, row(2), 1)
    assert [event.rows[0] for event in report.take_events() if isinstance(event, DeliveriesReceived)] == [0, 1, 2]


def test_nothing_moves_over_another_event_or_into_the_next_read() -> None:
    report = Report()
    report.deliveries(A, DATA, row(0), 1)
    report.add_event(Closed(None, by_peer=True, clean=True))
    report.deliveries(A, DATA, row(1), 1)
    assert [type(event) for event in report.take_events()] == [DeliveriesReceived, Closed, DeliveriesReceived]
    report.deliveries(A, DATA, row(2), 1)
    assert len(report.take_events()) == 1
