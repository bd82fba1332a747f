"""Stored events go out as the contract with clients says; the official Python client's decoder reads them back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels import twins
from hubweir.kernels.contract import RunCursor, SendRoom, TransferForm
from hubweir.kernels.tests.legal_bytes import (
    TIME,
    annotations,
    compound,
    data_section,
    delivery_row,
    section,
    stored_batch,
    string,
    symbol,
)

MANY = 1 << 30
START = RunCursor()
HEADER = section(0x70, compound(0xC0, [b"\x41", b"\x50\x07"]))
OWN = section(0x71, compound(0xC1, [symbol("hop"), b"\x54\x05"]))
PROPERTIES = section(0x73, compound(0xC0, [string("id-1")]))
APPLICATION_PROPERTIES = section(0x74, compound(0xC1, [string("k"), string("v")]))
BODY = data_section(b"body")
FOOTER = section(0x78, compound(0xC1, [symbol("end"), b"\x41"]))


def run_of(*messages: bytes, **batch: Any) -> bytes:
    records = bytearray()
    for message in messages:
        assert twins.ingest(message, delivery_row(message, 0, 0), 0, 1, 0, None, records, MANY)[3] == 0
    return stored_batch(bytes(records), len(messages), checked=False, **batch)


def deliver(
    kernels: SimpleNamespace,
    run: bytes,
    cursor: RunCursor = START,
    *,
    channel: int = 1,
    handle: int = 3,
    delivery_id: int = 9,
    settled: bool = False,
    max_frame_size: int = 65536,
    limits: tuple[int, int, int] = (MANY, MANY, MANY),
    inserted: bytes = b"",
) -> tuple[tuple[int, int, RunCursor], bytes]:
    """What the kernel answers and writes; limits: deliveries, frames, bytes."""
    out, form = bytearray(), TransferForm(channel, handle, max_frame_size, settled)
    result = kernels.deliver(run, cursor, form, delivery_id, SendRoom(*limits), out, inserted)
    return result, bytes(out)


def cut(frames: bytes) -> list[bytes]:
    """The frames, one by one."""
    found = []
    while frames:
        size = int.from_bytes(frames[:4], "big")
        found.append(frames[:size])
        frames = frames[size:]
    return found


def decoded(frame: bytes) -> list[Any]:
    """The fields of one transfer frame and its payload, as the official client reads them."""
    from azure.eventhub._pyamqp._decode import decode_frame

    kind, fields = decode_frame(memoryview(frame)[8:])
    assert kind == 0x14
    return list(fields)


def message_of(payload: bytes) -> Any:
    from azure.eventhub._pyamqp._decode import decode_payload

    return decode_payload(memoryview(payload))


def payloads(frames: bytes) -> list[bytes]:
    """The message of each delivery, its frames joined."""
    joined: list[bytes] = []
    more = False
    for frame in cut(frames):
        fields = decoded(frame)
        if more:
            joined[-1] += bytes(fields[11])
        else:
            joined.append(bytes(fields[11]))
        more = fields[5]
    assert not more
    return joined


def test_a_frame_is_as_clients_need_it_to_the_byte(kernels: SimpleNamespace) -> None:
    run = run_of(BODY, time=5)
    result, out = deliver(kernels, run, channel=2, delivery_id=256, settled=True)
    expected = (
        bytes.fromhex("00000000 02 00 0002 005314 c0 16 0b 5203 7000000100 a00400000100 43 41 42 40 40 42 42 42")
        + bytes.fromhex("005372 c1 53 06")
        + b"\xa3\x15x-opt-sequence-number\x81" + (7).to_bytes(8, "big")
        + b"\xa3\x0cx-opt-offset\xa1\x041000"
        + b"\xa3\x13x-opt-enqueued-time\x83" + (5).to_bytes(8, "big")
        + BODY
    )  # fmt: skip
    expected = len(expected).to_bytes(4, "big") + expected[4:]
    assert out == expected
    assert result == (1, 1, RunCursor(len(run)))


def test_the_official_client_reads_every_section(kernels: SimpleNamespace) -> None:
    stored = annotations({"mine": string("kept"), "x-opt-offset": string("forged")})
    message = stored + PROPERTIES + APPLICATION_PROPERTIES + BODY + FOOTER + OWN + HEADER
    result, out = deliver(kernels, run_of(message, first_index=2**40, first_offset=123))
    [frame] = cut(out)
    fields = decoded(frame)
    assert fields[:7] == [3, 9, b"\x00\x00\x00\x09", 0, False, False, None]
    read = message_of(bytes(fields[11]))
    assert read.message_annotations == {
        b"x-opt-sequence-number": 2**40, b"x-opt-offset": b"123", b"x-opt-enqueued-time": TIME, b"mine": b"kept",
    }  # fmt: skip
    assert read.header.durable is True and read.header.priority == 7
    assert read.delivery_annotations == {b"hop": 5} and read.footer == {b"end": True}
    assert read.properties.message_id == b"id-1" and read.application_properties == {b"k": b"v"}
    assert list(read.data) == [b"body"]
    # The sections that moved come first; the rest is byte for byte as it came.
    payload = bytes(fields[11])
    assert payload.startswith(HEADER + OWN + b"\x00\x53\x72")
    assert payload.endswith(string("kept") + PROPERTIES + APPLICATION_PROPERTIES + BODY + FOOTER)


@pytest.mark.parametrize("max_frame_size", [512, 65536])
def test_inserted_delivery_annotations_go_out_with_every_event_in_the_place_of_its_own(
    kernels: SimpleNamespace, max_frame_size: int
) -> None:
    inserted = section(0x71, compound(0xC1, [symbol("last"), string("x" * 200)]))
    run = run_of(BODY, HEADER + OWN + BODY, BODY + OWN, OWN)
    result, out = deliver(kernels, run, inserted=inserted, max_frame_size=max_frame_size)
    assert result[0] == 4
    found = payloads(out)
    assert [message_of(payload).delivery_annotations for payload in found] == [{b"last": b"x" * 200}] * 4
    assert [message_of(payload).header is not None for payload in found] == [False, True, False, False]
    assert all(OWN not in payload for payload in found)
    assert all(payload.endswith(BODY) for payload in found[:3])
    without = payloads(deliver(kernels, run)[1])
    assert [OWN in payload for payload in without] == [False, True, True, True]
    assert all(len(payload) == len(other) + len(inserted) - len(OWN) * (OWN in other)
               for payload, other in zip(found, without, strict=True))  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "names"),
    [(0, {}), (2, {b"x-opt-partition-key": b"all"}), (4, {b"x-opt-partition-key": b"all", b"x-opt-publisher": b"all"})],
)
def test_the_name_block_is_every_events_key_or_publisher(
    kernels: SimpleNamespace, flags: int, names: dict[bytes, bytes]
) -> None:
    forged = annotations({"x-opt-partition-key": string("own"), "x-opt-publisher": string("forged")}) + BODY
    _, out = deliver(kernels, run_of(BODY, forged, name=b"all", flags=flags))
    first, second = (message_of(payload).message_annotations for payload in payloads(out))
    for name in (b"x-opt-sequence-number", b"x-opt-offset", b"x-opt-enqueued-time"):
        del first[name], second[name]
    assert first == names
    assert second == (names or {b"x-opt-partition-key": b"own"})


def test_names_are_known_in_any_encoding_and_others_stay_as_they_were(kernels: SimpleNamespace) -> None:
    kept = [string("x-opt-offse"), b"\x43", b"\x54\x07", b"\x40", symbol("x-opt-custom", wide=True), b"\x45"]
    own = [symbol("x-opt-offset", wide=True), b"\x43", string("x-opt-sequence-number"), b"\x40"]
    own += [string("x-opt-enqueued-time", wide=True), b"\x00\x43\x43", symbol("x-opt-publisher"), string("p")]
    _, out = deliver(kernels, run_of(section(0x72, compound(0xC1, own[:4] + kept[:4] + own[4:] + kept[4:])) + BODY))
    [payload] = payloads(out)
    map_size, count = payload[4], payload[5]
    assert count == 12 and payload[5 + map_size :].startswith(BODY)
    assert payload[: -len(BODY)].endswith(b"".join(kept))


@pytest.mark.parametrize("extra", range(140, 180))
def test_the_map_takes_the_small_form_as_long_as_it_fits(kernels: SimpleNamespace, extra: int) -> None:
    _, out = deliver(kernels, run_of(annotations({"k": string("x" * extra)}) + BODY))
    [payload] = payloads(out)
    content = len(payload) - len(BODY) - (6 if payload[3] == 0xC1 else 12)
    assert payload[3] == (0xC1 if content + 1 <= 255 else 0xD1)
    assert message_of(payload).message_annotations[b"k"] == b"x" * extra


@pytest.mark.parametrize("max_frame_size", [512, 513, 1000, 4096])
@pytest.mark.parametrize("size", [0, 300, 400, 401, 402, 403, 5000])
def test_large_events_are_split_at_the_frame_size(kernels: SimpleNamespace, max_frame_size: int, size: int) -> None:
    message = HEADER + data_section(bytes(index % 251 for index in range(size)))
    run = run_of(message, message)
    (events, count, cursor), out = deliver(kernels, run, max_frame_size=max_frame_size)
    frames = cut(out)
    assert (events, count, cursor) == (2, len(frames), RunCursor(len(run)))
    assert all(len(frame) <= max_frame_size for frame in frames)
    assert all(len(frame) == max_frame_size for frame in frames if decoded(frame)[5])
    assert [decoded(frame)[1] for frame in frames] == [9] * (count // 2) + [10] * (count // 2)
    assert all(message_of(payload).data[0] == message[-size:][:size] * bool(size) for payload in payloads(out))


# 132 bytes is what an event with this body takes on the wire.
@pytest.mark.parametrize(
    ("limits", "events"),
    [
        ((0, 9, MANY), 0),
        ((2, 9, MANY), 2),
        ((9, 0, MANY), 1),
        ((9, 3, MANY), 3),
        ((9, 9, 0), 1),
        ((9, 9, 263), 1),
        ((9, 9, 264), 2),
        ((9, 9, MANY), 5),
    ],
)
def test_it_stops_before_the_event_that_is_over_a_limit(
    kernels: SimpleNamespace, limits: tuple[int, int, int], events: int
) -> None:
    result, out = deliver(kernels, run_of(*[BODY] * 5), limits=limits)
    assert {len(frame) for frame in cut(out)} <= {132}
    assert (result[0], result[1], len(cut(out))) == (events, events, events)


def test_many_calls_give_what_one_call_gives(kernels: SimpleNamespace) -> None:
    control = stored_batch(b"\x01", 0, kind=3, checked=False)
    operations = stored_batch(b"\x00\x00\x00\x05x", 1, kind=2, checked=False)
    run = control + run_of(BODY, HEADER + BODY, b"") + operations + run_of(BODY, first_index=10, name=b"n", flags=2)
    run += control
    _, whole = deliver(kernels, run)
    cursor, joined, delivery_id = START, b"", 9
    cursors = []
    while cursor.batch_at < len(run):
        (events, _, cursor), out = deliver(kernels, run, cursor, delivery_id=delivery_id, limits=(1, 1, 1))
        joined, delivery_id = joined + out, delivery_id + events
        cursors.append(cursor)
    assert joined == whole and delivery_id == 13
    assert [cursor.ordinal for cursor in cursors] == [1, 2, 0, 0]
    for cursor in cursors[:2]:
        assert kernels.find_record(run, cursor.batch_at, cursor.ordinal) == cursor.record_at
    numbers = [message_of(payload).message_annotations[b"x-opt-sequence-number"] for payload in payloads(whole)]
    assert numbers == [7, 8, 9, 10]


def test_offsets_follow_from_the_place_of_the_record(kernels: SimpleNamespace) -> None:
    run = run_of(BODY, b"", BODY, first_offset=95)
    offsets = [
        message_of(payload).message_annotations[b"x-opt-offset"] for payload in payloads(deliver(kernels, run)[1])
    ]
    size = 32 + len(BODY)
    assert offsets == [b"95", b"%d" % (95 + size), b"%d" % (95 + size + 32)]


def test_delivery_ids_wrap(kernels: SimpleNamespace) -> None:
    _, out = deliver(kernels, run_of(BODY, BODY), delivery_id=2**32 - 1, handle=2**32 - 1)
    assert [decoded(frame)[:3] for frame in cut(out)] == [
        [2**32 - 1, 2**32 - 1, b"\xff\xff\xff\xff"], [2**32 - 1, 0, b"\x00\x00\x00\x00"],
    ]  # fmt: skip


def test_a_damaged_run_is_refused_and_leaves_nothing(kernels: SimpleNamespace) -> None:
    sound = run_of(HEADER + OWN + annotations({"k": string("v")}) + BODY)
    for end in range(1, len(sound)):
        with pytest.raises(KernelRefusal):
            deliver(kernels, sound + sound[:end])
    for field in (4, 8, 12):
        for value in (0xFFFFFFFE, 1, len(sound)):
            at = 80 + field
            out = bytearray(b"before")
            run = sound + sound[:at] + value.to_bytes(4, "big") + sound[at + 4 :]
            if field == 4 and value == 1:
                continue  # a shorter header that is still inside the message: positions stay consistent
            with pytest.raises(KernelRefusal):
                kernels.deliver(run, START, TransferForm(0, 0, 512, False), 0, SendRoom(9, 9, MANY), out)
            assert out == b"before"
