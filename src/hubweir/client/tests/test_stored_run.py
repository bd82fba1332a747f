"""A run of stored batches is the same to its reader as the run of their deliveries, and bad bytes make none."""

from __future__ import annotations

from array import array

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.client.event_run import EventRun
from hubweir.client.stored_run import StoredRun
from hubweir.errors import DECODE_ERROR, ServiceError
from hubweir.kernels import collect_deliveries, deliver, deliver_batches, ingest, scan_frames
from hubweir.kernels.columns_contract import ALL_COLUMNS, COLUMN_BUFFERS, COLUMNS_OK
from hubweir.kernels.contract import (
    D_FORMAT,
    D_LENGTH,
    D_START,
    DELIVERY_WIDTH,
    FRAME_WIDTH,
    RunCursor,
    SendRoom,
    TransferForm,
)
from hubweir.kernels.stored_batch import AT_COUNT, AT_FIRST_INDEX, AT_KIND, AT_PAYLOAD_CRC, AT_VERSION, HEADER_SIZE
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.record import begin_batch, seal_batch

_FRAME_BYTES = 1_000
MANY = 1 << 30
FORM = TransferForm(channel=0, handle=0, max_frame_size=_FRAME_BYTES, settled=True)
ALL = SendRoom(MANY, MANY, MANY)


def a_run(events: int = 40) -> bytes:
    """Batches of four events from number 100 on, as a log holds them."""
    run, offset = b"", 0
    for first in range(0, events, 4):
        batch = bytearray()
        start = begin_batch(batch)
        for number in range(first, first + 4):
            message = encode_message(
                Message(application_properties={"number": number}, body=DataBody((b"body %d" % number,)))
            )
            ingest(message, array("q", (0, 0, len(message), 0, 0)), 0, 1, 0, None, batch, 1 << 20)
        seal_batch(batch, start, count=4)
        complete_run(
            batch, LogEnd(100 + first, offset), nonce=7, enqueued_time_ms=1_000 + first, durable_upto=0, writer_epoch=1
        )
        offset += len(batch) - HEADER_SIZE
        run += batch
    return run


def deliveries_of(frames: bytes) -> tuple[bytes, array[int], int]:
    table, rows = array("q", bytes(8 * FRAME_WIDTH * 100)), array("q", bytes(8 * DELIVERY_WIDTH * 100))
    count, _, _ = scan_frames(frames, 0, len(frames), _FRAME_BYTES, table)
    taken = collect_deliveries(table, 0, count, rows)
    return frames, rows[: taken * DELIVERY_WIDTH], taken


def batched(run: bytes) -> tuple[bytes, array[int], int]:
    out = bytearray()
    deliver_batches(run, RunCursor(), FORM, 0, ALL, MANY, out)
    return deliveries_of(bytes(out))


def single(run: bytes) -> EventRun:
    out = bytearray()
    deliver(run, RunCursor(), FORM, 0, ALL, out)
    return EventRun(*deliveries_of(bytes(out)))


def test_it_gives_what_single_deliveries_give() -> None:
    run, expected = StoredRun(*batched(a_run())), single(a_run())
    assert len(run) == run.delivery_count == len(expected) == 40
    assert 1 < run.credit_count < 10
    assert expected.credit_count == 40
    assert run.last_sequence_number == expected.last_sequence_number == 139
    assert run.sequence_numbers() == expected.sequence_numbers()
    assert list(run) == list(expected)
    assert run.offsets() == expected.offsets()
    assert run.enqueued_times_ms() == expected.enqueued_times_ms()
    assert run.bodies() == expected.bodies()
    assert run.partition_keys() == expected.partition_keys()
    assert run.open_message(7) == expected.open_message(7)
    assert run.properties(39) == {"number": 39}


def test_its_columns_are_those_of_single_deliveries() -> None:
    run, expected = StoredRun(*batched(a_run())), single(a_run())
    columns = [[bytearray() for _ in range(COLUMN_BUFFERS)] for _ in range(2)]
    answers = [
        each.append_columns(3, 31, 103, -1, ALL_COLUMNS, 0, buffers)
        for each, buffers in zip((run, expected), columns, strict=True)
    ]
    assert answers == [(31, 103, 130, -1, COLUMNS_OK)] * 2
    assert columns[0] == columns[1]


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, 0),  # magic
        (AT_VERSION, 9),
        (AT_KIND, 3),
        (AT_COUNT, 0x40),  # more events than bytes
        (AT_COUNT + 3, 0),
        (AT_PAYLOAD_CRC, 1),
        (HEADER_SIZE + 40, 0xFF),
    ],
)
def test_bytes_that_are_no_sound_batches_make_no_run(at: int, value: int) -> None:
    data, rows, count = batched(a_run())
    spoiled = bytearray(data)
    assert spoiled[rows[D_START] + at] != value
    spoiled[rows[D_START] + at] = value
    with pytest.raises(ServiceError) as caught:
        StoredRun(bytes(spoiled), rows, count)
    assert caught.value.condition is DECODE_ERROR


def test_a_delivery_that_is_cut_off_empty_or_of_another_format_makes_no_run() -> None:
    for column, value in ((D_LENGTH, 100), (D_LENGTH, 0), (D_FORMAT, 0)):
        data, rows, _ = batched(a_run())
        rows[column] = value
        with pytest.raises(ServiceError, match="not sound"):
            StoredRun(data, rows, 1)


def test_a_name_that_would_be_repeated_for_every_event_is_no_longer_than_a_key() -> None:
    """Or a delivery of megabytes became terabytes when its events are looked at."""
    for name, is_sound in ((b"k" * 512, True), (b"k" * 513, False)):
        batch = bytearray()
        start = begin_batch(batch, name=name)
        ingest(b"\x00\x53\x75\xa0\x00", array("q", (0, 0, 5, 0, 0)), 0, 1, 0, None, batch, 1 << 20)
        seal_batch(batch, start, count=1)
        rows = array("q", (0, 0, len(batch), 1, 0x68576201))
        if is_sound:
            assert StoredRun(bytes(batch), rows, 1).partition_keys() == [name.decode()]
        else:
            with pytest.raises(ServiceError, match="longer than a partition key"):
                StoredRun(bytes(batch), rows, 1)


def test_numbers_beyond_63_bits_make_no_run() -> None:
    for first, is_sound in ((2**63 - 5, True), (2**63 - 4, False), (2**64 - 1, False)):
        run = bytearray(a_run(4))
        run[AT_FIRST_INDEX : AT_FIRST_INDEX + 8] = first.to_bytes(8)
        rows = array("q", (0, 0, len(run), 1, 0x68576201))
        if is_sound:
            assert StoredRun(bytes(run), rows, 1).sequence_numbers()[-1] == 2**63 - 2
        else:
            with pytest.raises(ServiceError, match="beyond 63 bits"):
                StoredRun(bytes(run), rows, 1)


def test_records_that_are_none_are_told_when_events_are_wanted() -> None:
    """The checksum holds, for a peer may compute it; what a record's header says is looked at when it is used."""
    run = bytearray(a_run(4))
    run[HEADER_SIZE : HEADER_SIZE + 4] = (2**31).to_bytes(4)
    seal_batch(run, 0, count=4)
    stored = StoredRun(bytes(run), array("q", (0, 0, len(run), 1, 0x68576201)), 1)
    columns = [bytearray() for _ in range(COLUMN_BUFFERS)]
    assert stored.append_columns(0, 4, -1, -1, ALL_COLUMNS, 0, columns)[0] == 0
    with pytest.raises(ServiceError, match="not sound"):
        stored.bodies()
