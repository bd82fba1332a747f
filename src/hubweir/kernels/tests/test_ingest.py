"""Deliveries become records: the bytes as they came, the positions of their sections, all or nothing."""

from __future__ import annotations

import struct
from array import array
from types import SimpleNamespace

import pytest

from hubweir.kernels.contract import (
    BATCH_FORMAT,
    INGEST_DONE,
    INGEST_MALFORMED,
    INGEST_NAME,
    INGEST_PROPERTIES,
    INGEST_ROOM,
    KEY_ENVELOPE,
    KEY_MALFORMED,
    KEY_MESSAGE,
    KEY_NONE,
    PROPERTIES_LIMIT,
    PROPERTY_LIMIT,
)
from hubweir.kernels.stored_batch import ABSENT, RECORD_STRUCT
from hubweir.kernels.tests.legal_bytes import (
    annotations,
    compound,
    data_section,
    delivery_row,
    envelope,
    section,
    string,
    symbol,
    variable,
)

# Transfer payloads as the Python client writes them: two events, the same two with a key, one alone.
TWO_EVENTS = bytes.fromhex("005375a008005375a0036f6e65005375a014005374c10702a1016ba10176005375a00374776f")
KEY_SECTION = "005372c11b02a313782d6f70742d706172746974696f6e2d6b6579a103706b31"
KEYED_FRONT = "005370c00705560140404040" + KEY_SECTION
TWO_KEYED = bytes.fromhex(
    KEYED_FRONT + "005375a034" + KEYED_FRONT + "005375a0036f6e65"
    "005375a040" + KEYED_FRONT + "005374c10702a1016ba10176005375a00374776f"
)  # fmt: skip
ONE_EVENT = bytes.fromhex("005375a007005375a0027031")
BODY = data_section(b"body")
KEYED = annotations({"x-opt-partition-key": string("pk1")}) + BODY


def ingest(
    kernels: SimpleNamespace, payload: bytes, message_format: int = BATCH_FORMAT, name: bytes | None = None
) -> tuple[tuple[int, int, int, int], bytes]:
    out = bytearray()
    return kernels.ingest(payload, delivery_row(payload, 0, message_format), 0, 1, 0, name, out, 1 << 20), bytes(out)


def records(out: bytes) -> list[tuple[tuple[int, ...], bytes]]:
    """Each record's seven positions and its message."""
    found, at = [], 0
    while at < len(out):
        length, *positions = struct.unpack_from(RECORD_STRUCT, out, at)
        found.append((tuple(-1 if place == ABSENT else place for place in positions), out[at + 32 : at + length]))
        at += length
    return found


def test_the_clients_batches_become_records(kernels: SimpleNamespace) -> None:
    assert (len(TWO_EVENTS), len(TWO_KEYED)) == (38, 170)
    result, out = ingest(kernels, TWO_EVENTS)
    assert result == (1, 0, 2, INGEST_DONE)
    assert records(out) == [
        ((0, -1, -1, -1, -1, 0, -1), TWO_EVENTS[5:13]), ((0, -1, -1, -1, 0, 12, -1), TWO_EVENTS[18:]),
    ]  # fmt: skip
    result, out = ingest(kernels, TWO_KEYED, name=b"pk1")
    assert result == (1, 0, 2, INGEST_DONE)
    assert records(out) == [
        ((12, -1, 12, -1, -1, 44, -1), TWO_KEYED[49:101]), ((12, -1, 12, -1, 44, 56, -1), TWO_KEYED[106:]),
    ]  # fmt: skip
    assert records(ingest(kernels, ONE_EVENT)[1]) == [((0, -1, -1, -1, -1, 0, -1), ONE_EVENT[5:])]


def test_the_bytes_of_a_record_are_as_the_table_says(kernels: SimpleNamespace) -> None:
    assert ingest(kernels, ONE_EVENT)[1].hex() == (
        "00000027" "00000000" "ffffffff" "ffffffff" "ffffffff" "ffffffff" "00000000" "ffffffff" "005375a0027031"
    )  # fmt: skip


