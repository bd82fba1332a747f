"""The eight opening bytes and which layer they ask for (part 2, section 2.2; part 5, section 5.1).

| offset | size | meaning |
|-------:|-----:|---------|
|      0 |    4 | `AMQP` |
|      4 |    1 | the layer: 0 AMQP, 2 TLS, 3 SASL |
|      5 |    3 | version 1.0.0 |

A peer that asks for something else is answered with the header of what it may have, then the transport is closed.
"""

from __future__ import annotations

HEADER_SIZE = 8
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"


def can_become(received: bytes | bytearray, expected: bytes) -> bool:
    """Whether bytes received so far can still be the expected header: judged at the first byte that differs."""
    return expected.startswith(received[:HEADER_SIZE])


def name_header(received: bytes | bytearray) -> str:
    """What a refused header was, for an error text; only what was looked at, and only known names."""
    if received.startswith(AMQP_HEADER):
        return "AMQP 1.0 without SASL"
    if received.startswith(SASL_HEADER):
        return "SASL"
    if received.startswith(b"AMQP\x02"):
        return "TLS inside the connection"
    if received.startswith(b"AMQP"):
        return "another version of AMQP"
    return "no AMQP header"
