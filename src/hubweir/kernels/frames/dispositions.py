"""Read a row of dispositions and flows at once, in plain Python: what receivers say that settle message by message.

Receivers that work at several messages at a time settle them in any order; in the order of their ids they are few rows.
Each grants credit in between, so that the dispositions of many links of one read have flows between them.
"""

from __future__ import annotations

from array import array
from itertools import pairwise

from hubweir.kernels.buffers.tables import check_range, check_rows
from hubweir.kernels.contract import (
    C_CHANNEL,
    C_CREDIT,
    C_DELIVERY_COUNT,
    C_DRAIN,
    C_ECHO,
    C_FRAME,
    C_HANDLE,
    C_NEXT_INCOMING,
    C_WINDOW,
    DISPOSITION_WIDTH,
    F_BODY,
    F_CHANNEL,
    F_CODE,
    F_END,
    F_TYPE,
    FLOW_WIDTH,
    FRAME_WIDTH,
    O_CHANNEL,
    O_FIRST,
    O_LAST,
    O_OUTCOME,
    O_ROLE,
    O_SETTLED,
    OUTCOME_ACCEPTED,
    OUTCOME_NONE,
    OUTCOME_RELEASED,
    OUTCOME_STATED,
    QUARTER,
    STATE_END,
    STATE_START,
    STATE_WIDTH,
    Readable,
)
from hubweir.kernels.frames.frames import boolean_of, uint_of
from hubweir.kernels.messages.sections import LIST, Malformed, compound, skip_value

FLOW, DISPOSITION = 0x13, 0x15
DISPOSITION_FIELDS = 6
# What a flow has to say, and what it may.
LEAST_FLOW_FIELDS, FLOW_FIELDS = 4, 11
# The columns of its fields, by their places; the others say nothing that anybody asks for.
FLOW_COLUMNS = {
    0: C_NEXT_INCOMING, 1: C_WINDOW, 4: C_HANDLE, 5: C_DELIVERY_COUNT, 6: C_CREDIT, 8: C_DRAIN, 9: C_ECHO,
}  # fmt: skip
MODULUS, HALF = 2**32, 2**31
# The states that have an outcome of their own: without fields, in either form.
PLAIN = {
    b"\x00\x53" + bytes([outcome]) + fields: outcome
    for outcome in (OUTCOME_ACCEPTED, OUTCOME_RELEASED)
    for fields in (b"\x45", b"\xc0\x01\x00")
}


def collect_dispositions(
    data: Readable,
    frames: array[int],
    first: int,
    last: int,
    rows: array[int],
    states: array[int],
    flows: array[int],
) -> tuple[int, int, int, int]:
    """Read the leading dispositions and flows in usual form; see contract.py."""
    view = memoryview(data)
    check_rows(frames, FRAME_WIDTH, first, last)
    room, taken, count = len(rows) // DISPOSITION_WIDTH, 0, 0
    kinds, most_kinds = 0, len(states) // STATE_WIDTH
    flow_count, most_flows = 0, len(flows) // FLOW_WIDTH
    for index in range(first, last):
        frame = frames[index * FRAME_WIDTH : (index + 1) * FRAME_WIDTH]
        if frame[F_CODE] not in (FLOW, DISPOSITION) or frame[F_TYPE] != 0:
            break
        check_range(frame[F_BODY], frame[F_END], len(view))
        if frame[F_CODE] == FLOW:
            try:
                flow = _flow(view, frame[F_BODY], frame[F_END])
            except Malformed:
                break
            if flow_count == most_flows:
                break
            flow[C_FRAME], flow[C_CHANNEL] = index, frame[F_CHANNEL]
            flows[flow_count * FLOW_WIDTH : (flow_count + 1) * FLOW_WIDTH] = flow
            flow_count, taken = flow_count + 1, taken + 1
            continue
        try:
            said, state = _said(view, frame[F_BODY], frame[F_END])
        except Malformed:
            break
        said[O_CHANNEL] = frame[F_CHANNEL]
        is_new = False
        if said[O_OUTCOME] == OUTCOME_STATED:
            number = _number(view, states, kinds, state)
            is_new = number == kinds
            if number == most_kinds:
                break
            said[O_OUTCOME] += number
        before = rows[(count - 1) * DISPOSITION_WIDTH : count * DISPOSITION_WIDTH] if count else array("q")
        if count and _follows(before, said):
            rows[(count - 1) * DISPOSITION_WIDTH + O_LAST] = said[O_LAST]
        elif count == room:
            break
        else:
            rows[count * DISPOSITION_WIDTH : (count + 1) * DISPOSITION_WIDTH] = said
            count += 1
        if is_new:
            states[kinds * STATE_WIDTH : (kinds + 1) * STATE_WIDTH] = array("q", (index, *state))
            kinds += 1
        taken += 1
    return taken, count, kinds, flow_count


