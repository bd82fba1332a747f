"""Dispositions and flows are read at once, and those that say the same of one delivery after the other are one.

Long because each field of both has legal forms, and others that are left to the engine.
"""

from __future__ import annotations

from array import array
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given

from hubweir.errors import KernelRefusal
from hubweir.kernels.contract import (
    DISPOSITION_WIDTH,
    FLOW_WIDTH,
    FRAME_WIDTH,
    OUTCOME_ACCEPTED,
    OUTCOME_NONE,
    OUTCOME_RELEASED,
    OUTCOME_STATED,
    QUARTER,
    STATE_WIDTH,
)
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests.legal_bytes import compound, frame, table, uint
from hubweir.kernels.tests.test_twins import MANY, SEEDS, agreed

NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"
ACCEPTED, RELEASED = b"\x00\x53\x24\x45", b"\x00\x53\x26\x45"
MODIFIED, DEFERRED = b"\x00\x53\x27\xc0\x02\x01\x41", b"\x00\x53\x27\xc0\x03\x02\x41\x41"
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
    return numbered(kernels, *frames, first=first, room=room)[:2]


def short(row: array[int]) -> tuple[int, ...]:
    """A row without its channel, where that is 0."""
    return tuple(row) if row[-1] else tuple(row[:-1])


def numbered(
    kernels: SimpleNamespace, *frames: bytes, first: int = 0, room: int = 9, kinds: int = 4
) -> tuple[int, list[tuple[int, ...]], list[tuple[int, bytes]]]:
    """The same, and for each state that was numbered the frame that said it first, and its bytes."""
    stream = b"".join(frames)
    scanned, rows = table(len(frames), FRAME_WIDTH), table(room, DISPOSITION_WIDTH)
    states, flows = table(kinds, STATE_WIDTH), table(0, FLOW_WIDTH)
    assert kernels.scan_frames(stream, 0, len(stream), 65536, scanned)[0] == len(frames)
    taken, count, found, _ = kernels.collect_dispositions(stream, scanned, first, len(frames), rows, states, flows)
    width = DISPOSITION_WIDTH
    said = [short(rows[at * width : (at + 1) * width]) for at in range(count)]
    seen = [states[at * STATE_WIDTH : (at + 1) * STATE_WIDTH] for at in range(found)]
    return taken, said, [(index, stream[start:end]) for index, start, end in seen]


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
        said(1, (0, NULL)),
        said(1, (0, uint(1))),
        said(1, (1, NULL)),
        said(1, (1, b"\x53\x01")),
        said(1, (2, b"\x53\x01")),
        said(1, (2, uint(0))),
        said(1, (2, uint(1 + HALF))),
        said(1, (3, b"\x50\x01")),
        said(1, (5, b"\x50\x01")),
        said(1, (4, b"\x00\x53\x27\x0f")),
        said(1, (4, b"\x00\x53\x27\xc0\x7f\x01\x41")),
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
    assert collected(kernels, other, said(0)) == (0, [])


def test_each_channel_has_rows_of_its_own(kernels: SimpleNamespace) -> None:
    frames = [said(0), said(1, channel=7), said(1), said(2), said(2, channel=7), said(3, channel=7)]
    assert collected(kernels, *frames) == (
        6,
        [
            (1, 0, 0, 0, OUTCOME_ACCEPTED), (1, 1, 1, 0, OUTCOME_ACCEPTED, 7), (1, 1, 2, 0, OUTCOME_ACCEPTED),
            (1, 2, 3, 0, OUTCOME_ACCEPTED, 7),
        ],
    )  # fmt: skip


@pytest.mark.parametrize(
    "state",
    [
        MODIFIED,
        b"\x45",
        b"\x00\x53\x25\x45",
        b"\x00\x53\x23\xc0\x03\x02\x43\x44",
        b"\x00\x53\x34\xc0\x04\x01\xa0\x01\x07",
        b"\x00\x53\x24\xc0\x02\x01\x40",
        b"\x00\x53\x24\xd0\0\0\0\x04\0\0\0\0",
        b"\x00\x80\0\0\0\0\0\0\0\x24\x45",
        b"\x00\x00\x53\x24\x45\x45",
    ],
)
def test_any_other_state_has_a_number(kernels: SimpleNamespace, state: bytes) -> None:
    frames = [said(3), said(4, (4, state)), said(5, (4, state))]
    assert numbered(kernels, *frames) == (
        3, [(1, 3, 3, 0, OUTCOME_ACCEPTED), (1, 4, 5, 0, OUTCOME_STATED)], [(1, state)],
    )  # fmt: skip
    assert numbered(kernels, *frames, first=1) == (2, [(1, 4, 5, 0, OUTCOME_STATED)], [(1, state)])


