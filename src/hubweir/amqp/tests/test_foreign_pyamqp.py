"""The encoder and the decoder inside Azure's Python client as a peer: the strictest reader of frames there is."""

from __future__ import annotations

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.testing.endpoint_pair import Side

pyamqp = pytest.importorskip("azure.eventhub._pyamqp")
from azure.eventhub._pyamqp import _decode, _encode, endpoints, performatives  # noqa: E402

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(16, 25)


def spoken(frame: object, *, channel: int = 1, frame_type: bytes = b"\x00") -> bytes:
    """A frame as the client writes it: its encoder leaves the channel to the transport."""
    header, body = _encode.encode_frame(frame, frame_type=frame_type)
    return bytes(header) + channel.to_bytes(2, "big") + bytes(body or b"")


def understood(data: bytes) -> list[tuple[int, list[object]]]:
    """Our frames as the client reads them: performative code and fields by position."""
    frames = []
    position = 0
    while position < len(data):
        if data[position : position + 4] == b"AMQP":
            position += 8
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        assert data[position + 4] == 2
        if size > 8:
            frames.append(_decode.decode_frame(memoryview(data)[position + 8 : position + size]))
        position += size
    return frames


def attach(name: str, handle: int, *, receiver: bool) -> object:
    source = endpoints.Source(
        address="amqps://localhost/hub/ConsumerGroups/$Default/Partitions/0" if receiver else name
    )
    target = endpoints.Target(address=name if receiver else "amqps://localhost/hub")
    return performatives.AttachFrame(
        name=name, handle=handle, role=receiver, send_settle_mode=0, rcv_settle_mode=0 if receiver else 1,
        source=source, target=target, unsettled=None, incomplete_unsettled=None,
        initial_delivery_count=None if receiver else 0, max_message_size=1_048_576 if receiver else 0,
        offered_capabilities=None, desired_capabilities=None, properties=None,
    )  # fmt: skip


@pytest.fixture
def side() -> Side:
    """The client's opening in two reads: what it sends before the outcome, and what it pipelines after it."""
    side = Side(Endpoint(Role.SERVER, EndpointSettings("server"), now_ms=0))
    init = performatives.SASLInit(mechanism=b"ANONYMOUS", initial_response=b"", hostname="localhost")
    opening = performatives.OpenFrame(
        container_id="EHProducer-1", hostname="localhost", max_frame_size=1_048_576, channel_max=65_535,
        idle_timeout=None, outgoing_locales=None, incoming_locales=None, offered_capabilities=None,
        desired_capabilities=None, properties={"product": "azsdk-python-eventhubs"},
    )  # fmt: skip
    begin = performatives.BeginFrame(
        remote_channel=None, next_outgoing_id=0, incoming_window=65_535, outgoing_window=65_535, handle_max=2**32 - 1,
        offered_capabilities=None, desired_capabilities=None, properties=None,
    )  # fmt: skip
    take(side, SASL_HEADER + spoken(init, channel=0, frame_type=b"\x01"))
    take(
        side,
        AMQP_HEADER
        + spoken(opening, channel=0)
        + spoken(begin)
        + spoken(attach("up", 0, receiver=False))
        + spoken(attach("down", 1, receiver=True)),
    )
    return side


def take(side: Side, data: bytes) -> bytes:
    side.take(side.endpoint.receive_data(memoryview(data), 0))
    return side.drain()


def flow(handle: int, credit: int) -> object:
    return performatives.FlowFrame(
        next_incoming_id=1, incoming_window=65_535, next_outgoing_id=0, outgoing_window=65_535, handle=handle,
        delivery_count=0, link_credit=credit, available=None, drain=None, echo=None, properties=None,
    )  # fmt: skip


def transfer(delivery_id: int, payload: bytes, *, more: bool = False) -> object:
    frame = performatives.TransferFrame(
        handle=0, delivery_id=delivery_id, delivery_tag=delivery_id.to_bytes(4, "big"), message_format=0x80013700,
        settled=False, more=more, rcv_settle_mode=None, state=None, resume=None, aborted=None, batchable=None,
        payload=payload,
    )  # fmt: skip
    return frame


