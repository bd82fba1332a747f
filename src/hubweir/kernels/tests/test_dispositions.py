"""A row of dispositions is read at once, and those that say the same of one delivery after the other are one."""

from __future__ import annotations

from array import array
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given

from hubweir.errors import KernelRefusal
from hubweir.kernels.contract import (
    DISPOSITION_WIDTH,
    FRAME_WIDTH,
    OUTCOME_ACCEPTED,
    OUTCOME_NONE,
    OUTCOME_RELEASED,
    QUARTER,
)
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests.legal_bytes import compound, frame, table, uint
from hubweir.kernels.tests.test_twins import MANY, SEEDS, agreed

NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"
ACCEPTED, RELEASED = b"\x00\x53\x24\x45", b"\x00\x53\x26\x45"
HALF = 2**31


def said(first: int, *changes: tuple[int, bytes], fields: int = 6, channel: int = 0, wide: bool = False) -> bytes:
    """A receiver's disposition of one delivery, accepted and not settled; some of its fields changed."""
    values = [TRUE, uint(first), NULL, FALSE, ACCEPTED, FALSE]
    for field, value in changes:
        values[field] = value
    return frame(channel, b"\x00\x53\x15" + compound(0xC0, values[:fields], wide=wide))


def collected(
    kernels: SimpleNamespace, *frames: bytes, first: int = 0, room: int = 9
) -> tuple[int, list[tuple[int, ...]]]:
    """How many frames were taken, and their rows."""
    stream = b"".join(frames)
    scanned, rows = table(len(frames), FRAME_WIDTH), table(room, DISPOSITION_WIDTH)
    assert kernels.scan_frames(stream, 0, len(stream), 65536, scanned)[0] == len(frames)
    taken, count = kernels.collect_dispositions(stream, scanned, first, len(frames), rows)
    width = DISPOSITION_WIDTH
    return taken, [tuple(rows[at * width : (at + 1) * width]) for at in range(count)]


def test_dispositions_of_one_delivery_after_the_other_are_one_row(kernels: SimpleNamespace) -> None:
    frames = [said(2**32 - 2), said(2**32 - 1), said(0, (2, uint(4))), said(5, fields=5), said(6, wide=True)]
    assert collected(kernels, *frames) == (5, [(1, 2**32 - 2, 6, 0, OUTCOME_ACCEPTED)])
    assert collected(kernels, *frames, first=3) == (2, [(1, 5, 6, 0, OUTCOME_ACCEPTED)])


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ((0, FALSE), (0, 2, 2, 0, OUTCOME_ACCEPTED)),
        ((1, uint(3)), (1, 3, 3, 0, OUTCOME_ACCEPTED)),
        ((1, uint(1)), (1, 1, 1, 0, OUTCOME_ACCEPTED)),
        ((3, TRUE), (1, 2, 2, 1, OUTCOME_ACCEPTED)),
        ((4, RELEASED), (1, 2, 2, 0, OUTCOME_RELEASED)),
        ((4, NULL), (1, 2, 2, 0, OUTCOME_NONE)),
    ],
)
def test_what_says_something_else_is_a_row_of_its_own(
    kernels: SimpleNamespace, change: tuple[int, bytes], row: tuple[int, ...]
) -> None:
    assert collected(kernels, said(0), said(1), said(2, change)) == (3, [(1, 0, 1, 0, OUTCOME_ACCEPTED), row])


def test_every_legal_width_and_a_short_list_are_usual(kernels: SimpleNamespace) -> None:
    wide = said(0, (0, b"\x56\x01"), (1, b"\x70\0\0\0\x07"), (2, b"\x52\x09"), (3, b"\x56\x00"), wide=True)
    assert collected(kernels, wide) == (1, [(1, 7, 9, 0, OUTCOME_ACCEPTED)])
    assert collected(kernels, said(1, (1, b"\x43"), (3, NULL), (4, b"\x00\x53\x26\xc0\x01\x00"), (5, NULL))) == (
        1, [(1, 0, 0, 0, OUTCOME_RELEASED)],
    )  # fmt: skip
    assert collected(kernels, said(4, fields=2)) == (1, [(1, 4, 4, 0, OUTCOME_NONE)])


