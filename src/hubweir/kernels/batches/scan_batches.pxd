"""Check stored batches against their checksums, compiled: what recovery runs. The twin is scan_batches.py."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from hubweir.kernels.batches.batches cimport records_start
from hubweir.kernels.buffers.bytes cimport NOWHERE, load16, load32, load64
from hubweir.kernels.contract cimport *
from hubweir.kernels.buffers.crc cimport crc
from hubweir.kernels.stored_batch cimport *


cdef inline int check_batch(const uint8_t* data, int64_t at, int64_t end, uint64_t nonce) noexcept nogil:
    """What stands at `at`, as a status of scan_batches."""
    cdef int64_t left = end - at, length
    cdef int64_t index
    cdef uint32_t magic = MAGIC
    for index in range(min(left, 4)):
        if data[at + index] != <uint8_t>(magic >> (24 - 8 * index)):
            return BATCHES_DAMAGED
    if left < HEADER_SIZE:
        return BATCHES_PARTIAL
    if nonce:
        if crc(CRC_SEED, data + at, AT_HEADER_CRC) != load32(data + at + AT_HEADER_CRC):
            return BATCHES_DAMAGED
        if load64(data + at + AT_NONCE) != nonce:
            return BATCHES_DAMAGED
    if data[at + AT_VERSION] > VERSION:
        return BATCHES_NEWER
    if data[at + AT_VERSION] < VERSION or data[at + AT_KIND] < KIND_EVENTS or data[at + AT_KIND] > KIND_CONTROL:
        return BATCHES_DAMAGED
    if records_start(data, at) == NOWHERE:
        return BATCHES_DAMAGED
    length = load32(data + at + AT_LENGTH)
    if length > left:
        return BATCHES_PARTIAL
    if crc(CRC_SEED, data + at + HEADER_SIZE, length - HEADER_SIZE) != load32(data + at + AT_PAYLOAD_CRC):
        return BATCHES_DAMAGED
    return BATCHES_OK


cdef inline void fill_row(const uint8_t* data, int64_t at, int64_t* row) noexcept nogil:
    """Write the batch row of a sound batch."""
    row[B_POSITION] = at
    row[B_LENGTH] = load32(data + at + AT_LENGTH)
    row[B_KIND] = data[at + AT_KIND]
    row[B_FLAGS] = load16(data + at + AT_FLAGS)
    row[B_COUNT] = load32(data + at + AT_COUNT)
    row[B_FIRST_INDEX] = <int64_t>load64(data + at + AT_FIRST_INDEX)
    row[B_FIRST_OFFSET] = <int64_t>load64(data + at + AT_FIRST_OFFSET)
    row[B_ENQUEUED_TIME] = <int64_t>load64(data + at + AT_ENQUEUED_TIME)
    row[B_NUMBER] = <int64_t>load64(data + at + AT_BATCH_NUMBER)
    row[B_DURABLE_UPTO] = <int64_t>(<uint64_t>row[B_NUMBER] - load32(data + at + AT_UNSYNCED))
    row[B_WRITER_EPOCH] = load32(data + at + AT_WRITER_EPOCH)
    row[B_RECORDS] = records_start(data, at)


cdef inline int scan_run(
    const uint8_t* data, int64_t* at, int64_t end, uint64_t nonce, int64_t* table, int64_t room, int64_t* rows
) noexcept nogil:
    cdef int status
    while rows[0] < room and at[0] < end:
        status = check_batch(data, at[0], end, nonce)
        if status != BATCHES_OK:
            return status
        fill_row(data, at[0], table + rows[0] * BATCH_WIDTH)
        rows[0] += 1
        at[0] += load32(data + at[0] + AT_LENGTH)
    return BATCHES_OK
