"""Messages of a queue go out as the contract with clients says; the official client's decoder reads them back."""

from __future__ import annotations

import struct
from array import array
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels import twins
from hubweir.kernels.contract import (
    MESSAGE_WIDTH,
    Q_DELIVERY_COUNT,
    Q_LOCK,
    Q_LOCK_CHECK,
    Q_RECORD,
    Q_SEQUENCE_NUMBER,
    SendRoom,
    TransferForm,
)
from hubweir.kernels.stored_batch import HEADER_SIZE
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests.legal_bytes import compound, data_section, section, string, symbol
from hubweir.kernels.tests.test_deliver import cut, decoded, message_of, payloads, run_of

MANY = 1 << 30
ALL = SendRoom(MANY, MANY, MANY)
FORM = TransferForm(channel=1, handle=3, max_frame_size=65536, settled=False)
PREFIX = b"00000000000000ff"
BODY = data_section(b"body")
TOKEN = UUID("50fef1e1-c37a-80ee-2a17-b56d2ac14c69")
COLUMNS = {
    "record": HEADER_SIZE, "sequence_number": 7, "enqueued_ms": legal.TIME, "locked_until_ms": legal.TIME + 60_000,
    "delivery_count": 0, "state": 0, "lock": int.from_bytes(TOKEN.bytes[:8], "big"),
    "lock_check": int.from_bytes(TOKEN.bytes[8:], "big"), "ttl_ms": -1, "expires_ms": -1, "enqueue_number": -1,
    "partition": -1, "id_number": 7,
}  # fmt: skip
UNLOCKED: dict[str, int] = {"lock": 0, "lock_check": 0, "locked_until_ms": -1}


def row(**columns: int) -> array[int]:
    assert columns.keys() <= COLUMNS.keys()
    return array("q", {**COLUMNS, **columns}.values())


def sent(kernels: SimpleNamespace, message: bytes, **columns: int) -> bytes:
    """The one message of a run, as it goes out."""
    return kernels.encode_message(run_of(message), row(**columns), 0, PREFIX)


def deliver(
    kernels: SimpleNamespace, run: bytes, rows: array[int], *, limits: tuple[int, int] = (MANY, MANY), **call: Any
) -> tuple[tuple[int, int], bytes]:
    out, delivery_id = bytearray(), call.pop("delivery_id", 9)
    form = TransferForm(**{"channel": 1, "handle": 3, "settled": False, "max_frame_size": 65536, **call})
    result = kernels.deliver_messages(run, rows, 0, PREFIX, form, delivery_id, SendRoom(MANY, *limits), out)
    return result, bytes(out)


def test_a_plain_message_goes_out_with_what_clients_compare_and_nothing_else(kernels: SimpleNamespace) -> None:
    assert sent(kernels, BODY) == (
        section(0x70, compound(0xC0, [b"\x40", b"\x40", b"\x40", b"\x40", legal.uint(0)]))
        + section(0x71, compound(0xC1, [symbol("x-opt-lock-token"), b"\x98" + TOKEN.bytes]))
        + section(0x72, compound(0xC1, [
            symbol("x-opt-enqueued-time"), struct.pack(">Bq", 0x83, legal.TIME),
            symbol("x-opt-sequence-number"), struct.pack(">Bq", 0x81, 7),
            symbol("x-opt-locked-until"), struct.pack(">Bq", 0x83, legal.TIME + 60_000),
        ]))
        + section(0x73, compound(0xC0, [string("00000000000000ff0000000000000007")]))
        + BODY
    )  # fmt: skip


def test_the_tag_is_the_token_as_a_guid_lies_in_memory(kernels: SimpleNamespace) -> None:
    run = run_of(BODY)
    result, out = deliver(kernels, run, row())
    [frame] = cut(out)
    fields = decoded(frame)
    assert fields[:7] == [3, 9, bytes.fromhex("e1f1fe507ac3ee802a17b56d2ac14c69"), 0, False, False, None]
    assert UUID(bytes_le=bytes(fields[2])) == TOKEN
    assert message_of(bytes(fields[11])).delivery_annotations == {b"x-opt-lock-token": TOKEN}
    assert result == (1, 1)


