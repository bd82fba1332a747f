"""Headers, SASL, deadlines and idle time-outs: everything around the connection."""

from __future__ import annotations

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER
from hubweir.amqp.security.sasl import SaslInit
from hubweir.amqp.transport.events import Closed, Event, LinkAttached, Opened, SaslFinished, SaslInitiated
from hubweir.amqp.transport.performatives import Close, Open
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.values import Symbol
from hubweir.testing.endpoint_pair import EndpointPair, Side
from hubweir.testing.frames import OPEN, attached, frame, raw, sasl_start, transfer, written

EMPTY = raw(b"")


def server(**settings: object) -> Endpoint:
    return Endpoint(Role.SERVER, EndpointSettings("server", **settings), now_ms=0)


def give(endpoint: Endpoint, data: bytes, now_ms: int = 0) -> list[Event]:
    return endpoint.receive_data(memoryview(data), now_ms)


def sent(endpoint: Endpoint) -> bytes:
    return b"".join(bytes(piece) for piece in endpoint.data_to_send())


def closed_with(events: list[Event]) -> str:
    assert isinstance(events[-1], Closed), events
    assert events[-1].error is not None
    return str(events[-1].error.condition)


@pytest.mark.parametrize("response", [b"", b"\0RootManageSharedAccessKey", b"anonymous"])
@pytest.mark.parametrize("mechanism", ["ANONYMOUS", "MSSBCBS", "PLAIN", "EXTERNAL"])
def test_the_host_is_asked_about_each_mechanism(mechanism: str, response: bytes) -> None:
    endpoint = server()
    events = give(endpoint, sasl_start(mechanism, response))
    assert events == [SaslInitiated(mechanism, response, None)]
    assert sent(endpoint).startswith(SASL_HEADER)
    endpoint.answer_sasl(0)
    assert sent(endpoint) == b"\x00\x00\x00\x11\x02\x01\x00\x00\x00\x53\x44\xc0\x04\x02\x50\x00\x40"
    give(endpoint, AMQP_HEADER)
    assert sent(endpoint) == AMQP_HEADER


def test_a_refused_response_gets_outcome_1_and_the_end() -> None:
    endpoint = server()
    give(endpoint, sasl_start("PLAIN", b"\0u\0wrong"))
    endpoint.answer_sasl(1)
    assert sent(endpoint).endswith(b"\x50\x01\x40")
    assert endpoint.is_closed
    assert closed_with(endpoint.receive_eof(0)) == "amqp:unauthorized-access"


def test_an_unknown_mechanism_is_refused_without_asking_the_host() -> None:
    endpoint = server()
    events = give(endpoint, sasl_start("SCRAM-SHA-256"))
    assert [type(event) for event in events] == [Closed]
    assert sent(endpoint).endswith(b"\x50\x01\x40")


def test_a_hostname_with_the_path_of_a_websocket_is_cut() -> None:
    endpoint = server()
    hostname = "hub.local/$servicebus/websocket"
    init = encode_composite(SaslInit(mechanism=Symbol("ANONYMOUS"), initial_response=b"", hostname=hostname))
    events = give(endpoint, SASL_HEADER + raw(init, frame_type=1))
    assert events == [SaslInitiated("ANONYMOUS", b"", "hub.local")]


@pytest.mark.parametrize("sasl", [True, False])
@pytest.mark.parametrize(
    "opening",
    [AMQP_HEADER, SASL_HEADER, b"AMQP\x02\x01\x00\x00", b"AMQP\x00\x00\x09\x01", b"GET / HTTP/1.1\r\n", b"\x16"],
)
def test_any_other_header_is_answered_with_the_one_that_is_wanted(opening: bytes, sasl: bool) -> None:
    wanted = SASL_HEADER if sasl else AMQP_HEADER
    if opening == wanted:
        return
    endpoint = server(sasl=sasl)
    assert closed_with(give(endpoint, opening)) == "amqp:connection:framing-error"
    assert sent(endpoint) == wanted
    assert endpoint.is_closed
    assert give(endpoint, b"more") == []