def test_the_pipelined_opening_is_answered_frame_by_frame(side: Side) -> None:
    mechanisms, outcome, opening, begin, up, down = understood(bytes(side.written))
    assert (mechanisms[0], mechanisms[1][0]) == (64, [b"MSSBCBS", b"PLAIN", b"ANONYMOUS", b"EXTERNAL"])
    assert (outcome[0], outcome[1][0]) == (68, 0)
    assert (opening[0], len(opening[1])) == (OPEN, 10)
    assert opening[1][2] == 65_536 and opening[1][4] == 240_000
    assert (begin[0], len(begin[1]), begin[1][0], begin[1][4]) == (BEGIN, 8, 1, 255)
    for (code, fields), name, role in ((up, b"up", True), (down, b"down", False)):
        assert (code, len(fields), fields[0], fields[2]) == (ATTACH, 14, name, role)
        assert fields[5][0] and fields[6][0], "source and target are there, with their addresses"
    assert (up[1][3], up[1][4], up[1][10]) == (0, 1, 1 << 20)
    assert down[1][9] == 0


def test_a_batch_in_frames_that_repeat_the_id_is_joined_and_its_outcome_is_read(side: Side) -> None:
    side.link("up")
    take(side, spoken(flow(0, 10_000)))
    data = b"".join(
        (
            spoken(transfer(0, b"a" * 60_000, more=True)),
            spoken(transfer(0, b"b" * 60_000, more=True)),
            spoken(transfer(0, b"c")),
            spoken(transfer(1, b"d")),
        )
    )
    take(side, data)
    assert [(entry.delivery_id, len(entry.payload), entry.message_format) for entry in side.deliveries()] == [
        (0, 120_001, 0x80013700),
        (1, 1, 0x80013700),
    ]
    link = side.link("up")
    assert isinstance(link, ReceiverLink)
    link.settle(0, 0, Accepted())
    link.settle(1, 1, Rejected(error=AmqpError(condition="com.microsoft:server-busy", description="busy")))
    accepted, rejected = understood(side.drain())
    assert accepted[1][:5] == [True, 0, 0, True, {"accepted": []}]
    assert rejected[1][:4] == [True, 1, 1, True]
    assert rejected[1][4] == {"rejected": [[b"com.microsoft:server-busy", b"busy", None]]}
    assert len(accepted[1]) == len(rejected[1]) == 6


def test_events_flows_and_endings_are_read_by_position(side: Side) -> None:
    take(side, spoken(flow(1, 300)))
    link = side.link("down")
    assert isinstance(link, SenderLink)
    assert link.credit == 300
    link.send(b"\x00Su\xa0\x03one", tag=b"tag1")
    link.session.write_flow()
    side.link("up").grant(7)
    link.detach(AmqpError(condition="amqp:link:stolen", description="another reader"))
    sent, session_flow, link_flow, detach = understood(side.drain())
    assert (sent[0], len(sent[1])) == (TRANSFER, 12), "eleven fields and the payload behind them"
    assert (sent[1][1], bytes(sent[1][2]), sent[1][4], bytes(sent[1][11])) == (0, b"tag1", True, b"\x00Su\xa0\x03one")
    assert _decode.decode_payload(sent[1][11]).data == [b"one"]
    for code, fields in (session_flow, link_flow):
        assert (code, len(fields)) == (FLOW, 11) and None not in fields[:4]
    assert link_flow[1][6] == 7
    assert (detach[0], detach[1][1], detach[1][2][0]) == (DETACH, True, b"amqp:link:stolen")
    take(side, spoken(performatives.DetachFrame(handle=1, closed=True, error=None)))
    answers = understood(take(side, spoken(performatives.EndFrame(error=None))))
    assert [(code, len(fields)) for code, fields in answers] == [(END, 1)]
    answers = understood(take(side, spoken(performatives.CloseFrame(error=None), channel=0)))
    assert [(code, len(fields)) for code, fields in answers] == [(CLOSE, 1)]
    assert side.endpoint.is_closed


def test_a_refusal_reads_as_an_attach_without_termini(side: Side) -> None:
    side.accepts = False
    take(side, spoken(attach("more", 2, receiver=True)))
    side.link("more").refuse(AmqpError(condition="amqp:not-found", description="no hub"))
    answer, detach = understood(side.drain())
    assert (answer[0], answer[1][5], answer[1][6]) == (ATTACH, None, None)
    assert (detach[0], detach[1][2][:2]) == (DETACH, [b"amqp:not-found", b"no hub"])
    assert len(answer[1]) == 14
