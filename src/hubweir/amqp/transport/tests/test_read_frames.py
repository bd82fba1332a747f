from __future__ import annotations

import pytest

from hubweir.amqp.transport.events import DeliveriesReceived
from hubweir.amqp.transport.read_frames import LEAST_ROWS, ROWS_LIMIT
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.testing.frames import raw, transfer
from hubweir.testing.served import served, take


def test_a_read_costs_a_few_calls_not_one_for_each_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path by its count: how often Python takes rows for 3,000 deliveries in one read."""
    calls = []
    whole = ReceiverLink.take_rows

    def counted(link: ReceiverLink, data: memoryview, rows: object, count: int) -> None:
        calls.append(count)
        whole(link, data, rows, count)

    monkeypatch.setattr(ReceiverLink, "take_rows", counted)
    side = served()
    take(side, b"".join(transfer(number, b"x" * 20) for number in range(3_000)))
    assert sum(calls) == 3_000
    assert calls[0] <= 2 * LEAST_ROWS and max(calls) == ROWS_LIMIT and len(calls) <= 5
    assert sum(isinstance(event, DeliveriesReceived) for event in side.events) == 1
    calls.clear()
    take(side, b"".join(transfer(number, b"x" * 20) for number in range(3_000, 3_900)))
    assert calls == [900]  # the read before has told how small the frames are


def test_empty_frames_between_transfers_cut_the_stretch_and_nothing_else() -> None:
    side = served()
    take(side, transfer(0) + raw(b"") + transfer(1) + raw(b"", channel=9) + transfer(2))
    assert [entry.delivery_id for entry in side.deliveries()] == [0, 1, 2]
    assert sum(isinstance(event, DeliveriesReceived) for event in side.events) == 1


def test_nothing_is_read_behind_the_frame_that_ended_the_connection() -> None:
    side = served()
    take(side, transfer(0) + raw(b"\x40") + transfer(1))
    assert [entry.delivery_id for entry in side.deliveries()] == [0]
    assert side.endpoint.is_closed
