"""Deadlines and idle time-outs, close and the end of the transport: what is around the connection."""

from __future__ import annotations

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER
from hubweir.amqp.tests.one_endpoint import closed_with, give, sent, server
from hubweir.amqp.transport.events import Closed, LinkAttached
from hubweir.amqp.transport.performatives import Close, Open
from hubweir.amqp.transport.settings import Role
from hubweir.limits import ConnectionLimits
from hubweir.testing.endpoint_pair import EndpointPair, Side
from hubweir.testing.frames import OPEN, attached, frame, raw, sasl_start, transfer, written

EMPTY = raw(b"")


def test_open_tells_what_the_settings_say() -> None:
    endpoint = server(channel_max=7, limits=ConnectionLimits(max_frame_size_bytes=4_096, idle_timeout_ms=9_000))
    give(endpoint, sasl_start())
    endpoint.answer_sasl(0)
    give(endpoint, AMQP_HEADER + frame(OPEN))
    ((_, answer),) = written(sent(endpoint))
    assert answer == Open(container_id="server", max_frame_size=4_096, channel_max=7, idle_time_out=9_000)
    assert endpoint.remote_open == OPEN


def test_deadlines_of_the_opening_end_a_slow_peer() -> None:
    endpoint = server()
    assert endpoint.next_deadline_ms() == 10_000
    give(endpoint, SASL_HEADER[:7], now_ms=5_000)
    assert endpoint.on_time(9_999) == []
    assert closed_with(endpoint.on_time(10_000)) == "amqp:connection:forced"

    endpoint = server()
    give(endpoint, sasl_start())
    endpoint.answer_sasl(0)
    give(endpoint, AMQP_HEADER, now_ms=10_000)
    assert endpoint.on_time(19_999) == []
    assert closed_with(endpoint.on_time(20_000)) == "amqp:connection:forced"
    assert endpoint.is_closed


def opened(side: Side, now_ms: int = 0) -> None:
    for data in (sasl_start(), AMQP_HEADER, frame(OPEN)):
        side.take(side.endpoint.receive_data(memoryview(data), now_ms))
    side.drain()


def test_a_connection_without_a_link_is_forced_closed_and_one_with_a_link_is_not() -> None:
    side = Side(server(limits=ConnectionLimits(idle_timeout_ms=0)))
    opened(side)
    assert side.endpoint.next_deadline_ms() == 60_000
    assert closed_with(side.endpoint.on_time(60_000)) == "amqp:connection:forced"
    ((_, close),) = written(side.drain())
    assert isinstance(close, Close) and close.error is not None

    side = Side(server(limits=ConnectionLimits(idle_timeout_ms=0)))
    opened(side)
    rest = attached()[len(sasl_start() + AMQP_HEADER + frame(OPEN)) :]
    side.take(give(side.endpoint, rest, now_ms=1_000))
    side.drain()
    assert side.endpoint.next_deadline_ms() is None
    assert side.endpoint.on_time(10_000_000) == []
    for link in side.endpoint.sessions[0].links:
        link.detach()
    side.drain()
    assert side.endpoint.next_deadline_ms() == 10_000_000 + 300_000
    assert closed_with(side.endpoint.on_time(10_300_000)) == "amqp:connection:forced"


def test_a_link_accepted_after_the_read_counts_before_the_deadline() -> None:
    """The host may accept between two calls; the first-link deadline must see it."""
    side = Side(server(limits=ConnectionLimits(idle_timeout_ms=0)), accepts=False)
    side.take(give(side.endpoint, attached()))
    side.take(side.endpoint.on_time(0))
    links = [event.link for event in side.events if isinstance(event, LinkAttached)]
    assert len(links) == 2
    links[0].accept()
    assert side.endpoint.on_time(60_000) == []


