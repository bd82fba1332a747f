from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.security.protocol_header import AMQP_HEADER
from hubweir.amqp.transport.events import Closed, SessionEnded
from hubweir.amqp.transport.faults import IllegalState
from hubweir.amqp.transport.frame import append_frame
from hubweir.amqp.transport.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Symbol, UInt, ULong
from hubweir.testing.endpoint_pair import EndpointPair, Side
from hubweir.testing.frames import BEGIN, OPEN, SEND_LINK, frame, raw, transfer, written
from hubweir.testing.served import feed, served

ALL_FIELDS = {Open: 10, Begin: 8, Attach: 14, Flow: 11, Transfer: 11, Disposition: 6, Detach: 3, End: 1, Close: 1}


def test_everything_we_write_has_the_short_descriptor_and_all_its_fields() -> None:
    """A whole conversation of ours, read with nothing but the byte layout that the strictest client expects."""
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    sender = session.attach_sender("s", source=SEND_LINK.source, target=SEND_LINK.target)
    receiver = session.attach_receiver("r", source=SEND_LINK.source, target=SEND_LINK.target)
    receiver.grant(5)
    pair.pump()
    pair.server.link("s").grant(5)
    pair.pump()
    sender.send(b"x" * 100_000, settled=False)
    pair.pump()
    pair.server.link("s").settle(0, 0, None)
    pair.server.link("r").send(b"y" * 100_000)
    pair.server.link("r").detach(AmqpError(condition="amqp:not-found", description="gone"))
    pair.pump()
    session.end()
    pair.pump()
    pair.server.endpoint.close(AmqpError(condition="amqp:connection:forced", description="stop"))
    pair.pump()
    seen = set()
    for data in (pair.client.written, pair.server.written):
        position = 0
        while position < len(data):
            if data[position : position + 4] == b"AMQP":
                position += 8
                continue
            size = int.from_bytes(data[position : position + 4], "big")
            body = bytes(data[position + 8 : position + size])
            if data[position + 5] == 0 and body:
                assert body[:2] == b"\x00\x53" and body[3] in (0xC0, 0xD0)
                fields, _ = decode(body, 3)
                cls = next(cls for cls in ALL_FIELDS if body[2] == cls.CODE)
                assert isinstance(fields, list) and len(fields) == ALL_FIELDS[cls]
                if cls in (Detach, Close) and fields[-1] is not None:
                    error = fields[-1]
                    assert isinstance(error, Described) and len(error.value) == 3
                    assert type(error.value[0]) is Symbol and type(error.value[1]) is str
                seen.add(cls)
            position += size
    assert seen == set(ALL_FIELDS)


@pytest.mark.parametrize("style", ["numeric", "wide", "symbolic"])
def test_descriptors_of_any_form_and_trimmed_lists_are_read(style: str) -> None:
    def listed(cls: type, *values: object) -> bytes:
        if style == "symbolic":
            return encode(Described(Symbol(cls.NAME), list(values)))
        body = encode(Described(ULong(cls.CODE), list(values)))
        return body if style == "numeric" else b"\x00\x80" + cls.CODE.to_bytes(8, "big") + body[3:]

    side = Side(Endpoint(Role.SERVER, EndpointSettings("server", sasl=False), now_ms=0))
    feed(side, AMQP_HEADER + raw(listed(Open, "peer")))
    feed(side, raw(listed(Begin, None, UInt(0), UInt(100), UInt(100))))
    source = Described(Symbol("amqp:source:list"), ["me"])
    target = Described(ULong(0x29), ["hub"])
    feed(side, raw(listed(Attach, "up", UInt(0), False, None, None, source, target, None, None, UInt(0))))
    feed(side, raw(listed(Transfer, UInt(0), UInt(0), b"t", UInt(0)) + b"payload"))
    assert [entry.payload for entry in side.deliveries()] == [b"payload"]
    feed(side, raw(listed(Flow, None, UInt(1), UInt(0), UInt(1))))
    feed(side, raw(listed(Detach, UInt(0), True)) + raw(listed(End)) + raw(listed(Close)))
    assert side.events[-1] == Closed(None, by_peer=True, clean=True)


def test_close_takes_sessions_along_and_nothing_is_said_after_it() -> None:
    side = served()
    link = side.link("up")
    feed(side, frame(Close()) + transfer(0) + frame(BEGIN, channel=3))
    assert [type(event) for event in side.events[-1:]] == [Closed]
    assert not any(isinstance(event, SessionEnded) for event in side.events)
    link.grant(9)
    assert side.drain() == b""
    assert side.endpoint.sessions == [] and not link.is_attached


