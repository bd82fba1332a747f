"""Columns as Apache Arrow sees them: wrapped without a copy they are sound arrays, and back they make the same rows."""

from __future__ import annotations

from array import array
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubweir.kernels import columns_contract as names
from hubweir.kernels.columns_contract import ALL_COLUMNS, ROWS_OK, MapColumn, Variable
from hubweir.kernels.contract import RunCursor, SendRoom, TransferForm
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests import rich_bytes as rich

try:
    import pyarrow as pa
except ImportError:
    pytest.skip("pyarrow is missing (the extra `spark` brings it): columns are not checked", allow_module_level=True)

SEEDS = st.integers(0, 2**48)
MANY = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT_MAP = pa.map_(pa.utf8(), pa.utf8())


def wrapped(columns: list[bytearray], rows: int) -> dict[str, Any]:
    """Every column as an Arrow array over the buffers themselves, checked in full."""

    def single(kind: Any, offsets: int, validity: int | None = None) -> Any:
        bitmap = None if validity is None else pa.py_buffer(columns[validity])
        buffers = [bitmap, pa.py_buffer(columns[offsets]), pa.py_buffer(columns[offsets + 1])]
        return pa.Array.from_buffers(kind, rows, buffers)

    def mapping(entries: int) -> Any:
        count = array("i", bytes(columns[entries]))[-1]
        buffers = [pa.py_buffer(columns[entries + place]) for place in range(5)]
        keys, values = (
            pa.Array.from_buffers(pa.utf8(), count, [None, *buffers[place : place + 2]]) for place in (1, 3)
        )
        pairs = pa.StructArray.from_arrays([keys, values], fields=[TEXT_MAP.key_field, TEXT_MAP.item_field])
        return pa.Array.from_buffers(TEXT_MAP, rows, [None, buffers[0]], children=[pairs])

    def numbers(kind: Any, place: int) -> Any:
        return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(columns[place])])

    arrays = {
        "body": single(pa.binary(), names.BODY_OFFSETS),
        "offset": single(pa.utf8(), names.OFFSET_OFFSETS),
        "sequenceNumber": numbers(pa.int64(), names.SEQUENCE_NUMBERS),
        "enqueuedTime": numbers(pa.timestamp("us", "UTC"), names.ENQUEUED_TIMES),
        "publisher": single(pa.utf8(), names.PUBLISHER_OFFSETS, names.PUBLISHER_VALIDITY),
        "partitionKey": single(pa.utf8(), names.PARTITION_KEY_OFFSETS, names.PARTITION_KEY_VALIDITY),
        "properties": mapping(names.PROPERTIES_OFFSETS),
        "systemProperties": mapping(names.SYSTEM_OFFSETS),
    }
    for found in arrays.values():
        found.validate(full=True)
    return arrays


def variable(found: Any) -> Variable:
    """What the kernels take of a string or binary array."""
    validity, offsets, content = found.buffers()
    return (
        None if validity is None else memoryview(validity), memoryview(offsets),
        b"" if content is None else memoryview(content), found.offset,
    )  # fmt: skip


def map_column(found: Any) -> MapColumn:
    validity, offsets = found.buffers()[:2]
    keys, items = found.keys, found.items
    bitmap = None if validity is None else memoryview(validity)
    return bitmap, memoryview(offsets), found.offset, variable(keys), variable(items)


@MANY
@given(seed=SEEDS)
def test_columns_of_events_are_sound_arrow_arrays(kernels: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    data, rows = b"", array("q")
    for index in range(rng.choice([1, 7, 8, 9, 20])):
        message = rich.message(rng, service=True)
        rows += array("q", [index, len(data), len(message), 1, 0])
        data += message
    columns = rich.empty_columns()
    taken, first, last, _, _ = kernels.event_columns(data, rows, 0, len(rows) // 5, -1, -1, ALL_COLUMNS, 0, columns)
    if taken:
        numbers = wrapped(columns, taken)["sequenceNumber"].to_pylist()
        assert (numbers[0], numbers[-1], len(numbers)) == (first, last, taken)


VALUES = st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.text(max_size=300)), max_size=4)
ROWS = st.lists(
    st.tuples(st.one_of(st.none(), st.binary(max_size=300)), st.one_of(st.none(), st.text(max_size=5)), VALUES)
)


@MANY
@given(rows=ROWS, front=st.integers(0, 3))
def test_rows_of_arrow_come_back_through_the_hub_as_they_were(
    kernels: SimpleNamespace, rows: list[tuple[bytes | None, str | None, dict[str, str | None]]], front: int
) -> None:
    """Arrow arrays (slices of larger ones) → a batch → stored events → delivered → columns."""
    from hubweir.kernels import twins
    from hubweir.kernels.contract import BATCH_FORMAT

    filler: list[Any] = [(b"filler", "filler", {"filler": "filler"})] * front
    bodies, keys, properties = ([row[place] for row in filler + rows] for place in range(3))
    body = pa.array(bodies, pa.binary()).slice(front)
    key = pa.array(keys, pa.utf8()).slice(front)
    maps = pa.array([list(row.items()) for row in properties], TEXT_MAP).slice(front)
    payload = bytearray()
    answer = kernels.event_batches(
        variable(body), variable(key), map_column(maps), None, 0, len(rows), 2**31 - 1, b"", payload
    )
    assert answer == (len(rows), len(payload), ROWS_OK)
    records, sent = bytearray(), array("q", [0, 0, len(payload), 0, BATCH_FORMAT])
    _, _, events, _ = twins.ingest(payload, sent, 0, 1, 0, None, records, 1 << 30)
    assert events == len(rows)
    if not rows:
        return
    run = legal.stored_batch(bytes(records), events, checked=False)
    frames, table, deliveries = bytearray(), legal.table(events, 16), legal.table(events, 5)
    twins.deliver(run, RunCursor(), TransferForm(0, 0, 65536, True), 0, SendRoom(events, 1 << 30, 1 << 30), frames)
    twins.scan_frames(frames, 0, len(frames), 65536, table)
    assert twins.collect_deliveries(table, 0, events, deliveries) == events
    columns = rich.empty_columns()
    assert kernels.event_columns(frames, deliveries, 0, events, 7, -1, ALL_COLUMNS, 0, columns)[0] == events
    found = wrapped(columns, events)
    assert found["body"].to_pylist() == [row[0] or b"" for row in rows]
    assert found["partitionKey"].to_pylist() == [row[1] or None for row in rows]
    expected = [[(name, "null" if text is None else text) for name, text in row[2].items()] for row in rows]
    assert found["properties"].to_pylist() == expected


def test_a_string_column_may_be_the_body_and_a_view_cast_the_order(kernels: SimpleNamespace) -> None:
    body = pa.array(["zero", "one", "two"])
    order = memoryview(pa.array([2, 0], pa.int64()).buffers()[1]).cast("q")
    payload = bytearray()
    answer = kernels.event_batches(variable(body), None, None, order, 0, 2, 1000, b"", payload)
    assert answer[0] == 2
    assert payload.index(b"two") < payload.index(b"zero")


def test_columns_of_nothing_but_nulls_have_no_bytes(kernels: SimpleNamespace) -> None:
    body = pa.array([None, None], pa.binary())
    payload = bytearray()
    assert kernels.event_batches(variable(body), None, None, None, 0, 2, 1000, b"", payload)[0] == 2
    assert kernels.rows_digest(0, variable(body), None, None, None, 0, 2)[1] == 2
