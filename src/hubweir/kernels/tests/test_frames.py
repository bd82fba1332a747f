"""Bytes are cut into frames, usual transfers into columns, and whole deliveries of one link gathered."""

from __future__ import annotations

from array import array
from types import SimpleNamespace

import pytest

from hubweir.kernels.contract import (
    BATCH_FORMAT,
    DELIVERY_WIDTH,
    EMPTY_FRAME,
    F_ABORTED,
    F_BODY,
    F_CHANNEL,
    F_CODE,
    F_DELIVERY_ID,
    F_END,
    F_FORMAT,
    F_HANDLE,
    F_MORE,
    F_PAYLOAD,
    F_SETTLED,
    F_START,
    F_STATE,
    F_TAG,
    F_TAG_LENGTH,
    F_TYPE,
    FRAME_WIDTH,
    SCAN_MALFORMED,
    SCAN_OK,
    SCAN_TOO_LARGE,
)
from hubweir.kernels.tests.legal_bytes import compound, frame, table, transfer, uint, variable

NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"
TAG = variable(0xA0, b"\x00\x00\x00\x05")


def fields(delivery_id: int, *changes: tuple[int, bytes]) -> list[bytes]:
    """The 11 fields of a transfer as the Python client writes them, some of them changed."""
    values = [
        b"\x43", uint(delivery_id), TAG, uint(BATCH_FORMAT), FALSE, FALSE, NULL, NULL, FALSE, FALSE, FALSE,
    ]  # fmt: skip
    for field, value in changes:
        values[field] = value
    return values


def scan_one(kernels: SimpleNamespace, data: bytes) -> array[int]:
    rows = table(1, FRAME_WIDTH)
    assert kernels.scan_frames(data, 0, len(data), 65536, rows) == (1, len(data), SCAN_OK)
    return rows


def test_a_usual_transfer_fills_all_columns(kernels: SimpleNamespace) -> None:
    data = transfer(fields(5, (0, uint(300)), (4, TRUE)), b"payload", channel=3)
    row = scan_one(kernels, data)
    assert (row[F_START], row[F_END], row[F_CHANNEL], row[F_TYPE], row[F_CODE], row[F_BODY]) == (
        0, len(data), 3, 0, 0x14, 8,
    )  # fmt: skip
    assert (row[F_HANDLE], row[F_DELIVERY_ID], row[F_FORMAT]) == (300, 5, BATCH_FORMAT)
    assert data[row[F_TAG] : row[F_TAG] + row[F_TAG_LENGTH]] == TAG[2:]
    assert (row[F_SETTLED], row[F_MORE], row[F_ABORTED], row[F_STATE]) == (1, 0, 0, -1)
    assert data[row[F_PAYLOAD] : row[F_END]] == b"payload"


def test_short_lists_nulls_and_wide_forms_are_usual_too(kernels: SimpleNamespace) -> None:
    row = scan_one(kernels, transfer([b"\x52\x09"], b"more of it", wide=True))
    assert (row[F_CODE], row[F_HANDLE]) == (0x14, 9)
    assert set(row[F_DELIVERY_ID:F_PAYLOAD]) == {-1}
    row = scan_one(kernels, transfer([b"\x43", *[NULL] * 10]))
    assert (row[F_CODE], row[F_HANDLE], row[F_PAYLOAD]) == (0x14, 0, row[F_END])
    row = scan_one(kernels, transfer(fields(1, (7, b"\x00\x53\x24\x45"), (4, b"\x56\x01"), (2, b"\xb0\0\0\0\x01t"))))
    assert (row[F_CODE], row[F_SETTLED], row[F_TAG_LENGTH]) == (0x14, 1, 1)
    assert row[F_STATE] > 0


@pytest.mark.parametrize(
    "body",
    [
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x14" + compound(0xC0, fields(1)),
        b"\x00\xa3\x12amqp:transfer:list" + compound(0xC0, fields(1)),
        b"\x00\x53\x14\x45",
        b"\x00\x53\x14",
        b"\x00\x53\x14" + compound(0xC0, fields(1, (0, NULL))),
        b"\x00\x53\x14" + compound(0xC0, fields(1, (0, b"\x53\x01"))),
        b"\x00\x53\x14" + compound(0xC0, fields(1, (4, b"\x50\x01"))),
        b"\x00\x53\x14" + compound(0xC0, fields(1, (2, b"\xa3\x01t"))),
        b"\x00\x53\x14" + compound(0xC0, fields(1, (6, b"\x50\x01"))),
        b"\x00\x53\x14" + compound(0xC0, fields(1, (8, TRUE))),
        b"\x00\x53\x14" + compound(0xC0, [*fields(1), NULL]),
        b"\x00\x53\x14\xc0\x05\x02\x43\x43\x43\x43",
        b"\x00\x53\x14\xc0\x05\x05\x43\x43\x43",
        b"\x00\x53",
        b"\x45",
    ],
)
def test_a_transfer_in_another_form_is_left_to_the_engine(kernels: SimpleNamespace, body: bytes) -> None:
    row = scan_one(kernels, frame(0, body))
    assert row[F_CODE] == -1
    assert set(row[F_HANDLE:]) == {-1}


