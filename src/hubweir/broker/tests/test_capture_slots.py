"""Slots: a few at once of each destination, the longest waiting first, none lost."""

from __future__ import annotations

from hubweir.broker.capture_slots import CaptureSlots
from hubweir.namespace.capture_description import CaptureDestination

LOCAL = CaptureDestination.LOCAL_FOLDER
BLOBS, LAKE = CaptureDestination.AZURE_BLOCK_BLOB, CaptureDestination.AZURE_DATA_LAKE


def test_those_that_wait_go_in_their_order_when_slots_are_given_back() -> None:
    slots, went = CaptureSlots(local=2), []
    for number in range(5):
        slots.take(LOCAL, lambda number=number: went.append(number))
    assert went == [0, 1]
    slots.give(LOCAL)
    assert went == [0, 1, 2]
    for _ in range(4):
        slots.give(LOCAL)
    assert went == [0, 1, 2, 3, 4]
    slots.take(LOCAL, lambda: went.append(5))
    slots.take(LOCAL, lambda: went.append(6))
    assert went == [0, 1, 2, 3, 4, 5, 6]


def test_accounts_that_are_away_hold_their_own_slots_only() -> None:
    slots, went = CaptureSlots(local=1, blobs=1), []
    slots.take(BLOBS, lambda: went.append("blob"))
    slots.take(LAKE, lambda: went.append("another"))
    slots.take(LOCAL, lambda: went.append("local"))
    assert went == ["blob", "local"]
