"""Damaged and random conversations: nothing escapes the engine, and what it writes stays legal."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.security.protocol_header import AMQP_HEADER
from hubweir.amqp.transport.events import Closed, DeliveriesReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.kernels.contract import D_DELIVERY_ID, D_LENGTH, D_START, DELIVERY_WIDTH
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import conversation, sasl_start, written

SAVED = conversation()
BEHIND_SASL = len(sasl_start())


def damage(choice: random.Random, data: bytes) -> bytes:
    """Flip, cut, repeat or insert a few bytes; frame sizes are mostly left alone, so that damage lies inside frames."""
    out = bytearray(data)
    for _ in range(choice.randint(1, 4)):
        at = choice.randrange(BEHIND_SASL + 8, len(out))
        match choice.randrange(5):
            case 0 | 1:
                out[at] ^= 1 << choice.randrange(8)
            case 2:
                out[at] = choice.choice((0, 0x40, 0x41, 0x43, 0x45, 0x53, 0x80, 0xA1, 0xA3, 0xC0, 0xD0, 0xF0, 0xFF))
            case 3:
                size = choice.randrange(1, 9)
                out[at : at + size] = choice.randbytes(size)
            case 4:
                del out[at:]
                out += choice.randbytes(choice.randrange(40))
                break
    return bytes(out)


def act_on(side: Side, choice: random.Random) -> None:
    """What a host does between reads: settle, grant, send, detach."""
    for event in side.events[-3:]:
        if isinstance(event, DeliveriesReceived):
            ids = event.rows[D_DELIVERY_ID::DELIVERY_WIDTH]
            event.link.settle(ids[0], ids[-1], Accepted())
    for session in side.endpoint.sessions:
        for link in session.links:
            if isinstance(link, ReceiverLink):
                link.grant(choice.choice((1, 10)))
            elif link.sendable:
                link.send(choice.randbytes(choice.randrange(100)), settled=choice.random() < 0.5)
            if choice.random() < 0.05:
                link.detach()


@pytest.mark.parametrize("group", range(10))
def test_damage_never_escapes_and_answers_stay_legal(group: int, measure: Callable[[int], int]) -> None:
    for seed in range(group * 1_000, group * 1_000 + measure(600)):
        choice = random.Random(seed)
        data = damage(choice, SAVED)
        side = Side(Endpoint(Role.SERVER, EndpointSettings("server"), now_ms=0))
        position = 0
        while position < len(data):
            size = choice.choice((1, 7, 60, 400, 4_000))
            piece = data[position : position + size]
            position += size
            events = side.endpoint.receive_data(memoryview(piece), 0)
            for event in events:
                if isinstance(event, DeliveriesReceived):
                    assert len(event.rows) == event.count * DELIVERY_WIDTH
                    for at in range(0, len(event.rows), DELIVERY_WIDTH):
                        row = event.rows[at : at + DELIVERY_WIDTH]
                        assert 0 <= row[D_START] <= row[D_START] + row[D_LENGTH] <= len(event.data)
            side.take(events)
            act_on(side, choice)
            if side.endpoint.next_deadline_ms() == 0:
                side.take(side.endpoint.on_time(0))
            side.drain()
        side.take(side.endpoint.receive_eof(0))
        assert written(side.written) is not None, f"seed {seed}"
        assert [isinstance(event, Closed) for event in side.events].count(True) == 1, f"seed {seed}"
        assert isinstance(side.events[-1], Closed)


@pytest.mark.parametrize("role", Role)
def test_random_bytes_end_the_connection_and_nothing_else(role: Role, measure: Callable[[int], int]) -> None:
    for seed in range(measure(2_000)):
        choice = random.Random(seed)
        endpoint = Endpoint(role, EndpointSettings("either", sasl=False), now_ms=0)
        if role is Role.CLIENT:
            endpoint.open()
        endpoint.receive_data(memoryview(AMQP_HEADER), 0)
        body = choice.randbytes(choice.randrange(200))
        size = (8 + len(body)).to_bytes(4, "big")
        endpoint.receive_data(memoryview(size + b"\x02\x00\x00\x00" + body), 0)
        endpoint.receive_data(memoryview(choice.randbytes(300)), 0)
        endpoint.receive_eof(0)
        assert endpoint.is_closed
