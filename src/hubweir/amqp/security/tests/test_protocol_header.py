from __future__ import annotations

import pytest

from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER, can_become, name_header


@pytest.mark.parametrize("expected", [AMQP_HEADER, SASL_HEADER])
def test_a_header_is_judged_at_the_first_byte_that_differs(expected: bytes) -> None:
    for length in range(9):
        assert can_become(expected[:length], expected)
        if length:
            wrong = expected[: length - 1] + bytes((expected[length - 1] ^ 0x40,))
            assert not can_become(wrong, expected)
    assert can_become(expected + b"more", expected)


@pytest.mark.parametrize(
    ("received", "name"),
    [
        (AMQP_HEADER, "AMQP 1.0 without SASL"),
        (SASL_HEADER, "SASL"),
        (b"AMQP\x02\x01\x00\x00", "TLS inside the connection"),
        (b"AMQP\x01\x01\x00\x0a", "another version of AMQP"),
        (b"GET / HTTP/1.1", "no AMQP header"),
        (b"\x16\x03\x01", "no AMQP header"),
    ],
)
def test_a_refused_header_is_named_by_what_it_was(received: bytes, name: str) -> None:
    assert name_header(received) == name
