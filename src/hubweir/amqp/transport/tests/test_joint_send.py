"""Several links send by one call what each of them would send by itself."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import pytest

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport import joint_send
from hubweir.amqp.transport.delivery import SentTogether
from hubweir.amqp.transport.events import SettledTogether
from hubweir.amqp.transport.joint_send import send_jointly
from hubweir.amqp.transport.performatives import Detach, Disposition, Flow
from hubweir.amqp.transport.sender_link import SenderLink, SendProgress
from hubweir.amqp.transport.tests.test_sender_link import DOWN, a_run, message_rows, transfers
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import BEGIN, frame
from hubweir.testing.served import feed, served

PREFIX = b"0" * 16
COUNTS = array("q", (1, 3, 2))


def credit(handle: int, count: int, *, window: int = 5_000, seen_frames: int = 1) -> bytes:
    return frame(
        Flow(
            next_incoming_id=seen_frames,
            incoming_window=window,
            next_outgoing_id=0,
            outgoing_window=5_000,
            handle=handle,
            delivery_count=0,
            link_credit=count,
        )
    )


def three_links(*, window: int = 5_000, next_id: int = 0) -> tuple[Side, list[SenderLink]]:
    """A server with three links that settle second; each has credit for 3."""
    side = served(links=3, attach=replace(DOWN, rcv_settle_mode=0), begin=replace(BEGIN, incoming_window=window))
    links: Any = [side.link(f"down{number}") for number in range(3)]
    links[0].session.next_delivery_id = next_id
    feed(side, b"".join(credit(handle, 3, window=window) for handle in range(3)))
    return side, links


def send(links: list[SenderLink], run: bytearray, *, max_bytes: int = 1 << 20) -> SendProgress:
    return send_jointly(
        links,
        COUNTS,
        run,
        message_rows(run, 6),
        id_prefix=PREFIX,
        tags=b"001122334455",
        max_bytes=max_bytes,
        context="ours",
    )


def test_it_is_what_each_would_send_by_itself_to_the_byte_and_the_count() -> None:
    """Ids of deliveries wrap within it."""
    run, next_id = a_run(*(b"%d" % number * 50 for number in range(6))), 2**32 - 2
    alone, links = three_links(next_id=next_id)
    rows, row = message_rows(run, 6), 0
    for link, count in zip(links, COUNTS, strict=True):
        part = rows[row * MESSAGE_WIDTH : (row + count) * MESSAGE_WIDTH]
        link.send_messages(run, part, 0, id_prefix=PREFIX, settled=False, max_bytes=1 << 20)
        row += count
    jointly, others = three_links(next_id=next_id)
    progress = send(others, run)
    expected = alone.drain()
    assert (progress.events, progress.first_id, progress.bytes) == (6, next_id, len(expected))
    assert jointly.drain() == expected
    for link, other in zip(links, others, strict=True):
        assert (link.credit, link.unsettled_count) == (other.credit, other.unsettled_count)
        assert link.sender_credit.delivery_count == other.sender_credit.delivery_count
    session, own = others[0].session, links[0].session
    assert session.next_delivery_id == own.next_delivery_id == 4
    assert session.window.remote_window == own.window.remote_window
    feed(jointly, frame(Disposition(role=True, first=2**32 - 2, last=3, settled=True, state=Accepted())))
    [settled] = [each for each in jointly.events if isinstance(each, SettledTogether)]
    assert (settled.sent.context, settled.sent.first_id, settled.sent.last_id) == ("ours", next_id, 3)
    assert settled.sent.links == [others[0], *[others[1]] * 3, *[others[2]] * 2]
    assert [other.unsettled_count for other in others] == [0, 0, 0]


@pytest.mark.parametrize("frames", [1, 3, 5])
def test_it_ends_where_the_window_or_the_bytes_of_the_turn_do(frames: int) -> None:
    run = a_run(*(b"%d" % number for number in range(6)))
    by_window, links = three_links(window=frames)
    assert send(links, run).events == frames
    assert [part.handle for part in transfers(by_window.drain())] == [0, 1, 1, 1, 2, 2][:frames]
    assert [link.unsettled_count for link in links] == [1, min(3, frames - 1), max(0, frames - 4)]
    assert not links[0].session.held
    assert send(links, run).events == 0, "the window is shut"
    by_bytes, others = three_links()
    whole = send(three_links()[1], run).bytes
    assert send(others, run, max_bytes=whole * frames // 6).events == frames
    assert [other.credit for other in others] == [link.credit for link in links]


def test_a_first_message_larger_than_the_window_is_held_back_for_its_link() -> None:
    side, links = three_links(window=2)
    run = a_run(b"x" * 200_000, *(b"%d" % number for number in range(5)))
    assert send(links, run).events == 1
    assert (len(transfers(side.drain())), bool(links[0].session.held)) == (2, True)
    assert links[0].session.window.next_outgoing_id == 3
    feed(side, frame(Detach(handle=2, closed=True)))
    begun = len(side.written)
    feed(side, credit(1, 3, window=50, seen_frames=3))
    assert [part.handle for part in transfers(side.written[begun:])] == [0, 0]


def test_a_link_takes_what_its_credit_and_its_unsettled_deliveries_allow_while_it_stands() -> None:
    side, links = three_links()
    link = links[1]
    assert link.takes(3) and not link.takes(4)
    link._unsettled_most = 2
    assert link.takes(2) and not link.takes(3)
    link.unsettled_count = 1
    assert link.takes(1) and not link.takes(2)
    links[2].refused_by_peer = True
    assert links[0].takes(1) and not links[2].takes(1)
    feed(side, frame(Detach(handle=1, closed=True)))
    assert not link.takes(1)


def test_nothing_goes_out_on_a_session_that_was_ended() -> None:
    side, links = three_links()
    links[0].session.end()
    side.drain()
    assert send(links, a_run(*(b"%d" % number for number in range(6)))).events == 0
    assert side.drain() == b""


def test_what_a_link_that_is_over_sent_with_others_is_unsettled_no_more() -> None:
    """The deliveries of the second link lie between those of the others."""
    side, links = three_links(next_id=2**32 - 2)
    send(links, a_run(*(b"%d" % number for number in range(6))))
    feed(side, frame(Detach(handle=1, closed=True)))
    unsettled = links[0].session.settlement.sent
    assert [(each.first, each.last) for each in unsettled] == [(2**32 - 2, 2**32 - 2), (2, 3)]
    feed(side, frame(Disposition(role=True, first=2**32 - 2, last=3, settled=True, state=Accepted())))
    settled = [each for each in side.events if isinstance(each, SettledTogether)]
    assert [(each.sent.first_id, each.sent.last_id) for each in settled] == [(2**32 - 2, 2**32 - 2), (2, 3)]
    assert [(each.sent.links, each.sent.tags) for each in settled] == [([links[0]], b"00"), ([links[2]] * 2, b"4455")]
    assert [link.unsettled_count for link in links] == [0, 0, 0] and not len(unsettled)


def test_a_long_send_is_unsettled_in_ranges_of_some_hundreds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delivery that nobody settles keeps no more than its range."""
    monkeypatch.setattr(joint_send, "RANGE_DELIVERIES", 4)
    side, links = three_links(next_id=2**32 - 3)
    send(links, a_run(*(b"%d" % number for number in range(6))))
    unsettled = [each.owner for each in links[0].session.settlement.sent]
    assert all(isinstance(each, SentTogether) for each in unsettled)
    assert [(each.first_id, each.last_id, each.tags) for each in unsettled if isinstance(each, SentTogether)] == [
        (2**32 - 3, 0, b"00112233"), (1, 2, b"4455"),
    ]  # fmt: skip
    feed(side, frame(Disposition(role=True, first=2**32 - 3, last=2, settled=True, state=Accepted())))
    assert [link.unsettled_count for link in links] == [0, 0, 0]


def test_nothing_is_unsettled_on_a_session_that_was_ended() -> None:
    side, links = three_links()
    send(links, a_run(*(b"%d" % number for number in range(6))))
    links[0].session.end()
    assert [link.unsettled_count for link in links] == [0, 0, 0] and not len(links[0].session.settlement.sent)
