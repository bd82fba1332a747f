"""The rows of a queue's messages in plain Python: added, copied, selected, given out, marked, dropped, due.

Long because every kernel of these rows has its twin here.
"""

from __future__ import annotations

from array import array

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import check_rows, signed
from hubweir.kernels.contract import (
    MESSAGE_WIDTH,
    Q_DELIVERY_COUNT,
    Q_ENQUEUE_NUMBER,
    Q_ENQUEUED_MS,
    Q_EXPIRES_MS,
    Q_ID_NUMBER,
    Q_LOCK,
    Q_LOCK_CHECK,
    Q_LOCKED_UNTIL_MS,
    Q_PARTITION,
    Q_SEQUENCE_NUMBER,
    Q_STATE,
    Q_TTL_MS,
)
from hubweir.kernels.queue.tokens import check_of, check_secret
from hubweir.kernels.queue_contract import (
    ACTIVE,
    DEFERRED,
    DELIVERIES_MOST,
    DELIVERIES_SHIFT,
    GONE,
    I_LENGTH,
    I_ORDINAL,
    I_SCHEDULED,
    I_TTL,
    INCOMING_WIDTH,
    LOCKED,
    M_ENQUEUED,
    M_EXPIRES,
    M_FIRST,
    M_INDEX,
    M_LOCK,
    M_STATE,
    QUEUE_WIDTH,
    SCHEDULED,
    SETTLING,
    SIZE_SHIFT,
    STATE_BITS,
    SUB_QUEUE_BITS,
    SUB_QUEUE_SHIFT,
    T_ACTIVE,
    T_DEFERRED,
    T_MESSAGES,
    T_SCHEDULED,
    T_SIZE,
    TALLY_WIDTH,
    WANT_ANY,
)

MOST = 2**63 - 1


def add_messages(
    rows: array[int],
    row: int,
    fields: array[int],
    first: int,
    last: int,
    first_index: int,
    enqueued_ms: int,
    default_ttl_ms: int,
    first_count: int,
) -> tuple[int, int, int]:
    """Fill queue rows for incoming ones; see queue_contract.py."""
    check_rows(fields, INCOMING_WIDTH, first, last)
    check_rows(rows, QUEUE_WIDTH, row, row + last - first)
    scheduled, size, due_ms = 0, 0, -1
    for place in range(last - first):
        incoming = fields[(first + place) * INCOMING_WIDTH : (first + place + 1) * INCOMING_WIDTH]
        is_later = incoming[I_SCHEDULED] > enqueued_ms
        time_ms = incoming[I_SCHEDULED] if is_later else enqueued_ms
        ttls = [ttl for ttl in (incoming[I_TTL], default_ttl_ms) if ttl >= 0]
        expires_ms = time_ms + min(ttls) if ttls and time_ms <= MOST - min(ttls) else -1
        due = time_ms if is_later else expires_ms
        if due >= 0 and (due_ms < 0 or due < due_ms):
            due_ms = due
        state = (SCHEDULED if is_later else ACTIVE) | incoming[I_LENGTH] << SIZE_SHIFT
        index = signed(first_index + incoming[I_ORDINAL])
        values = (index, time_ms, expires_ms, state, 0, -1, first_count + place)
        at = (row + place) * QUEUE_WIDTH
        rows[at : at + QUEUE_WIDTH] = array("q", values)
        scheduled += is_later
        size += incoming[I_LENGTH]
    return scheduled, size, due_ms


def copy_messages(
    rows: array[int], row: int, last_row: int, default_ttl_ms: int, out: array[int], out_row: int
) -> tuple[int, int, int, int]:
    """Write rows of active messages like these; see queue_contract.py."""
    check_rows(rows, QUEUE_WIDTH, row, last_row)
    last_out = len(out) // QUEUE_WIDTH
    check_rows(out, QUEUE_WIDTH, out_row, last_out)
    size, due_ms = 0, -1
    while row < last_row and out_row < last_out:
        index, enqueued_ms, expires_ms, state, _, _, first = rows[row * QUEUE_WIDTH : (row + 1) * QUEUE_WIDTH]
        row += 1
        if state & STATE_BITS == GONE:
            continue
        if default_ttl_ms >= 0 and enqueued_ms <= MOST - default_ttl_ms:
            bound_ms = enqueued_ms + default_ttl_ms
            expires_ms = bound_ms if expires_ms < 0 else min(expires_ms, bound_ms)
        if expires_ms >= 0 and (due_ms < 0 or expires_ms < due_ms):
            due_ms = expires_ms
        size += state >> SIZE_SHIFT
        state = state >> SIZE_SHIFT << SIZE_SHIFT | ACTIVE
        values = (index, enqueued_ms, expires_ms, state, 0, -1, first)
        out[out_row * QUEUE_WIDTH : (out_row + 1) * QUEUE_WIDTH] = array("q", values)
        out_row += 1
    return row, out_row, size, due_ms