def test_states_of_the_same_bytes_have_the_same_number(kernels: SimpleNamespace) -> None:
    states = [MODIFIED, DEFERRED, ACCEPTED, MODIFIED, MODIFIED, MODIFIED[:-1] + b"\x42", DEFERRED]
    taken, rows, seen = numbered(kernels, *(said(at, (4, state)) for at, state in enumerate(states)))
    assert taken == len(states)
    assert [row[4] - OUTCOME_STATED for row in rows] == [0, 1, OUTCOME_ACCEPTED - OUTCOME_STATED, 0, 2, 1]
    assert seen == [(0, MODIFIED), (1, DEFERRED), (5, MODIFIED[:-1] + b"\x42")]


def test_it_ends_where_the_next_state_has_no_room(kernels: SimpleNamespace) -> None:
    frames = [said(0), said(1, (4, MODIFIED)), said(2, (4, MODIFIED)), said(3, (4, DEFERRED)), said(4)]
    rows = [(1, 0, 0, 0, OUTCOME_ACCEPTED), (1, 1, 2, 0, OUTCOME_STATED)]
    assert numbered(kernels, *frames, kinds=1) == (3, rows, [(1, MODIFIED)])
    assert numbered(kernels, *frames, kinds=0) == (1, rows[:1], [])


def test_a_state_whose_row_has_no_room_is_not_counted(kernels: SimpleNamespace) -> None:
    frames = [said(0), said(1, (4, MODIFIED))]
    assert numbered(kernels, *frames, room=1) == (1, [(1, 0, 0, 0, OUTCOME_ACCEPTED)], [])


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
    rows, states, flows = table(1, DISPOSITION_WIDTH), table(1, STATE_WIDTH), table(1, FLOW_WIDTH)
    with pytest.raises(KernelRefusal):
        kernels.collect_dispositions(stream[:-1], scanned, 0, 1, rows, states, flows)
    with pytest.raises(KernelRefusal):
        kernels.collect_dispositions(stream, scanned, 0, 2, rows, states, flows)


def flow(handle: bytes, *changes: tuple[int, bytes], fields: int = 10, channel: int = 0, wide: bool = False) -> bytes:
    """A flow that grants a link 9 deliveries; some of its fields changed."""
    values = [uint(3), uint(2048), uint(0), uint(77), handle, uint(5), uint(9), NULL, FALSE, FALSE, NULL]
    for field, value in changes:
        values[field] = value
    return frame(channel, b"\x00\x53\x13" + compound(0xC0, values[:fields], wide=wide))


def with_flows(
    kernels: SimpleNamespace, *frames: bytes, room: int = 9
) -> tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """How many frames were taken, and the rows of dispositions and of flows."""
    stream = b"".join(frames)
    scanned, rows = table(len(frames), FRAME_WIDTH), table(9, DISPOSITION_WIDTH)
    flows = table(room, FLOW_WIDTH)
    kernels.scan_frames(stream, 0, len(stream), 65536, scanned)
    taken, count, _, granted = kernels.collect_dispositions(
        stream, scanned, 0, len(frames), rows, table(2, STATE_WIDTH), flows
    )
    width = DISPOSITION_WIDTH
    said = [short(rows[at * width : (at + 1) * width]) for at in range(count)]
    return taken, said, [tuple(flows[at * FLOW_WIDTH : (at + 1) * FLOW_WIDTH]) for at in range(granted)]


def test_flows_between_dispositions_are_rows_of_their_own(kernels: SimpleNamespace) -> None:
    frames = [said(0), flow(uint(4)), said(1), flow(NULL, channel=2), flow(uint(7), (8, TRUE), (9, TRUE)), said(2)]
    assert with_flows(kernels, *frames) == (
        6,
        [(1, 0, 2, 0, OUTCOME_ACCEPTED)],
        [(1, 0, 3, 2048, 4, 5, 9, 0, 0), (3, 2, 3, 2048, -1, 5, 9, 0, 0), (4, 0, 3, 2048, 7, 5, 9, 1, 1)],
    )