def test_without_a_lock_the_tag_is_the_number_and_nothing_speaks_of_locks(kernels: SimpleNamespace) -> None:
    _, out = deliver(kernels, run_of(BODY), row(**UNLOCKED), settled=True)
    [frame] = cut(out)
    fields = decoded(frame)
    assert (fields[2], fields[4]) == (bytes(8) + (7).to_bytes(8, "big"), True)
    read = message_of(bytes(fields[11]))
    assert read.delivery_annotations is None
    assert read.message_annotations == {b"x-opt-enqueued-time": legal.TIME, b"x-opt-sequence-number": 7}


def test_the_header_keeps_what_was_sent_but_ttl_and_count(kernels: SimpleNamespace) -> None:
    header = section(0x70, compound(0xC0, [b"\x41", b"\x50\x07", legal.uint(99), b"\x42", legal.uint(50)]))
    expected = compound(0xC0, [b"\x41", b"\x50\x07", legal.uint(5_000), b"\x42", legal.uint(3)])
    assert sent(kernels, header + BODY, ttl_ms=5_000, delivery_count=3).startswith(section(0x70, expected))
    capped = compound(0xC0, [b"\x40", b"\x40", legal.uint(0xFFFFFFFF), b"\x40", legal.uint(0)])
    assert sent(kernels, BODY, ttl_ms=2**40).startswith(section(0x70, capped))


def test_annotations_of_the_sender_stay_and_those_of_the_broker_are_replaced(kernels: SimpleNamespace) -> None:
    stored = legal.annotations({
        "x-opt-sequence-number": b"\x81" + bytes(8), "x-opt-enqueued-time": b"\x40", "x-opt-locked-until": b"\x54\x01",
        "x-opt-message-state": b"\x54\x09", "x-opt-enqueue-sequence-number": b"\x40", "x-opt-partition-id": b"\x54\x03",
        "x-opt-custom": b"\x54\x05", "x-opt-partition-key": string(""), "x-opt-via-partition-key": b"\x40",
        "x-opt-scheduled-enqueue-time": b"\x40", "x-opt-deadletter-source": b"\x40", "mine": b"\x40",
    })  # fmt: skip
    own = section(0x71, compound(0xC1, [symbol("hop"), b"\x54\x05", symbol("x-opt-lock-token"), b"\x98" + bytes(16)]))
    read = message_of(sent(kernels, own + stored + BODY, state=1, enqueue_number=2**48 + 4, partition=3))
    assert read.message_annotations == {
        b"x-opt-enqueued-time": legal.TIME, b"x-opt-sequence-number": 7, b"x-opt-enqueue-sequence-number": 2**48 + 4,
        b"x-opt-locked-until": legal.TIME + 60_000, b"x-opt-message-state": 1, b"x-opt-partition-id": 3,
        b"x-opt-custom": 5, b"x-opt-partition-key": b"", b"mine": None,
    }  # fmt: skip
    assert read.delivery_annotations == {b"hop": 5, b"x-opt-lock-token": TOKEN}


@pytest.mark.parametrize("id_number", [0, 7, 2**59 - 1, 2**62, 2**62 | 2**60 | 7])
def test_a_dead_letter_source_goes_out_where_a_forward_can_have_written_it(
    kernels: SimpleNamespace, id_number: int
) -> None:
    for name in ("x-opt-deadletter-source", "x-opt-deadletter-sourc", "x-opt-deadletter-source-2"):
        stored = legal.annotations({name: string("orders"), "mine": b"\x41"})
        read = message_of(sent(kernels, stored + BODY, id_number=id_number, **UNLOCKED)).message_annotations
        is_there = name != "x-opt-deadletter-source" or id_number >= 2**62
        assert (read.get(name.encode()), read[b"mine"]) == (b"orders" if is_there else None, True)
    null = legal.annotations({"x-opt-deadletter-source": b"\x40"})
    out = message_of(sent(kernels, null + BODY, id_number=id_number, **UNLOCKED)).message_annotations
    assert b"x-opt-deadletter-source" not in out