def test_sections_in_any_order_are_found(kernels: SimpleNamespace) -> None:
    # The Python client writes delivery annotations behind the footer.
    parts = [
        section(code, value)
        for code, value in (
            (0x72, b"\xc1\x01\x00"), (0x73, b"\x45"), (0x75, b"\xa0\x01x"), (0x78, b"\xc1\x01\x00"),
            (0x71, b"\xc1\x01\x00"), (0x70, b"\x45"), (0x74, b"\xd1\x00\x00\x00\x04\x00\x00\x00\x00"),
        )
    ]  # fmt: skip
    message = b"".join(parts)
    [(positions, stored)] = records(ingest(kernels, message, 0)[1])
    assert stored == message
    assert positions == (32, 22, 0, 6, 32, 10, 16)


def test_an_empty_message_is_an_event_and_an_empty_batch_holds_none(kernels: SimpleNamespace) -> None:
    assert records(ingest(kernels, b"", 0)[1]) == [((0, -1, -1, -1, -1, -1, -1), b"")]
    assert records(ingest(kernels, data_section(b""))[1]) == [((0, -1, -1, -1, -1, -1, -1), b"")]
    assert ingest(kernels, b"") == ((1, 0, 0, INGEST_DONE), b"")
    assert ingest(kernels, section(0x70, b"\x45")) == ((1, 0, 0, INGEST_DONE), b"")


@pytest.mark.parametrize("end", range(1, len(TWO_KEYED)))
def test_every_cut_of_a_batch_is_malformed_or_a_shorter_batch(kernels: SimpleNamespace, end: int) -> None:
    boundaries = {12: 0, 44: 0, 101: 1}
    result, out = ingest(kernels, TWO_KEYED[:end])
    if end in boundaries:
        assert result == (1, 0, boundaries[end], INGEST_DONE)
    else:
        assert (result, out) == ((0, 0, 0, INGEST_MALFORMED), b"")


def test_a_malformed_inner_message_leaves_nothing_of_its_delivery(kernels: SimpleNamespace) -> None:
    bad = envelope([BODY, BODY[:-1], BODY])
    data = ONE_EVENT + bad
    rows = array("q", [0, 0, len(ONE_EVENT), 0, BATCH_FORMAT, 1, len(ONE_EVENT), len(bad), 0, BATCH_FORMAT])
    out = bytearray(b"before")
    assert kernels.ingest(data, rows, 0, 2, 0, None, out, 1 << 20) == (1, 0, 1, INGEST_MALFORMED)
    assert out == b"before" + ingest(kernels, ONE_EVENT)[1]
    assert kernels.count_events(bad, 0, len(bad), BATCH_FORMAT) == -1


def test_envelopes_hold_data_and_formats_are_two(kernels: SimpleNamespace) -> None:
    assert ingest(kernels, section(0x77, b"\x43"))[0][3] == INGEST_MALFORMED
    assert ingest(kernels, section(0x76, b"\x45"))[0][3] == INGEST_MALFORMED
    assert ingest(kernels, BODY, 1)[0][3] == INGEST_MALFORMED
    assert ingest(kernels, section(0x77, b"\x43"), 0)[0][3] == INGEST_DONE


def test_a_small_room_gives_the_same_records_in_more_calls(kernels: SimpleNamespace) -> None:
    payloads = [envelope([BODY] * 5), envelope([BODY] * 2), b"", envelope([data_section(bytes(300)), BODY])]
    data = b"".join(payloads)
    rows, at = array("q"), 0
    for index, payload in enumerate(payloads):
        rows += array("q", [index, at, len(payload), 0, BATCH_FORMAT])
        at += len(payload)
    whole = bytearray()
    assert kernels.ingest(data, rows, 0, 4, 0, None, whole, 1 << 20) == (4, 0, 9, INGEST_DONE)
    size = 32 + len(BODY)
    for room in (0, size, 2 * size + 3, 5 * size, 7 * size - 1, 7 * size):
        out, row, resume_at, total, status = bytearray(), 0, 0, 0, INGEST_ROOM
        while status == INGEST_ROOM:
            before = len(out)
            row, resume_at, events, status = kernels.ingest(data, rows, row, 4, resume_at, None, out, room)
            written = len(out) - before
            total += events
            assert written <= room or events == 1
        assert (bytes(out), total, row, status) == (bytes(whole), 9, 4, INGEST_DONE)
    assert kernels.ingest(data, rows, 0, 4, 0, None, bytearray(), 6 * size) == (1, 0, 5, INGEST_ROOM)
    row, resume_at, events, status = kernels.ingest(data, rows, 0, 4, 0, None, bytearray(), 2 * size)
    assert (row, resume_at, events, status) == (0, 2 * (5 + len(BODY)), 2, INGEST_ROOM)