def test_what_comes_after_our_close_is_dropped_until_the_peers() -> None:
    side = served()
    side.endpoint.close(AmqpError(condition="amqp:connection:forced", description="stop"))
    feed(side, transfer(0) + frame(BEGIN, channel=9) + raw(b"\x40") + frame(End()))
    assert side.deliveries() == [] and not side.endpoint.is_closed
    feed(side, frame(Close()))
    assert side.events[-1] == Closed(None, by_peer=False, clean=True)
    assert side.endpoint.is_closed


def test_sessions_and_links_count_against_a_budget_that_is_given_back() -> None:
    settings = EndpointSettings("server", max_state_bytes=20_000)
    side = served(links=0, settings=settings)
    for _ in range(100):
        feed(side, frame(BEGIN, channel=1) + frame(SEND_LINK, channel=1))
        feed(side, frame(Detach(handle=0, closed=True), channel=1) + frame(End(), channel=1))
    assert side.endpoint.is_open
    for handle in range(10):
        feed(side, frame(replace(SEND_LINK, handle=handle)))
    _, close = written(side.written)[-1]
    assert isinstance(close, Close) and close.error is not None
    assert close.error.condition == "amqp:resource-limit-exceeded"


def test_a_large_attach_costs_its_size() -> None:
    side = served(links=0, settings=EndpointSettings("server", max_state_bytes=300_000))
    big = replace(SEND_LINK, properties={Symbol("p"): "x" * 60_000})
    feed(side, frame(big))
    assert side.endpoint.is_open
    feed(side, frame(replace(big, handle=1)))
    assert side.endpoint.is_closed


def test_the_limit_of_open_is_lifted_by_it_even_in_one_read() -> None:
    side = Side(Endpoint(Role.SERVER, EndpointSettings("server", sasl=False), now_ms=0))
    big = replace(SEND_LINK, properties={Symbol("p"): "x" * 60_000})
    feed(side, AMQP_HEADER + frame(OPEN) + frame(BEGIN) + frame(big))
    assert side.said[-1] == ("attached", "up")


def test_a_frame_is_refused_as_soon_as_its_size_is_known() -> None:
    side = served()
    for byte in (65_537).to_bytes(4, "big"):
        assert side.endpoint.is_open
        feed(side, bytes((byte,)))
    assert side.endpoint.is_closed


def test_a_frame_of_the_limit_is_taken() -> None:
    side = served()
    overhead = len(transfer(0, b""))
    feed(side, transfer(0, bytes(65_536 - overhead)))
    assert len(side.deliveries()[0].payload) == 65_536 - overhead


def test_a_session_cannot_begin_before_open() -> None:
    with pytest.raises(IllegalState, match="START"):
        EndpointPair().client.endpoint.begin_session()


def test_a_close_before_the_peers_open_says_open_first() -> None:
    side = Side(Endpoint(Role.SERVER, EndpointSettings("server", sasl=False), now_ms=0))
    feed(side, AMQP_HEADER + frame(BEGIN))
    assert [type(performative) for _, performative in written(side.written)] == [Open, Close]


def test_frames_of_all_channels_reach_their_session() -> None:
    side = served(links=0)
    for channel in (1, 2, 4_999):
        feed(side, frame(BEGIN, channel=channel) + frame(SEND_LINK, channel=channel))
    moved = bytearray()
    for number, channel in enumerate((4_999, 1, 2)):
        one = bytearray(transfer(number))
        one[6:8] = channel.to_bytes(2, "big")
        moved += one
    feed(side, bytes(moved))
    by_channel = {event.link.session.remote_channel: event.count for event in side.events if hasattr(event, "rows")}
    assert by_channel == {4_999: 1, 1: 1, 2: 1}


def test_append_frame_writes_size_and_channel() -> None:
    out = bytearray(b"before")
    size = append_frame(out, 258, End(), b"pay")
    assert out == b"before" + size.to_bytes(4, "big") + b"\x02\x00\x01\x02" + encode_composite(End()) + b"pay"


def test_a_detach_behind_the_end_of_its_session_is_nothing_and_other_frames_there_are_a_fault() -> None:
    """Azure's Python client ends its session, then detaches links of it, then closes."""
    side = served(links=2)
    feed(side, frame(End()) + frame(Detach(handle=0)) + frame(Detach(handle=1)))
    assert written(side.written)[-1][1] == End()
    feed(side, frame(Close()))
    assert side.events[-1] == Closed(None, by_peer=True, clean=True)
    side = served()
    feed(side, frame(End()) + frame(Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1)))
    assert isinstance(side.events[-1], Closed) and not side.events[-1].clean


def test_a_session_that_begins_anew_on_a_channel_knows_which_handles_it_has() -> None:
    side = served()
    feed(side, frame(End()) + frame(BEGIN) + frame(Detach(handle=0)))
    assert isinstance(side.events[-1], SessionEnded)
    assert side.events[-1].error is not None
    assert side.events[-1].error.condition == "amqp:session:unattached-handle"