@pytest.mark.parametrize(
    "other",
    [
        said(1, channel=1),
        said(1, (0, NULL)),
        said(1, (0, uint(1))),
        said(1, (1, NULL)),
        said(1, (1, b"\x53\x01")),
        said(1, (2, b"\x53\x01")),
        said(1, (2, uint(0))),
        said(1, (2, uint(1 + HALF))),
        said(1, (3, b"\x50\x01")),
        said(1, (5, b"\x50\x01")),
        said(1, (4, b"\x45")),
        said(1, (4, b"\x00\x53\x25\x45")),
        said(1, (4, b"\x00\x53\x27\x45")),
        said(1, (4, b"\x00\x53\x23\xc0\x03\x02\x43\x44")),
        said(1, (4, b"\x00\x53\x34\xc0\x04\x01\xa0\x01\x07")),
        said(1, (4, b"\x00\x53\x24\xc0\x02\x01\x40")),
        said(1, (4, b"\x00\x80\0\0\0\0\0\0\0\x24\x45")),
        said(1, (4, b"\x00\x00\x53\x24\x45\x45")),
        said(1, fields=1),
        frame(0, b"\x00\x53\x15\x45"),
        frame(0, b"\x00\x53\x15"),
        frame(0, b"\x00\x53\x15" + compound(0xC0, [TRUE, uint(1), NULL, FALSE, ACCEPTED, FALSE, NULL])),
        frame(0, b"\x00\x53\x15" + compound(0xC0, [TRUE, uint(1)]) + b"\x40"),
        frame(0, b"\x00\x53\x15\xc0\x05\x02\x41\x52\x01\x40"),
        frame(0, b"\x00\x80\0\0\0\0\0\0\0\x15" + compound(0xC0, [TRUE, uint(1)])),
        frame(0, b"\x00\x53\x15" + compound(0xC0, [TRUE, uint(1)]), kind=1),
        frame(0, b""),
    ],
)
def test_what_is_in_another_form_is_left_to_the_engine(kernels: SimpleNamespace, other: bytes) -> None:
    assert collected(kernels, said(0), other, said(1)) == (1, [(1, 0, 0, 0, OUTCOME_ACCEPTED)])
    if other != said(1, channel=1):
        assert collected(kernels, other, said(0)) == (0, [])


def test_no_row_has_more_than_half_of_the_ids(kernels: SimpleNamespace) -> None:
    assert collected(kernels, said(0, (2, uint(HALF - 2))), said(HALF - 1), said(HALF)) == (
        3, [(1, 0, HALF - 1, 0, OUTCOME_ACCEPTED), (1, HALF, HALF, 0, OUTCOME_ACCEPTED)],
    )  # fmt: skip


def test_it_ends_where_the_next_row_has_no_room(kernels: SimpleNamespace) -> None:
    frames = [said(0), said(1), said(5), said(6), said(9)]
    assert collected(kernels, *frames, room=2) == (
        4, [(1, 0, 1, 0, OUTCOME_ACCEPTED), (1, 5, 6, 0, OUTCOME_ACCEPTED)],
    )  # fmt: skip
    assert collected(kernels, *frames, room=0) == (0, [])


def test_frames_that_do_not_lie_in_the_bytes_are_refused(kernels: SimpleNamespace) -> None:
    stream = said(0)
    scanned = table(1, FRAME_WIDTH)
    kernels.scan_frames(stream, 0, len(stream), 512, scanned)
    rows = table(1, DISPOSITION_WIDTH)
    with pytest.raises(KernelRefusal):
        kernels.collect_dispositions(stream[:-1], scanned, 0, 1, rows)
    with pytest.raises(KernelRefusal):
        kernels.collect_dispositions(stream, scanned, 0, 2, rows)


def merged(kernels: SimpleNamespace, *rows: tuple[int, ...]) -> list[tuple[int, ...]]:
    said = array("q", [each for row in rows for each in row])
    count = kernels.merge_dispositions(said, len(rows))
    assert not any(said[count * DISPOSITION_WIDTH :])
    return [tuple(said[at : at + DISPOSITION_WIDTH]) for at in range(0, count * DISPOSITION_WIDTH, DISPOSITION_WIDTH)]


def alike(*ranges: tuple[int, int]) -> list[tuple[int, ...]]:
    return [(1, first, last, 0, OUTCOME_ACCEPTED) for first, last in ranges]