def test_the_header_behind_sasl_must_be_amqp() -> None:
    endpoint = server()
    give(endpoint, sasl_start())
    endpoint.answer_sasl(0)
    assert closed_with(give(endpoint, SASL_HEADER)) == "amqp:connection:framing-error"


@pytest.mark.parametrize(
    "frame_bytes",
    [
        raw(b"", frame_type=1, size=513)[:4],
        raw(b"", frame_type=1, size=7)[:4],
        raw(b"\x00\x53\x41\x45", frame_type=0),
        raw(b"\x00\x53\x41\x45", frame_type=1, doff=1),
        raw(b"\x00\x53\x41\x45", frame_type=1),
        raw(b"\x00\x53\x99\x45", frame_type=1),
        raw(b"", frame_type=1),
    ],
)
def test_a_bad_sasl_frame_ends_the_transport(frame_bytes: bytes) -> None:
    endpoint = server()
    events = give(endpoint, SASL_HEADER + frame_bytes)
    assert closed_with(events) in ("amqp:connection:framing-error", "amqp:decode-error")
    assert endpoint.is_closed


def test_a_sasl_frame_of_512_bytes_is_taken() -> None:
    endpoint = server()
    start = sasl_start("PLAIN", b"p" * 460)
    body = start[len(SASL_HEADER) :]
    padding = 512 - len(body)
    events = give(endpoint, sasl_start("PLAIN", b"p" * (460 + padding)))
    assert [type(event) for event in events] == [SaslInitiated]


def test_a_second_init_is_refused() -> None:
    endpoint = server()
    give(endpoint, sasl_start())
    endpoint.answer_sasl(0)
    assert closed_with(give(endpoint, sasl_start()[8:])) == "amqp:connection:framing-error"


def test_what_comes_before_the_hosts_answer_waits_and_is_bounded() -> None:
    endpoint = server()
    events = give(endpoint, attached())
    assert [type(event) for event in events] == [SaslInitiated], "the rest was sent ahead of the outcome"
    endpoint.answer_sasl(0)
    assert endpoint.next_deadline_ms() == 0
    later = endpoint.on_time(0)
    assert [type(event).__name__ for event in later] == ["Opened", "SessionBegun", "LinkAttached", "LinkAttached"]

    endpoint = server()
    give(endpoint, sasl_start())
    assert give(endpoint, bytes(65_536)) == []
    assert closed_with(give(endpoint, b"\0")) == "amqp:resource-limit-exceeded"


def test_a_piece_of_the_next_header_behind_init_does_not_ask_for_time_again_and_again() -> None:
    endpoint = server()
    give(endpoint, sasl_start() + AMQP_HEADER[:3])
    endpoint.answer_sasl(0)
    assert endpoint.next_deadline_ms() == 0
    assert endpoint.on_time(0) == []
    assert endpoint.next_deadline_ms() == 20_000
    give(endpoint, AMQP_HEADER[3:], now_ms=5)
    assert sent(endpoint).endswith(AMQP_HEADER)


def test_a_client_reports_a_refusal_of_its_response() -> None:
    client = Endpoint(
        Role.CLIENT, EndpointSettings("client", sasl_mechanism="PLAIN", sasl_response=b"\0u\0p"), now_ms=0
    )
    other = server()
    client.open()
    give(other, sent(client))
    give(client, sent(other))
    assert give(other, sent(client)) == [SaslInitiated("PLAIN", b"\0u\0p", None)]
    other.answer_sasl(1)
    events = give(client, sent(other))
    assert events[0] == SaslFinished(1)
    assert closed_with(events) == "amqp:unauthorized-access"
    assert client.is_closed


