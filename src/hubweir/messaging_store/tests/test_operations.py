"""operations.py: operations come back in order with their indexes, and are all there or none."""

from __future__ import annotations

import pytest

from hubweir.kernels.stored_batch import BATCH_RECORDS_LIMIT, KIND_OPERATIONS, read_header
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, IDLE, pack_control
from hubweir.messaging_store.operations import operations_of, pack_operations
from hubweir.messaging_store.record import headers_of
from hubweir.messaging_store.tests.batches import complete, sealed


def test_operations_come_back_with_their_indexes() -> None:
    operations = [b"create", b"", b"delete"]
    run = pack_operations(operations)
    complete(run, first_index=4)
    assert read_header(run).kind == KIND_OPERATIONS
    assert [(index, bytes(view)) for index, view in operations_of(run)] == list(enumerate(operations, 4))


def test_many_operations_are_a_chain_of_batches_within_the_limit() -> None:
    operations = [bytes([number]) * 30_000 for number in range(5)]
    run = pack_operations(operations)
    complete(run)
    batches = list(headers_of(run))
    assert [batch.continues for batch in batches] == [True, True, False]
    assert all(batch.record_bytes <= BATCH_RECORDS_LIMIT for batch in batches)
    assert [bytes(view) for _, view in operations_of(run)] == operations


@pytest.mark.parametrize("size", [BATCH_RECORDS_LIMIT // 2 - 4, BATCH_RECORDS_LIMIT // 2 - 3])
def test_a_batch_is_filled_to_the_last_byte(size: int) -> None:
    run = pack_operations([bytes(size)] * 2)
    assert len(list(headers_of(run))) == (1 if 2 * (size + 4) <= BATCH_RECORDS_LIMIT else 2)


def test_batches_of_other_kinds_are_stepped_over() -> None:
    run = sealed(b"an event") + pack_operations([b"change"]) + pack_control(CONTROL_IDLE_MARK, IDLE)
    complete(run, first_index=4)
    assert [(index, bytes(view)) for index, view in operations_of(run)] == [(5, b"change")]


def test_no_operations_are_an_empty_run() -> None:
    assert pack_operations([]) == b""
