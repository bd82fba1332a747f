from __future__ import annotations

from hubweir.amqp.transport.serial_number import MODULUS
from hubweir.amqp.transport.session_window import FIRST_OUTGOING_ID, SessionWindow


def test_frames_in_flight_count_against_the_window() -> None:
    window = SessionWindow(10)
    window.on_begin(0, 8)
    assert window.remote_window == 8
    window.sent(5)
    assert window.remote_window == 3
    window.on_flow(FIRST_OUTGOING_ID + 2, 8)
    assert window.remote_window == 5, "three of the five are still under way"
    window.on_flow(None, 8)
    assert window.remote_window == 3, "the peer had seen none"


def test_a_peer_that_claims_frames_we_never_sent_gets_no_larger_window() -> None:
    window = SessionWindow(10)
    window.on_begin(0, 8)
    window.on_flow(FIRST_OUTGOING_ID + 1_000_000, 8)
    assert window.remote_window == 8


def test_a_flow_is_due_at_half_of_the_window() -> None:
    window = SessionWindow(10)
    window.on_begin(7, 8)
    assert not window.received(4)
    assert window.received(1)
    window.announced()
    assert not window.received(4)
    assert window.next_incoming_id == 16


def test_an_overrun_of_our_window_is_only_counted() -> None:
    window = SessionWindow(10)
    window.on_begin(MODULUS - 5, 8)
    assert window.received(1_000)
    assert window.next_incoming_id == 995


def test_ids_wrap() -> None:
    window = SessionWindow(10)
    window.on_begin(0, 2**32 - 1)
    window.sent(2**32 - 2)
    assert window.next_outgoing_id == MODULUS - 1
    window.on_flow(MODULUS - 2, 4)
    assert window.remote_window == 3
    window.sent(3)
    assert window.next_outgoing_id == 2