def test_only_envelopes_with_the_name_are_taken(kernels: SimpleNamespace) -> None:
    assert ingest(kernels, TWO_KEYED, name=b"pk2") == ((0, 0, 0, INGEST_NAME), b"")
    assert ingest(kernels, TWO_KEYED, name=b"")[0][3] == INGEST_NAME
    assert ingest(kernels, TWO_EVENTS, name=b"pk1")[0][3] == INGEST_NAME
    assert ingest(kernels, TWO_EVENTS, name=b"")[0][3] == INGEST_DONE
    assert ingest(kernels, TWO_KEYED, name=None)[0][3] == INGEST_DONE
    wrong_type = annotations({"x-opt-partition-key": b"\x43"}) + data_section(b"")
    assert ingest(kernels, wrong_type, name=b"")[0][3] == INGEST_MALFORMED
    assert ingest(kernels, wrong_type, name=None)[0][3] == INGEST_DONE


def test_a_single_message_is_taken_without_a_name_or_under_its_own(kernels: SimpleNamespace) -> None:
    for name, status in ((b"", INGEST_DONE), (b"pk1", INGEST_DONE), (b"pk2", INGEST_NAME), (None, INGEST_DONE)):
        assert ingest(kernels, KEYED, 0, name)[0][3] == status


def find_key(kernels: SimpleNamespace, payload: bytes, message_format: int = BATCH_FORMAT) -> tuple[bytes, int]:
    start, length, where = kernels.find_key(payload, 0, len(payload), message_format)
    return payload[start : start + length], where


def test_keys_are_found_where_they_are(kernels: SimpleNamespace) -> None:
    assert find_key(kernels, TWO_KEYED) == (b"pk1", KEY_ENVELOPE)
    assert find_key(kernels, envelope([KEYED, BODY])) == (b"pk1", KEY_MESSAGE)
    assert find_key(kernels, envelope([KEYED], key="outer")) == (b"outer", KEY_ENVELOPE)
    assert find_key(kernels, envelope([BODY, KEYED])) == (b"", KEY_NONE)
    assert find_key(kernels, KEYED, 0) == (b"pk1", KEY_MESSAGE)
    assert find_key(kernels, BODY + KEYED[: -len(BODY)], 0) == (b"pk1", KEY_MESSAGE)
    assert find_key(kernels, BODY, 0) == find_key(kernels, b"") == (b"", KEY_NONE)


def test_a_null_or_empty_key_is_none_and_another_type_is_malformed(kernels: SimpleNamespace) -> None:
    for value, where in (
        (b"\x40", KEY_NONE),
        (b"\xa1\x00", KEY_NONE),
        (b"\x43", KEY_MALFORMED),
        (b"\xa3\x01k", KEY_MALFORMED),
    ):
        message = annotations({"first": b"\x43", "x-opt-partition-key": value})
        assert find_key(kernels, message, 0) == (b"", where)
        assert find_key(kernels, envelope([message])) == (b"", where)
    assert find_key(kernels, TWO_KEYED[:-1])[1] == KEY_MALFORMED
    assert find_key(kernels, envelope([KEYED[:-1]]))[1] == KEY_MALFORMED
    assert find_key(kernels, KEYED, 7)[1] == KEY_MALFORMED