def test_what_a_flow_leaves_out_is_absent(kernels: SimpleNamespace) -> None:
    frames = [
        flow(uint(1), fields=4),
        flow(uint(300), (0, NULL), (1, b"\x43"), (5, NULL), (6, b"\x43"), (8, NULL), (9, b"\x56\x01"), fields=11),
        flow(uint(1), (7, uint(8)), fields=8, wide=True),
    ]
    assert with_flows(kernels, *frames) == (
        3, [], [(0, 0, 3, 2048, -1, -1, -1, 0, 0), (1, 0, -1, 0, 300, -1, 0, 0, 1), (2, 0, 3, 2048, 1, 5, 9, 0, 0)],
    )  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        flow(uint(1), fields=3),
        flow(uint(1), (1, NULL)),
        flow(uint(1), (2, NULL)),
        flow(uint(1), (3, NULL)),
        flow(uint(1), (3, b"\x50\x01")),
        flow(b"\x53\x01"),
        flow(uint(1), (7, TRUE)),
        flow(uint(1), (8, uint(1))),
        flow(uint(1), (9, b"\x56\x02")),
        flow(uint(1), (10, b"\xc1\x01\x00"), fields=11),
        frame(0, b"\x00\x53\x13" + compound(0xC0, [uint(1)] * 4) + b"\x40"),
        frame(0, b"\x00\x53\x13" + compound(0xC0, [uint(1)] * 7 + [NULL] * 5)),
        frame(0, b"\x00\x53\x13\xc0\x0a\x05\x52\x01\x52\x01\x52\x01\x52\x01\x70"),
        frame(0, b"\x00\x53\x13"),
        frame(0, b"\x00\x80\0\0\0\0\0\0\0\x13" + compound(0xC0, [uint(1)] * 4)),
        frame(0, b"\x00\x53\x13" + compound(0xC0, [uint(1)] * 4), kind=1),
    ],
)
def test_a_flow_in_another_form_is_left_to_the_engine(kernels: SimpleNamespace, other: bytes) -> None:
    taken, rows, flows = with_flows(kernels, said(0), flow(uint(4)), other, said(1))
    assert (taken, rows, [row[4] for row in flows]) == (2, [(1, 0, 0, 0, OUTCOME_ACCEPTED)], [4])


def test_it_ends_where_the_next_flow_has_no_room(kernels: SimpleNamespace) -> None:
    taken, rows, flows = with_flows(kernels, flow(uint(4)), said(0), flow(uint(5)), said(1), room=1)
    assert (taken, rows, [row[4] for row in flows]) == (2, [(1, 0, 0, 0, OUTCOME_ACCEPTED)], [4])


def merged(kernels: SimpleNamespace, *rows: tuple[int, ...]) -> list[tuple[int, ...]]:
    said = array("q", [each for row in rows for each in (*row, 0)[:DISPOSITION_WIDTH]])
    count = kernels.merge_dispositions(said, len(rows))
    assert not any(said[count * DISPOSITION_WIDTH :])
    return [short(said[at : at + DISPOSITION_WIDTH]) for at in range(0, count * DISPOSITION_WIDTH, DISPOSITION_WIDTH)]


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


def test_rows_that_say_something_else_lie_behind_each_other(kernels: SimpleNamespace) -> None:
    rows = [
        (1, 7, 7, 0, OUTCOME_STATED), (1, 2, 2, 0, OUTCOME_ACCEPTED), (1, 1, 1, 1, OUTCOME_ACCEPTED),
        (1, 6, 6, 0, OUTCOME_STATED), (1, 5, 5, 0, OUTCOME_ACCEPTED), (1, 8, 8, 0, OUTCOME_STATED + 1),
        (1, 0, 0, 1, OUTCOME_ACCEPTED), (1, 3, 4, 0, OUTCOME_ACCEPTED), (1, 9, 9, 0, OUTCOME_NONE),
    ]  # fmt: skip
    assert merged(kernels, *rows) == [
        (1, 9, 9, 0, OUTCOME_NONE), (1, 2, 5, 0, OUTCOME_ACCEPTED), (1, 6, 7, 0, OUTCOME_STATED),
        (1, 8, 8, 0, OUTCOME_STATED + 1), (1, 0, 1, 1, OUTCOME_ACCEPTED),
    ]  # fmt: skip


