"""Both twins walk a log alike, over all kinds of batches, of which some do not continue and some are damaged."""

from __future__ import annotations

import struct
from array import array
from random import Random
from types import SimpleNamespace

from hypothesis import given, settings

from hubweir.kernels.contract import (
    BATCH_WIDTH,
    SPARSE_WIDTH,
    W_ENTRY_BYTES,
    W_INDEX,
    W_LIMIT,
    W_NEXT_ENTRY,
    W_NUMBER,
    W_OFFSET,
    W_POSITION,
    WALK_WIDTH,
)
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests.test_twins import MANY, SEEDS, agreed


def log_of_batches(rng: Random, walk: array[int]) -> bytes:
    """Batches that continue each other from where a walk stands, of all kinds; some do not continue, or are damaged."""
    index, offset, number, data = walk[W_INDEX], walk[W_OFFSET], walk[W_NUMBER], b""
    most = 2**64 - 1
    for _ in range(rng.randrange(8)):
        kind, number = rng.choice([1, 1, 1, 2, 3, 3]), number + rng.choice([0, 0, 0, 3])
        count, records = rng.randrange(4), rng.randbytes(rng.randrange(60))
        if kind == 3:
            count = rng.choice([0, 0, 0, 1])
            skipped = struct.pack(">BQQ", 4, rng.choice([index, index + 9, 2**64 - 1]) & most, offset + 9 & most)
            records = rng.choice([b"\1\0", b"\1\1", b"\1\1\0", b"\1", b"", b"\2\0\0\0\1", skipped, skipped[:-1]])
        wrong = [rng.choice([0] * 30 + [-1, 1]) for _ in range(3)]
        data += legal.stored_batch(
            records, count, name=rng.choice([b"", b"name"]), flags=rng.choice([0, 0, 1, 2, 3]), kind=kind,
            version=rng.choice([1] * 30 + [2]), first_index=index + wrong[0] & most,
            first_offset=offset + wrong[1] & most, time=rng.randrange(2**40), number=number + wrong[2] & most,
            unsynced=rng.choice([0, 1, 1, 2**32 - 1]),
        )  # fmt: skip
        if kind != 3:
            index, offset = index + count, offset + len(records)
        elif records[:1] == b"\4" and len(records) == 17:
            index, offset = struct.unpack_from(">QQ", records, 1)
        number += 1
    return data


@settings(MANY, max_examples=800)
@given(seed=SEEDS)
def test_follow_batches_agrees(compiled: SimpleNamespace, seed: int) -> None:
    """A walk of several calls, each from where the one before ended."""
    rng = Random(seed)
    walk = array("q", [rng.choice([-1, 0, 1, 500, 10**12]) for _ in range(WALK_WIDTH)])
    walk[W_POSITION], walk[W_ENTRY_BYTES] = rng.choice([0, 128, 10**12]), rng.choice([1, 150, 10**6])
    walk[W_INDEX] = rng.choice([0, 7, 2**63 - 2, -1])
    walk[W_LIMIT] = rng.choice([walk[W_INDEX], min(walk[W_INDEX] + 3, 2**63 - 1), 2**63 - 1, 2**63 - 1])
    walk[W_NEXT_ENTRY] = walk[W_POSITION] + rng.choice([-1, 0, 1, 100, 10**6])
    data = log_of_batches(rng, walk)
    if rng.random() < 0.2:
        data = legal.mutated(rng, data)
    nonce, begin = rng.choice([legal.NONCE] * 6 + [1, 0]), walk[W_POSITION]
    for _ in range(3):
        piece = data[walk[W_POSITION] - begin :][: rng.choice([200, 500, 10**6])]
        entries = legal.table(rng.choice([0, 1, 1, 9]), SPARSE_WIDTH)
        table = rng.choice([None, None, legal.table(rng.choice([0, 1, 9]), BATCH_WIDTH)])
        _, buffers = agreed(compiled, "follow_batches", piece, nonce, walk, entries, table)
        walk = buffers[0]
