"""However a legal conversation is cut into reads, or wherever it ends, the same is reported."""

from __future__ import annotations

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.transport.events import Closed
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import attached, conversation


def server() -> Endpoint:
    return Endpoint(Role.SERVER, EndpointSettings("server"), now_ms=0)


def reported(data: bytes, pieces: list[int]) -> tuple[list[object], bytes]:
    side = Side(server())
    position = 0
    for end in [*pieces, len(data)]:
        buffer = bytearray(data[position:end])
        position = end
        side.take(side.endpoint.receive_data(memoryview(buffer), 0))
        buffer[:] = bytes(len(buffer))
        if side.endpoint.next_deadline_ms() == 0:
            side.take(side.endpoint.on_time(0))
        side.drain()
    return side.said, bytes(side.written)


def test_every_cut_of_a_legal_conversation_reports_the_same() -> None:
    """The start is never cut from the rest at random: the host accepts the links between two reads."""
    data, start = conversation(), len(attached())
    whole = reported(data, [start])
    assert isinstance(whole[0][-1], Closed) and whole[0][-1].clean
    assert reported(data, list(range(1, len(data)))) == whole, "byte by byte"
    for cut in range(1, len(data)):
        assert reported(data, sorted({cut, start})) == whole, f"cut at byte {cut}"


def test_every_truncation_of_a_legal_conversation_is_a_prefix_of_its_events() -> None:
    data, start = conversation(), len(attached())
    said = reported(data, [start])[0]
    for end in range(len(data)):
        side = Side(server())
        for piece in (data[: min(end, start)], data[start:end]):
            side.take(side.endpoint.receive_data(memoryview(piece), 0))
            side.take(side.endpoint.on_time(0))
        prefix = list(side.said)
        assert prefix == said[: len(prefix)], f"cut after byte {end}"
        assert not side.endpoint.is_closed
        assert side.endpoint.receive_eof(0) == [Closed(None, by_peer=True, clean=False)]
