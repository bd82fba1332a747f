"""Stored batches as the payload of deliveries, without what is the service's own. The twin: deliver_batches.py."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from hubweir.kernels.batches.batches cimport Batch, open_batch, record_end
from hubweir.kernels.buffers.bytes cimport NOWHERE, load32, store16, store32, store64
from hubweir.kernels.buffers.crc cimport crc
from hubweir.kernels.stored_batch cimport (
    AT_COUNT, AT_ENQUEUED_TIME, AT_FIRST_INDEX, AT_FIRST_OFFSET, AT_FLAGS, AT_KIND, AT_LENGTH, AT_MAGIC,
    AT_NAME_LENGTH, AT_PAYLOAD_CRC, AT_VERSION, CRC_SEED, FLAG_NAME_IS_KEY, FLAG_NAME_IS_PUBLISHER, HEADER_SIZE,
    KIND_EVENTS, MAGIC, VERSION,
)
from hubweir.kernels.frames.transfers cimport Frames, put

cdef struct Place:
    # A RunCursor of contract.py.
    int64_t batch_at
    int64_t record_at
    int64_t ordinal


cdef struct Load:
    # What goes into one delivery: the events from one place up to another.
    Place stop
    int64_t events
    int64_t size


cdef inline int64_t fitting(
    const uint8_t* data, Batch* batch, int64_t* at, int64_t* ordinal, int64_t room, int64_t most
) noexcept nogil:
    """Move at and ordinal behind the records that room bytes take, at most `most`; bytes of them, NOWHERE if damaged."""
    cdef int64_t begun = at[0], stop
    if batch.count - ordinal[0] <= most and batch.end - begun <= room:
        ordinal[0] = batch.count
        at[0] = batch.end
        return batch.end - begun
    while ordinal[0] < batch.count and most > 0:
        stop = record_end(data, at[0], batch)
        if stop == NOWHERE:
            return NOWHERE
        if stop - begun > room:
            break
        at[0] = stop
        ordinal[0] += 1
        most -= 1
    if ordinal[0] == batch.count and at[0] != batch.end:
        return NOWHERE  # put_load takes the records of a batch that it takes to its end up to there
    return at[0] - begun


cdef inline int load_delivery(
    const uint8_t* data, int64_t size, Place place, int64_t room, int64_t most, Load* load
) noexcept nogil:
    """Choose the events of the next delivery: what room bytes take, whole batches where these fill half of it, but one
    event at least; NOWHERE when one is damaged."""
    cdef Batch batch
    cdef int64_t before, records, head
    load.stop = place
    load.events = load.size = 0
    while load.stop.batch_at < size and load.events < most:
        if open_batch(data, size, load.stop.batch_at, &batch) == NOWHERE:
            return NOWHERE
        if batch.kind == KIND_EVENTS and load.stop.ordinal < batch.count:
            if load.stop.record_at == 0:
                load.stop.record_at = batch.records
            if load.stop.record_at < batch.records or load.stop.record_at > batch.end:
                return NOWHERE
            before = load.stop.ordinal
            head = HEADER_SIZE + batch.name_length
            if load.events > 0 and 2 * load.size >= room and head + batch.end - load.stop.record_at > room - load.size:
                break  # a batch that goes whole keeps its checksum: better than a full frame
            records = fitting(
                data, &batch, &load.stop.record_at, &load.stop.ordinal, room - load.size - head, most - load.events
            )
            if records == 0 and load.events == 0:
                records = fitting(data, &batch, &load.stop.record_at, &load.stop.ordinal, batch.end, 1)
            if records == NOWHERE:
                return NOWHERE
            if load.stop.ordinal > before:
                load.size += head + records
                load.events += load.stop.ordinal - before
            if load.stop.ordinal < batch.count:
                return 0
        load.stop.batch_at, load.stop.record_at, load.stop.ordinal = batch.end, 0, 0
    return 0


cdef inline void put_batch(
    const uint8_t* data, Batch* batch, Place* place, int64_t stop_at, int64_t stop, Frames* frames
) noexcept nogil:
    """Append the batch's events from place up to the one numbered stop, under a header that tells nothing else."""
    cdef uint8_t header[HEADER_SIZE]
    cdef const uint8_t* stored = data + batch.name - HEADER_SIZE
    cdef int64_t size = HEADER_SIZE + batch.name_length + stop_at - place.record_at
    cdef uint32_t checksum
    if batch.end - batch.name + HEADER_SIZE == size:  # as it is stored: nothing to leave out
        checksum = load32(stored + AT_PAYLOAD_CRC)
    else:
        checksum = crc(CRC_SEED, data + batch.name, batch.name_length)
        checksum = crc(checksum, data + place.record_at, stop_at - place.record_at)
    memset(header, 0, HEADER_SIZE)
    store32(header + AT_MAGIC, <uint32_t>MAGIC)
    header[AT_VERSION] = VERSION
    header[AT_KIND] = KIND_EVENTS
    store16(header + AT_FLAGS, batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER))
    store32(header + AT_LENGTH, <uint32_t>size)
    store32(header + AT_COUNT, <uint32_t>(stop - place.ordinal))
    store32(header + AT_NAME_LENGTH, <uint32_t>batch.name_length)
    store32(header + AT_PAYLOAD_CRC, checksum)
    store64(header + AT_FIRST_INDEX, batch.first_index + <uint64_t>place.ordinal)
    store64(header + AT_FIRST_OFFSET, batch.first_offset + <uint64_t>(place.record_at - batch.records))
    store64(header + AT_ENQUEUED_TIME, batch.enqueued_time)
    put(frames, header, HEADER_SIZE)
    put(frames, data + batch.name, batch.name_length)
    put(frames, data + place.record_at, stop_at - place.record_at)


cdef inline void put_load(const uint8_t* data, int64_t size, Place* place, Load* load, Frames* frames) noexcept nogil:
    """Append the events that load_delivery chose, and move place behind them."""
    cdef Batch batch
    cdef bint is_last
    while place.batch_at < load.stop.batch_at or (
        place.batch_at == load.stop.batch_at and place.ordinal < load.stop.ordinal
    ):
        if open_batch(data, size, place.batch_at, &batch) == NOWHERE:
            break  # load_delivery has been here: it is there
        is_last = place.batch_at == load.stop.batch_at
        if batch.kind == KIND_EVENTS and place.ordinal < batch.count:
            if place.record_at == 0:
                place.record_at = batch.records
            if is_last:
                put_batch(data, &batch, place, load.stop.record_at, load.stop.ordinal, frames)
            else:
                put_batch(data, &batch, place, batch.end, batch.count, frames)
        if is_last:
            break
        place.batch_at, place.record_at, place.ordinal = batch.end, 0, 0
    place[0] = load.stop