def test_events_are_counted_as_ingest_makes_them(kernels: SimpleNamespace) -> None:
    for payload, message_format, count in (
        (TWO_KEYED, BATCH_FORMAT, 2), (b"", BATCH_FORMAT, 0), (b"", 0, 1), (KEYED, 0, 1), (KEYED, 5, -1),
        (TWO_KEYED[:-1], BATCH_FORMAT, -1), (envelope([BODY, b"?"]), BATCH_FORMAT, -1),
    ):  # fmt: skip
        assert kernels.count_events(payload, 0, len(payload), message_format) == count


# Properties. An entry here is the symbol "n" (3 bytes) and a binary with a constructor and a size of 5 bytes.
ENTRY_OVERHEAD = 3 + 5


def application_properties(*sizes: int) -> bytes:
    """A section whose entries have these encoded sizes, name and value."""
    items = [part for size in sizes for part in (symbol("n"), variable(0xA0, bytes(size - ENTRY_OVERHEAD), wide=True))]
    return section(0x74, compound(0xC1, items, wide=True))


@pytest.mark.parametrize(("size", "status"), [(PROPERTY_LIMIT, INGEST_DONE), (PROPERTY_LIMIT + 1, INGEST_PROPERTIES)])
def test_one_property_has_at_most_the_limit(kernels: SimpleNamespace, size: int, status: int) -> None:
    message = application_properties(10, size) + BODY
    result, out = ingest(kernels, message, 0)
    assert result == ((1, 0, 1, status) if status == INGEST_DONE else (0, 0, 0, status))
    assert bool(out) == (status == INGEST_DONE)


@pytest.mark.parametrize(("over", "status"), [(0, INGEST_DONE), (1, INGEST_PROPERTIES)])
def test_all_properties_together_have_at_most_the_limit(kernels: SimpleNamespace, over: int, status: int) -> None:
    front = annotations({"x": string("y")})
    rest = PROPERTIES_LIMIT - len(front) - len(application_properties(*[20_000] * 3, ENTRY_OVERHEAD))
    message = front + application_properties(*[20_000] * 3, ENTRY_OVERHEAD + rest + over) + BODY
    assert len(message) - len(BODY) == PROPERTIES_LIMIT + over
    assert ingest(kernels, message, 0)[0][3] == status


@pytest.mark.parametrize("code", [0x72, 0x73, 0x74])
def test_no_kind_of_property_is_larger_than_the_limit(kernels: SimpleNamespace, code: int) -> None:
    value = variable(0xA0, bytes(PROPERTY_LIMIT), wide=True)
    items = [value] if code == 0x73 else [symbol("n"), value]
    message = section(code, compound(0xC0 if code == 0x73 else 0xC1, items, wide=True)) + BODY
    assert ingest(kernels, message, 0)[0] == (0, 0, 0, INGEST_PROPERTIES)


def test_a_body_of_any_size_is_no_property(kernels: SimpleNamespace) -> None:
    assert ingest(kernels, data_section(bytes(200_000), wide=True), 0)[0] == (1, 0, 1, INGEST_DONE)


def test_a_batch_with_one_event_over_the_limit_leaves_nothing_behind(kernels: SimpleNamespace) -> None:
    bad = application_properties(PROPERTY_LIMIT + 1) + BODY
    result, out = ingest(kernels, envelope([BODY, bad, BODY]))
    assert (result, out) == ((0, 0, 0, INGEST_PROPERTIES), b"")


def test_the_deliveries_before_one_over_the_limit_are_kept(kernels: SimpleNamespace) -> None:
    bad = application_properties(PROPERTY_LIMIT + 1) + BODY
    rows = delivery_row(BODY, 0, 0) + delivery_row(bad, len(BODY), 0) + delivery_row(BODY, len(BODY) + len(bad), 0)
    out = bytearray()
    assert kernels.ingest(BODY + bad + BODY, rows, 0, 3, 0, None, out, 1 << 20) == (1, 0, 1, INGEST_PROPERTIES)
    assert len(records(bytes(out))) == 1
