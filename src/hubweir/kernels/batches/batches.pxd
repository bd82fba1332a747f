"""Open, walk and check stored batches, compiled. The twin is batches.py."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from hubweir.kernels.buffers.bytes cimport NOWHERE, load16, load32, load64
from hubweir.kernels.stored_batch cimport (
    AT_COUNT, AT_ENQUEUED_TIME, AT_FIRST_INDEX, AT_FIRST_OFFSET, AT_FLAGS, AT_KIND, AT_LENGTH, AT_NAME_LENGTH,
    AT_PRODUCER_LENGTH, HEADER_SIZE, KIND_EVENTS, MAGIC, OPERATION_HEADER_SIZE, PRODUCER_SIZE, RECORD_HEADER_SIZE,
)

cdef struct Batch:
    int kind
    uint16_t flags
    int64_t count
    int64_t name          # where the name block starts, and its bytes
    int64_t name_length
    int64_t records       # where the first record starts
    int64_t end
    uint64_t first_index
    uint64_t first_offset
    uint64_t enqueued_time


cdef inline int64_t records_start(const uint8_t* data, int64_t at) noexcept nogil:
    """Where the records of the batch at `at` start; NOWHERE when its parts do not fit into its length."""
    cdef int64_t name_length = load32(data + at + AT_NAME_LENGTH)
    cdef int64_t producer_length = load32(data + at + AT_PRODUCER_LENGTH)
    if producer_length != 0 and producer_length != PRODUCER_SIZE:
        return NOWHERE
    if HEADER_SIZE + name_length + producer_length > <int64_t>load32(data + at + AT_LENGTH):
        return NOWHERE
    return at + HEADER_SIZE + name_length + producer_length


cdef inline int open_batch(const uint8_t* data, int64_t size, int64_t at, Batch* batch) noexcept nogil:
    """Fill batch from the stored batch at `at`; NOWHERE when none lies there whole."""
    if at < 0 or at > size - HEADER_SIZE or load32(data + at) != MAGIC:
        return NOWHERE
    batch.records = records_start(data, at)
    if batch.records == NOWHERE or <int64_t>load32(data + at + AT_LENGTH) > size - at:
        return NOWHERE
    batch.kind = data[at + AT_KIND]
    batch.flags = load16(data + at + AT_FLAGS)
    batch.count = load32(data + at + AT_COUNT)
    batch.name = at + HEADER_SIZE
    batch.name_length = load32(data + at + AT_NAME_LENGTH)
    batch.end = at + load32(data + at + AT_LENGTH)
    batch.first_index = load64(data + at + AT_FIRST_INDEX)
    batch.first_offset = load64(data + at + AT_FIRST_OFFSET)
    batch.enqueued_time = load64(data + at + AT_ENQUEUED_TIME)
    return 0


cdef inline int64_t record_end(const uint8_t* data, int64_t at, Batch* batch) noexcept nogil:
    """Where the record at `at` ends; NOWHERE when it does not lie in the batch."""
    cdef int64_t least = RECORD_HEADER_SIZE if batch.kind == KIND_EVENTS else OPERATION_HEADER_SIZE
    cdef int64_t length
    if at < batch.records or at > batch.end - least:
        return NOWHERE
    length = load32(data + at)
    if length < least or length > batch.end - at:
        return NOWHERE
    return at + length