def merge_dispositions(rows: array[int], count: int) -> int:
    """Put rows in order by what they say, and merge them; see contract.py."""
    check_rows(rows, DISPOSITION_WIDTH, 0, count)
    said = [rows[at : at + DISPOSITION_WIDTH] for at in range(0, count * DISPOSITION_WIDTH, DISPOSITION_WIDTH)]
    origin = said[0][O_FIRST] if said else 0
    for row in said:
        row[O_FIRST], row[O_LAST] = _near(row[O_FIRST], origin), _near(row[O_LAST], origin)
        if row[O_ROLE] != said[0][O_ROLE] or not -QUARTER < row[O_FIRST] <= row[O_LAST] < QUARTER:
            return count
    said.sort(key=lambda row: (row[O_CHANNEL], row[O_FIRST], row[O_LAST]))
    if len({(row[O_SETTLED], row[O_OUTCOME]) for row in said}) > 1:
        if any(
            row[O_CHANNEL] == before[O_CHANNEL] and row[O_FIRST] <= before[O_LAST] for before, row in pairwise(said)
        ):
            return count
        said.sort(key=_kind)
    left: list[array[int]] = []
    for row in said:
        if left and _kind(row) == _kind(left[-1]) and row[O_FIRST] == left[-1][O_LAST] + 1:
            left[-1][O_LAST] = row[O_LAST]
        else:
            left.append(row)
    for place, row in enumerate(left):
        row[O_FIRST], row[O_LAST] = (origin + row[O_FIRST]) % MODULUS, (origin + row[O_LAST]) % MODULUS
        rows[place * DISPOSITION_WIDTH : (place + 1) * DISPOSITION_WIDTH] = row
    for at in range(len(left) * DISPOSITION_WIDTH, count * DISPOSITION_WIDTH):
        rows[at] = 0
    return len(left)


def _kind(row: array[int]) -> tuple[int, int, int]:
    """Whose deliveries a row speaks of, and what it says."""
    return row[O_CHANNEL], row[O_SETTLED], row[O_OUTCOME]


def _near(number: int, origin: int) -> int:
    """How far an id lies behind another; negative: before it."""
    return (number - origin + HALF) % MODULUS - HALF


def _number(data: memoryview, states: array[int], kinds: int, state: tuple[int, int]) -> int:
    """The row of states that holds the same bytes; kinds when none does."""
    for number in range(kinds):
        at = number * STATE_WIDTH
        if data[states[at + STATE_START] : states[at + STATE_END]] == data[state[0] : state[1]]:
            return number
    return kinds


def _said(data: memoryview, body: int, end: int) -> tuple[array[int], tuple[int, int]]:
    """The disposition row of a frame's body, and where its state lies; Malformed when it is in another form."""
    count, at, stop = _open(data, body, end)
    if not 2 <= count <= DISPOSITION_FIELDS:
        raise Malformed
    row, state = array("q", [-1, -1, -1, 0, OUTCOME_NONE, -1]), (0, 0)
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
            row[O_OUTCOME], state = PLAIN.get(bytes(data[at:behind]), OUTCOME_STATED), (at, behind)
        at = behind
    if at != stop or row[O_ROLE] < 0 or row[O_FIRST] < 0:
        raise Malformed
    if row[O_LAST] < 0:
        row[O_LAST] = row[O_FIRST]
    if (row[O_LAST] - row[O_FIRST]) % MODULUS >= HALF:
        raise Malformed
    return row, state


def _open(data: memoryview, body: int, end: int) -> tuple[int, int, int]:
    """How many fields the list of a frame's body has, and where they start and end; Malformed: in another form."""
    if end - body < 4 or data[body] != 0x00 or data[body + 1] != 0x53 or data[body + 3] not in LIST:
        raise Malformed
    count, at, stop = compound(data, body + 3, end)
    if stop != end:
        raise Malformed
    return count, at, stop


def _flow(data: memoryview, body: int, end: int) -> array[int]:
    """The flow row of a frame's body, but for frame and channel; Malformed when it is in another form."""
    count, at, stop = _open(data, body, end)
    if not LEAST_FLOW_FIELDS <= count <= FLOW_FIELDS:
        raise Malformed
    row = array("q", [-1] * FLOW_WIDTH)
    row[C_DRAIN] = row[C_ECHO] = 0
    for field in range(count):
        behind = skip_value(data, at, stop)
        null = data[at] == 0x40
        if (null and 1 <= field < LEAST_FLOW_FIELDS) or (field == 10 and not null):
            raise Malformed
        if not null:
            value = boolean_of(data, at) if field in (8, 9) else uint_of(data, at, behind)
            if field in FLOW_COLUMNS:
                row[FLOW_COLUMNS[field]] = value
        at = behind
    if at != stop:
        raise Malformed
    return row


def _follows(before: array[int], said: array[int]) -> bool:
    """Whether it says the same of the deliveries behind those before."""
    is_same = all(before[column] == said[column] for column in (O_ROLE, O_SETTLED, O_OUTCOME, O_CHANNEL))
    is_next = said[O_FIRST] == (before[O_LAST] + 1) % MODULUS
    return is_same and is_next and (said[O_LAST] - before[O_FIRST]) % MODULUS < HALF
