"""Read a row of dispositions at once, in plain Python: what a receiver that settles message by message says.

Receivers that work at several messages at a time settle them in any order; in the order of their ids they are few rows.
"""

from __future__ import annotations

from array import array

from hubweir.kernels.buffers.tables import Readable, check_range, check_rows
from hubweir.kernels.contract import (
    DISPOSITION_WIDTH,
    F_BODY,
    F_CHANNEL,
    F_CODE,
    F_END,
    F_TYPE,
    FRAME_WIDTH,
    O_FIRST,
    O_LAST,
    O_OUTCOME,
    O_ROLE,
    O_SETTLED,
    OUTCOME_ACCEPTED,
    OUTCOME_NONE,
    OUTCOME_RELEASED,
    QUARTER,
)
from hubweir.kernels.frames.frames import boolean_of, uint_of
from hubweir.kernels.messages.sections import LIST, Malformed, compound, skip_value

DISPOSITION = 0x15
DISPOSITION_FIELDS = 6
MODULUS, HALF = 2**32, 2**31
# The list of an outcome's fields, where there are none.
NO_FIELDS = (b"\x45", b"\xc0\x01\x00")


def collect_dispositions(
    data: Readable, frames: array[int], first: int, last: int, rows: array[int]
) -> tuple[int, int]:
    """Read the leading dispositions of one channel in usual form; see contract.py."""
    view = memoryview(data)
    check_rows(frames, FRAME_WIDTH, first, last)
    room, taken, count, channel = len(rows) // DISPOSITION_WIDTH, 0, 0, -1
    for index in range(first, last):
        frame = frames[index * FRAME_WIDTH : (index + 1) * FRAME_WIDTH]
        if frame[F_CODE] != DISPOSITION or frame[F_TYPE] != 0 or (taken and frame[F_CHANNEL] != channel):
            break
        check_range(frame[F_BODY], frame[F_END], len(view))
        try:
            said = _said(view, frame[F_BODY], frame[F_END])
        except Malformed:
            break
        before = rows[(count - 1) * DISPOSITION_WIDTH : count * DISPOSITION_WIDTH] if count else array("q")
        if count and _follows(before, said):
            rows[(count - 1) * DISPOSITION_WIDTH + O_LAST] = said[O_LAST]
        elif count == room:
            break
        else:
            rows[count * DISPOSITION_WIDTH : (count + 1) * DISPOSITION_WIDTH] = said
            count += 1
        channel = frame[F_CHANNEL]
        taken += 1
    return taken, count


def merge_dispositions(rows: array[int], count: int) -> int:
    """Put rows that say the same in order, and merge them; see contract.py."""
    check_rows(rows, DISPOSITION_WIDTH, 0, count)
    said = [rows[at : at + DISPOSITION_WIDTH] for at in range(0, count * DISPOSITION_WIDTH, DISPOSITION_WIDTH)]
    origin = said[0][O_FIRST] if said else 0
    for row in said:
        if any(row[column] != said[0][column] for column in (O_ROLE, O_SETTLED, O_OUTCOME)):
            return count
        row[O_FIRST], row[O_LAST] = _near(row[O_FIRST], origin), _near(row[O_LAST], origin)
        if not -QUARTER < row[O_FIRST] <= row[O_LAST] < QUARTER:
            return count
    left: list[array[int]] = []
    for row in sorted(said, key=lambda row: (row[O_FIRST], row[O_LAST])):
        if left and row[O_FIRST] == left[-1][O_LAST] + 1:
            left[-1][O_LAST] = row[O_LAST]
        else:
            left.append(row)
    for place, row in enumerate(left):
        row[O_FIRST], row[O_LAST] = (origin + row[O_FIRST]) % MODULUS, (origin + row[O_LAST]) % MODULUS
        rows[place * DISPOSITION_WIDTH : (place + 1) * DISPOSITION_WIDTH] = row
    for at in range(len(left) * DISPOSITION_WIDTH, count * DISPOSITION_WIDTH):
        rows[at] = 0
    return len(left)


def _near(number: int, origin: int) -> int:
    """How far an id lies behind another; negative: before it."""
    return (number - origin + HALF) % MODULUS - HALF


def _said(data: memoryview, body: int, end: int) -> array[int]:
    """The disposition row of a frame's body; Malformed when it is in another form."""
    if end - body < 4 or data[body] != 0x00 or data[body + 1] != 0x53 or data[body + 3] not in LIST:
        raise Malformed
    count, at, stop = compound(data, body + 3, end)
    if not 2 <= count <= DISPOSITION_FIELDS or stop != end:
        raise Malformed
    row = array("q", [-1, -1, -1, 0, OUTCOME_NONE])
    for field in range(count):
        behind = skip_value(data, at, stop)
        null = data[at] == 0x40
        if field in (0, 3, 5):
            flag = -1 if null else boolean_of(data, at)
            if field == 0:
                row[O_ROLE] = flag
            elif field == 3:
                row[O_SETTLED] = int(flag == 1)
        elif field in (1, 2):
            row[O_FIRST if field == 1 else O_LAST] = -1 if null else uint_of(data, at, behind)
        elif not null:
            row[O_OUTCOME] = _outcome(bytes(data[at:behind]))
        at = behind
    if at != stop or row[O_ROLE] < 0 or row[O_FIRST] < 0:
        raise Malformed
    if row[O_LAST] < 0:
        row[O_LAST] = row[O_FIRST]
    if (row[O_LAST] - row[O_FIRST]) % MODULUS >= HALF:
        raise Malformed
    return row


def _outcome(value: bytes) -> int:
    """The outcome that a value is; Malformed when it has fields, or is another."""
    if value[:2] != b"\x00\x53" or value[3:] not in NO_FIELDS:
        raise Malformed
    if value[2] not in (OUTCOME_ACCEPTED, OUTCOME_RELEASED):
        raise Malformed
    return value[2]


def _follows(before: array[int], said: array[int]) -> bool:
    """Whether it says the same of the deliveries behind those before."""
    is_same = all(before[column] == said[column] for column in (O_ROLE, O_SETTLED, O_OUTCOME))
    is_next = said[O_FIRST] == (before[O_LAST] + 1) % MODULUS
    return is_same and is_next and (said[O_LAST] - before[O_FIRST]) % MODULUS < HALF
