"""Stored events become Avro records of Capture; fastavro, the usual reader of such files, reads them back."""

from __future__ import annotations

import struct
from io import BytesIO
from random import Random
from types import SimpleNamespace
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubweir.errors import KernelRefusal
from hubweir.kernels import twins
from hubweir.kernels.columns_contract import CAPTURE_DAMAGED, CAPTURE_OK
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests import rich_bytes as rich

VALUES = {"type": "map", "values": ["long", "double", "string", "bytes"]}
SCHEMA = fastavro.parse_schema({
    "type": "record", "name": "EventData", "namespace": "Microsoft.ServiceBus.Messaging",
    "fields": [
        {"name": "SequenceNumber", "type": "long"}, {"name": "Offset", "type": "string"},
        {"name": "EnqueuedTimeUtc", "type": "string"}, {"name": "SystemProperties", "type": VALUES},
        {"name": "Properties", "type": VALUES}, {"name": "Body", "type": ["null", "bytes"]},
    ],
})  # fmt: skip
MANY = 1 << 40


def run_of(*messages: bytes, **batch: Any) -> bytes:
    records = bytearray()
    for message in messages:
        assert twins.ingest(message, legal.delivery_row(message, 0, 0), 0, 1, 0, None, records, MANY)[3] == 0
    return legal.stored_batch(bytes(records), len(messages), checked=False, **batch)


def captured(kernels: SimpleNamespace, run: bytes) -> list[Any]:
    out = bytearray()
    answer = kernels.capture_block(run, 0, 0, 0, MANY, MANY, -1, out)
    assert answer[-1] == CAPTURE_OK
    return read_records(bytes(out), answer[0])


def read_records(block: bytes, count: int) -> list[Any]:
    """The records as fastavro reads them; they fill the block."""
    source = BytesIO(block)
    records = [fastavro.schemaless_reader(source, SCHEMA, None) for _ in range(count)]
    assert source.tell() == len(block)
    return records


def properties(*fields: bytes) -> bytes:
    return legal.section(0x73, legal.compound(0xC0, list(fields)))


def application_properties(entries: dict[str, bytes]) -> bytes:
    pairs = [item for name, value in entries.items() for item in (legal.string(name), value)]
    return legal.section(0x74, legal.compound(0xC1, pairs))


def test_an_event_is_captured_with_everything_that_a_reader_knows(kernels: SimpleNamespace) -> None:
    message = b"".join([
        legal.annotations({"x-opt-offset": legal.string("of the sender"), "mine": b"\x54\x05"}),
        properties(legal.string("id-1"), b"\xa0\x02\x00\xff", b"\x40", legal.string("about")),
        application_properties({"s": legal.string("text"), "i": b"\x71\x00\x00\x00\x07"}),
        legal.data_section(b"body"),
    ])  # fmt: skip
    (record,) = captured(kernels, run_of(message, first_index=41, first_offset=1000, time=legal.TIME))
    assert record == {
        "SequenceNumber": 41,
        "Offset": "1000",
        "EnqueuedTimeUtc": "11/14/2023 10:13:20 PM",
        "SystemProperties": {
            "x-opt-sequence-number": 41, "x-opt-offset": "1000", "x-opt-enqueued-time": "2023-11-14T22:13:20.123Z",
            "mine": 5, "message-id": "id-1", "user-id": b"\x00\xff", "subject": "about",
        },
        "Properties": {"s": "text", "i": 7},
        "Body": b"body",
    }  # fmt: skip


VALUES_IN_MAPS = [
    (b"\x41", 1),
    (b"\x42", 0),
    (b"\x56\x01", 1),
    (b"\x50\xff", 255),
    (b"\x55\x80", -128),
    (b"\x80\x7f" + b"\xff" * 7, 2**63 - 1),
    (b"\x80\x80" + bytes(7), str(2**63)),
    (struct.pack(">Bd", 0x82, 0.1), 0.1),
    (struct.pack(">Bf", 0x72, 0.5), 0.5),
    (b"\xa0\x02\x00\xff", b"\x00\xff"),
    (b"\xa3\x03sym", "sym"),
    (b"\xa1\x01\xff", "\ufffd"),
    (b"\x40", "null"),
    (struct.pack(">Bq", 0x83, legal.TIME), "2023-11-14T22:13:20.123Z"),
    (b"\x98" + bytes(16), "00000000-0000-0000-0000-000000000000"),
    (legal.compound(0xC0, [b"\x41", legal.string("x")]), '[true,"x"]'),
    (b"\x00\xa3\x01d\x54\x05", 5),
]


@pytest.mark.parametrize(("value", "expected"), VALUES_IN_MAPS)
def test_a_property_becomes_the_branch_of_its_type(kernels: SimpleNamespace, value: bytes, expected: object) -> None:
    (record,) = captured(kernels, run_of(application_properties({"k": value})))
    assert record["Properties"] == {"k": expected}
    assert type(record["Properties"]["k"]) is type(expected)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (2, {"x-opt-partition-key": "name"}),
        (4, {"x-opt-partition-key": "name", "x-opt-publisher": "name"}),
        (0, {"x-opt-partition-key": "of the sender"}),
    ],
)
def test_the_name_block_says_key_and_publisher(kernels: SimpleNamespace, flags: int, expected: dict[str, str]) -> None:
    message = legal.annotations({"x-opt-partition-key": legal.string("of the sender")})
    (record,) = captured(kernels, run_of(message, name=b"name", flags=flags))
    for name in ("x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time"):
        del record["SystemProperties"][name]
    assert record["SystemProperties"] == expected


