from __future__ import annotations

import pytest

from hubweir.amqp.transport.performatives import Close, Detach, Flow, Open, Transfer
from hubweir.amqp.types.values import UInt
from hubweir.testing.frames import OPEN, conversation, frame, listed, raw, transfer, written


def test_a_frame_is_what_its_parts_say() -> None:
    assert raw(b"body", channel=258, frame_type=1, doff=3, size=99) == b"\x00\x00\x00\x63\x03\x01\x01\x02body"
    assert frame(Close())[:8] == b"\x00\x00\x00\x0f\x02\x00\x00\x00"


def test_what_was_written_is_read_back_in_order() -> None:
    said = [performative for _, performative in written(conversation()) if not isinstance(performative, Transfer)]
    assert isinstance(said[0], Open) and isinstance(said[-1], Close)
    assert written(frame(OPEN, channel=4)) == [(4, OPEN)]
    assert written(raw(b"")) == []


def test_fields_can_be_given_one_by_one() -> None:
    assert written(raw(listed(Detach, UInt(3), True))) == [(0, Detach(handle=3, closed=True))]
    flow = raw(listed(Flow, None, UInt(1), UInt(2), UInt(3)))
    assert written(flow) == [(0, Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3))]


def test_a_header_of_ours_that_lies_is_noticed() -> None:
    with pytest.raises(AssertionError):
        written(transfer(0)[:-1])