def test_properties_keep_all_but_the_time_at_which_the_message_expires(kernels: SimpleNamespace) -> None:
    fields = [
        b"\x98" + TOKEN.bytes, b"\x40", string("to"), string("subject"), b"\x40", string("c"), symbol("t/p"), b"\x40",
        b"\x83" + bytes(8), b"\x83" + bytes(7) + b"\x05", string("group"),
    ]  # fmt: skip
    out = sent(kernels, section(0x73, compound(0xC0, fields)) + BODY, expires_ms=legal.TIME)
    read = message_of(out).properties
    assert (read.message_id, read.subject, read.group_id, read.creation_time) == (TOKEN, b"subject", b"group", 5)
    assert read.absolute_expiry_time == legal.TIME
    # Null, and no time of the sender's, where the message does not expire.
    assert (
        message_of(sent(kernels, section(0x73, compound(0xC0, fields)) + BODY)).properties.absolute_expiry_time is None
    )


def test_every_other_section_goes_out_byte_for_byte_in_its_order(kernels: SimpleNamespace) -> None:
    value = section(0x77, b"\xe0\x06\x02\xa1\x01a\x01b", form="symbol")
    applied = section(0x74, compound(0xC1, [string("c"), b"\x73\x00\x00\x00a"], wide=True), form="wide")
    footer = section(0x78, compound(0xC1, [symbol("end"), b"\x41"]))
    assert sent(kernels, footer + applied + value).endswith(footer + applied + value)
    assert sent(kernels, section(0x73, compound(0xC0, [string("id")]))).endswith(
        section(0x73, compound(0xC0, [string("id")]))
    ), "no body section at all"


def two_messages() -> tuple[bytes, array[int]]:
    run = run_of(BODY, data_section(b"x" * 3_000))
    second = HEADER_SIZE + int.from_bytes(run[HEADER_SIZE : HEADER_SIZE + 4], "big")
    return run, row() + row(record=second, sequence_number=8, id_number=8)


def test_rows_go_out_in_their_own_order_over_as_many_frames_as_they_need(kernels: SimpleNamespace) -> None:
    run, rows = two_messages()
    turned = rows[MESSAGE_WIDTH:] + rows[:MESSAGE_WIDTH]
    (messages, frames), out = deliver(kernels, run, turned, delivery_id=2**32 - 1, max_frame_size=512)
    assert (messages, frames) == (2, len(cut(out))) and frames == 8
    first, second = (message_of(payload) for payload in payloads(out))
    assert (len(next(iter(first.data))), list(second.data)) == (3_000, [b"body"])
    ids = [decoded(frame)[1] for frame in cut(out)]
    assert (set(ids[:-1]), ids[-1]) == ({2**32 - 1}, 0)
    assert all(len(frame) <= 512 for frame in cut(out))


def test_a_call_stops_before_what_exceeds_a_limit_but_sends_the_first_whole(kernels: SimpleNamespace) -> None:
    run, rows = two_messages()
    (_, frames), whole = deliver(kernels, run, rows, max_frame_size=1024)
    assert frames == 5
    for limits, expected in (
        ((5, len(whole)), 2), ((4, len(whole)), 1), ((5, len(whole) - 1), 1), ((0, MANY), 1), ((MANY, 0), 1),
    ):  # fmt: skip
        (messages, _), out = deliver(kernels, run, rows, limits=limits, max_frame_size=1024)
        assert messages == expected, limits
        assert whole.startswith(out)


def test_a_call_begins_with_its_row_and_ends_with_the_credit(kernels: SimpleNamespace) -> None:
    run, rows = two_messages()
    _, whole = deliver(kernels, run, rows)
    ends = []
    for first_row, deliveries in ((0, 1), (1, 1), (2, MANY), (0, 0)):
        out, room = bytearray(), SendRoom(deliveries, MANY, MANY)
        assert kernels.deliver_messages(run, rows, first_row, PREFIX, FORM, 9 + first_row, room, out)[0] == bool(out)
        ends.append(bytes(out))
    assert ends[0] + ends[1] == whole and ends[2:] == [b"", b""]


