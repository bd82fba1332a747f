"""forwarded_run.py: records stay as they lie where that says enough, and are written anew where it does not."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, Properties, decode_message, encode_message
from hubweir.amqp.types.values import Symbol
from hubweir.kernels.contract import FORWARDED_BIT, MESSAGE_WIDTH, Q_ID_NUMBER, Q_RECORD
from hubweir.kernels.stored_batch import BATCH_RECORDS_LIMIT, RECORD_HEADER_SIZE
from hubweir.messaging_store.record import headers_of
from hubweir.queue import forwarded_run as module
from hubweir.queue.changed_properties import record_of
from hubweir.queue.forwarded_record import SOURCE_NAME
from hubweir.queue.forwarded_run import forwarded_run
from hubweir.queue.given_id import given_id

PREFIX = "0123456789abcdef"
FORWARDED = 1 << FORWARDED_BIT


def record(body: bytes, message_id: str | None = "own", source: str | None = None) -> bytes:
    return record_of(
        encode_message(
            Message(
                properties=Properties(message_id=message_id),
                message_annotations=None if source is None else {Symbol(SOURCE_NAME.decode()): source},
                body=DataBody((body,)),
            )
        )
    )


def rows_of(records: Sequence[bytes], order: Sequence[int], numbers: Sequence[int]) -> tuple[array[int], bytearray]:
    """Rows of these records in this order, over their bytes back to back."""
    starts = [sum(map(len, records[:at])) for at in range(len(records))]
    rows = array("q", bytes(8 * MESSAGE_WIDTH * len(order)))
    for row, at in enumerate(order):
        rows[row * MESSAGE_WIDTH + Q_RECORD] = starts[at]
        rows[row * MESSAGE_WIDTH + Q_ID_NUMBER] = numbers[row]
    return rows, bytearray(b"".join(records))


def run_of(
    records: Sequence[bytes],
    *,
    order: Sequence[int] | None = None,
    numbers: Sequence[int] | None = None,
    source: bytes | None = None,
    has_changes: bool = False,
) -> bytearray:
    order = range(len(records)) if order is None else order
    numbers = [*order] if numbers is None else numbers
    rows, data = rows_of(records, order, numbers)
    return forwarded_run(rows, data, id_prefix=PREFIX, source=source, has_changes=has_changes)


def records_in(run: bytearray) -> list[bytes]:
    """All records of a run, which is one chain: every batch but the last one says that it goes on."""
    found, headers = [], list(headers_of(run))
    assert [header.continues for header in headers] == [True] * (len(headers) - 1) + [False]
    for header in headers:
        at = header.records_at
        for _ in range(header.count):
            size = int.from_bytes(run[at : at + 4], "big")
            found.append(bytes(run[at : at + size]))
            at += size
    return found


def messages_in(run: bytearray) -> list[Message]:
    return [decode_message(each[RECORD_HEADER_SIZE:]) for each in records_in(run)]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The records that were written anew, as they were."""
    seen: list[bytes] = []
    write = module.forwarded_record

    def watched(*call: object, **more: object) -> bytes:
        seen.append(call[0])  # type: ignore[arg-type]
        return write(*call, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "forwarded_record", watched)
    return seen


def test_records_that_say_enough_go_as_they_lie(written: list[bytes]) -> None:
    records = [record(b"one"), record(b"two" * 100), record(b"")]
    assert records_in(run_of(records)) == records
    assert written == []


def test_records_that_lie_in_another_order_go_in_that_of_the_rows() -> None:
    records = [record(b"one"), record(b"two" * 100), record(b"three")]
    assert records_in(run_of(records, order=[2, 0, 1])) == [records[2], records[0], records[1]]


def test_a_changed_message_is_left_out_where_it_lies_between_the_others() -> None:
    """The record as it was lies there still, and no row names it."""
    records = [record(b"one"), record(b"as it was"), record(b"three"), record(b"changed")]
    assert records_in(run_of(records, order=[0, 2, 3], has_changes=True)) == [records[0], records[2], records[3]]


@pytest.mark.parametrize("at", range(3))
def test_one_without_an_id_gets_the_one_that_it_had_and_the_others_keep_theirs(at: int) -> None:
    records = [record(b"%d" % number, None if number == at else f"own-{number}") for number in range(3)]
    ids = [message.properties.message_id for message in messages_in(run_of(records, numbers=[7, 8, 9]))]  # type: ignore[union-attr]
    assert ids == [given_id(PREFIX, 7 + number) if number == at else f"own-{number}" for number in range(3)]


def test_a_dead_letter_says_where_it_was_dead_lettered() -> None:
    for message in messages_in(run_of([record(b"one"), record(b"two")], source=b"kitchen")):
        assert (message.message_annotations or {})[Symbol(SOURCE_NAME.decode())] == "kitchen"


@pytest.mark.parametrize(
    ("numbers", "kept"), [((0, 1), False), ((FORWARDED, FORWARDED), True), ((FORWARDED, 1), False)]
)
def test_a_source_stays_only_where_a_forward_wrote_it(
    written: list[bytes], numbers: tuple[int, int], kept: bool
) -> None:
    """What a sender says of it is told nobody. One that was never forwarded is enough for a look at each."""
    run = run_of([record(b"one", source="somewhere"), record(b"two", source="somewhere")], numbers=numbers)
    told = [Symbol(SOURCE_NAME.decode()) in (message.message_annotations or {}) for message in messages_in(run)]
    assert told == [bool(number) if number in (0, FORWARDED) else False for number in numbers]
    assert (written == []) is kept


def test_the_name_of_the_source_in_a_body_changes_nothing_that_is_sent() -> None:
    records = [record(b"of " + SOURCE_NAME), record(b"two")]
    assert records_in(run_of(records)) == records


@pytest.mark.parametrize("has_changes", [False, True])
def test_more_than_a_batch_may_have_goes_as_one_chain_of_several(has_changes: bool) -> None:
    records = [record(bytes(BATCH_RECORDS_LIMIT // 3)) for _ in range(5)]
    run = run_of(records, has_changes=has_changes)
    assert records_in(run) == records
    counts = [header.count for header in headers_of(run)]
    assert counts == [2, 2, 1]


def test_records_that_fill_a_batch_to_the_byte_share_it() -> None:
    small = record(b"one")
    empty = len(record(bytes(1_000))) - 1_000
    records = [small, record(bytes(BATCH_RECORDS_LIMIT - len(small) - empty)), small]
    records[1] = record(bytes(2 * BATCH_RECORDS_LIMIT - 2 * len(small) - empty - len(records[1])))
    assert len(records[0]) + len(records[1]) == BATCH_RECORDS_LIMIT, "the test is as it should be"
    assert [header.count for header in headers_of(run_of(records))] == [2, 1]