def is_ready(state: int, expires_ms: int, sub_queue: int, now_ms: int) -> bool:
    """Whether a message can be locked."""
    if state & (STATE_BITS | SUB_QUEUE_BITS | LOCKED | SETTLING) != ACTIVE | sub_queue << SUB_QUEUE_SHIFT:
        return False
    return sub_queue != 0 or expires_ms < 0 or expires_ms > now_ms


def select_messages(
    rows: array[int],
    row: int,
    page_first: int,
    wanted: int,
    sub_queue: int,
    now_ms: int,
    picked: array[int],
    at: int,
    last: int,
    size: int,
    max_bytes: int,
) -> tuple[int, int, int]:
    """Write counts of messages that are wanted; see queue_contract.py."""
    count = len(rows) // QUEUE_WIDTH
    check_rows(rows, QUEUE_WIDTH, row, count)
    check_rows(picked, 1, at, last)
    while row < count and at < last:
        state = rows[row * QUEUE_WIDTH + M_STATE]
        if wanted == WANT_ANY:
            takes = bool(state & STATE_BITS) and state & SUB_QUEUE_BITS == sub_queue << SUB_QUEUE_SHIFT
        else:
            takes = is_ready(state, rows[row * QUEUE_WIDTH + M_EXPIRES], sub_queue, now_ms)
        if takes:
            if size + (state >> SIZE_SHIFT) > max_bytes and (size or at):
                return at, row, size
            picked[at] = page_first + row
            size += state >> SIZE_SHIFT
            at += 1
        row += 1
    return at, row, size


def rows_in_page(rows: array[int], width: int, page_first: int, number: int) -> int:
    """The row of a number, -1 where it lies in another page."""
    row = number - page_first
    return row if 0 <= row < len(rows) // width else -1


def give_messages(
    rows: array[int],
    page_first: int,
    counts: array[int],
    at: int,
    last: int,
    marks: int,
    delivered: int,
    lock_number: int,
    secret: bytes,
    until_ms: int,
    number_base: int,
    partition: int,
    indexes: array[int],
    out: array[int],
) -> int:
    """Fill message rows, then lock; see queue_contract.py."""
    check_rows(counts, 1, at, last)
    check_rows(indexes, 1, at, last)
    check_rows(out, MESSAGE_WIDTH, at, last)
    check_secret(secret)
    while at < last:
        row = rows_in_page(rows, QUEUE_WIDTH, page_first, counts[at])
        if row < 0:
            break
        found = rows[row * QUEUE_WIDTH : (row + 1) * QUEUE_WIDTH]
        state, enqueued_ms, expires_ms = found[M_STATE], found[M_ENQUEUED], found[M_EXPIRES]
        deliveries = state >> DELIVERIES_SHIFT & DELIVERIES_MOST
        given = [0] * MESSAGE_WIDTH
        given[Q_SEQUENCE_NUMBER] = number_base + counts[at]
        given[Q_ENQUEUED_MS] = enqueued_ms
        given[Q_LOCKED_UNTIL_MS] = until_ms
        given[Q_DELIVERY_COUNT] = deliveries
        given[Q_STATE] = {DEFERRED: 1, SCHEDULED: 2}.get(state & STATE_BITS, 0)
        if lock_number:
            given[Q_LOCK] = lock_number + at
            given[Q_LOCK_CHECK] = signed(check_of(secret, lock_number + at))
        given[Q_TTL_MS] = expires_ms - enqueued_ms if expires_ms >= 0 else -1
        given[Q_EXPIRES_MS] = expires_ms
        given[Q_ENQUEUE_NUMBER] = -1
        given[Q_PARTITION] = partition
        given[Q_ID_NUMBER] = number_base + found[M_FIRST]
        out[at * MESSAGE_WIDTH : (at + 1) * MESSAGE_WIDTH] = array("q", given)
        indexes[at] = found[M_INDEX]
        if lock_number and marks & LOCKED:
            rows[row * QUEUE_WIDTH + M_LOCK] = lock_number + at
        rows[row * QUEUE_WIDTH + M_STATE] = with_deliveries(state | marks, delivered)
        at += 1
    return at


