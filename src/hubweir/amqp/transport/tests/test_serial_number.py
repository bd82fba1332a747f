from __future__ import annotations

import pytest

from hubweir.amqp.transport.serial_number import MODULUS, add_serial, distance, unwrap

EDGES = [0, 1, 2**31 - 1, 2**31, 2**31 + 1, MODULUS - 2, MODULUS - 1]


@pytest.mark.parametrize("start", EDGES)
@pytest.mark.parametrize("count", [0, 1, 5_000, 2**31 - 1, -1, -(2**31)])
def test_distance_undoes_add_over_the_wrap(start: int, count: int) -> None:
    assert 0 <= add_serial(start, count) < MODULUS
    assert distance(add_serial(start, count), start) == count


def test_ids_past_the_wrap_come_later() -> None:
    assert distance(3, MODULUS - 2) == 5
    assert distance(MODULUS - 2, 3) == -5


@pytest.mark.parametrize("near", [0, 7, MODULUS - 1, 5 * MODULUS + 3, -4])
@pytest.mark.parametrize("offset", [0, 1, -1, 5_000, 2**31 - 1, -(2**31)])
def test_unwrap_finds_the_integer_near_by(near: int, offset: int) -> None:
    assert unwrap((near + offset) % MODULUS, near) == near + offset
