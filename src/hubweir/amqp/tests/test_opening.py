"""opening.py: headers and SASL, by either role; what comes too early, too much, or not at all. (Through an endpoint)"""

from __future__ import annotations

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER
from hubweir.amqp.security.sasl import SaslInit
from hubweir.amqp.tests.one_endpoint import closed_with, give, sent, server
from hubweir.amqp.transport.events import Closed, Opened, SaslFinished, SaslInitiated
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.values import Symbol
from hubweir.testing.endpoint_pair import EndpointPair
from hubweir.testing.frames import OPEN, attached, frame, raw, sasl_start


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
