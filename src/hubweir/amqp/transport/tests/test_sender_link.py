"""A link on which we send: credit, the session's window, runs and batches, and what is unsettled.

Long because all that a link sends is written in the same ways, and read back by the same helpers.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from hubweir.amqp.endpoint import EndpointSettings
from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.messaging.outcome import Accepted, Received, Released
from hubweir.amqp.transport.events import CreditGranted, Settled
from hubweir.amqp.transport.faults import NotSendable
from hubweir.amqp.transport.performatives import Detach, Disposition, Flow, Transfer
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.kernels import ingest
from hubweir.kernels.contract import STORED_FORMAT, RunCursor
from hubweir.kernels.stored_batch import HEADER_SIZE
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.record import begin_batch, seal_batch
from hubweir.testing.endpoint_pair import Delivered, EndpointPair, Side
from hubweir.testing.frames import BEGIN, OPEN, RECEIVE_LINK, frame, written
from hubweir.testing.served import feed, served

DOWN = replace(RECEIVE_LINK, handle=0)


def flow(
    credit: int, *, seen: int = 0, window: int = 5_000, frames: int = 1, drain: bool = False, echo: bool = False
) -> bytes:
    return frame(
        Flow(
            next_incoming_id=frames,
            incoming_window=window,
            next_outgoing_id=0,
            outgoing_window=5_000,
            handle=0,
            delivery_count=seen,
            link_credit=credit,
            drain=drain,
            echo=echo,
        )  # fmt: skip
    )


def down(side: Side) -> SenderLink:
    link = side.link("down")
    assert isinstance(link, SenderLink)
    return link


def a_run(*payloads: bytes) -> bytearray:
    """A completed run of one batch, one event a payload, sequence numbers from 0."""
    run = bytearray()
    start = begin_batch(run)
    for payload in payloads:
        message = encode_message(Message(body=DataBody((payload,))))
        row = array("q", (0, 0, len(message), 0, 0))
        assert ingest(message, row, 0, 1, 0, b"", run, 1 << 24)[2:] == (1, 0)
    seal_batch(run, start, count=len(payloads))
    complete_run(run, LogEnd(), nonce=7, enqueued_time_ms=1_000, durable_upto=0, writer_epoch=1)
    return run


def transfers(data: bytes) -> list[Transfer]:
    return [performative for _, performative in written(data) if isinstance(performative, Transfer)]


def test_nothing_can_be_sent_without_credit_or_without_a_link() -> None:
    side = served(attach=DOWN)
    link = down(side)
    assert (link.credit, link.sendable) == (0, 0)
    with pytest.raises(NotSendable, match="down"):
        link.send(b"x")
    feed(side, flow(1))
    assert side.events[-1] == CreditGranted(link)
    link.send(b"x")
    assert link.sendable == 0
    feed(side, flow(5, seen=1, frames=2) + frame(Detach(handle=0, closed=True)))
    assert link.sendable == 0
    with pytest.raises(NotSendable):
        link.send(b"x")


def test_credit_that_came_before_the_answer_is_there_after_it() -> None:
    side = served(attach=DOWN, accepts=False)
    feed(side, flow(3))
    link = down(side)
    assert link.sendable == 0
    link.accept(initial_delivery_count=0)
    assert link.sendable == 3


@pytest.mark.parametrize("size", [0, 1, 470, 471, 472, 473, 5_000])
def test_a_delivery_is_cut_to_the_peers_frames(size: int) -> None:
    side = served(attach=DOWN, peer=replace(served().endpoint.remote_open, max_frame_size=512))
    feed(side, flow(2))
    delivery_id = down(side).send(bytes(size), message_format=9)
    data = side.drain()
    parts = transfers(data)
    assert len(parts) == max(1, -(-size // (512 - 33)))
    assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]
    assert (parts[0].delivery_id, parts[0].delivery_tag, parts[0].message_format) == (delivery_id, b"\0\0\0\0", 9)
    assert {part.delivery_id for part in parts} == {delivery_id}
    position = 0
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        assert length <= 512
        position += length


def test_ids_are_the_sessions_and_wrap() -> None:
    side = served(attach=DOWN)
    feed(side, flow(3))
    link = down(side)
    link.session.next_delivery_id = 2**32 - 1
    assert [link.send(b"") for _ in range(3)] == [2**32 - 1, 0, 1]


def test_frames_beyond_the_window_wait_for_a_flow_and_keep_their_order() -> None:
    side = served(attach=DOWN, begin=replace(BEGIN, incoming_window=2))
    feed(side, flow(10, window=2))
    link = down(side)
    link.send(b"a" * 150_000)
    link.send(b"b")
    assert len(transfers(side.drain())) == 2
    assert (bool(link.session.held), link.sendable) == (True, 0)
    feed(side, flow(10, seen=0, window=2, frames=3))
    assert not link.session.held
    assert len(transfers(side.written)) == 4
    assert side.events[-1] == CreditGranted(link)
    feed(side, flow(10, seen=2, window=2, frames=5))
    assert link.sendable == 10


def test_frames_held_back_go_with_their_link() -> None:
    side = served(attach=DOWN, begin=replace(BEGIN, incoming_window=1))
    feed(side, flow(1, window=1))
    down(side).send(b"a" * 150_000)
    side.drain()
    down(side).detach()
    begun = len(side.written)
    feed(side, flow(1, window=100, frames=2))
    assert transfers(side.written[begun:]) == []


def test_a_run_is_written_as_far_as_credit_goes() -> None:
    run = a_run(*(b"event %d" % number for number in range(10)))
    side = served(attach=DOWN)
    feed(side, flow(4))
    link = down(side)
    first = link.send_run(run, RunCursor(), max_events=100, max_bytes=1 << 20)
    assert (first.events, first.first_id, link.credit) == (4, 0, 0)
    assert first.bytes == len(side.drain())
    assert link.send_run(run, first.cursor, max_events=100, max_bytes=1 << 20).events == 0
    feed(side, flow(100, seen=4, frames=5))
    second = link.send_run(run, first.cursor, max_events=2, max_bytes=1 << 20)
    third = link.send_run(run, second.cursor, max_events=100, max_bytes=1 << 20)
    assert (second.events, third.events, third.first_id) == (2, 4, 6)
    assert third.cursor.batch_at == len(run)
    assert [part.delivery_id for part in transfers(side.drain())] == list(range(4, 10))
    assert link.credit == 94


def test_a_run_arrives_as_it_was_sent() -> None:
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    receiver = session.attach_receiver("r", source=RECEIVE_LINK.source, target=RECEIVE_LINK.target)
    receiver.grant(100)
    pair.pump()
    link = pair.server.link("r")
    assert isinstance(link, SenderLink)
    link.send_run(a_run(b"one", b"x" * 200_000, b"three"), RunCursor(), max_events=10, max_bytes=1 << 20)
    pair.pump()
    assert [(entry.delivery_id, entry.settled) for entry in pair.client.deliveries()] == [
        (0, True),
        (1, True),
        (2, True),
    ]
    assert [
        body in entry.payload
        for body, entry in zip((b"one", b"x" * 200_000, b"three"), pair.client.deliveries(), strict=True)
    ]
    assert receiver.credit == 97


def test_a_run_goes_in_frames_as_large_as_the_peer_takes_not_as_we_do() -> None:
    side = served(attach=DOWN, peer=replace(OPEN, max_frame_size=600))
    feed(side, flow(1))
    begun = len(side.written)
    down(side).send_run(a_run(b"x" * 2_000), RunCursor(), max_events=1, max_bytes=1 << 20)
    side.drain()
    assert [part.more for part in transfers(side.written[begun:])] == [True, True, True, False]


def test_a_run_stops_at_the_window_and_an_event_larger_than_it_is_held_back() -> None:
    run = a_run(b"small", b"small", b"x" * 200_000, b"last")
    side = served(attach=DOWN, begin=replace(BEGIN, incoming_window=2))
    feed(side, flow(10, window=2))
    link = down(side)
    first = link.send_run(run, RunCursor(), max_events=10, max_bytes=1 << 20)
    assert (first.events, len(transfers(side.drain()))) == (2, 2)
    feed(side, flow(8, seen=2, window=2, frames=3))
    second = link.send_run(run, first.cursor, max_events=10, max_bytes=1 << 20)
    assert (second.events, len(transfers(side.drain())), bool(link.session.held)) == (1, 2, True)
    assert link.send_run(run, second.cursor, max_events=10, max_bytes=1 << 20).events == 0
    begun = len(side.written)
    feed(side, flow(7, seen=3, window=50, frames=5))
    assert len(transfers(side.written[begun:])) == 2
    assert link.send_run(run, second.cursor, max_events=10, max_bytes=1 << 20).events == 1
    assert [part.more for part in transfers(side.written)][2:] == [True, True, True, False]


def test_the_byte_budget_bounds_a_run_but_never_below_one_event() -> None:
    run = a_run(*(b"x" * 1_000 for _ in range(10)))
    side = served(attach=DOWN)
    feed(side, flow(10))
    assert down(side).send_run(run, RunCursor(), max_events=10, max_bytes=3_500).events == 3
    assert down(side).send_run(run, RunCursor(), max_events=10, max_bytes=1).events == 1


def test_a_credit_of_batches_is_a_delivery_however_many_events_it_holds() -> None:
    run = a_run(*(b"x" * 1_000 for _ in range(200)))
    side = served(attach=DOWN)
    feed(side, flow(3))
    link = down(side)
    first = link.send_batches(run, RunCursor(), max_events=10, max_bytes=1 << 20)
    assert (first.events, first.first_id, link.credit) == (10, 0, 2)
    assert first.bytes == len(side.drain())
    second = link.send_batches(run, first.cursor, max_events=1_000, max_bytes=1 << 20)
    assert 110 < second.events < 130  # two frames
    assert (second.first_id, link.credit) == (1, 0)
    assert [(part.delivery_id, part.message_format) for part in transfers(side.drain())] == [
        (1, STORED_FORMAT),
        (2, STORED_FORMAT),
    ]
    assert link.send_batches(run, second.cursor, max_events=1_000, max_bytes=1 << 20).events == 0
    feed(side, flow(9, seen=3, frames=4))
    assert link.send_batches(run, second.cursor, max_events=0, max_bytes=1 << 20).events == 0
    third = link.send_batches(run, second.cursor, max_events=1_000, max_bytes=1 << 20)
    assert (first.events + second.events + third.events, third.cursor.batch_at) == (200, len(run))


def test_batches_stop_at_the_window_and_an_event_larger_than_it_is_held_back() -> None:
    run = a_run(b"x" * 200_000, b"last")
    side = served(attach=DOWN, begin=replace(BEGIN, incoming_window=2))
    feed(side, flow(10, window=2))
    link = down(side)
    first = link.send_batches(run, RunCursor(), max_events=10, max_bytes=1 << 20)
    assert (first.events, len(transfers(side.drain())), bool(link.session.held)) == (1, 2, True)
    assert link.send_batches(run, first.cursor, max_events=10, max_bytes=1 << 20).events == 0
    begun = len(side.written)
    feed(side, flow(9, seen=1, window=50, frames=3))
    assert len(transfers(side.written[begun:])) == 2
    assert link.send_batches(run, first.cursor, max_events=10, max_bytes=1 << 20).events == 1


def test_batches_for_a_second_settler_wait_for_it() -> None:
    side = served(attach=replace(DOWN, rcv_settle_mode=1))
    feed(side, flow(10))
    link = down(side)
    link.send_batches(a_run(b"one", b"two"), RunCursor(), max_events=2, max_bytes=1 << 20)
    assert [part.settled for part in transfers(side.drain())] == [False]
    assert link.unsettled_count == 1
    feed(side, frame(Disposition(role=True, first=0, settled=True, state=Accepted())))
    assert link.unsettled_count == 0


def test_drain_advances_the_count_and_answers_with_no_credit() -> None:
    side = served(attach=DOWN)
    feed(side, flow(10, drain=True))
    link = down(side)
    assert link.drain
    link.send(b"x")
    side.drain()
    link.drained()
    ((_, answer),) = written(side.drain())
    assert isinstance(answer, Flow)
    assert (answer.handle, answer.delivery_count, answer.link_credit, answer.drain) == (link.handle, 10, 0, True)
    link.drained()
    assert side.drain() == b"", "one drain is answered once"


def test_echo_is_answered_with_a_flow_of_the_link_or_of_the_session() -> None:
    side = served(attach=DOWN)
    begun = len(side.written)
    feed(side, flow(10, echo=True))
    session_only = Flow(next_incoming_id=1, incoming_window=9, next_outgoing_id=0, outgoing_window=9, echo=True)
    feed(side, frame(session_only))
    first, second = (performative for _, performative in written(side.written[begun:]))
    assert isinstance(first, Flow) and isinstance(second, Flow)
    assert (first.handle, first.link_credit, first.delivery_count) == (0, 10, 0)
    assert (second.handle, second.link_credit, second.next_incoming_id) == (None, None, 0)


@pytest.mark.parametrize(
    ("snd", "rcv", "presettled"), [(0, 0, True), (1, 0, True), (2, 0, True), (0, 1, False), (1, 1, True)]
)
def test_only_a_receiver_that_settles_second_gets_unsettled_deliveries(snd: int, rcv: int, presettled: bool) -> None:
    side = served(attach=replace(DOWN, snd_settle_mode=snd, rcv_settle_mode=rcv))
    assert down(side).presettled is presettled
    feed(side, flow(2))
    down(side).send_run(a_run(b"e"), RunCursor(), max_events=1, max_bytes=1 << 20)
    assert [part.settled for part in transfers(side.drain())] == [presettled]
    assert down(side).unsettled_count == (0 if presettled else 1)


def test_a_second_settler_is_answered_for_what_it_settles_and_not_before() -> None:
    side = served(attach=replace(DOWN, rcv_settle_mode=1))
    feed(side, flow(10))
    link = down(side)
    link.send_run(a_run(*(b"e",) * 5), RunCursor(), max_events=5, max_bytes=1 << 20)
    side.drain()
    begun = len(side.written)
    progress = Received(section_number=0, section_offset=1)
    feed(side, frame(Disposition(role=True, first=0, last=4, state=progress)) + frame(Disposition(role=True, first=0)))
    assert written(side.written[begun:]) == []
    feed(side, frame(Disposition(role=True, first=1, last=2, state=Accepted())))
    assert [performative for _, performative in written(side.written[begun:])] == [
        Disposition(role=False, first=1, last=2, settled=True, state=Accepted())
    ]
    assert side.events[-1] == Settled(link, 1, 2, Accepted(), False)
    feed(side, frame(Disposition(role=True, first=0, last=9, settled=True, state=Released())))
    assert side.said[-2:] == [
        ("settled", "down", 0, 0, Released(), True),
        ("settled", "down", 3, 4, Released(), True),
    ]
    assert link.unsettled_count == 0


def test_unsettled_deliveries_reserve_no_more_than_the_limit() -> None:
    side = served(attach=replace(DOWN, rcv_settle_mode=1), settings=EndpointSettings("server", max_unsettled=3))
    feed(side, flow(100))
    link = down(side)
    assert link.sendable == 3
    link.send_run(a_run(*(b"e",) * 9), RunCursor(), max_events=9, max_bytes=1 << 20)
    assert (link.unsettled_count, link.unsettled_room, link.sendable) == (3, 0, 0)
    feed(side, frame(Disposition(role=True, first=0, last=1, settled=True)))
    assert side.events[-1] == Settled(link, 0, 1, None, True)
    assert (link.unsettled_room, link.sendable) == (2, 2)


@pytest.mark.parametrize("outcome", [None, Received(section_number=0, section_offset=0)])
def test_a_disposition_without_an_outcome_makes_no_room(outcome: Received | None) -> None:
    side = served(attach=replace(DOWN, rcv_settle_mode=1), settings=EndpointSettings("server", max_unsettled=3))
    feed(side, flow(100))
    link = down(side)
    link.send_run(a_run(*(b"e",) * 9), RunCursor(), max_events=9, max_bytes=1 << 20)
    feed(side, frame(Disposition(role=True, first=0, last=1, settled=False, state=outcome)))
    assert link.sendable == 0
    assert not any(isinstance(each, Settled) for each in side.events)


def test_a_client_learns_the_outcome_of_a_range() -> None:
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    link = session.attach_sender("s", source=DOWN.target and None, target=DOWN.target)
    pair.pump()
    server = pair.server.link("s")
    server.grant(10)
    pair.pump()
    for number in range(4):
        link.send(b"m%d" % number, settled=False)
    pair.pump()
    server.settle(0, 2, Accepted())
    pair.pump()
    assert pair.client.events[-1] == Settled(link, 0, 2, Accepted(), True)
    assert link.unsettled_count == 1
    assert isinstance(pair.server.said[-1], Delivered)


def message_rows(run: bytes, count: int) -> array[int]:
    """Rows of the first messages of a run, locked, with numbers from 1 on."""
    rows, at = array("q"), HEADER_SIZE
    for number in range(1, count + 1):
        rows.extend([at, number, 0, 60_000, 0, 0, number, number, -1, -1, -1, -1, number])
        at += int.from_bytes(run[at : at + 4], "big")
    return rows


def test_messages_go_out_as_far_as_credit_goes_and_are_unsettled_until_the_peer_says() -> None:
    side = served(attach=replace(DOWN, rcv_settle_mode=0))
    link = down(side)
    run = a_run(*(b"%d" % number for number in range(5)))
    rows = message_rows(run, 5)
    nothing = link.send_messages(run, rows, 0, id_prefix=b"0" * 16, settled=False, max_bytes=1 << 20)
    assert (nothing.events, link.unsettled_count) == (0, 0)
    feed(side, flow(3))
    first = link.send_messages(run, rows, 1, id_prefix=b"0" * 16, settled=False, max_bytes=1 << 20)
    assert (first.events, first.first_id, link.unsettled_count, link.credit) == (3, 0, 3, 0)
    sent = transfers(side.drain())
    assert [(part.delivery_id, part.settled) for part in sent] == [(0, False), (1, False), (2, False)]
    assert [bytes(part.delivery_tag or b"")[-1] for part in sent] == [2, 3, 4]
    feed(side, frame(Disposition(role=True, first=0, last=2, settled=True, state=Accepted())) + flow(9, seen=3))
    last = link.send_messages(run, rows, 4, id_prefix=b"0" * 16, settled=True, max_bytes=1 << 20)
    assert (last.events, last.first_id, link.unsettled_count) == (1, 3, 0)


def test_a_message_larger_than_the_window_is_held_back_until_it_opens() -> None:
    side = served(attach=DOWN, begin=replace(BEGIN, incoming_window=2))
    feed(side, flow(10, window=2))
    run = a_run(b"x" * 200_000, b"last")
    first = down(side).send_messages(run, message_rows(run, 2), 0, id_prefix=b"0" * 16, settled=True, max_bytes=1 << 20)
    assert (first.events, len(transfers(side.drain())), bool(down(side).session.held)) == (1, 2, True)
    begun = len(side.written)
    feed(side, flow(9, seen=1, window=50, frames=3))
    assert len(transfers(side.written[begun:])) == 2
