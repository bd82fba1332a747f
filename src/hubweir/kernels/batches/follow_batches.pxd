"""Follow the stored batches of a log in one pass, compiled: what a start runs. The twin is follow_batches.py."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from hubweir.kernels.batches.batches cimport records_start
from hubweir.kernels.buffers.bytes cimport load16, load32, load64
from hubweir.kernels.contract cimport *
from hubweir.kernels.batches.scan_batches cimport check_batch, fill_row
from hubweir.kernels.stored_batch cimport *

cdef struct Room:
    int64_t* table      # batch rows; NULL when none are wanted
    int64_t rows        # room, then taken
    int64_t taken
    int64_t* entries    # sparse index rows: room, then written
    int64_t most_entries
    int64_t written


cdef inline int follow_run(const uint8_t* data, int64_t end, uint64_t nonce, int64_t* walk, Room* room) noexcept nogil:
    """Take batch after batch; the status of follow_batches."""
    cdef int64_t base = walk[W_POSITION], at = 0
    cdef int status
    while at < end:
        if room.table != NULL and room.taken == room.rows:
            return BATCHES_OK
        status = check_batch(data, at, end, nonce)
        if status != BATCHES_OK:
            return status
        if not continues(data + at, walk):
            return BATCHES_DAMAGED
        if <int64_t>load64(data + at + AT_FIRST_INDEX) >= walk[W_LIMIT]:
            return BATCHES_LIMIT
        if base + at >= walk[W_NEXT_ENTRY]:
            if room.written == room.most_entries:
                return BATCHES_OK
            note_entry(data + at, walk, room)
        if room.table != NULL:
            fill_row(data, at, room.table + room.taken * BATCH_WIDTH)
        if room.taken == 0:
            walk[W_FIRST_NUMBER] = <int64_t>load64(data + at + AT_BATCH_NUMBER)
        take_batch(data + at, walk)
        room.taken += 1
        at = walk[W_POSITION] - base
    return BATCHES_OK


cdef inline bint continues(const uint8_t* batch, const int64_t* walk) noexcept nogil:
    """Whether a sound batch is one that may follow; of a control batch also whether what it says is all there."""
    cdef int64_t records
    if <int64_t>load64(batch + AT_FIRST_INDEX) != walk[W_INDEX]:
        return False
    if <int64_t>load64(batch + AT_FIRST_OFFSET) != walk[W_OFFSET]:
        return False
    if <int64_t>load64(batch + AT_BATCH_NUMBER) < walk[W_NUMBER]:
        return False
    if batch[AT_KIND] == KIND_CONTROL:
        records = records_start(batch, 0)
        if control_kind(batch, records) == CONTROL_SKIPPED:
            return load32(batch + AT_LENGTH) - records >= SKIPPED_SIZE
    return True


cdef inline int control_kind(const uint8_t* batch, int64_t records) noexcept nogil:
    return batch[records] if records < <int64_t>load32(batch + AT_LENGTH) else 0


cdef inline void note_entry(const uint8_t* batch, int64_t* walk, Room* room) noexcept nogil:
    cdef int64_t* entry = room.entries + room.written * SPARSE_WIDTH
    entry[S_POSITION] = walk[W_POSITION]
    entry[S_INDEX] = walk[W_INDEX]
    entry[S_OFFSET] = walk[W_OFFSET]
    entry[S_TIME] = <int64_t>load64(batch + AT_ENQUEUED_TIME)
    room.written += 1
    walk[W_NEXT_ENTRY] = walk[W_POSITION] + walk[W_ENTRY_BYTES]


cdef inline void take_batch(const uint8_t* batch, int64_t* walk) noexcept nogil:
    """Move the walk over one batch, which continues it."""
    cdef int64_t number = <int64_t>load64(batch + AT_BATCH_NUMBER), count = load32(batch + AT_COUNT)
    cdef int64_t durable = <int64_t>(<uint64_t>number - load32(batch + AT_UNSYNCED))
    cdef int64_t records = records_start(batch, 0), length = load32(batch + AT_LENGTH)
    cdef bint is_control = batch[AT_KIND] == KIND_CONTROL
    cdef int control = 0
    if durable > walk[W_DURABLE_UPTO]:
        walk[W_DURABLE_UPTO] = durable
    if not load16(batch + AT_FLAGS) & FLAG_CONTINUES:
        walk[W_CHAIN_POSITION] = -1
    elif walk[W_CHAIN_POSITION] < 0:
        walk[W_CHAIN_POSITION] = walk[W_POSITION]
        walk[W_CHAIN_INDEX] = walk[W_INDEX]
        walk[W_CHAIN_OFFSET] = walk[W_OFFSET]
        walk[W_CHAIN_NUMBER] = number
        walk[W_BEFORE_BATCH] = walk[W_LAST_BATCH]
        walk[W_BEFORE_TIME] = walk[W_LAST_TIME]
    if count:
        walk[W_LAST_BATCH] = walk[W_POSITION]
        walk[W_LAST_TIME] = <int64_t>load64(batch + AT_ENQUEUED_TIME)
    elif is_control:
        control = control_kind(batch, records)
    if control != CONTROL_IDLE_MARK:
        walk[W_IS_CLOSED] = 0
        walk[W_MARKS_FROM] = -1
    else:
        walk[W_IS_CLOSED] = length - records == 2 and batch[records + 1] == MARK_CLOSED
        if walk[W_MARKS_FROM] < 0:
            walk[W_MARKS_FROM] = walk[W_POSITION]
    if not is_control:
        walk[W_INDEX] = <int64_t>(<uint64_t>walk[W_INDEX] + <uint64_t>count)
        walk[W_OFFSET] = <int64_t>(<uint64_t>walk[W_OFFSET] + <uint64_t>(length - records))
    elif control_kind(batch, records) == CONTROL_SKIPPED:
        walk[W_INDEX] = <int64_t>load64(batch + records + AT_SKIPPED_INDEX)
        walk[W_OFFSET] = <int64_t>load64(batch + records + AT_SKIPPED_OFFSET)
    walk[W_NUMBER] = <int64_t>(<uint64_t>number + 1)
    walk[W_POSITION] += length
