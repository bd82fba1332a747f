"""Rows become batch transfers that any service takes: ingest counts them, the official client's decoder reads them."""

from __future__ import annotations

import struct
from array import array
from types import SimpleNamespace
from typing import Any

import pytest

from hubweir.kernels import twins
from hubweir.kernels.columns_contract import (
    ROWS_MALFORMED,
    ROWS_OK,
    ROWS_ROOM,
    ROWS_TOO_LARGE,
    MapColumn,
    Variable,
)
from hubweir.kernels.contract import BATCH_FORMAT, KEY_ENVELOPE
from hubweir.kernels.tests import legal_bytes as legal

MOST = 2**31 - 1


def column(values: list[bytes | None]) -> Variable:
    """Arrow's buffers of a string or binary array."""
    offsets, validity = array("i", [0]), bytearray((len(values) + 7) // 8)
    for place, value in enumerate(values):
        offsets.append(offsets[-1] + len(value or b""))
        validity[place // 8] |= (value is not None) << place % 8
    return bytes(validity) if None in values else None, offsets.tobytes(), b"".join(each or b"" for each in values), 0


def maps(rows: list[dict[bytes, bytes | None] | None]) -> MapColumn:
    offsets, validity = array("i", [0]), bytearray((len(rows) + 7) // 8)
    for place, row in enumerate(rows):
        offsets.append(offsets[-1] + len(row or {}))
        validity[place // 8] |= (row is not None) << place % 8
    keys = column([key for row in rows for key in row or {}])
    values = column([value for row in rows for value in (row or {}).values()])
    return bytes(validity), offsets.tobytes(), 0, keys, values


def messages_of(payload: bytes) -> list[Any]:
    """The messages of a batch envelope, as the official client reads them."""
    from azure.eventhub._pyamqp._decode import decode_payload

    return [decode_payload(memoryview(bytes(part))) for part in decode_payload(memoryview(payload)).data or []]


def batch(kernels: SimpleNamespace, *arguments: Any, max_bytes: int = MOST, envelope: bytes = b"") -> Any:
    """(answer, payload) of one call; arguments: body, keys, properties, order, first, last."""
    out = bytearray(b"before")
    answer = kernels.event_batches(*arguments, max_bytes, envelope, out)
    assert out.startswith(b"before")
    assert answer[1] == len(out) - len(b"before")
    return answer, bytes(out[len(b"before") :])


def test_each_row_becomes_one_message(kernels: SimpleNamespace) -> None:
    answer, payload = batch(
        kernels, column([b"one", None, b"x" * 300]), column([b"k", b"", None]),
        maps([{b"a": b"1", b"b": None}, None, {b"long": b"v" * 400}]), None, 0, 3,
    )  # fmt: skip
    assert answer[0::2] == (3, ROWS_OK)
    assert twins.count_events(payload, 0, len(payload), BATCH_FORMAT) == 3
    first, second, third = messages_of(payload)
    assert [b"".join(message.data) for message in (first, second, third)] == [b"one", b"", b"x" * 300]
    assert first.message_annotations == {b"x-opt-partition-key": b"k"}
    assert first.application_properties == {b"a": b"1", b"b": None}
    assert second.message_annotations is None
    assert second.application_properties is None
    assert third.application_properties == {b"long": b"v" * 400}


def test_the_envelope_goes_in_front(kernels: SimpleNamespace) -> None:
    envelope = legal.annotations({"x-opt-partition-key": legal.string("all")})
    answer, payload = batch(kernels, column([b"a", b"b"]), None, None, None, 0, 2, envelope=envelope)
    assert answer[2] == ROWS_OK
    assert payload.startswith(envelope)
    start, length, where = twins.find_key(payload, 0, len(payload), BATCH_FORMAT)
    assert (payload[start : start + length], where) == (b"all", KEY_ENVELOPE)


def test_rows_go_in_the_order_that_is_given(kernels: SimpleNamespace) -> None:
    order = array("q", [2, 0, 1])
    _, payload = batch(kernels, column([b"0", b"1", b"2"]), None, None, order, 0, 2)
    assert [b"".join(message.data) for message in messages_of(payload)] == [b"2", b"0"]


def test_an_array_that_is_a_slice_starts_at_its_offset(kernels: SimpleNamespace) -> None:
    validity, offsets, content, _ = column([b"not", b"this", b"but", None, b"these"])
    properties = maps([{b"no": b"no"}, {b"yes": b"1"}, {}, {b"last": b"2"}])
    sliced = (properties[0], properties[1], 1, properties[3], properties[4])
    _, payload = batch(kernels, (validity, offsets, content, 2), None, sliced, None, 0, 3)
    messages = messages_of(payload)
    assert [b"".join(message.data) for message in messages] == [b"but", b"", b"these"]
    assert [message.application_properties for message in messages] == [{b"yes": b"1"}, None, {b"last": b"2"}]


@pytest.mark.parametrize("max_bytes", [40, 100, 250, 5000])
def test_batches_of_bounded_size_hold_every_row_once(kernels: SimpleNamespace, max_bytes: int) -> None:
    values: list[bytes | None] = [b"%d" % number * (number % 5) for number in range(40)]
    place, found = 0, []
    while place < 40:
        (place, size, status), payload = batch(
            kernels, column(values), None, None, None, place, 40, max_bytes=max_bytes, envelope=b""
        )
        assert 0 < size <= max_bytes
        assert status == (ROWS_OK if place == 40 else ROWS_ROOM)
        found += [b"".join(message.data) for message in messages_of(payload)]
    assert found == values


def test_the_limit_is_exact(kernels: SimpleNamespace) -> None:
    envelope = legal.annotations({})
    (_, size, _), _ = batch(kernels, column([b"abc"]), None, None, None, 0, 1, envelope=envelope)
    for max_bytes, wanted in ((size, (1, size, ROWS_OK)), (size - 1, (0, 0, ROWS_TOO_LARGE))):
        answer, _ = batch(kernels, column([b"abc"]), None, None, None, 0, 1, max_bytes=max_bytes, envelope=envelope)
        assert answer == wanted


def test_no_rows_make_no_bytes(kernels: SimpleNamespace) -> None:
    answer, payload = batch(kernels, column([b"a"]), None, None, None, 1, 1, envelope=b"\x00")
    assert (answer, payload) == ((1, 0, ROWS_OK), b"")


def test_many_small_properties_take_the_wide_form(kernels: SimpleNamespace) -> None:
    row: dict[bytes, bytes | None] = {b"%d" % number: b"" for number in range(200)}
    _, payload = batch(kernels, column([b""]), None, maps([row]), None, 0, 1)
    assert messages_of(payload)[0].application_properties == row


MALFORMED = [
    (None, struct.pack("=4i", 0, 1, 0, 1), b"ab", 0),  # offsets that fall
    (None, struct.pack("=4i", 0, 1, 9, 9), b"ab", 0),  # beyond the bytes
    (None, struct.pack("=4i", 0, 1, -1, 2), b"ab", 0),
    (None, struct.pack("=2i", 0, 1), b"ab", 0),  # too few
    (b"", struct.pack("=4i", 0, 1, 1, 2), b"ab", 0),  # a bitmap of nothing
]


@pytest.mark.parametrize("spoiled", MALFORMED)
def test_buffers_that_lie_are_a_status(kernels: SimpleNamespace, spoiled: Variable) -> None:
    sound = column([b"a", b"b", b"c"])
    place = 0 if spoiled[0] == b"" else 1
    for arguments in ((spoiled, None, None), (sound, spoiled, None)):
        answer, payload = batch(kernels, *arguments, None, 0, 3)
        assert (answer[0], answer[2]) == (place, ROWS_MALFORMED)
        assert len(messages_of(payload)) == place
        assert kernels.rows_digest(0, *arguments, None, 0, 3)[1] == place


def test_a_row_number_that_no_column_has_is_a_status(kernels: SimpleNamespace) -> None:
    for number in (-1, 1, 2**62, -(2**63), 2**63 - 1):
        answer, _ = batch(kernels, column([b"a"]), None, None, array("q", [0, number]), 0, 2)
        assert (answer[0], answer[2]) == (1, ROWS_MALFORMED)


ROWS: tuple[list[bytes | None], list[bytes | None], list[dict[bytes, bytes | None] | None]] = (
    [b"one", None, b"x" * 20, b""],
    [b"k", b"", None, b"kk"],
    [{b"a": b"1"}, None, {b"long": b"v" * 40, b"n": None}, {}],
)


def digest(kernels: SimpleNamespace, rows: Any = ROWS, *, cuts: tuple[int, ...] = (4,)) -> int:
    columns = (column(rows[0]), column(rows[1]), maps(rows[2]))
    found, first = 0, 0
    for last in cuts:
        found, place = kernels.rows_digest(found, *columns, None, first, last)
        assert place == last
        first = last
    return int(found)


def test_a_digest_does_not_depend_on_how_the_rows_were_cut(kernels: SimpleNamespace) -> None:
    assert digest(kernels, cuts=(1, 1, 3, 4)) == digest(kernels)


def test_a_digest_is_the_same_for_ever(kernels: SimpleNamespace) -> None:
    """Digests are stored: another algorithm would refuse a writer that goes on after an update."""
    assert digest(kernels) == 0x889C388219B11591


@pytest.mark.parametrize(
    ("place", "row", "value"),
    [(0, 0, b"onf"), (0, 1, b""), (0, 3, None), (1, 1, None), (1, 0, b"l"), (2, 0, {b"b": b"1"}), (2, 0, {b"a": None})],
)
def test_a_digest_tells_other_rows(kernels: SimpleNamespace, place: int, row: int, value: Any) -> None:
    changed = [list(part) for part in ROWS]
    changed[place][row] = value
    assert digest(kernels, changed) != digest(kernels)


def test_a_digest_tells_the_order_and_where_one_value_ends(kernels: SimpleNamespace) -> None:
    pairs = [([b"ab", b"c"], [b"c", b"ab"]), ([b"ab", b"c"], [b"a", b"bc"])]
    for one, other in pairs:
        seen = {kernels.rows_digest(0, column(rows), None, None, None, 0, 2)[0] for rows in (one, other)}
        assert len(seen) == 2