def with_deliveries(state: int, change: int) -> int:
    """M_STATE after so many deliveries more, or less."""
    before = state >> DELIVERIES_SHIFT & DELIVERIES_MOST
    after = min(max(before + change, 0), DELIVERIES_MOST)
    return state + (after - before << DELIVERIES_SHIFT)


def mark_messages(
    rows: array[int],
    page_first: int,
    counts: array[int],
    at: int,
    last: int,
    ordinals: array[int],
    first_number: int,
    codes: bytearray,
) -> int:
    """Mark messages whose locks are to be settled; see queue_contract.py."""
    check_rows(counts, 1, at, last)
    check_rows(ordinals, 1, at, last)
    if last > len(codes):
        raise KernelRefusal(f"{len(codes)} codes have no room for {last}")
    while at < last:
        codes[at] = 1
        if counts[at]:
            row = rows_in_page(rows, QUEUE_WIDTH, page_first, counts[at])
            if row < 0:
                break
            state = rows[row * QUEUE_WIDTH + M_STATE]
            is_its = rows[row * QUEUE_WIDTH + M_LOCK] == signed(first_number + ordinals[at])
            if state & STATE_BITS and state & (LOCKED | SETTLING) == LOCKED and is_its:
                rows[row * QUEUE_WIDTH + M_STATE] = state | SETTLING
                codes[at] = 0
            else:
                counts[at] = 0
        at += 1
    return at


def drop_messages(
    rows: array[int], first_row: int, last_row: int, tally: array[int], locks: array[int], at: int
) -> int:
    """These are gone; see queue_contract.py."""
    check_rows(rows, QUEUE_WIDTH, first_row, last_row)
    check_rows(tally, TALLY_WIDTH, 0, 1)
    check_rows(locks, 1, at, at + last_row - first_row)
    for row in range(first_row, last_row):
        place = row * QUEUE_WIDTH
        state = rows[place + M_STATE]
        if not state & STATE_BITS:
            continue
        if state & LOCKED:
            locks[at] = rows[place + M_LOCK]
            at += 1
        tally[_kind_of(state)] += 1
        tally[T_SIZE] += state >> SIZE_SHIFT
        tally[T_MESSAGES] += 1
        rows[place + M_STATE] = GONE
        rows[place + M_LOCK] = 0
    return at


def _kind_of(bits: int) -> int:
    """The column of a tally row."""
    state, sub_queue = bits & STATE_BITS, (bits & SUB_QUEUE_BITS) >> SUB_QUEUE_SHIFT
    if state == DEFERRED and not sub_queue:
        return T_DEFERRED
    return T_SCHEDULED if state == SCHEDULED else T_ACTIVE + min(2, sub_queue)


def activate_messages(
    rows: array[int],
    page_first: int,
    counts: array[int],
    at: int,
    last: int,
    tally: array[int],
    out: array[int],
    out_row: int,
) -> tuple[int, int, int]:
    """Scheduled messages take other rows; see queue_contract.py."""
    check_rows(counts, 1, at, last)
    check_rows(tally, TALLY_WIDTH, 0, 1)
    last_out = len(out) // QUEUE_WIDTH
    check_rows(out, QUEUE_WIDTH, out_row, last_out)
    due_ms = -1
    while at < last and out_row < last_out:
        if counts[at]:
            row = rows_in_page(rows, QUEUE_WIDTH, page_first, counts[at])
            if row < 0:
                break
            there = rows[row * QUEUE_WIDTH : (row + 1) * QUEUE_WIDTH]
            state, expires_ms = there[M_STATE], there[M_EXPIRES]
            if state & STATE_BITS:
                drop_messages(rows, row, row + 1, tally, array("q", [0]), 0)
                there[M_STATE] = state & ~(STATE_BITS | LOCKED | SETTLING) | ACTIVE
                there[M_LOCK] = 0
                out[out_row * QUEUE_WIDTH : (out_row + 1) * QUEUE_WIDTH] = there
                out_row += 1
                if expires_ms >= 0 and (due_ms < 0 or expires_ms < due_ms):
                    due_ms = expires_ms
        at += 1
    return at, out_row, due_ms


