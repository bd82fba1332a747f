from __future__ import annotations

from typing import cast

from hubweir.amqp.transport.held_frames import HeldFrames
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.transport.session_window import SessionWindow


class NamedLink:
    """Stands for a link: the queue only tells links apart."""


A, B = (cast(SenderLink, NamedLink()) for _ in range(2))


def framed(body: bytes) -> bytearray:
    return bytearray((8 + len(body)).to_bytes(4, "big") + b"\x02\0\0\0" + body)


def test_frames_leave_in_order_as_the_window_opens() -> None:
    window = SessionWindow(10)
    window.on_begin(0, 2)
    held = HeldFrames(window)
    held.add_all(A, framed(b"1") + framed(b"22") + framed(b"333"), 3)
    held.add(B, framed(b"4"))
    out = bytearray()
    held.send(out)
    assert out == framed(b"1") + framed(b"22")
    assert (len(held), window.remote_window, window.next_outgoing_id) == (2, 0, 3)
    window.on_flow(3, 9)
    held.send(out)
    assert out.endswith(framed(b"333") + framed(b"4"))
    assert (len(held), window.remote_window) == (0, 7)


def test_frames_of_a_link_that_is_over_are_dropped_alone() -> None:
    window = SessionWindow(10)
    held = HeldFrames(window)
    for link, body in ((A, b"a"), (B, b"b"), (A, b"c")):
        held.add(link, framed(body))
    held.drop(A)
    window.on_begin(0, 5)
    out = bytearray()
    held.send(out)
    assert out == framed(b"b")
    held.add(B, framed(b"d"))
    held.clear()
    assert not held
