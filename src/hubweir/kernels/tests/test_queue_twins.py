"""The twins of a queue's rows give the same results and leave the same tables, on sound numbers and on noise."""

from __future__ import annotations

from array import array
from pathlib import Path
from random import Random
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.kernels import message_tokens, queue_contract, twins
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCK_CHECK
from hubweir.kernels.queue.tokens import check_of
from hubweir.kernels.queue_contract import (
    ACTIVE,
    CHANGED,
    DEFERRED,
    DELIVERIES_SHIFT,
    I_LENGTH,
    I_ORDINAL,
    I_SCHEDULED,
    I_TTL,
    INCOMING_WIDTH,
    LOCK_WIDTH,
    LOCKED,
    M_STATE,
    QUEUE_WIDTH,
    SCHEDULED,
    SETTLING,
    SIZE_SHIFT,
    SUB_QUEUE_SHIFT,
    TALLY_WIDTH,
)
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests.test_stored_batch import numbers_of_module, numbers_of_page
from hubweir.kernels.tests.test_twins import MANY, SEEDS, agreed, run_of_batches

SECRET = bytes(range(16))
NOW_MS = 1_000
FIRST_LOCK = 7 << 40


def test_every_number_of_the_contract_is_the_same_compiled() -> None:
    page = Path(queue_contract.__file__).with_suffix(".pxd").read_text()
    assert numbers_of_page(page) == numbers_of_module(queue_contract)
    with pytest.raises(AssertionError):
        assert numbers_of_page(page.replace("SETTLING = 32", "SETTLING = 33")) == numbers_of_module(queue_contract)


def test_the_check_of_a_token_is_siphash() -> None:
    # The reference implementation's own vector for 8 bytes 0 to 7 under the key 0 to 15.
    assert check_of(SECRET, int.from_bytes(bytes(range(8)), "big")) == 0x93F5F5799A932462


def test_tokens_of_message_rows_are_their_two_halves_big_endian() -> None:
    rows = array("q", [0] * (3 * MESSAGE_WIDTH))
    wanted = [UUID(int=2**127 + 5), UUID(int=7), UUID(int=2**128 - 1)]
    for row, token in enumerate(wanted):
        for column, half in ((Q_LOCK, token.bytes[:8]), (Q_LOCK_CHECK, token.bytes[8:])):
            rows[row * MESSAGE_WIDTH + column] = int.from_bytes(half, "big", signed=True)
    assert message_tokens(rows, 0, 3) == b"".join(token.bytes for token in wanted)
    assert message_tokens(rows, 1, 2) == wanted[1].bytes
    assert message_tokens(rows, 1, 1) == b""


def queue_rows(rng: Random, page_first: int) -> array[int]:
    """Rows of a page in any state, near a time and near limits."""
    rows = array("q")
    for place in range(rng.choice([0, 1, 5, 40])):
        state = (
            rng.choice([0, ACTIVE, ACTIVE, ACTIVE, DEFERRED, SCHEDULED]) | rng.choice([0, 0, 1, 2]) << SUB_QUEUE_SHIFT
        )
        state |= rng.choice([0, LOCKED, LOCKED, SETTLING, LOCKED | SETTLING]) | rng.choice([0, CHANGED])
        state |= rng.choice([0, 1, 3, 2**24 - 1]) << DELIVERIES_SHIFT | rng.choice([0, 10, 2**31 - 1]) << SIZE_SHIFT
        times = [rng.choice([-1, 0, NOW_MS - 1, NOW_MS, NOW_MS + 1, 2**62]) for _ in range(2)]
        rows += array(
            "q", [rng.randrange(2**40), *times, state, FIRST_LOCK + place, rng.choice([-1, 3]), page_first + place]
        )
    return rows