def test_other_frames_show_their_descriptor(kernels: SimpleNamespace) -> None:
    assert scan_one(kernels, frame(0, b"\x00\x53\x13\xc0\x02\x01\x40"))[F_CODE] == 0x13
    assert scan_one(kernels, frame(0, b"\x00\x80\0\0\0\0\0\0\0\x10\x45"))[F_CODE] == 0x10
    assert scan_one(kernels, frame(0, b"\x00\x80\xff\0\0\0\0\0\0\x10\x45"))[F_CODE] == -1
    assert scan_one(kernels, frame(0, b"", extended=b"abcd"))[F_CODE] == EMPTY_FRAME
    sasl = scan_one(kernels, frame(0, b"\x00\x53\x41\x45", kind=1))
    assert (sasl[F_TYPE], sasl[F_CODE]) == (1, 0x41)


def test_frames_cut_off_anywhere_wait_for_the_rest(kernels: SimpleNamespace) -> None:
    stream = frame(0, b"") + transfer(fields(1), b"12345") + frame(0, b"\x00\x53\x13\xc0\x02\x01\x40")
    starts = [0, 8, 8 + len(transfer(fields(1), b"12345")), len(stream)]
    for end in range(len(stream) + 1):
        whole = sum(start <= end for start in starts[1:])
        assert kernels.scan_frames(stream, 0, end, 512, table(9, FRAME_WIDTH)) == (whole, starts[whole], SCAN_OK)


def test_a_frame_over_the_limit_is_told_by_its_size_alone(kernels: SimpleNamespace) -> None:
    stream = frame(0, b"") + b"\x00\x00\x02\x01"
    assert kernels.scan_frames(stream, 0, len(stream), 512, table(9, FRAME_WIDTH)) == (1, 8, SCAN_TOO_LARGE)
    stream = frame(0, b"") + b"\x00\x00\x02\x00"
    assert kernels.scan_frames(stream, 0, len(stream), 512, table(9, FRAME_WIDTH)) == (1, 8, SCAN_OK)


@pytest.mark.parametrize("head", ["0000000702000000", "0000000801000000", "0000000803000000", "0000000f04000000"])
def test_sizes_that_contradict_each_other_are_malformed(kernels: SimpleNamespace, head: str) -> None:
    stream = bytes.fromhex(head) + bytes(20)
    assert kernels.scan_frames(stream, 0, len(stream), 512, table(9, FRAME_WIDTH)) == (0, 0, SCAN_MALFORMED)


def collect(kernels: SimpleNamespace, frames: list[bytes], first: int = 0, room: int = 9) -> list[list[int]]:
    """The delivery rows of these frames, from `first` on."""
    stream = b"".join(frames)
    rows, deliveries = table(len(frames), FRAME_WIDTH), table(room, DELIVERY_WIDTH)
    assert kernels.scan_frames(stream, 0, len(stream), 65536, rows)[0] == len(frames)
    taken = kernels.collect_deliveries(rows, first, len(frames), deliveries)
    return [list(deliveries[at * DELIVERY_WIDTH : (at + 1) * DELIVERY_WIDTH]) for at in range(taken)]


def test_deliveries_of_one_link_are_gathered(kernels: SimpleNamespace) -> None:
    frames = [
        transfer(fields(2**32 - 1), b"a"),
        transfer(fields(0, (4, NULL)), b"bc"),
        transfer(fields(1, (3, NULL)), b""),
    ]
    taken = collect(kernels, frames)
    assert [(row[0], row[2], row[3], row[4]) for row in taken] == [
        (2**32 - 1, 1, 0, BATCH_FORMAT), (0, 2, 0, BATCH_FORMAT), (1, 0, 0, 0),
    ]  # fmt: skip
    stream = b"".join(frames)
    assert [stream[row[1] : row[1] + row[2]] for row in taken] == [b"a", b"bc", b""]
    assert len(collect(kernels, frames, room=2)) == 2
    assert len(collect(kernels, frames, first=3)) == 0


def test_settled_deliveries_are_gathered_too(kernels: SimpleNamespace) -> None:
    longest = fields(1, (4, TRUE), (2, b"\xa0\x20" + bytes(32)))
    assert [row[3] for row in collect(kernels, [transfer(fields(0, (4, TRUE))), transfer(longest)])] == [1, 1]


@pytest.mark.parametrize(
    "other",
    [
        transfer(fields(2), channel=1),
        transfer(fields(2, (0, uint(1)))),
        transfer(fields(3)),
        transfer(fields(1)),
        transfer(fields(2, (1, NULL))),
        transfer(fields(2, (5, TRUE))),
        transfer(fields(2, (9, TRUE))),
        transfer(fields(2, (7, b"\x00\x53\x24\x45"))),
        transfer(fields(2, (8, TRUE))),
        transfer(fields(2, (4, TRUE))),
        transfer(fields(2, (2, b"\xa0\x21" + bytes(33)))),
        frame(0, b""),
    ],
)
def test_what_is_no_whole_next_delivery_of_the_link_ends_the_gathering(kernels: SimpleNamespace, other: bytes) -> None:
    assert len(collect(kernels, [transfer(fields(1)), other, transfer(fields(2))])) == 1
    assert len(collect(kernels, [transfer(fields(0)), transfer(fields(1)), other])) == 2
