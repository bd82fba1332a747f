"""Single rows of a queue's messages, compiled. The twin is queue_rows.py."""

from libc.stdint cimport int64_t, uint8_t

from hubweir.kernels.contract cimport *
from hubweir.kernels.queue.tokens cimport check_of
from hubweir.kernels.queue_contract cimport *

cdef enum:
    KIND_BITS = 15  # state and sub-queue
    READY_BITS = 63  # these, and the marks


cdef inline int64_t deliveries_of(int64_t state) noexcept nogil:
    return (state >> DELIVERIES_SHIFT) & DELIVERIES_MOST


cdef inline int64_t with_deliveries(int64_t state, int64_t change) noexcept nogil:
    cdef int64_t before = deliveries_of(state), after = before + change
    after = 0 if after < 0 else (DELIVERIES_MOST if after > DELIVERIES_MOST else after)
    return state + (after - before) * (1 << DELIVERIES_SHIFT)


cdef inline int is_ready(const int64_t* row, int64_t sub_queue, int64_t now_ms) noexcept nogil:
    if (row[M_STATE] & READY_BITS) != (ACTIVE | (sub_queue << SUB_QUEUE_SHIFT)):
        return 0
    return sub_queue != 0 or row[M_EXPIRES] < 0 or row[M_EXPIRES] > now_ms


cdef inline int is_there(const int64_t* row, int64_t sub_queue) noexcept nogil:
    return (row[M_STATE] & STATE_BITS) != GONE and (row[M_STATE] & SUB_QUEUE_BITS) == (sub_queue << SUB_QUEUE_SHIFT)


cdef inline void give_row(
    int64_t* row, int64_t count, int64_t marks, int64_t delivered, int64_t lock, const uint8_t* secret,
    int64_t until_ms, int64_t number_base, int64_t partition, int64_t* out
) noexcept nogil:
    cdef int64_t state = row[M_STATE]
    out[Q_RECORD] = 0
    out[Q_SEQUENCE_NUMBER] = number_base + count
    out[Q_ENQUEUED_MS] = row[M_ENQUEUED]
    out[Q_LOCKED_UNTIL_MS] = until_ms
    out[Q_DELIVERY_COUNT] = deliveries_of(state)
    out[Q_STATE] = 1 if (state & STATE_BITS) == DEFERRED else (2 if (state & STATE_BITS) == SCHEDULED else 0)
    out[Q_LOCK] = lock
    out[Q_LOCK_CHECK] = <int64_t>check_of(secret, lock) if lock else 0
    out[Q_TTL_MS] = row[M_EXPIRES] - row[M_ENQUEUED] if row[M_EXPIRES] >= 0 else -1
    out[Q_EXPIRES_MS] = row[M_EXPIRES]
    out[Q_ENQUEUE_NUMBER] = -1
    out[Q_PARTITION] = partition
    out[Q_ID_NUMBER] = number_base + row[M_FIRST]
    if lock and (marks & LOCKED):
        row[M_LOCK] = lock
    row[M_STATE] = with_deliveries(state | marks, delivered)


cdef inline int kind_of(int64_t state) noexcept nogil:
    """The column of a tally row."""
    cdef int64_t sub_queue = (state & SUB_QUEUE_BITS) >> SUB_QUEUE_SHIFT
    if (state & STATE_BITS) == DEFERRED and sub_queue == 0:
        return T_DEFERRED
    if (state & STATE_BITS) == SCHEDULED:
        return T_SCHEDULED
    return <int>(T_ACTIVE + (2 if sub_queue > 2 else sub_queue))