def count_deliveries(rows: array[int], first_row: int, last_row: int, change: int) -> None:
    """Count deliveries; see queue_contract.py."""
    check_rows(rows, QUEUE_WIDTH, first_row, last_row)
    for row in range(first_row, last_row):
        state = rows[row * QUEUE_WIDTH + M_STATE]
        if state & STATE_BITS and not state & SUB_QUEUE_BITS:
            rows[row * QUEUE_WIDTH + M_STATE] = with_deliveries(state, change)


def unlock_messages(
    rows: array[int],
    page_first: int,
    counts: array[int],
    at: int,
    last: int,
    marks: int,
    change: int,
    most_deliveries: int,
    over: array[int],
) -> tuple[int, int, int, int]:
    """Take marks away; see queue_contract.py."""
    check_rows(counts, 1, at, last)
    check_rows(over, 1, 0, last - at)
    count, lowest, due_ms = 0, -1, -1
    while at < last:
        if not counts[at]:
            at += 1
            continue
        row = rows_in_page(rows, QUEUE_WIDTH, page_first, counts[at])
        if row < 0:
            break
        place = row * QUEUE_WIDTH
        if rows[place + M_STATE] & STATE_BITS:
            state = rows[place + M_STATE] & ~marks
            if not state & SUB_QUEUE_BITS:
                state = with_deliveries(state, change)
            if marks & LOCKED:
                rows[place + M_LOCK] = 0
            is_active = state & (STATE_BITS | LOCKED | SETTLING) == ACTIVE
            is_main = is_active and not state & SUB_QUEUE_BITS
            if is_main and state >> DELIVERIES_SHIFT & DELIVERIES_MOST >= most_deliveries:
                state |= SETTLING
                over[count] = counts[at]
                count += 1
            elif is_active:
                lowest = row if lowest < 0 else min(lowest, row)
                expires_ms = rows[place + M_EXPIRES]
                if is_main and expires_ms >= 0:
                    due_ms = expires_ms if due_ms < 0 else min(due_ms, expires_ms)
            rows[place + M_STATE] = state
        at += 1
    return at, count, lowest, due_ms


def due_messages(rows: array[int], page_first: int, state: int, now_ms: int, picked: array[int]) -> tuple[int, int]:
    """Counts of messages whose time has come; see queue_contract.py."""
    if state not in (ACTIVE, SCHEDULED):
        raise KernelRefusal(f"messages of state {state} have no time")
    count, due_ms, column = 0, -1, M_ENQUEUED if state == SCHEDULED else M_EXPIRES
    for row in range(len(rows) // QUEUE_WIDTH):
        bits, time_ms = rows[row * QUEUE_WIDTH + M_STATE], rows[row * QUEUE_WIDTH + column]
        if bits & (STATE_BITS | SUB_QUEUE_BITS | LOCKED | SETTLING) != state or time_ms < 0:
            continue
        if time_ms <= now_ms and count < len(picked):
            picked[count] = page_first + row
            count += 1
        elif due_ms < 0 or time_ms < due_ms:
            due_ms = time_ms
    return count, due_ms


def least_index(rows: array[int]) -> int:
    """The least log index that is used; see queue_contract.py."""
    states, indexes = rows[M_STATE::QUEUE_WIDTH], rows[M_INDEX::QUEUE_WIDTH]
    return min((index for state, index in zip(states, indexes, strict=True) if state & STATE_BITS), default=-1)


def clear_marks(rows: array[int]) -> None:
    """Take marks and locks away; see queue_contract.py."""
    for row in range(len(rows) // QUEUE_WIDTH):
        place = row * QUEUE_WIDTH
        if rows[place + M_STATE] & STATE_BITS:
            rows[place + M_STATE] &= ~(LOCKED | SETTLING)
            rows[place + M_LOCK] = 0
        else:
            rows[place : place + QUEUE_WIDTH] = array("q", [0] * QUEUE_WIDTH)
