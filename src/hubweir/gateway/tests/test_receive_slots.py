"""Receives over HTTP of one process are bounded by their number and by the bytes that peers have not read."""

from __future__ import annotations

import pytest

from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.gateway.receive_slots import ReceiveSlots


def test_one_more_than_the_limit_is_refused_until_one_ends() -> None:
    slots = ReceiveSlots(limit=2)
    first, _ = slots.take_slot(), slots.take_slot()
    with pytest.raises(ServiceError, match="2 receives wait") as refusal:
        slots.take_slot()
    assert refusal.value.condition is SERVER_BUSY
    first.give_back()
    first.give_back()
    assert slots.used == 1
    slots.take_slot()
    with pytest.raises(ServiceError):
        slots.take_slot()


def test_answers_that_nobody_reads_keep_further_receives_out() -> None:
    slots = ReceiveSlots(limit_bytes=10)
    small, large = slots.take_slot(), slots.take_slot()
    small.hold(4)
    large.hold(6)
    with pytest.raises(ServiceError, match="have yet to read") as refusal:
        slots.take_slot()
    assert refusal.value.condition is SERVER_BUSY
    small.give_back()
    slots.take_slot().give_back()
    large.give_back()
    assert (slots.used, slots.used_bytes) == (0, 0)
