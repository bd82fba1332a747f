"""Fragments are found by key, number and token; an entity of one is asked nothing."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.errors import MESSAGE_NOT_FOUND, NOT_IMPLEMENTED, ServiceError
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.gateway.fragments import FragmentPlace, Fragments, fragment_id

NOBODY: Any = None


def fragments(count: int) -> Fragments:
    places = [
        FragmentPlace("orders", f"{number:032x}", NOBODY, f"{number:032x}", None, number) for number in range(count)
    ]
    return Fragments(tuple(places))


PARTITIONED, PLAIN = fragments(16), fragments(1)


def test_a_key_has_its_fragment_as_it_has_a_partition_of_an_event_hub() -> None:
    keys = [f"key-{number}".encode() for number in range(400)]
    chosen = [PARTITIONED.of_key(key).number for key in keys]
    assert chosen == [partition_of_key(key, 16) for key in keys] and set(chosen) == set(range(16))
    assert {PLAIN.of_key(key) for key in keys} == {PLAIN.only}


@pytest.mark.parametrize("number", [0, 1, 15])
def test_the_highest_bits_of_a_number_and_of_a_token_name_the_fragment(number: int) -> None:
    for low in (0, 1, (1 << 48) - 1):
        value = (number << 48) + low
        assert PARTITIONED.of_number(value).number == number
        token = PARTITIONED.of_token(value.to_bytes(8, "big") + b"\xff" * 8)
        assert token is not None and token.number == number
        assert PLAIN.of_number(value) == PLAIN.of_token(value.to_bytes(16, "big")) == PLAIN.only


@pytest.mark.parametrize("value", [16 << 48, -1, -(1 << 63), (1 << 63) - 1])
def test_a_number_of_no_fragment_is_no_message(value: int) -> None:
    with pytest.raises(ServiceError, match=f"'orders' has no message of sequence number {value}") as refused:
        PARTITIONED.of_number(value)
    assert refused.value.condition is MESSAGE_NOT_FOUND
    assert PARTITIONED.of_token((value & (1 << 64) - 1).to_bytes(8, "big") + bytes(8)) is None
    assert PLAIN.of_number(value) is PLAIN.only, "its broker says so"


def test_one_fragment_is_not_several() -> None:
    assert PARTITIONED.is_partitioned and not PLAIN.is_partitioned
    assert PARTITIONED.entity == PLAIN.entity == "orders"
    with pytest.raises(ServiceError, match="'orders' is partitioned") as refused:
        _ = PARTITIONED.only
    assert refused.value.condition is NOT_IMPLEMENTED


def test_a_subscription_s_fragments_are_named_by_it_and_their_number() -> None:
    assert fragment_id("e" * 32, 0, 1) == "e" * 32
    assert [fragment_id("e", number, 3) for number in range(3)] == ["e-0", "e-1", "e-2"]
