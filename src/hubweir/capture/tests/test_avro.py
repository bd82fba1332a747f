"""Blocks and headers, with fastavro as the oracle, and files that are equal however the log was read."""

from __future__ import annotations

import io
import json
from array import array
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.capture import avro
from hubweir.capture.avro import SCHEMA, BlockWriter, header, long
from hubweir.event_hub.open_run import OpenRun
from hubweir.kernels.contract import BATCH_FORMAT
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.record import headers_of

MARKER = bytes(range(16))


def run_of(bodies: list[bytes], first_index: int = 0, first_offset: int = 0) -> bytearray:
    messages = [encode_message(Message(body=DataBody((body,)))) for body in bodies]
    data = b"".join(b"\x00\x53\x75\xb0" + len(message).to_bytes(4, "big") + message for message in messages)
    run = OpenRun()
    run.add_deliveries(data, array("q", [0, 0, len(data), 0, BATCH_FORMAT]), 0, 1)
    taken = run.take_run()
    complete_run(
        taken,
        LogEnd(first_index, first_offset),
        nonce=1,
        enqueued_time_ms=1_583_121_906_789,
        durable_upto=0,
        writer_epoch=1,
    )
    return taken


def pieces_of(run: bytearray, sizes: list[int]) -> Iterator[tuple[int, bytearray]]:
    """The run cut at batches, a few at a time, with the index of each piece's first event."""
    batches = list(headers_of(run))
    starts = [batch.position for batch in batches] + [len(run)]
    at = 0
    for size in [*sizes, len(batches)]:
        end = min(len(batches), at + size)
        if end > at:
            yield batches[at].first_index, run[starts[at] : starts[end]]
        at = end


def file_of(pieces: list[tuple[int, bytearray]], until: int, first: int = 0) -> bytes:
    writer = BlockWriter(MARKER)
    out = [header(MARKER)]
    for start, piece in pieces:
        out += [bytes(buffer) for buffer in writer.add_events(piece, max(first, start), until)]
    out += [bytes(buffer) for buffer in writer.flush()]
    return b"".join(out)


def records_of(file: bytes) -> list[dict[str, Any]]:
    return list(fastavro.reader(io.BytesIO(file)))


def block_sizes(file: bytes) -> list[tuple[int, int]]:
    return [(block.num_records, block.size) for block in fastavro.block_reader(io.BytesIO(file))]


def test_header_alone_is_a_file_without_events() -> None:
    reader = fastavro.reader(io.BytesIO(header(MARKER)))
    assert reader.codec == "null"
    assert list(reader) == []
    schema = json.loads(SCHEMA)
    assert (schema["name"], schema["namespace"]) == ("EventData", "Microsoft.ServiceBus.Messaging")
    names = [field["name"] for field in schema["fields"]]
    assert names == ["SequenceNumber", "Offset", "EnqueuedTimeUtc", "SystemProperties", "Properties", "Body"]


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 8191, 8192, 2**31, 2**62])
def test_longs_are_as_the_standard_library_of_avro_writes_them(value: int) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    assert long(value) == out.getvalue()


def test_records_are_the_events_from_the_first_to_the_last_asked_for() -> None:
    bodies = [b"body %d" % number for number in range(20)]
    run = run_of(bodies, first_index=100, first_offset=7_000)
    records = records_of(file_of([(100, run)], until=117, first=105))
    assert [record["SequenceNumber"] for record in records] == list(range(105, 117))
    assert [record["Body"] for record in records] == bodies[5:17]
    assert records[0]["EnqueuedTimeUtc"] == "3/2/2020 4:05:06 AM"
    assert int(records[0]["Offset"]) > 7_000


def test_a_run_that_ends_before_what_is_asked_for_has_no_block() -> None:
    run = run_of([b"a", b"b"], first_index=100)
    writer = BlockWriter(MARKER)
    assert writer.add_events(run, 102, 200) == [] and writer.add_events(run, 100, 100) == []
    assert writer.flush() == [] and writer.events == 0


def test_a_block_ends_before_the_event_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "BLOCK_BYTES", 2_000)
    file = file_of([(0, run_of([b"x" * 300] * 30))], until=30)
    sizes = block_sizes(file)
    assert sum(count for count, _ in sizes) == 30
    assert len(sizes) > 5
    one = sizes[0][1] // sizes[0][0]
    assert all(size <= 2_000 for _, size in sizes)
    assert all(size + one > 2_000 for _, size in sizes[:-1])


def test_an_event_larger_than_a_block_has_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "BLOCK_BYTES", 2_000)
    sizes = block_sizes(file_of([(0, run_of([b"a", b"b" * 5_000, b"c", b"d"]))], until=4))
    assert [count for count, _ in sizes] == [1, 1, 2]


def test_an_event_that_begins_a_block_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro, "BLOCK_BYTES", 1_000)
    run = run_of([bytes(400), bytes(500), b"with it in a block"])
    assert [count for count, _ in block_sizes(file_of([(0, run)], 3))] == [1, 2]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 900), min_size=1, max_size=60),
    st.lists(st.integers(1, 5), max_size=30),
    st.data(),
)
def test_a_file_is_the_same_however_its_log_was_read(sizes: list[int], cuts: list[int], data: st.DataObject) -> None:
    before = avro.BLOCK_BYTES
    avro.BLOCK_BYTES = 1_500
    try:
        whole = bytearray()
        pieces: list[bytearray] = []
        index = offset = 0
        for at in range(0, len(sizes), 3):
            piece = run_of([b"z" * size for size in sizes[at : at + 3]], index, offset)
            last = list(headers_of(piece))[-1]
            index, offset = last.first_index + last.count, last.first_offset + last.record_bytes
            whole += piece
            pieces.append(piece)
        first = data.draw(st.integers(0, index - 1))
        until = data.draw(st.integers(first + 1, index))
        cut = [(start, piece) for start, piece in pieces_of(whole, cuts)]
        cut = [(start, piece) for start, piece in cut if start < until and _end(piece) > first]
        once = file_of([(first, whole)], until, first)
        assert file_of(cut, until, first) == once
        assert [record["SequenceNumber"] for record in records_of(once)] == list(range(first, until))
    finally:
        avro.BLOCK_BYTES = before


def _end(piece: bytearray) -> int:
    last = list(headers_of(piece))[-1]
    return last.first_index + last.count
