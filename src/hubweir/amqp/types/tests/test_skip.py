"""Stepping over values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubweir.amqp.types.decode import DEPTH_LIMIT
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.skip import skip
from hubweir.amqp.types.values import Array, Described, Symbol, UInt, ULong
from hubweir.errors import DecodeError

VALUES = [
    None,
    UInt(7),
    1 << 40,
    1.5,
    b"x" * 300,
    "text",
    [],
    [1, [2, "three"]],
    {Symbol("k"): {"deep": None}},
    Array(AmqpType.STRING, ("a", "b")),
    Described(ULong(0x75), b"data"),
    Described(Symbol("outer"), Described(ULong(1 << 40), [1])),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_stepped_over_and_every_truncation_refused(value: object) -> None:
    data = encode(value)
    assert skip(b"\x40" + data + b"\x40", 1, len(data) + 2) == len(data) + 1
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            skip(data, 0, length)


def test_descriptors_are_followed_no_deeper_than_the_decoder_does() -> None:
    legal = b"\x00\x53\x01" * (DEPTH_LIMIT - 1) + b"\x40"
    assert skip(legal, 0, len(legal)) == len(legal)
    for bomb in (b"\x00\x53\x01" * 87_000 + b"\x40", bytes(262_000)):
        with pytest.raises(DecodeError):
            skip(bomb, 0, len(bomb))


@settings(deadline=None)
@given(st.binary(max_size=30))
def test_any_bytes_are_stepped_over_within_their_end_or_refused(data: bytes) -> None:
    try:
        after = skip(data, 0, len(data))
    except DecodeError:
        return
    assert 0 < after <= len(data)
