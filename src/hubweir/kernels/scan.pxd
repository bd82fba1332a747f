"""Check stored batches against their checksums, compiled: what recovery runs. The twin is in pure_batches.py."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from hubweir.kernels.batches cimport records_start
from hubweir.kernels.bytes cimport NOWHERE, load16, load32, load64
from hubweir.kernels.contract cimport *
from hubweir.kernels.crc cimport crc
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


cdef inline int scan_run(
    const uint8_t* data, int64_t* at, int64_t end, uint64_t nonce, int64_t* table, int64_t room, int64_t* rows
) noexcept nogil:
    cdef int status
    cdef int64_t* row
    while rows[0] < room and at[0] < end:
        status = check_batch(data, at[0], end, nonce)
        if status != BATCHES_OK:
            return status
        row = table + rows[0] * BATCH_WIDTH
        row[B_POSITION] = at[0]
        row[B_LENGTH] = load32(data + at[0] + AT_LENGTH)
        row[B_KIND] = data[at[0] + AT_KIND]
        row[B_FLAGS] = load16(data + at[0] + AT_FLAGS)
        row[B_COUNT] = load32(data + at[0] + AT_COUNT)
        row[B_FIRST_INDEX] = <int64_t>load64(data + at[0] + AT_FIRST_INDEX)
        row[B_FIRST_OFFSET] = <int64_t>load64(data + at[0] + AT_FIRST_OFFSET)
        row[B_ENQUEUED_TIME] = <int64_t>load64(data + at[0] + AT_ENQUEUED_TIME)
        row[B_DURABLE_UPTO] = <int64_t>load64(data + at[0] + AT_DURABLE_UPTO)
        row[B_WRITER_EPOCH] = load32(data + at[0] + AT_WRITER_EPOCH)
        row[B_RECORDS] = records_start(data, at[0])
        rows[0] += 1
        at[0] += row[B_LENGTH]
    return BATCHES_OK
