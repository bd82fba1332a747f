"""Slots: a few at once of each destination, the longest waiting first, none lost."""

from __future__ import annotations

from functools import partial

from hubweir.broker.capture.slots import CaptureSlots
from hubweir.capture.pace import CapturePace
from hubweir.namespace.capture_description import CaptureDestination

LOCAL = CaptureDestination.LOCAL_FOLDER
BLOBS, LAKE = CaptureDestination.AZURE_BLOCK_BLOB, CaptureDestination.AZURE_DATA_LAKE


def full_speed() -> CapturePace:
    pace = CapturePace()
    pace.gives_way = False
    return pace


def test_those_that_wait_go_in_their_order_when_slots_are_given_back() -> None:
    slots, went = CaptureSlots(full_speed(), local=2), list[int]()
    for number in range(5):
        slots.take(LOCAL, partial(went.append, number))
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
    slots, went = CaptureSlots(full_speed(), local=1, blobs=1), []
    slots.take(BLOBS, lambda: went.append("blob"))
    slots.take(LAKE, lambda: went.append("another"))
    slots.take(LOCAL, lambda: went.append("local"))
    assert went == ["blob", "local"]


def test_who_withdraws_is_not_called_and_holds_no_slot() -> None:
    slots, went = CaptureSlots(full_speed(), local=1), list[int]()
    calls = [partial(went.append, number) for number in range(3)]
    for go in calls:
        slots.take(LOCAL, go)
    assert slots.withdraw(LOCAL, calls[1])
    assert not slots.withdraw(LOCAL, calls[0]), "it has its slot"
    assert not slots.withdraw(LOCAL, calls[1])
    slots.give(LOCAL)
    assert went == [0, 2]


def test_half_as_many_files_of_a_kind_are_begun_while_capture_gives_way() -> None:
    pace = full_speed()
    slots, went = CaptureSlots(pace, local=4, blobs=1), list[object]()
    pace.gives_way = True
    for number in range(6):
        slots.take(LOCAL, partial(went.append, number))
    slots.take(BLOBS, lambda: went.append("blob"))
    assert went == [0, 1, "blob"], "one at least"
    slots.give(LOCAL)
    assert went == [0, 1, "blob", 2]
    pace.gives_way = False
    slots.give(LOCAL)
    assert went == [0, 1, "blob", 2, 3, 4, 5]


def test_any_number_that_give_their_slot_back_at_once_go_one_after_the_other() -> None:
    slots, went = CaptureSlots(full_speed(), local=1), []

    def go_and_end() -> None:
        went.append(1)
        slots.give(LOCAL)

    slots.take(LOCAL, lambda: None)
    for _ in range(5_000):
        slots.take(LOCAL, go_and_end)
    slots.give(LOCAL)
    assert len(went) == 5_000