def test_a_silent_peer_is_dropped_after_twice_the_advertised_time_and_an_empty_frame_keeps_it() -> None:
    side = Side(server(limits=ConnectionLimits(idle_timeout_ms=10_000)))
    side.take(give(side.endpoint, attached()))
    side.take(side.endpoint.on_time(0))
    assert side.endpoint.on_time(19_999) == []
    assert give(side.endpoint, EMPTY, now_ms=19_999) == []
    assert side.endpoint.on_time(39_998) == []
    assert closed_with(side.endpoint.on_time(39_999)) == "amqp:connection:forced"


@pytest.mark.parametrize("timeout_ms", [400, 10_000, 60_000])
@pytest.mark.parametrize("chatter_ms", [None, 700, 3_001])
def test_something_is_written_in_every_half_of_the_peers_time(timeout_ms: int, chatter_ms: int | None) -> None:
    side = Side(server(limits=ConnectionLimits(idle_timeout_ms=0)))
    start = attached().replace(frame(OPEN), frame(Open(container_id="peer", idle_time_out=timeout_ms)))
    side.take(give(side.endpoint, start))
    side.take(side.endpoint.on_time(0))
    side.drain()
    last, now = 0, 0
    while now < 10 * timeout_ms:
        due = side.endpoint.next_deadline_ms()
        assert due is not None
        if chatter_ms is not None and now // chatter_ms != due // chatter_ms:
            # The server has something to say between two ticks.
            now = due // chatter_ms * chatter_ms
            side.link("up").grant(1)
        else:
            now = due
            side.endpoint.on_time(now)
        if side.drain():
            assert now - last <= timeout_ms / 2
            last = now
    assert now - last <= timeout_ms / 2


def test_a_close_without_an_answer_ends_by_itself() -> None:
    pair = EndpointPair().opened()
    pair.client.endpoint.close()
    pair.client.drain()
    deadline = pair.client.endpoint.next_deadline_ms()
    assert deadline == 5_000
    assert pair.client.endpoint.on_time(deadline) == [Closed(None, by_peer=False, clean=False)]
    assert pair.client.endpoint.is_closed


def test_a_shutdown_tells_its_reason_and_the_answer_is_clean() -> None:
    pair = EndpointPair().opened()
    reason = AmqpError(condition="amqp:connection:forced", description="the server stops")
    pair.server.endpoint.close(reason)
    pair.pump()
    assert pair.client.events[-1] == Closed(reason, by_peer=True, clean=True)
    assert pair.server.events[-1] == Closed(None, by_peer=False, clean=True)
    assert pair.server.endpoint.is_closed and pair.client.endpoint.is_closed


def test_the_end_of_the_transport_is_an_end_and_is_reported_once() -> None:
    pair = EndpointPair().opened()
    assert pair.server.endpoint.receive_eof(5) == [Closed(None, by_peer=True, clean=False)]
    assert pair.server.endpoint.receive_eof(6) == []
    assert pair.server.endpoint.next_deadline_ms() is None


def test_the_text_of_an_error_can_be_given_what_the_host_wants_in_it() -> None:
    settings = EndpointSettings("server")
    endpoint = Endpoint(Role.SERVER, settings, now_ms=0, describe_error=lambda _, text: f"{text} TrackingId:7")
    give(endpoint, sasl_start())
    endpoint.answer_sasl(0)
    give(endpoint, AMQP_HEADER + frame(OPEN) + transfer(0))
    _, (_, close) = written(sent(endpoint))[-2:]
    assert isinstance(close, Close) and close.error is not None
    assert close.error.description.endswith(" TrackingId:7")


def test_a_lost_peer_leaves_no_deadline_in_the_past() -> None:
    """A driver would ring its timer for ever for one."""
    settings = EndpointSettings("server", limits=ConnectionLimits(idle_timeout_ms=1_000))
    server = EndpointPair(server=settings).opened().server.endpoint
    server.on_time(2_000)
    assert server.data_to_send()
    due_ms = server.next_deadline_ms()
    assert due_ms is None or due_ms > 2_000
    server.on_time(2_000 + server.settings.close_deadline_ms)
    assert server.is_closed