def test_messages_of_several_links_go_out_as_each_link_would_send_them(kernels: SimpleNamespace) -> None:
    """Also where a message needs several frames, and where the numbers of handles have different lengths."""
    run, rows = two_messages()
    for links in ((3, 300), (300, 3), (0, 2**32 - 1), (255, 256)):
        for first_row in (0, 1):
            for size in (512, 65536):
                own = []
                for row, handle in enumerate(links[first_row:], first_row):
                    form = TransferForm(1, handle, size, settled=True)
                    part, room = bytearray(), SendRoom(1, MANY, MANY)
                    kernels.deliver_messages(run, rows, row, PREFIX, form, 9 + row, room, part)
                    own.append(bytes(part))
                form, out = TransferForm(1, 77, size, settled=True), bytearray(b"before")
                handles, whole = array("q", links), b"".join(own)
                kernels.deliver_messages(run, rows, first_row, PREFIX, form, 9 + first_row, ALL, out, handles)
                assert out == b"before" + whole
                # A byte too few for the last message: it is left, whatever the one before it took.
                room, out = SendRoom(MANY, MANY, len(whole) - 1), bytearray()
                kernels.deliver_messages(run, rows, first_row, PREFIX, form, 9 + first_row, room, out, handles)
                assert out == own[0]


def test_handles_are_one_for_each_row_and_in_range(kernels: SimpleNamespace) -> None:
    run, rows = two_messages()
    for handles in (array("q", (3,)), array("q", (3, -1)), array("q", (2**32, 3))):
        out = bytearray(b"before")
        with pytest.raises(KernelRefusal):
            kernels.deliver_messages(run, rows, 0, PREFIX, FORM, 9, ALL, out, handles)
        assert out == b"before"


def test_a_row_that_names_no_record_is_refused_and_out_stays_as_it_was(kernels: SimpleNamespace) -> None:
    run, rows = two_messages()
    for at in (-1, len(run), len(run) - 31, len(run) - 32, 2**62):
        wrong = rows[:]
        wrong[MESSAGE_WIDTH + Q_RECORD] = at
        out = bytearray(b"before")
        with pytest.raises(KernelRefusal):
            kernels.deliver_messages(run, wrong, 0, PREFIX, FORM, 9, ALL, out)
        assert out == b"before"


@pytest.mark.parametrize("list_section", [0x70, 0x73])
def test_a_list_with_too_many_fields_is_refused(kernels: SimpleNamespace, list_section: int) -> None:
    most = {0x70: 5, 0x73: 13}[list_section]
    sent(kernels, section(list_section, compound(0xC0, [b"\x40"] * most)) + BODY)
    with pytest.raises(KernelRefusal):
        sent(kernels, section(list_section, compound(0xC0, [b"\x40"] * (most + 1))) + BODY)


def test_both_twins_send_the_same_bytes_of_random_messages(compiled: SimpleNamespace) -> None:
    rng = Random(16)
    written = 0
    for _ in range(3_000):
        messages = [legal.random_message(rng) for _ in range(rng.choice([1, 2, 4]))]
        records, count = bytearray(), 0
        for message in messages:
            count += not twins.ingest(message, legal.delivery_row(message, 0, 0), 0, 1, 0, None, records, MANY)[3]
        run = legal.stored_batch(bytes(records), count, checked=False)
        rows, at = array("q"), HEADER_SIZE
        while at < len(run):
            wild = [rng.choice([-1, 0, 1, 300, 2**40, -(2**63), 2**63 - 1]) for _ in range(MESSAGE_WIDTH)]
            wild[Q_RECORD], wild[Q_SEQUENCE_NUMBER], wild[Q_DELIVERY_COUNT] = at, rng.choice([-1, 7]), rng.randrange(9)
            wild[Q_LOCK], wild[Q_LOCK_CHECK] = rng.choice([(0, 0), (5, -6), (-(2**63), 2**63 - 1)])
            rows.extend(wild)
            at += int.from_bytes(run[at : at + 4], "big")
        if rng.random() < 0.3:
            run = legal.mutated(rng, run)
        form = TransferForm(1, rng.choice([3, 300]), rng.choice([512, 700, 65536]), rng.random() < 0.5)
        room = SendRoom(rng.choice([0, 1, *[MANY] * 6]), rng.choice([1, 3, MANY]), rng.choice([300, MANY]))
        links = [rng.choice([0, 255, 256, 2**32 - 1]) for _ in range(len(rows) // MESSAGE_WIDTH)]
        handles = rng.choice([None, array("q", links)])
        answers = []
        for twin in (twins, compiled):
            out = bytearray(b"before")
            try:
                answer = twin.deliver_messages(run, rows, 0, PREFIX, form, 2**32 - 2, room, out, handles)
                written += answer[0]
            except KernelRefusal:
                answer = "refused"
            answers.append((answer, out))
        assert answers[0] == answers[1]
    assert written > 5_000