def any_counts(rng: Random, page_first: int, rows: int) -> array[int]:
    near = [0, page_first - 1, page_first, page_first + rows // 2, page_first + rows - 1, page_first + rows, -5, 2**62]
    return array(
        "q", [rng.choice([*near, *range(page_first, page_first + max(rows, 1))]) for _ in range(rng.choice([0, 1, 9]))]
    )


@MANY
@given(seed=SEEDS)
def test_selections_and_marks_agree(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    page_first = rng.choice([1, 4097, 2**40 + 1])
    rows = queue_rows(rng, page_first)
    many = len(rows) // QUEUE_WIDTH
    picked = legal.table(rng.choice([0, 3, 50]), 1)
    at = rng.choice([0, 0, 1])
    agreed(
        compiled, "select_messages", rows, rng.choice([0, 0, many // 2, many, many + 1]), page_first,
        rng.choice([0, 1]), rng.choice([0, 1, 2]), NOW_MS, picked, at, len(picked), rng.choice([0, 100]),
        rng.choice([0, 25, 2**40]),
    )  # fmt: skip
    counts = any_counts(rng, page_first, many)
    last = rng.choice([len(counts), len(counts), len(counts) + 1])
    agreed(
        compiled, "give_messages", rows, page_first, counts, 0, last, rng.choice([0, LOCKED, SETTLING]),
        rng.choice([0, 1]), rng.choice([0, FIRST_LOCK]), rng.choice([SECRET, SECRET, b"short"]), rng.choice([-1, 5]),
        rng.choice([0, 3 << 48]), -1, legal.table(len(counts), 1), legal.table(len(counts), MESSAGE_WIDTH),
    )  # fmt: skip
    ordinals = array("q", [rng.choice([-1, *range(40)]) for _ in counts])
    agreed(
        compiled, "mark_messages", rows, page_first, counts, 0, last, ordinals, FIRST_LOCK,
        bytearray(rng.choice([len(counts), len(counts), 0])),
    )  # fmt: skip
    agreed(
        compiled, "unlock_messages", rows, page_first, counts, 0, last, rng.choice([0, LOCKED, SETTLING, 48]),
        rng.choice([-1, 0, 1]), rng.choice([1, 3, 2**62]), legal.table(len(counts), 1),
    )  # fmt: skip
    agreed(
        compiled, "due_messages", rows, page_first, rng.choice([ACTIVE, SCHEDULED, DEFERRED]), NOW_MS,
        legal.table(rng.choice([0, 2, 50]), 1),
    )  # fmt: skip
    first, stop = rng.randrange(many + 1), rng.choice([many, many, many + 1])
    agreed(compiled, "count_deliveries", rows, min(first, stop), stop, rng.choice([-1, 1]))
    agreed(
        compiled, "drop_messages", rows, min(first, stop), stop, legal.table(1, TALLY_WIDTH), legal.table(many, 1),
        rng.choice([0, 0, 1]),
    )  # fmt: skip
    agreed(
        compiled, "copy_messages", rows, min(first, stop), stop, rng.choice([-1, 0, 5, 2**62]),
        legal.table(rng.choice([0, 1, 3, many]), QUEUE_WIDTH), rng.choice([0, 0, 1, 4]),
    )  # fmt: skip
    agreed(
        compiled, "activate_messages", rows, page_first, counts, rng.choice([0, 0, 1]), last,
        legal.table(rng.choice([1, 1, 0]), TALLY_WIDTH), legal.table(rng.choice([0, 1, 3, 50]), QUEUE_WIDTH),
        rng.choice([0, 0, 1, 4]),
    )  # fmt: skip
    agreed(compiled, "least_index", rows)
    agreed(compiled, "clear_marks", rows)


@MANY
@given(seed=SEEDS)
def test_locks_and_ranges_agree(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    page_first = rng.choice([0, 4096])
    locks = array("q")
    for _ in range(rng.choice([0, 1, 20])):
        locks += array("q", [rng.choice([0, 1, 77]), rng.choice([NOW_MS - 1, NOW_MS, NOW_MS + 1, 2**62])])
    many = len(locks) // LOCK_WIDTH
    ordinals = array("q", [rng.choice([-1, 0, page_first, page_first + many - 1, page_first + many]) for _ in range(9)])
    last = rng.choice([0, 5, 9, 10])
    agreed(compiled, "find_locks", locks, page_first, ordinals, 0, last, NOW_MS, legal.table(9, 1))
    agreed(compiled, "end_locks", locks, page_first, ordinals, 0, last)
    agreed(compiled, "ended_locks", locks, page_first, NOW_MS, legal.table(rng.choice([0, 2, 30]), 1))
    numbers = array("q", [rng.choice([0, 1, 2, 3, 4, 9, 10, -3]) for _ in range(rng.randrange(12))])
    agreed(compiled, "number_ranges", numbers, 0, len(numbers), legal.table(len(numbers) - rng.choice([0, 0, 1]), 2))
    tokens = b""
    for _ in range(rng.randrange(5)):
        number = FIRST_LOCK + rng.choice([-1, 0, 3, 4, 5])
        token = number.to_bytes(8, "big") + check_of(SECRET, number).to_bytes(8, "big")
        tokens += rng.choice([token, token, rng.randbytes(16), bytes(16), legal.mutated(rng, token)])
    rows = array("q", [rng.choice([0, 1, -1, -(2**63), rng.getrandbits(62)]) for _ in range(4 * MESSAGE_WIDTH)])
    agreed(compiled, "message_tokens", rows, rng.choice([0, 0, 1, -1]), rng.choice([4, 4, 2, 0, 5]))
    agreed(compiled, "read_tokens", tokens, SECRET, FIRST_LOCK, FIRST_LOCK + 5, legal.table(rng.choice([4, 4, 1]), 1))


@MANY
@given(seed=SEEDS)
def test_fields_and_rows_of_a_batch_agree(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    run = run_of_batches(rng)
    if rng.random() < 0.4:
        run = legal.mutated(rng, run)
    result, buffers = agreed(
        compiled, "read_fields", run, rng.choice([0, 0, 1]), legal.table(rng.choice([0, 2, 9]), INCOMING_WIDTH)
    )
    fields = buffers[0]
    many = len(fields) // INCOMING_WIDTH
    for place in range(many):
        fields[place * INCOMING_WIDTH + I_LENGTH] &= 0xFFFF
        if rng.random() < 0.2:
            column = rng.choice([I_ORDINAL, I_TTL, I_SCHEDULED])
            fields[place * INCOMING_WIDTH + column] = rng.choice([-1, 0, 2**62, 2**63 - 1])
    first, row = rng.choice([0, 0, 1]), rng.choice([0, 1])
    agreed(
        compiled, "add_messages", legal.table(many + rng.choice([0, 1]), QUEUE_WIDTH), row, fields, first, many,
        rng.choice([0, 5, 2**63 - 2]), rng.choice([0, NOW_MS, 2**62]), rng.choice([-1, 0, 5, 2**62]), 1,
    )  # fmt: skip
    indexes = array("q", [rng.choice([0, 1, 12, 13, 2**40, -1]) for _ in range(rng.choice([0, 1, 4]))])
    agreed(
        compiled, "collect_records", run, indexes, 0, len(indexes), legal.table(len(indexes), MESSAGE_WIDTH),
        bytearray(b"before"),
    )  # fmt: skip


@MANY
@given(seed=SEEDS)
def test_packed_tables_agree_and_come_back(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    width, many = rng.choice([1, 2, 7]), rng.choice([0, 1, 5, 40])
    kinds = [
        lambda: rng.randrange(4),
        lambda: rng.randrange(-(2**63), 2**63),
        lambda: 7,
        lambda: rng.choice([-1, 2**63 - 1, -(2**63)]),
    ]
    kind = rng.choice(kinds)
    rows = array("q", [kind() for _ in range(width * many)])
    _, buffers = agreed(compiled, "pack_rows", rows, width, bytearray(b"xy"))
    packed = bytes(buffers[1])
    position, buffers = agreed(compiled, "unpack_rows", packed, 2, len(packed), width, legal.table(many, width))
    assert position == len(packed) and buffers[0] == rows
    damaged = legal.mutated(rng, packed) if len(packed) > 3 else packed
    agreed(compiled, "unpack_rows", damaged, min(2, len(damaged)), len(damaged), width, legal.table(many, width))
    agreed(compiled, "unpack_rows", rng.randbytes(30), 0, 30, width, legal.table(3, width))


@given(st.integers(0, 2**62))
def test_a_planted_difference_is_found(seed: int) -> None:
    """The control arm: twins that differ in one bit of one row are told apart."""

    def wrong(rows: array[int], first_row: int, last_row: int, change: int) -> None:
        twins.count_deliveries(rows, first_row, last_row, change)
        if len(rows):
            rows[M_STATE] ^= CHANGED

    rows = array("q", [0] * QUEUE_WIDTH)
    rows[M_STATE] = ACTIVE
    with pytest.raises(AssertionError):
        agreed(SimpleNamespace(count_deliveries=wrong), "count_deliveries", rows, 0, 1, 1)
