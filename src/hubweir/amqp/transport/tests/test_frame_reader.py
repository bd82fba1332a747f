from __future__ import annotations

import pytest

from hubweir.amqp.endpoint import EndpointSettings, Role
from hubweir.amqp.transport.connection import Connection
from hubweir.amqp.transport.connection_states import ConnectionStep
from hubweir.amqp.transport.events import DeliveriesReceived
from hubweir.amqp.transport.frame_reader import FrameReader
from hubweir.amqp.transport.link import Link
from hubweir.testing.frames import BEGIN, OPEN, SEND_LINK, frame, raw, transfer


def ready(role: Role = Role.SERVER) -> tuple[Connection, FrameReader]:
    connection = Connection(Role.SERVER, EndpointSettings("server"))
    connection.step(ConnectionStep.RECEIVE_HEADER)
    connection.step(ConnectionStep.SEND_HEADER)
    reader = FrameReader(connection)
    reader.feed(memoryview(frame(OPEN) + frame(BEGIN) + frame(SEND_LINK)))
    link: Link = connection.sessions[0].links[0]
    link.accept(max_message_size=1 << 20)
    connection.report.take_events()
    connection.role = role  # a reader looks at it with each read
    return connection, reader


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("piece", [1, 3, 4, 5, 8, 9, 100, 4_000, 70_000])
def test_frames_cut_anywhere_are_whole_again(piece: int, role: Role) -> None:
    connection, reader = ready(role)
    data = b"".join(transfer(number, b"x" * (number * 977 % 9_000)) for number in range(40)) + raw(b"")
    seen = 0
    for start in range(0, len(data), piece):
        buffer = bytearray(data[start : start + piece])
        reader.feed(memoryview(buffer))
        for event in connection.report.take_events():
            assert isinstance(event, DeliveriesReceived)
            for at in range(0, len(event.rows), 5):
                number, begin, length = event.rows[at : at + 3]
                assert number == seen
                assert event.data[begin : begin + length] == b"x" * (seen * 977 % 9_000)
                seen += 1
        buffer[:] = bytes(len(buffer))
    assert seen == 40


def test_a_read_larger_than_every_table_is_reported_whole_and_as_one_event() -> None:
    connection, reader = ready()
    reader.feed(memoryview(b"".join(transfer(number, b"", settled=True) for number in range(5_000))))
    (event,) = connection.report.take_events()
    assert isinstance(event, DeliveriesReceived)
    assert event.count == 5_000 and list(event.rows[::5]) == list(range(5_000))


def test_the_start_of_a_frame_waits_without_holding_the_read() -> None:
    connection, reader = ready()
    whole = transfer(0)
    buffer = bytearray(whole[:10])
    reader.feed(memoryview(buffer))
    buffer += b"resized: nothing points into it"
    reader.feed(memoryview(whole[10:]))
    assert len(connection.report.take_events()) == 1


def test_a_client_may_keep_a_read_that_completes_a_frame_and_gets_one_event_for_it() -> None:
    connection, reader = ready(Role.CLIENT)
    frames = b"".join(transfer(number, b"x" * 100, settled=True) for number in range(10))
    reader.feed(memoryview(frames[:50]))
    buffer = bytearray(frames[50:])
    reader.feed(memoryview(buffer))
    (event,) = connection.report.take_events()
    assert isinstance(event, DeliveriesReceived)
    assert event.count == 10
    assert event.data.obj == frames
    assert isinstance(event.data.obj, bytes)
    # What does not complete it is only put behind it.
    reader.feed(memoryview(frames[:50]))
    reader.feed(memoryview(frames[50:60]))
    assert not connection.report.take_events()
    reader.feed(memoryview(frames[60:]))
    (event,) = connection.report.take_events()
    assert isinstance(event, DeliveriesReceived) and event.count == 10