@pytest.mark.parametrize("first", [8, 1, 7])
def test_a_server_that_allows_it_takes_a_peer_without_sasl(first: int) -> None:
    endpoint = server(sasl_may_be_left_out=True)
    opening = AMQP_HEADER + frame(OPEN)
    assert give(endpoint, opening[:first]) == []
    assert [type(event) for event in give(endpoint, opening[first:])] == [Opened]
    assert sent(endpoint).startswith(AMQP_HEADER)


def test_a_server_that_takes_peers_without_sasl_still_offers_it_and_refuses_other_headers() -> None:
    endpoint = server(sasl_may_be_left_out=True)
    assert give(endpoint, sasl_start("ANONYMOUS")) == [SaslInitiated("ANONYMOUS", b"", None)]
    endpoint = server(sasl_may_be_left_out=True)
    assert closed_with(give(endpoint, b"AMQP\x00\x00\x09\x01")) == "amqp:connection:framing-error"


def test_both_roles_work_without_sasl() -> None:
    pair = EndpointPair(client=EndpointSettings("c", sasl=False), server=EndpointSettings("s", sasl=False)).opened()
    assert [type(event) for event in pair.server.events] == [Opened]
    assert [type(event) for event in pair.client.events] == [Opened]
    assert pair.client.endpoint.is_open and pair.server.endpoint.is_open


def test_open_tells_what_the_settings_say() -> None:
    endpoint = server(max_frame_size=4_096, channel_max=7, idle_timeout_ms=9_000)
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
    side = Side(server(idle_timeout_ms=0))
    opened(side)
    assert side.endpoint.next_deadline_ms() == 60_000
    assert closed_with(side.endpoint.on_time(60_000)) == "amqp:connection:forced"
    ((_, close),) = written(side.drain())
    assert isinstance(close, Close) and close.error is not None

    side = Side(server(idle_timeout_ms=0))
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
    side = Side(server(idle_timeout_ms=0), accepts=False)
    side.take(give(side.endpoint, attached()))
    side.take(side.endpoint.on_time(0))
    links = [event.link for event in side.events if isinstance(event, LinkAttached)]
    assert len(links) == 2
    links[0].accept()
    assert side.endpoint.on_time(60_000) == []


def test_a_silent_peer_is_dropped_after_twice_the_advertised_time_and_an_empty_frame_keeps_it() -> None:
    side = Side(server(idle_timeout_ms=10_000))
    side.take(give(side.endpoint, attached()))
    side.take(side.endpoint.on_time(0))
    assert side.endpoint.on_time(19_999) == []
    assert give(side.endpoint, EMPTY, now_ms=19_999) == []
    assert side.endpoint.on_time(39_998) == []
    assert closed_with(side.endpoint.on_time(39_999)) == "amqp:connection:forced"


@pytest.mark.parametrize("timeout_ms", [400, 10_000, 60_000])
@pytest.mark.parametrize("chatter_ms", [None, 700, 3_001])
def test_something_is_written_in_every_half_of_the_peers_time(timeout_ms: int, chatter_ms: int | None) -> None:
    side = Side(server(idle_timeout_ms=0))
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
    endpoint = server(describe_error=lambda text: f"{text} TrackingId:7")
    give(endpoint, sasl_start())
    endpoint.answer_sasl(0)
    give(endpoint, AMQP_HEADER + frame(OPEN) + transfer(0))
    _, (_, close) = written(sent(endpoint))[-2:]
    assert isinstance(close, Close) and close.error is not None
    assert close.error.description.endswith(" TrackingId:7")


def test_a_lost_peer_leaves_no_deadline_in_the_past() -> None:
    """A driver would ring its timer for ever for one."""
    server = EndpointPair(server=EndpointSettings("server", idle_timeout_ms=1_000)).opened().server.endpoint
    server.on_time(2_000)
    assert server.data_to_send()
    due_ms = server.next_deadline_ms()
    assert due_ms is None or due_ms > 2_000
    server.on_time(2_000 + server.settings.close_deadline_ms)
    assert server.is_closed
