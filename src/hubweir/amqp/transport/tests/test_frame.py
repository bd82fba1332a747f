from __future__ import annotations

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Modified, Rejected
from hubweir.amqp.transport.faults import ConnectionFault
from hubweir.amqp.transport.frame import (
    EMPTY_FRAME,
    MIN_MAX_FRAME_SIZE,
    SHORT_STATE_LIMIT_BYTES,
    accepted_frame,
    append_frame,
    cut_down,
    cut_frames,
    find_sasl_frame,
    sasl_frame,
    settled_frames,
    split_transfer,
)
from hubweir.amqp.transport.performatives import (
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Transfer,
    decode_performative,
)
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.values import Described, Symbol, ULong


def test_the_empty_frame_is_eight_bytes() -> None:
    assert EMPTY_FRAME == b"\x00\x00\x00\x08\x02\x00\x00\x00"


@pytest.mark.parametrize("first", [0, 1, 255, 256, 0xFFFF_FFFF])
@pytest.mark.parametrize("count", [1, 2, 300])
def test_the_frame_of_accepted_says_what_a_disposition_says(first: int, count: int) -> None:
    last = (first + count - 1) & 0xFFFF_FFFF
    frame = accepted_frame(7, first, last)
    assert (int.from_bytes(frame[:4], "big"), frame[4:8]) == (len(frame), b"\x02\x00\x00\x07")
    said, payload = decode_performative(memoryview(frame), 8, len(frame))
    assert (said, payload) == (
        Disposition(role=True, first=first, last=last, settled=True, state=Accepted()),
        len(frame),
    )


@pytest.mark.parametrize("role", [False, True])
@pytest.mark.parametrize("size", [4, SHORT_STATE_LIMIT_BYTES])
def test_frames_of_settled_ranges_say_what_dispositions_say(size: int, role: bool) -> None:
    state = Modified(delivery_failed=True)
    if size > 4:
        state = Modified(message_annotations={Symbol("a"): "x" * (size - 16)})
    encoded = encode_composite(state)
    assert size == 4 or len(encoded) == size
    ranges = [(0, 0), (255, 70_000), (2**32 - 1, 3)]
    stream, at = settled_frames(9, ranges, encoded, role=role), 0
    for first, last in ranges:
        behind = at + int.from_bytes(stream[at : at + 4], "big")
        assert behind - at <= MIN_MAX_FRAME_SIZE and stream[at + 4 : at + 8] == b"\x02\x00\x00\x09"
        said, payload = decode_performative(memoryview(stream), at + 8, behind)
        assert (said, payload) == (Disposition(role=role, first=first, last=last, settled=True, state=state), behind)
        at = behind
    assert at == len(stream)


def test_a_sasl_frame_is_found_once_it_is_whole() -> None:
    whole = sasl_frame(b"\x00\x53\x41\x45")
    for end in range(len(whole)):
        assert find_sasl_frame(bytearray(whole[:end])) is None
    found = find_sasl_frame(bytearray(whole + b"more"))
    assert found is not None and (found.body, found.end) == (8, len(whole))


@pytest.mark.parametrize(
    "head",
    [
        b"\x00\x00\x02\x01",
        b"\x00\x00\x00\x07",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x10\x02\x00\x00\x00",
        b"\x00\x00\x00\x10\x01\x01\x00\x00",
        b"\x00\x00\x00\x10\x05\x01\x00\x00",
    ],
)
def test_a_wrong_sasl_frame_is_refused_at_its_header(head: bytes) -> None:
    with pytest.raises(ConnectionFault):
        find_sasl_frame(bytearray(head))


@pytest.mark.parametrize("size", [0, 1, 400, 4_000])
def test_the_frames_of_a_delivery_join_to_what_was_split(size: int) -> None:
    payload = bytes(range(256)) * 20
    first = Transfer(handle=9, delivery_id=2**32 - 1, delivery_tag=b"t" * 32, message_format=7, settled=True)
    frames = split_transfer(first, memoryview(payload)[:size], 3, MIN_MAX_FRAME_SIZE)
    joined = b""
    for index, frame in enumerate(frames):
        assert len(frame) <= MIN_MAX_FRAME_SIZE
        part, position = decode_performative(frame, 8)
        assert isinstance(part, Transfer)
        assert (part.handle, part.delivery_id, part.settled) == (9, 2**32 - 1, True)
        assert part.more == (index < len(frames) - 1)
        assert (part.delivery_tag is None) == (index > 0)
        joined += bytes(frame[position:])
    assert joined == payload[:size]
    assert all(len(frame) == MIN_MAX_FRAME_SIZE for frame in frames[:-1]), "only the last one has room left"


def test_frames_back_to_back_are_cut_between_them() -> None:
    out = bytearray(b"xx")
    sizes = [append_frame(out, 0, End(), bytes(number)) for number in range(4)]
    assert cut_frames(out, 2, 0) == 2
    assert cut_frames(out, 2, 3) == 2 + sum(sizes[:3])


def test_what_makes_a_frame_too_large_is_cut_down() -> None:
    error = AmqpError(condition="amqp:internal-error", description="ü" * 5_000, info={})
    for performative in (
        Detach(handle=2**32 - 1, error=error),
        End(error=error),
        Close(error=error),
        Disposition(role=True, first=2**32 - 1, last=2**32 - 1, state=Rejected(error=error)),
        Disposition(role=False, first=0, state=Described(ULong(0x34), [b"x" * 5_000])),
    ):
        out = bytearray()
        assert append_frame(out, 0, cut_down(performative)) <= MIN_MAX_FRAME_SIZE
    flow = Flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)
    assert cut_down(flow) is flow
