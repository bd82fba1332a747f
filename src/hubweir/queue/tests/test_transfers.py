"""What a log says of transfers means the same wherever it stands: a number is stored once, and ends once."""

from __future__ import annotations

import struct
from array import array

import pytest

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.operations import pack_operations
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.operation import (
    RECEIVED,
    RETURNED,
    SETTINGS,
    TRANSFERRED,
    TRANSFERRING,
    Operation,
    encode_operation,
)
from hubweir.queue.tests.conftest import message, run_of
from hubweir.queue.transfers import Transfers

FIRSTS, ENDS = array("q", [1 << 62 | 5, 1 << 62 | 6]), array("q", [-1, -1])


def state() -> FragmentState:
    made = FragmentState()
    made.apply(Operation(SETTINGS), is_replay=True)
    return made


def received(number: int, *bodies: str, source: bytes = b"s", size: int = 1) -> bytearray:
    """A chain as a destination stores it."""
    operation = Operation(RECEIVED, number=number, name=source, firsts=FIRSTS, ends_ms=ENDS)
    return pack_operations([encode_operation(operation)], continues=True) + run_of(*map(message, bodies), size=size)


@pytest.mark.parametrize("size", [1, 2])
def test_a_number_that_stands_twice_in_the_log_is_stored_once(size: int) -> None:
    made = state()
    made.apply_run(received(7, "a", "b", size=size), is_replay=True)
    made.apply_run(received(7, "a", "b", size=size), is_replay=True)
    made.apply_run(received(6, "a", "b", size=size), is_replay=True)
    assert made.messages.next_count == 3
    made.apply_run(run_of(message("sent here")), is_replay=True)
    made.apply_run(received(8, "c", "d", size=size), is_replay=True)
    made.apply_run(received(7, "e", "f", source=b"other", size=size), is_replay=True)
    assert made.messages.next_count == 8
    assert made.transfers.received == {b"s": 8, b"other": 7}


def test_a_batch_with_more_messages_than_were_named_is_damage() -> None:
    with pytest.raises(CorruptStore):
        state().apply_run(received(7, "a", "b", "c", size=3), is_replay=True)


@pytest.mark.parametrize("code", [TRANSFERRED, RETURNED])
def test_the_end_of_another_transfer_ends_nothing(code: int) -> None:
    made = state()
    made.apply_run(run_of(message("a"), message("b")), is_replay=True)
    made.apply(Operation(TRANSFERRING, array("q", [1, 1]), number=4, name=b"there"), is_replay=True)
    made.apply(Operation(code, number=3), is_replay=True)
    made.apply(Operation(code, number=4, sub_queue=1), is_replay=True)
    assert made.transfers.sent[0].counts == array("q", [1])
    made.apply(Operation(code, number=4), is_replay=True)
    assert made.transfers.sent[0].counts == array("q")
    assert (made.messages.find(1) is None) == (code == TRANSFERRED)
    made.apply(Operation(code, number=4), is_replay=True)
    assert made.messages.find(2) is not None


def test_transfers_that_are_cut_off_are_none() -> None:
    made = Transfers()
    made.begin(Operation(TRANSFERRING, array("q", [1, 2]), number=4, name=b"there"))
    made.expect(Operation(RECEIVED, number=9, name=b"s"))
    data = made.encode()
    again = Transfers()
    assert again.restore(memoryview(data), 0) == len(data)
    assert (again.sent, again.received) == (made.sent, made.received)
    for size in range(len(data)):
        with pytest.raises((CorruptStore, NewerFormat, ValueError, struct.error)):
            Transfers().restore(memoryview(data)[:size], 0)
