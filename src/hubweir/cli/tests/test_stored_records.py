"""Stored batches as rows: every kind has a name, every body is shown as far as it can be."""

from __future__ import annotations

import struct

import pytest

from hubweir.amqp.messaging.message import Message, SequenceBody, ValueBody, encode_message
from hubweir.cli.stored_records import batch_documents, batch_rows, record_documents, record_rows
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE, RECORD_STRUCT, read_header
from hubweir.messaging_store import record
from hubweir.messaging_store.control_batch import pack_control
from hubweir.messaging_store.disk.batch_scan import Damage, Place
from hubweir.messaging_store.disk.inspection import StoredBatch
from hubweir.messaging_store.disk.segment import SegmentHeader
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import Producer, begin_batch, seal_batch

SEGMENT = Segment(SegmentHeader("ab" * 16, 1, 1, 0, 0, -1, -1, 0, Durability.DURABLE), "folder", 9, 1_000)
CONTROLS = {name: value for name, value in vars(record).items() if name.startswith("CONTROL_")}


def stored(run: bytes | bytearray) -> StoredBatch:
    header = read_header(run)
    return StoredBatch(SEGMENT, 128, header, record.name_of(run, header), record.producer_of(run, header), bytes(run))


def events(*messages: bytes, producer: Producer | None = None) -> StoredBatch:
    run = bytearray()
    start = begin_batch(run, name=b"k", producer=producer)
    for message in messages:
        run += struct.pack(RECORD_STRUCT, RECORD_HEADER_SIZE + len(message), 0, 0, 0, 0, 0, 0, 0) + message
    seal_batch(run, start, count=len(messages))
    return stored(run)


@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_every_control_kind_has_a_name(control: int) -> None:
    (document,) = batch_documents(iter([stored(pack_control(control, bytes(16)))]))
    assert str(document["kind"]).isascii() and not str(document["kind"]).startswith("control")
    (unknown,) = batch_documents(iter([stored(pack_control(200, b""))]))
    assert unknown["kind"] == "control 200"


def test_bodies_of_every_kind_are_shown_and_what_is_no_message_says_so() -> None:
    bodies = [Message(body=ValueBody(7)), Message(body=SequenceBody(([1, "two"],))), Message()]
    batch = events(*(bytes(encode_message(message)) for message in bodies), b"\x00no message")
    shown = [str(document["body"]) for document in record_documents(iter([batch]), 0, 10)]
    assert (shown[0], shown[2]) == ("7", "") and "two" in shown[1] and shown[3].startswith("no legal message")
    assert [document["sequence_number"] for document in record_documents(iter([batch]), 2, 1)] == [2]


def test_a_producer_is_shown_with_its_numbers() -> None:
    batch = events(b"", producer=Producer(17, 3, 41))
    (document,) = batch_documents(iter([batch]))
    assert document["producer"] == {"id": 17, "epoch": 3, "first_number": 41, "round": 0, "digest": 0}
    assert "17 epoch 3 from 41" in batch_rows(iter([batch]))[1][0]


def test_every_row_is_as_wide_as_its_headings_damage_included() -> None:
    open_end = Damage(Place(400, 2, 50), None)
    items = [events(b"a"), (SEGMENT, Damage(Place(300, 1, 20), Place(350, 2, 50))), (SEGMENT, open_end)]
    for headings, rows in (batch_rows(iter(items)), record_rows(iter(items), 0, 10)):
        assert len(rows) == 3 and {len(row) for row in rows} == {len(headings)}
        assert [row[-1] for row in rows] == ["sound", "damaged", "damaged"]
    assert batch_rows(iter(items))[1][1][1:5] == ("300", "50", "damage", "1-1")
    assert batch_rows(iter(items))[1][2][1:5] == ("400", "to the end", "damage", "2-8")
