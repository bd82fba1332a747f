"""AMQP over WebSocket, as a scripted client sees it."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER
from hubweir.amqp.security.sasl import SaslInit
from hubweir.amqp.transport.performatives import Begin, Open
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.values import Symbol
from hubweir.testing.frames import frame, raw
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import KEY, ROOT, RawClient
from tests.conformance.test_raw_connection import READER
from tests.conformance.websocket_stream import WebSocketStream

PATH = "/$servicebus/websocket"
EVENT = encode_message(Message(body=DataBody((bytes(range(256)),))))


def open_stream(
    doors: Doors, *, path: str = PATH, tls: bool = False, protocol: str = "AMQPWSB10", cut: int = 0
) -> WebSocketStream:
    url = f"{'wss' if tls else 'ws'}://{doors.host}:{doors.port}{path}"
    return WebSocketStream(url, protocol=protocol, cut=cut, ca_file=doors.ca_file if tls else "")


def send_and_read_back(client: RawClient, hub: str) -> None:
    sender = client.sender(f"{hub}/Partitions/0")
    assert isinstance(client.publish(sender, EVENT).state, Accepted)
    client.receiver(READER.format(hub), credit=1)
    assert client.messages(1)[0].body == DataBody((bytes(range(256)),))


@pytest.mark.eh(3)
@pytest.mark.sb(6)
@pytest.mark.parametrize("path", [PATH, f"{PATH}/"])
@pytest.mark.parametrize("tls", [False, True])
def test_the_path_upgrades_with_a_slash_at_the_end_and_without(doors: Doors, hub: str, path: str, tls: bool) -> None:
    with RawClient(open_stream(doors, path=path, tls=tls)) as client:
        send_and_read_back(client.trusted(), hub)


@pytest.mark.eh(4)
@pytest.mark.sb(6)
@pytest.mark.parametrize("protocol", ["AMQPWSB10", "amqp"])
def test_the_offered_sub_protocol_is_echoed(doors: Doors, hub: str, protocol: str) -> None:
    stream = open_stream(doors, protocol=protocol)
    with RawClient(stream) as client:
        assert stream.protocol == protocol
        send_and_read_back(client.trusted(), hub)


@pytest.mark.eh(4)
@pytest.mark.sb(6)
@pytest.mark.parametrize("cut", [1, 7, 37, 100_000])
def test_frames_are_joined_wherever_messages_are_cut(doors: Doors, hub: str, cut: int) -> None:
    with RawClient(open_stream(doors, cut=cut)) as client:
        send_and_read_back(client.trusted(), hub)


@pytest.mark.eh(8)
@pytest.mark.parametrize("over_websocket", [False, True])
def test_a_sasl_host_name_with_the_path_behind_it_is_the_host(doors: Doors, hub: str, over_websocket: bool) -> None:
    init = SaslInit(
        mechanism=Symbol("PLAIN"), initial_response=f"\0{ROOT}\0{KEY}".encode(), hostname=f"{doors.host}{PATH}"
    )
    with RawClient(open_stream(doors)) if over_websocket else doors.raw() as client:
        client.write(SASL_HEADER, raw(encode_composite(init), frame_type=1))
        assert client.sasl_outcome() == 0
        begin = Begin(next_outgoing_id=0, incoming_window=5_000, outgoing_window=5_000, handle_max=255)
        client.write(AMQP_HEADER, frame(Open(container_id="raw", hostname=doors.host)), frame(begin))
        assert client.read_exactly(8) == AMQP_HEADER
        client.expect(Open)
        client.expect(Begin)
        send_and_read_back(client, hub)
