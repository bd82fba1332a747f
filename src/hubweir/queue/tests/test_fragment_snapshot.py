"""A state comes back from its snapshot as it was, without what no log says; and what is damaged is told."""

from __future__ import annotations

from array import array
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.kernels.queue_contract import QUEUE_WIDTH
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.fragment_snapshot import decode_snapshot, encode_snapshot
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.operation import DECIDED, HELD, PREPARED, SETTLED, Operation
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.tests.conftest import PEEK_LOCK, QueueBench, message, run_of


def rich() -> QueueBench:
    """A fragment with something of everything, more than a page of it."""
    bench = QueueBench(FragmentSettings(requires_session=True, duplicate_window_ms=20_000))
    for batch in range(50):
        bench.send(*(f"{place}" for place in range(100)), session=f"s{batch % 7}", ttl_ms=100_000 + batch)
    bench.send("later", session="s1", scheduled_ms=bench.now_ms() + 500_000, message_id="m")
    answers: list[Any] = []
    bench.fragment.accept_session(
        "s0", PEEK_LOCK, bench.times(), wait_ms=0, on_done=answers.append, on_lost=lambda receiver, error: None
    )
    got = bench.receive(answers.pop(), max_count=50, wait_ms=5_000)
    bench.settle(got[:10], SettleOutcome.DEFER, details=SettleDetails(properties=b"\xc1\x06\x02\xa1\x01n\x54\x01"))
    bench.settle(got[10:20], SettleOutcome.DEAD_LETTER, details=SettleDetails(reason="r"))
    bench.complete(got[20:25])
    bench.answer(lambda on_done: bench.fragment.set_session_state("s0", b"state", bench.times(), on_done))
    return bench


def test_a_state_comes_back_and_its_next_snapshot_is_the_same() -> None:
    state = rich().fragment._core.state
    data = encode_snapshot(state, [])
    again = decode_snapshot(data)
    assert encode_snapshot(again, []) == data
    assert again.messages.tally == state.messages.tally
    assert again.messages.next_count == state.messages.next_count
    assert again.changed == state.changed and again.settings == state.settings
    assert again.changed_bytes == state.changed_bytes > 0
    assert again.sessions.state_bytes == state.sessions.state_bytes == len(b"state")
    for session_id, session in state.sessions.by_id.items():
        found = again.sessions.by_id[session_id]
        assert (found.number, found.state, found.state_ms) == (session.number, session.state, session.state_ms)
        there = [page.first + at // QUEUE_WIDTH for page, at in session.messages_in(state.messages, 0)]
        assert found.live == session.live and list(found.counts) == there
    assert len(again.duplicates) == 1


def test_pages_that_did_not_change_are_not_packed_again() -> None:
    bench = rich()
    state = bench.fragment._core.state
    encode_snapshot(state, [])
    bench.send("one more", session="s6")
    changed = [number for number, page in state.messages.pages.items() if page.packed is None]
    assert changed == [1]


def test_a_snapshot_that_is_cut_off_or_damaged_is_told() -> None:
    data = encode_snapshot(rich().fragment._core.state, [])
    for size in [*range(1, 60), *range(60, len(data), 37)]:
        with pytest.raises((CorruptStore, NewerFormat)):
            decode_snapshot(data[:size])
    with pytest.raises((CorruptStore, NewerFormat)):
        decode_snapshot(data + b"\0")
    rng = Random(1)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[rng.randrange(1, len(data))] ^= 1 << rng.randrange(8)
        with suppress(CorruptStore, NewerFormat):
            decode_snapshot(bytes(damaged))


def test_a_snapshot_from_before_there_were_transfers_or_transactions_is_read() -> None:
    state = rich().fragment._core.state
    data = encode_snapshot(state, [])
    assert not state.transfers.sent and not state.transfers.received
    for version, counts in ((1, 4), (2, 2)):  # of 4 bytes: two of transfers, two of transactions
        older = bytes((version,)) + data[1 : -4 * counts]
        assert encode_snapshot(decode_snapshot(older), []) == data


def test_a_snapshot_has_what_is_in_doubt_and_what_was_decided() -> None:
    state = rich().fragment._core.state
    says = state.transactions
    settled = Operation(SETTLED, array("q", [1, 2]))
    said = Operation(PREPARED, array("q", [1, 2]), transaction=b"a" * 16, many=1, logs=(b"log",))
    for each in (said, settled, Operation(DECIDED, transaction=b"b" * 16, logs=(b"one", b"two"))):
        if not says.gathers(each):
            says.say(each)
    again = decode_snapshot(encode_snapshot(state, [])).transactions
    [prepared] = again.prepared.values()
    assert (prepared.coordinator, prepared.operations, prepared.counts) == ("log", [settled], array("q", [1, 2]))
    assert again.decided == {b"b" * 16: ("one", "two")}


def test_a_snapshot_has_the_messages_that_a_transaction_holds() -> None:
    state, run = FragmentState(), run_of(message("a"), message("b"), message("c"), size=2)
    held, settled = Operation(HELD, many=3), Operation(SETTLED, array("q", [1, 1]))
    for name, operations in ((b"a", [settled, held]), (b"b", [held]), (b"c", [settled])):
        said = Operation(PREPARED, transaction=name * 16, many=len(operations), logs=(b"log",))
        for each in (said, *operations):
            state.apply(each, is_replay=True)
        if held in operations:
            state.apply_run(run, is_replay=True)
    before = state.messages.next_count
    data = encode_snapshot(state, [])
    again = decode_snapshot(data)
    prepared = [(each.messages, bytes(each.run)) for each in again.transactions.prepared.values()]
    assert prepared == [(3, bytes(run)), (3, bytes(run)), (0, b"")]
    assert (again.transactions.held_messages, again.transactions.held_bytes) == (6, 2 * len(run))
    assert encode_snapshot(again, []) == data and again.messages.next_count == before
    for size in range(len(data) - 2 * len(run) - 150, len(data)):
        with pytest.raises((CorruptStore, NewerFormat)):
            decode_snapshot(data[:size])


def test_more_messages_than_a_transaction_holds_are_a_corrupt_store() -> None:
    state = FragmentState()
    for each in (Operation(PREPARED, transaction=b"a" * 16, many=1, logs=(b"log",)), Operation(HELD, many=1)):
        state.apply(each, is_replay=True)
    with pytest.raises(CorruptStore):
        state.apply_run(run_of(message("a"), message("b")), is_replay=True)


def test_a_snapshot_of_another_version_is_a_newer_format() -> None:
    for data in (b"", b"\x00abc", b"\x04abc"):
        with pytest.raises(NewerFormat):
            decode_snapshot(data)
