# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels of a queue's rows. The twins: read_fields.py, queue_rows.py, tokens.py, packed_rows.py, and
collect_records.py.

This page holds the doors and the loops over rows: a table is an array('q'), whose numbers are used where they lie, and
every row, count and range that a call names is checked here. What is done to one row is in the .pxd pages.
Long because there are some twenty doors, each with its checks.
"""

from cpython cimport array
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from hubweir.kernels.batches.batches cimport Batch, open_batch, record_end
from hubweir.kernels.buffers.bytes cimport NOWHERE, load64, store64
from hubweir.kernels.buffers.tables cimport check_range, grow, refusal
from hubweir.kernels.contract cimport *
from hubweir.kernels.queue.packed_rows cimport PAIR_BYTES, pack_column, unpack_column
from hubweir.kernels.queue.queue_rows cimport (
    KIND_BITS, READY_BITS, deliveries_of, give_row, is_ready, is_there, kind_of, with_deliveries,
)
from hubweir.kernels.queue.read_fields cimport fill_incoming
from hubweir.kernels.queue.tokens cimport check_of
from hubweir.kernels.queue_contract cimport *
from hubweir.kernels.stored_batch cimport KIND_EVENTS

cdef int64_t MOST = 0x7FFFFFFFFFFFFFFF


cdef inline int64_t* numbers_of(array.array table) except? NULL:
    """The numbers of a table; they stay where they are while this page runs."""
    if table.ob_descr.typecode != c"q":
        raise refusal("a table is no array of 64-bit numbers")
    return <int64_t*>table.data.as_longlongs


cdef inline int64_t size_of(array.array table, int64_t width):
    return len(table) // width


cdef inline int check_in(array.array table, int64_t width, int64_t first, int64_t last) except -1:
    if first < 0 or last < first or size_of(table, width) < last:
        raise refusal(f"rows {first} to {last} do not lie in a table of {size_of(table, width)}")
    return 0


cdef inline const uint8_t* secret_of(bytes secret) except NULL:
    if PyBytes_GET_SIZE(secret) != SECRET_BYTES:
        raise refusal(f"a secret of {len(secret)} bytes is none")
    return <const uint8_t*>PyBytes_AS_STRING(secret)


def read_fields(run, int64_t batch_at, array.array table not None):
    cdef Py_buffer view
    cdef Batch batch
    cdef int64_t at, stop, ordinal, room = size_of(table, INCOMING_WIDTH)
    cdef int64_t* rows = numbers_of(table)
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        if open_batch(<const uint8_t*>view.buf, view.len, batch_at, &batch) == NOWHERE:
            raise refusal(f"no stored batch at {batch_at} of {view.len} bytes")
        if batch.kind != KIND_EVENTS:
            raise refusal(f"the batch at {batch_at} holds no messages")
        at = batch.records
        for ordinal in range(min(batch.count, room)):
            stop = record_end(<const uint8_t*>view.buf, at, &batch)
            if stop == NOWHERE:
                raise refusal(f"no record at {at} of the batch at {batch_at}")
            fill_incoming(<const uint8_t*>view.buf, at, stop, ordinal, rows + ordinal * INCOMING_WIDTH)
            at = stop
        return min(batch.count, room)
    finally:
        PyBuffer_Release(&view)


def add_messages(
    array.array rows not None, int64_t row, array.array fields not None, int64_t first, int64_t last,
    int64_t first_index, int64_t enqueued_ms, int64_t default_ttl_ms, int64_t first_count
):
    cdef int64_t* out = numbers_of(rows)
    cdef int64_t* incoming = numbers_of(fields)
    cdef int64_t place, scheduled = 0, size = 0, due_ms = -1, time_ms, ttl, expires_ms, due
    check_in(fields, INCOMING_WIDTH, first, last)
    check_in(rows, QUEUE_WIDTH, row, row + last - first)
    incoming += first * INCOMING_WIDTH
    out += row * QUEUE_WIDTH
    for place in range(last - first):
        is_later = incoming[I_SCHEDULED] > enqueued_ms
        time_ms = incoming[I_SCHEDULED] if is_later else enqueued_ms
        ttl = incoming[I_TTL]
        if ttl < 0 or (default_ttl_ms >= 0 and default_ttl_ms < ttl):
            ttl = default_ttl_ms
        expires_ms = time_ms + ttl if ttl >= 0 and time_ms <= MOST - ttl else -1
        due = time_ms if is_later else expires_ms
        if due >= 0 and (due_ms < 0 or due < due_ms):
            due_ms = due
        out[M_INDEX] = <int64_t>(<uint64_t>first_index + <uint64_t>incoming[I_ORDINAL])
        out[M_ENQUEUED] = time_ms
        out[M_EXPIRES] = expires_ms
        out[M_STATE] = (SCHEDULED if is_later else ACTIVE) | (incoming[I_LENGTH] << SIZE_SHIFT)
        out[M_LOCK] = 0
        out[M_SESSION] = -1
        out[M_FIRST] = first_count + place
        scheduled += is_later
        size += incoming[I_LENGTH]
        incoming += INCOMING_WIDTH
        out += QUEUE_WIDTH
    return scheduled, size, due_ms


def copy_messages(
    array.array rows not None, int64_t row, int64_t last_row, int64_t default_ttl_ms, array.array out not None,
    int64_t out_row
):
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t* copies = numbers_of(out)
    cdef int64_t* found
    cdef int64_t* copy
    cdef int64_t last_out = size_of(out, QUEUE_WIDTH), size = 0, due_ms = -1, expires_ms
    check_in(rows, QUEUE_WIDTH, row, last_row)
    check_in(out, QUEUE_WIDTH, out_row, last_out)
    while row < last_row and out_row < last_out:
        found = table + row * QUEUE_WIDTH
        row += 1
        if (found[M_STATE] & STATE_BITS) == GONE:
            continue
        expires_ms = found[M_EXPIRES]
        if default_ttl_ms >= 0 and found[M_ENQUEUED] <= MOST - default_ttl_ms:
            if expires_ms < 0 or found[M_ENQUEUED] + default_ttl_ms < expires_ms:
                expires_ms = found[M_ENQUEUED] + default_ttl_ms
        if expires_ms >= 0 and (due_ms < 0 or expires_ms < due_ms):
            due_ms = expires_ms
        size += found[M_STATE] >> SIZE_SHIFT
        copy = copies + out_row * QUEUE_WIDTH
        copy[M_INDEX] = found[M_INDEX]
        copy[M_ENQUEUED] = found[M_ENQUEUED]
        copy[M_EXPIRES] = expires_ms
        copy[M_STATE] = (found[M_STATE] >> SIZE_SHIFT << SIZE_SHIFT) | ACTIVE
        copy[M_LOCK] = 0
        copy[M_SESSION] = -1
        copy[M_FIRST] = found[M_FIRST]
        out_row += 1
    return row, out_row, size, due_ms


def select_messages(
    array.array rows not None, int64_t row, int64_t page_first, int64_t wanted, int64_t sub_queue, int64_t now_ms,
    array.array picked not None, int64_t at, int64_t last, int64_t size, int64_t max_bytes
):
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t* found = numbers_of(picked)
    cdef int64_t count = size_of(rows, QUEUE_WIDTH), more
    check_in(rows, QUEUE_WIDTH, row, count)
    check_in(picked, 1, at, last)
    while row < count and at < last:
        if wanted == WANT_ANY:
            takes = is_there(table + row * QUEUE_WIDTH, sub_queue)
        else:
            takes = is_ready(table + row * QUEUE_WIDTH, sub_queue, now_ms)
        if takes:
            more = table[row * QUEUE_WIDTH + M_STATE] >> SIZE_SHIFT
            if size + more > max_bytes and (size or at):
                return at, row, size
            found[at] = page_first + row
            size += more
            at += 1
        row += 1
    return at, row, size


def give_messages(
    array.array rows not None, int64_t page_first, array.array counts not None, int64_t at, int64_t last,
    int64_t marks, int64_t delivered, int64_t lock_number, bytes secret not None, int64_t until_ms,
    int64_t number_base, int64_t partition, array.array indexes not None, array.array out not None
):
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t* wanted = numbers_of(counts)
    cdef int64_t* places = numbers_of(indexes)
    cdef int64_t* given = numbers_of(out)
    cdef int64_t size = size_of(rows, QUEUE_WIDTH), row
    cdef const uint8_t* key
    check_in(counts, 1, at, last)
    check_in(indexes, 1, at, last)
    check_in(out, MESSAGE_WIDTH, at, last)
    key = secret_of(secret)
    while at < last:
        row = wanted[at] - page_first
        if row < 0 or row >= size:
            break
        places[at] = table[row * QUEUE_WIDTH + M_INDEX]
        give_row(
            table + row * QUEUE_WIDTH, wanted[at], marks, delivered, lock_number + at if lock_number else 0, key,
            until_ms, number_base, partition, given + at * MESSAGE_WIDTH,
        )
        at += 1
    return at


def message_tokens(array.array rows not None, int64_t first_row, int64_t last_row):
    cdef const int64_t* row = numbers_of(rows)
    cdef bytes tokens
    cdef uint8_t* out
    check_in(rows, MESSAGE_WIDTH, first_row, last_row)
    tokens = PyBytes_FromStringAndSize(NULL, (last_row - first_row) * TOKEN_BYTES)
    out = <uint8_t*>PyBytes_AS_STRING(tokens)
    row += first_row * MESSAGE_WIDTH
    for _ in range(last_row - first_row):
        store64(out, <uint64_t>row[Q_LOCK])
        store64(out + 8, <uint64_t>row[Q_LOCK_CHECK])
        out += TOKEN_BYTES
        row += MESSAGE_WIDTH
    return tokens


def read_tokens(tokens, bytes secret not None, int64_t first_number, int64_t next_number, array.array ordinals not None):
    cdef Py_buffer view
    cdef const uint8_t* key = secret_of(secret)
    cdef const uint8_t* token
    cdef int64_t* found = numbers_of(ordinals)
    cdef int64_t place
    cdef uint64_t number
    PyObject_GetBuffer(tokens, &view, PyBUF_SIMPLE)
    try:
        if view.len % TOKEN_BYTES or view.len // TOKEN_BYTES > len(ordinals):
            raise refusal(f"{view.len} bytes are no tokens of {len(ordinals)} locks")
        for place in range(view.len // TOKEN_BYTES):
            token = <const uint8_t*>view.buf + place * TOKEN_BYTES
            number = load64(token)
            found[place] = -1
            if number <= <uint64_t>MOST and first_number <= <int64_t>number < next_number:
                if check_of(key, <int64_t>number) == load64(token + 8):
                    found[place] = <int64_t>number - first_number
    finally:
        PyBuffer_Release(&view)


def find_locks(
    array.array locks not None, int64_t page_first, array.array ordinals not None, int64_t at, int64_t last,
    int64_t now_ms, array.array counts not None
):
    cdef int64_t* table = numbers_of(locks)
    cdef int64_t* wanted = numbers_of(ordinals)
    cdef int64_t* found = numbers_of(counts)
    cdef int64_t size = size_of(locks, LOCK_WIDTH), row
    check_in(ordinals, 1, at, last)
    check_in(counts, 1, at, last)
    while at < last:
        found[at] = 0
        if wanted[at] >= 0:
            row = wanted[at] - page_first
            if row < 0 or row >= size:
                break
            if table[row * LOCK_WIDTH + L_UNTIL] > now_ms:
                found[at] = table[row * LOCK_WIDTH + L_COUNT]
        at += 1
    return at


def mark_messages(
    array.array rows not None, int64_t page_first, array.array counts not None, int64_t at, int64_t last,
    array.array ordinals not None, int64_t first_number, bytearray codes not None
):
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t* wanted = numbers_of(counts)
    cdef int64_t* locks = numbers_of(ordinals)
    cdef int64_t* found
    cdef int64_t size = size_of(rows, QUEUE_WIDTH), row
    cdef uint8_t* answers = <uint8_t*>PyByteArray_AS_STRING(codes)
    check_in(counts, 1, at, last)
    check_in(ordinals, 1, at, last)
    if last > PyByteArray_GET_SIZE(codes):
        raise refusal(f"{len(codes)} codes have no room for {last}")
    while at < last:
        answers[at] = 1
        if wanted[at]:
            row = wanted[at] - page_first
            if row < 0 or row >= size:
                break
            found = table + row * QUEUE_WIDTH
            if (
                (found[M_STATE] & STATE_BITS) != GONE
                and (found[M_STATE] & (LOCKED | SETTLING)) == LOCKED
                and <uint64_t>found[M_LOCK] == <uint64_t>first_number + <uint64_t>locks[at]
            ):
                found[M_STATE] |= SETTLING
                answers[at] = 0
            else:
                wanted[at] = 0
        at += 1
    return at


def number_ranges(array.array numbers not None, int64_t first, int64_t last, array.array ranges not None):
    cdef int64_t* taken = numbers_of(numbers)
    cdef int64_t* out = numbers_of(ranges)
    cdef int64_t pairs = 0, at
    check_in(numbers, 1, first, last)
    check_in(ranges, 2, 0, last - first)
    for at in range(first, last):
        if taken[at] == 0:
            continue
        if pairs and out[2 * pairs - 2] + out[2 * pairs - 1] == taken[at]:
            out[2 * pairs - 1] += 1
        else:
            out[2 * pairs] = taken[at]
            out[2 * pairs + 1] = 1
            pairs += 1
    return pairs


def drop_messages(
    array.array rows not None, int64_t first_row, int64_t last_row, array.array tally not None,
    array.array locks not None, int64_t at
):
    cdef int64_t* found = numbers_of(rows) + first_row * QUEUE_WIDTH
    cdef int64_t* kinds = numbers_of(tally)
    cdef int64_t* numbers = numbers_of(locks)
    cdef int64_t row
    check_in(rows, QUEUE_WIDTH, first_row, last_row)
    check_in(tally, TALLY_WIDTH, 0, 1)
    check_in(locks, 1, at, at + last_row - first_row)
    for row in range(first_row, last_row):
        if (found[M_STATE] & STATE_BITS) != GONE:
            if found[M_STATE] & LOCKED:
                numbers[at] = found[M_LOCK]
                at += 1
            kinds[kind_of(found[M_STATE])] += 1
            kinds[T_SIZE] += found[M_STATE] >> SIZE_SHIFT
            kinds[T_MESSAGES] += 1
            found[M_STATE] = GONE
            found[M_LOCK] = 0
        found += QUEUE_WIDTH
    return at


def activate_messages(
    array.array rows not None, int64_t page_first, array.array counts not None, int64_t at, int64_t last,
    array.array tally not None, array.array out not None, int64_t out_row
):
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t* wanted = numbers_of(counts)
    cdef int64_t* kinds = numbers_of(tally)
    cdef int64_t* taken = numbers_of(out)
    cdef int64_t* found
    cdef int64_t size = size_of(rows, QUEUE_WIDTH), last_out = size_of(out, QUEUE_WIDTH), due_ms = -1, row, state
    check_in(counts, 1, at, last)
    check_in(tally, TALLY_WIDTH, 0, 1)
    check_in(out, QUEUE_WIDTH, out_row, last_out)
    while at < last and out_row < last_out:
        if wanted[at]:
            row = wanted[at] - page_first
            if row < 0 or row >= size:
                break
            found = table + row * QUEUE_WIDTH
            state = found[M_STATE]
            if (state & STATE_BITS) != GONE:
                kinds[kind_of(state)] += 1
                kinds[T_SIZE] += state >> SIZE_SHIFT
                kinds[T_MESSAGES] += 1
                found[M_STATE] = GONE
                found[M_LOCK] = 0
                memcpy(taken + out_row * QUEUE_WIDTH, found, QUEUE_WIDTH * sizeof(int64_t))
                taken[out_row * QUEUE_WIDTH + M_STATE] = (state & ~(<int64_t>(STATE_BITS | LOCKED | SETTLING))) | ACTIVE
                if found[M_EXPIRES] >= 0 and (due_ms < 0 or found[M_EXPIRES] < due_ms):
                    due_ms = found[M_EXPIRES]
                out_row += 1
        at += 1
    return at, out_row, due_ms


def end_locks(
    array.array locks not None, int64_t page_first, array.array ordinals not None, int64_t at, int64_t last
):
    cdef int64_t* table = numbers_of(locks)
    cdef int64_t* wanted = numbers_of(ordinals)
    cdef int64_t size = size_of(locks, LOCK_WIDTH), row, ended = 0
    check_in(ordinals, 1, at, last)
    while at < last:
        row = wanted[at] - page_first
        if row < 0 or row >= size:
            break
        ended += table[row * LOCK_WIDTH + L_COUNT] != 0
        table[row * LOCK_WIDTH + L_COUNT] = 0
        at += 1
    return at, ended


def count_deliveries(array.array rows not None, int64_t first_row, int64_t last_row, int64_t change):
    cdef int64_t* found = numbers_of(rows) + first_row * QUEUE_WIDTH
    cdef int64_t row
    check_in(rows, QUEUE_WIDTH, first_row, last_row)
    for row in range(first_row, last_row):
        if (found[M_STATE] & STATE_BITS) != GONE and not found[M_STATE] & SUB_QUEUE_BITS:
            found[M_STATE] = with_deliveries(found[M_STATE], change)
        found += QUEUE_WIDTH


def unlock_messages(
    array.array rows not None, int64_t page_first, array.array counts not None, int64_t at, int64_t last,
    int64_t marks, int64_t change, int64_t most_deliveries, array.array over not None
):
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t* wanted = numbers_of(counts)
    cdef int64_t* often = numbers_of(over)
    cdef int64_t* found
    cdef int64_t size = size_of(rows, QUEUE_WIDTH), row, state, count = 0, lowest = -1, due_ms = -1
    check_in(counts, 1, at, last)
    check_in(over, 1, 0, last - at)
    while at < last:
        if not wanted[at]:
            at += 1
            continue
        row = wanted[at] - page_first
        if row < 0 or row >= size:
            break
        found = table + row * QUEUE_WIDTH
        if (found[M_STATE] & STATE_BITS) != GONE:
            state = found[M_STATE] & ~marks
            if not state & SUB_QUEUE_BITS:
                state = with_deliveries(state, change)
            if marks & LOCKED:
                found[M_LOCK] = 0
            is_active = (state & (STATE_BITS | LOCKED | SETTLING)) == ACTIVE
            is_main = is_active and not state & SUB_QUEUE_BITS
            if is_main and deliveries_of(state) >= most_deliveries:
                state |= SETTLING
                often[count] = wanted[at]
                count += 1
            elif is_active:
                if lowest < 0 or row < lowest:
                    lowest = row
                if is_main and found[M_EXPIRES] >= 0 and (due_ms < 0 or found[M_EXPIRES] < due_ms):
                    due_ms = found[M_EXPIRES]
            found[M_STATE] = state
        at += 1
    return at, count, lowest, due_ms


def due_messages(
    array.array rows not None, int64_t page_first, int64_t state, int64_t now_ms, array.array picked not None
):
    cdef int64_t* found = numbers_of(rows)
    cdef int64_t* out = numbers_of(picked)
    cdef int64_t room = len(picked), count = 0, due_ms = -1, row, time_ms
    cdef int column = M_ENQUEUED if state == SCHEDULED else M_EXPIRES
    if state != ACTIVE and state != SCHEDULED:
        raise refusal(f"messages of state {state} have no time")
    for row in range(size_of(rows, QUEUE_WIDTH)):
        time_ms = found[column]
        if (found[M_STATE] & READY_BITS) == state and time_ms >= 0:
            if time_ms <= now_ms and count < room:
                out[count] = page_first + row
                count += 1
            elif due_ms < 0 or time_ms < due_ms:
                due_ms = time_ms
        found += QUEUE_WIDTH
    return count, due_ms


def ended_locks(array.array locks not None, int64_t page_first, int64_t now_ms, array.array picked not None):
    cdef int64_t* found = numbers_of(locks)
    cdef int64_t* out = numbers_of(picked)
    cdef int64_t room = len(picked), count = 0, due_ms = -1, row
    for row in range(size_of(locks, LOCK_WIDTH)):
        if found[L_COUNT]:
            if found[L_UNTIL] <= now_ms and count < room:
                out[count] = page_first + row
                count += 1
            elif due_ms < 0 or found[L_UNTIL] < due_ms:
                due_ms = found[L_UNTIL]
        found += LOCK_WIDTH
    return count, due_ms


def least_index(array.array rows not None):
    cdef int64_t* found = numbers_of(rows)
    cdef int64_t least = -1, row
    for row in range(size_of(rows, QUEUE_WIDTH)):
        if (found[M_STATE] & STATE_BITS) != GONE and (least < 0 or found[M_INDEX] < least):
            least = found[M_INDEX]
        found += QUEUE_WIDTH
    return least


def clear_marks(array.array rows not None):
    cdef int64_t* found = numbers_of(rows)
    cdef int64_t row
    cdef int column
    for row in range(size_of(rows, QUEUE_WIDTH)):
        if (found[M_STATE] & STATE_BITS) != GONE:
            found[M_STATE] &= ~(<int64_t>(LOCKED | SETTLING))
            found[M_LOCK] = 0
        else:
            for column in range(QUEUE_WIDTH):
                found[column] = 0
        found += QUEUE_WIDTH


def pack_rows(array.array rows not None, int64_t width, bytearray out not None):
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t used = PyByteArray_GET_SIZE(out), column, count
    cdef uint8_t* written
    if width < 1 or len(rows) % width:
        raise refusal(f"{len(rows)} numbers are no rows of {width}")
    count = len(rows) // width
    for column in range(width):
        written = grow(out, used + PAIR_BYTES * count)
        used = pack_column(table + column, count, width, written, used)
    PyByteArray_Resize(out, used)


def unpack_rows(data, int64_t start, int64_t end, int64_t width, array.array rows not None):
    cdef Py_buffer view
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t at = start, column
    if width < 1 or len(rows) % width:
        raise refusal(f"{len(rows)} numbers are no rows of {width}")
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        for column in range(width):
            at = unpack_column(<const uint8_t*>view.buf, at, end, table + column, len(rows) // width, width)
            if at == NOWHERE:
                return -1
        return at
    finally:
        PyBuffer_Release(&view)


def collect_records(
    run, array.array indexes not None, int64_t at, int64_t last, array.array rows not None, bytearray out not None
):
    cdef Py_buffer view
    cdef Batch batch
    cdef int64_t* wanted = numbers_of(indexes)
    cdef int64_t* table = numbers_of(rows)
    cdef int64_t used = PyByteArray_GET_SIZE(out), batch_at = 0, record = 0, ordinal = 0, stop
    cdef const uint8_t* data
    cdef bint is_open = False
    check_in(indexes, 1, at, last)
    check_in(rows, MESSAGE_WIDTH, at, last)
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t*>view.buf
        while at < last:
            # Records are nearly always wanted in their order: the walk goes on, and begins anew where it cannot.
            if not (is_open and holds(&batch, wanted[at])):
                batch_at = 0
                is_open = False
                while batch_at < view.len:
                    if open_batch(data, view.len, batch_at, &batch) == NOWHERE:
                        raise refusal(f"no stored batch at {batch_at} of {view.len} bytes")
                    if holds(&batch, wanted[at]):
                        is_open = True
                        break
                    batch_at = batch.end
                if not is_open:
                    break
                record = batch.records
                ordinal = 0
            elif ordinal > wanted[at] - <int64_t>batch.first_index:
                record = batch.records
                ordinal = 0
            while True:
                stop = record_end(data, record, &batch)
                if stop == NOWHERE:
                    raise refusal(f"no record at {record} of the batch at {batch_at}")
                if ordinal == wanted[at] - <int64_t>batch.first_index:
                    break
                record = stop
                ordinal += 1
            table[at * MESSAGE_WIDTH + Q_RECORD] = used
            memcpy(grow(out, max(used + stop - record, min(2 * used, used + view.len))) + used, data + record, stop - record)
            used += stop - record
            at += 1
        return at
    finally:
        PyBuffer_Release(&view)
        PyByteArray_Resize(out, used)


cdef inline bint holds(Batch* batch, int64_t index) noexcept:
    return (
        batch.kind == KIND_EVENTS
        and index >= 0
        and batch.first_index <= <uint64_t>index
        and <uint64_t>index - batch.first_index < <uint64_t>batch.count
    )