def test_rows_that_say_the_same_are_put_in_order_and_joined(kernels: SimpleNamespace) -> None:
    assert merged(kernels, *alike((4, 4), (0, 1), (2, 3), (9, 9), (8, 8))) == alike((0, 4), (8, 9))
    assert merged(kernels, *alike((1, 3), (2**32 - 1, 0), (2**32 - 3, 2**32 - 2))) == alike((2**32 - 3, 3))
    assert merged(kernels, *alike((7, 7))) == alike((7, 7))
    assert merged(kernels) == []


def test_a_delivery_that_is_named_twice_is_named_twice(kernels: SimpleNamespace) -> None:
    assert merged(kernels, *alike((5, 5), (6, 6), (5, 5))) == alike((5, 5), (5, 6))
    assert merged(kernels, *alike((5, 5), (3, 7))) == alike((3, 7), (5, 5))


@pytest.mark.parametrize("column", [0, 3, 4])
def test_rows_that_do_not_say_the_same_stay_as_they_are(kernels: SimpleNamespace, column: int) -> None:
    rows = alike((2, 2), (1, 1), (0, 0))
    rows[1] = tuple(value if at != column else OUTCOME_NONE for at, value in enumerate(rows[1]))
    assert merged(kernels, *rows) == rows


def test_ids_far_from_each_other_stay_as_they_are(kernels: SimpleNamespace) -> None:
    near = alike((QUARTER + 9, QUARTER + 9), (10, 10), (2 * QUARTER + 8, 2 * QUARTER + 8))
    assert merged(kernels, *near) == [near[1], near[0], near[2]]
    for far in (alike((QUARTER + 9, QUARTER + 9), (9, 9)), alike((8, 8), (7, 8 + QUARTER)), alike((8, 8), (7, 6))):
        assert merged(kernels, *far) == far


def test_more_rows_than_there_are_is_refused(kernels: SimpleNamespace) -> None:
    for count in (2, -1):
        with pytest.raises(KernelRefusal):
            kernels.merge_dispositions(table(1, DISPOSITION_WIDTH), count)


@MANY
@given(seed=SEEDS)
def test_rows_are_merged_alike(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    origin, spread = rng.choice([0, 5, HALF, 2**32 - 3]), rng.choice([4, 30, QUARTER + 2, 2**32 - 1])
    rows = array("q")
    for _ in range(rng.choice([0, 1, 3, 20])):
        first = origin + rng.randrange(-spread, spread)
        last = first + rng.choice([0, 0, 0, 1, 3, -1, QUARTER])
        is_other = rng.random() < 0.02
        rows.extend((1, first % 2**32, last % 2**32, int(is_other), OUTCOME_ACCEPTED))
    agreed(compiled, "merge_dispositions", rows, len(rows) // DISPOSITION_WIDTH)


@MANY
@given(seed=SEEDS)
def test_dispositions_are_read_alike(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    stream, at = b"", rng.choice([0, 7, 2**32 - 2, HALF - 2])
    for _ in range(rng.choice([1, 5, 12])):
        last = rng.choice([NULL, NULL, uint((at + 3) % 2**32), uint(rng.choice([0, HALF, 2**32 - 1]))])
        changes = [
            (0, rng.choice([TRUE] * 6 + [FALSE, b"\x56\x01", NULL])),
            (2, last),
            (3, rng.choice([FALSE] * 6 + [TRUE, NULL, b"\x56\x01"])),
            (4, rng.choice([ACCEPTED] * 6 + [RELEASED, NULL, b"\x00\x53\x24\xc0\x01\x00", legal.random_value(rng)])),
            (5, rng.choice([FALSE, NULL, TRUE])),
        ]
        kept = [change for change in changes if rng.random() < 0.5]
        stream += said(
            at, *kept, fields=rng.choice([6, 6, 5, 4, 2]), channel=rng.choice([0] * 9 + [1]), wide=rng.random() < 0.2
        )
        at = (at + rng.choice([1, 1, 1, 4, 2])) % 2**32
    if rng.random() < 0.4:
        stream = legal.mutated(rng, stream)
    (rows, _, _), buffers = agreed(
        compiled, "scan_frames", stream, 0, len(stream), 65536, table(rng.choice([3, 15]), FRAME_WIDTH)
    )
    for first in range(rows + 1):
        room = table(rng.choice([1, 2, 9]), DISPOSITION_WIDTH)
        agreed(compiled, "collect_dispositions", stream, buffers[0], first, rows, room)