@pytest.mark.parametrize("other", [OUTCOME_ACCEPTED, OUTCOME_RELEASED])
def test_rows_of_each_channel_lie_behind_each_other(kernels: SimpleNamespace, other: int) -> None:
    """Deliveries of two channels with the same ids are others."""
    rows = [
        (1, 1, 1, 0, OUTCOME_ACCEPTED, 7), (1, 3, 3, 0, other), (1, 0, 0, 0, OUTCOME_ACCEPTED, 7), (1, 2, 2, 0, other),
        (1, 4, 4, 0, OUTCOME_ACCEPTED), (1, 4, 4, 0, other, 8), (1, 5, 5, 0, OUTCOME_ACCEPTED),
    ]  # fmt: skip
    assert merged(kernels, *rows) == [
        *([(1, 2, 5, 0, other)] if other == OUTCOME_ACCEPTED else [*alike((4, 5)), (1, 2, 3, 0, other)]),
        (1, 0, 1, 0, OUTCOME_ACCEPTED, 7), (1, 4, 4, 0, other, 8),
    ]  # fmt: skip


@pytest.mark.parametrize("again", [(2, 2), (0, 9), (5, 6)])
def test_rows_stay_as_they_are_where_a_delivery_is_named_twice_and_not_all_say_the_same(
    kernels: SimpleNamespace, again: tuple[int, int]
) -> None:
    rows = [*alike((5, 5), (1, 3)), (1, *again, 0, OUTCOME_RELEASED), *alike((4, 4))]
    assert merged(kernels, *rows) == rows


def test_rows_of_both_roles_stay_as_they_are(kernels: SimpleNamespace) -> None:
    rows = alike((2, 2), (1, 1), (0, 0))
    rows[1] = (0, *rows[1][1:])
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
    channels = rng.choice([[0], [0, 1, 5]])
    often, outcomes = rng.choice([0, 0.1]), [OUTCOME_ACCEPTED, *rng.choice([[], [OUTCOME_STATED, OUTCOME_NONE]])]
    for _ in range(rng.choice([0, 1, 3, 20])):
        first = origin + rng.randrange(-spread, spread)
        last = first + rng.choice([0, 0, 0, 1, 3, -1, QUARTER])
        is_other = rng.random() < often
        outcome = rng.choice(outcomes)
        role, channel = int(rng.random() >= often / 9), rng.choice(channels)
        rows.extend((role, first % 2**32, last % 2**32, int(is_other), outcome, channel))
    agreed(compiled, "merge_dispositions", rows, len(rows) // DISPOSITION_WIDTH)


@MANY
@given(seed=SEEDS)
def test_dispositions_are_read_alike(compiled: SimpleNamespace, seed: int) -> None:
    rng = Random(seed)
    stream, at = b"", rng.choice([0, 7, 2**32 - 2, HALF - 2])
    others = [MODIFIED, DEFERRED, legal.random_value(rng), legal.random_value(rng)]
    for _ in range(rng.choice([1, 5, 12])):
        last = rng.choice([NULL, NULL, uint((at + 3) % 2**32), uint(rng.choice([0, HALF, 2**32 - 1]))])
        changes = [
            (0, rng.choice([TRUE] * 6 + [FALSE, b"\x56\x01", NULL])),
            (2, last),
            (3, rng.choice([FALSE] * 6 + [TRUE, NULL, b"\x56\x01"])),
            (4, rng.choice([ACCEPTED] * 6 + [RELEASED, NULL, b"\x00\x53\x24\xc0\x01\x00", *others])),
            (5, rng.choice([FALSE, NULL, TRUE])),
        ]
        kept = [change for change in changes if rng.random() < 0.5]
        stream += said(
            at, *kept, fields=rng.choice([6, 6, 5, 4, 2]), channel=rng.choice([0] * 9 + [1]), wide=rng.random() < 0.2
        )
        if rng.random() < 0.3:
            fields = rng.randrange(11)
            change = fields, rng.choice([NULL, TRUE, FALSE, uint(0), uint(400), legal.random_value(rng)])
            stream += flow(uint(rng.randrange(3)), change, fields=rng.choice([11, 10, 10, 7, 4, 3]))
        at = (at + rng.choice([1, 1, 1, 4, 2])) % 2**32
    if rng.random() < 0.4:
        stream = legal.mutated(rng, stream)
    (rows, _, _), buffers = agreed(
        compiled, "scan_frames", stream, 0, len(stream), 65536, table(rng.choice([3, 15]), FRAME_WIDTH)
    )
    for first in range(rows + 1):
        room = table(rng.choice([1, 2, 9]), DISPOSITION_WIDTH)
        states = table(rng.choice([0, 1, 4]), STATE_WIDTH)
        flows = table(rng.choice([0, 1, 4]), FLOW_WIDTH)
        agreed(compiled, "collect_dispositions", stream, buffers[0], first, rows, room, states, flows)