@pytest.mark.parametrize("count", [0, 1, 62, 63, 64, 126, 127, 200])
def test_a_map_of_any_size_is_read_back(kernels: SimpleNamespace, count: int) -> None:
    entries = {f"name {number}": legal.string("v" * number) for number in range(count)}
    (record,) = captured(kernels, run_of(application_properties(entries)))
    assert record["Properties"] == {f"name {number}": "v" * number for number in range(count)}


def test_an_event_without_a_body_has_none(kernels: SimpleNamespace) -> None:
    records = captured(kernels, run_of(b"", legal.data_section(b""), legal.section(0x77, b"\x40")))
    assert [record["Body"] for record in records] == [None, b"", None]


def test_other_batches_are_stepped_over_and_the_span_is_told(kernels: SimpleNamespace) -> None:
    run = b"".join([
        run_of(b"", b"", first_index=7, time=legal.TIME),
        legal.stored_batch(b"\x07control", 0, kind=3, checked=False),
        run_of(b"", first_index=9, time=legal.TIME + 50),
    ])  # fmt: skip
    out = bytearray(b"before")
    answer = kernels.capture_block(run, 0, 0, 0, MANY, MANY, -1, out)
    assert answer == (3, len(run), 0, 0, 7, 9, legal.TIME, legal.TIME + 50, CAPTURE_OK)
    assert out.startswith(b"before")
    assert kernels.capture_block(run, len(run), 0, 0, MANY, MANY, -1, out)[:8] == (0, len(run), 0, 0, *[-1] * 4)


@pytest.mark.parametrize(("until", "events"), [(-1, 3), (0, 0), (7, 0), (8, 1), (10, 3), (99, 3)])
def test_it_stops_before_the_end_that_was_asked_for(kernels: SimpleNamespace, until: int, events: int) -> None:
    answer = kernels.capture_block(run_of(b"", b"", b"", first_index=7), 0, 0, 0, MANY, MANY, until, bytearray())
    assert (answer[0], answer[-1]) == (events, CAPTURE_OK)


@pytest.mark.parametrize(("max_bytes", "max_events"), [(0, 1), (0, MANY), (300, MANY), (MANY, 1), (MANY, 2), (1000, 3)])
def test_pieces_make_the_same_bytes_as_one_call(kernels: SimpleNamespace, max_bytes: int, max_events: int) -> None:
    messages = [legal.data_section(bytes(20 * number)) for number in range(9)]
    run = run_of(*messages[:4]) + run_of(*messages[4:], first_index=11)
    whole, pieces, place = bytearray(), bytearray(), (0, 0, 0)
    assert kernels.capture_block(run, 0, 0, 0, MANY, MANY, -1, whole)[0] == 9
    while place[0] < len(run):
        begun = len(pieces)
        answer = kernels.capture_block(run, *place, max_bytes, max_events, -1, pieces)
        assert 1 <= answer[0] <= max_events
        assert answer[0] == 1 or len(pieces) - begun <= max_bytes
        place = answer[1:4]
    assert pieces == whole


def test_no_events_are_written_when_none_are_asked_for(kernels: SimpleNamespace) -> None:
    out = bytearray()
    assert kernels.capture_block(run_of(b"", b""), 0, 0, 0, MANY, 0, -1, out)[:4] == (0, 0, 0, 0)
    assert out == b""


def test_damage_is_a_status_and_what_was_before_it_stays(kernels: SimpleNamespace) -> None:
    sound, broken = run_of(b"", b""), bytearray(run_of(legal.data_section(b"x"), first_index=9))
    broken[80 + 32] = 0x77  # where the message starts
    out = bytearray()
    answer = kernels.capture_block(sound + bytes(broken), 0, 0, 0, MANY, MANY, -1, out)
    assert answer[:4] == (2, len(sound), 0, 0)
    assert answer[-1] == CAPTURE_DAMAGED
    assert len(read_records(bytes(out), 2)) == 2
    cut = kernels.capture_block(sound[:-1], 0, 0, 0, MANY, MANY, -1, out)
    assert (cut[0], cut[-1]) == (0, CAPTURE_DAMAGED)


def test_a_place_outside_of_the_run_is_refused(kernels: SimpleNamespace) -> None:
    with pytest.raises(KernelRefusal, match="no position"):
        kernels.capture_block(run_of(b""), 5000, 0, 0, MANY, MANY, -1, bytearray())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**48))
def test_whatever_was_stored_can_be_captured_and_read(kernels: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    messages = [rich.message(rng) for _ in range(3)]
    messages = [message for message in messages if twins.count_events(message, 0, len(message), 0) == 1]
    records = captured(kernels, run_of(*messages, first_index=5))
    assert [record["SequenceNumber"] for record in records] == list(range(5, 5 + len(messages)))
