# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels that make and read records: deliveries in, stored batches out and checked. The twins: pure.py.

The work is done by `nogil noexcept` functions on pointers that answer with a code; the wrappers at the end borrow the
buffers, check the call and raise. All bytes of a peer are read through sections.pxd and bytes.pxd.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from hubweir.kernels.batches cimport Batch, open_batch, record_end, records_start
from hubweir.kernels.buffers cimport borrow_table, check_range, check_rows, grow, refusal, rows_of
from hubweir.kernels.bytes cimport NOWHERE, load16, load32, load64, store32
from hubweir.kernels.contract cimport *
from hubweir.kernels.sections cimport (
    APPLICATION_PROPERTIES, BITS_BODY, DATA, DELIVERY_ANNOTATIONS, FOOTER, HEADER, MESSAGE_ANNOTATIONS, PROPERTIES,
    Items, Message, Section, compound, is_name, read_message, read_section, skip_value, variable,
)
from hubweir.kernels.stored_batch cimport *

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    /* CRC-32C, polynomial 0x1EDC6F41 reflected: eight tables where the processor has no instruction for it. */
    static uint32_t hubweir_crc_table[8][256];

    static void hubweir_crc_prepare(void) {
        for (int i = 0; i < 256; i++) {
            uint32_t value = (uint32_t)i;
            for (int bit = 0; bit < 8; bit++) value = (value >> 1) ^ (0x82F63B78u & (0u - (value & 1u)));
            hubweir_crc_table[0][i] = value;
        }
        for (int i = 0; i < 256; i++)
            for (int t = 1; t < 8; t++) {
                uint32_t before = hubweir_crc_table[t - 1][i];
                hubweir_crc_table[t][i] = (before >> 8) ^ hubweir_crc_table[0][before & 0xFF];
            }
    }

    static uint32_t hubweir_crc_by_table(uint32_t crc, const uint8_t *p, size_t size) {
        for (; size >= 8; size -= 8, p += 8) {
            crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
            crc = hubweir_crc_table[7][crc & 0xFF] ^ hubweir_crc_table[6][crc >> 8 & 0xFF]
                ^ hubweir_crc_table[5][crc >> 16 & 0xFF] ^ hubweir_crc_table[4][crc >> 24]
                ^ hubweir_crc_table[3][p[4]] ^ hubweir_crc_table[2][p[5]]
                ^ hubweir_crc_table[1][p[6]] ^ hubweir_crc_table[0][p[7]];
        }
        for (; size; size--, p++) crc = (crc >> 8) ^ hubweir_crc_table[0][(crc ^ *p) & 0xFF];
        return crc;
    }

    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    __attribute__((target("sse4.2")))
    static uint32_t hubweir_crc_by_instruction(uint32_t crc, const uint8_t *p, size_t size) {
        uint64_t wide = crc;
        for (; size >= 8; size -= 8, p += 8) {
            uint64_t word;
            memcpy(&word, p, 8);
            wide = __builtin_ia32_crc32di(wide, word);
        }
        crc = (uint32_t)wide;
        for (; size; size--, p++) crc = __builtin_ia32_crc32qi(crc, *p);
        return crc;
    }
    static int hubweir_crc_has_instruction(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("sse4.2") != 0;
    }
    #else
    #define hubweir_crc_by_instruction hubweir_crc_by_table
    static int hubweir_crc_has_instruction(void) { return 0; }
    #endif
    """
    void crc_prepare "hubweir_crc_prepare"()
    uint32_t crc_by_table "hubweir_crc_by_table"(uint32_t crc, const uint8_t* p, size_t size) noexcept nogil
    uint32_t crc_by_instruction "hubweir_crc_by_instruction"(uint32_t crc, const uint8_t* p, size_t size) noexcept nogil
    int crc_has_instruction "hubweir_crc_has_instruction"()

crc_prepare()
cdef bint HAS_INSTRUCTION = crc_has_instruction()

cdef const char* PARTITION_KEY = b"x-opt-partition-key"
cdef enum:
    GROW = -1  # ingest needs more space in out; not a status, the wrapper grows it and goes on

cdef struct Records:
    # The end of out while records are appended: what was there before the call, what is used, what there is.
    uint8_t* out
    int64_t begun
    int64_t used
    int64_t capacity
    int64_t room
    int64_t needed
    int64_t events


cdef uint32_t crc(uint32_t seed, const uint8_t* data, int64_t size) noexcept nogil:
    cdef uint32_t value = seed ^ <uint32_t>0xFFFFFFFF
    if HAS_INSTRUCTION:
        return crc_by_instruction(value, data, <size_t>size) ^ <uint32_t>0xFFFFFFFF
    return crc_by_table(value, data, <size_t>size) ^ <uint32_t>0xFFFFFFFF


cdef inline uint32_t position(int64_t at, int64_t start) noexcept nogil:
    return <uint32_t>ABSENT if at == NOWHERE else <uint32_t>(at - start)


cdef int append_record(const uint8_t* data, int64_t start, int64_t end, Records* records) noexcept nogil:
    """Append the record of the message data[start:end]: INGEST_DONE, INGEST_ROOM, INGEST_MALFORMED or GROW."""
    cdef int64_t size = RECORD_HEADER_SIZE + (end - start), written = records.used - records.begun
    cdef Message message
    cdef uint8_t* to
    if written > 0 and size > records.room - written:
        return INGEST_ROOM
    if size >= <int64_t><uint32_t>ABSENT:
        return INGEST_MALFORMED
    if size > records.capacity - records.used:
        records.needed = size
        return GROW
    if read_message(data, start, end, &message) == NOWHERE:
        return INGEST_MALFORMED
    to = records.out + records.used
    store32(to + AT_RECORD_LENGTH, <uint32_t>size)
    store32(to + AT_HEADER_END, 0 if message.header_end == NOWHERE else <uint32_t>(message.header_end - start))
    store32(to + AT_DELIVERY_ANNOTATIONS, position(message.at[DELIVERY_ANNOTATIONS - HEADER], start))
    store32(to + AT_MESSAGE_ANNOTATIONS, position(message.at[MESSAGE_ANNOTATIONS - HEADER], start))
    store32(to + AT_PROPERTIES, position(message.at[PROPERTIES - HEADER], start))
    store32(to + AT_APPLICATION_PROPERTIES, position(message.at[APPLICATION_PROPERTIES - HEADER], start))
    store32(to + AT_BODY, position(message.body, start))
    store32(to + AT_FOOTER, position(message.at[FOOTER - HEADER], start))
    memcpy(to + RECORD_HEADER_SIZE, data + start, <size_t>(end - start))
    records.used += size
    records.events += 1
    return INGEST_DONE


cdef int append_envelope(const uint8_t* data, int64_t* at, int64_t end, Records* records) noexcept nogil:
    """Append a record for each data section from at[0] on; at[0] moves to the first section not finished."""
    cdef Section section
    cdef int64_t start = 0, stop
    cdef int status
    while at[0] < end:
        stop = read_section(data, at[0], end, &section)
        if stop == NOWHERE:
            return INGEST_MALFORMED
        if section.code == DATA:
            if variable(data, section.value, stop, &start) == NOWHERE:
                return INGEST_MALFORMED
            status = append_record(data, start, stop, records)
            if status != INGEST_DONE:
                return status
        at[0] = stop
    return INGEST_DONE


cdef int open_envelope(
    const uint8_t* data, int64_t start, int64_t end, int64_t message_format, Message* message
) noexcept nogil:
    """Read the sections of a delivery: its envelope's, or those of the single message that it is."""
    if message_format != 0 and message_format != <int64_t><uint32_t>BATCH_FORMAT:
        return NOWHERE
    if read_message(data, start, end, message) == NOWHERE:
        return NOWHERE
    if message_format != 0 and message.body != NOWHERE and message.data_count == 0:
        return NOWHERE
    return 0


cdef int key_of(const uint8_t* data, Message* message, int64_t* start, int64_t* end) noexcept nogil:
    """1 and where the text of the partition key is; 0 when it is absent, null or empty; NOWHERE for no string."""
    cdef Items items
    cdef int64_t at, value, behind
    if message.annotations == NOWHERE:
        return 0
    if compound(data, message.annotations, message.annotations_end, &items) == NOWHERE:
        return NOWHERE
    at = items.start
    while at < items.end:
        value = skip_value(data, at, items.end)
        if value == NOWHERE:
            return NOWHERE
        behind = skip_value(data, value, items.end)
        if behind == NOWHERE:
            return NOWHERE
        if is_name(data, at, value, PARTITION_KEY, 19):
            if data[value] == 0x40:
                return 0
            if data[value] != 0xA1 and data[value] != 0xB1:
                return NOWHERE
            end[0] = variable(data, value, behind, start)
            return 1 if end[0] > start[0] else 0
        at = behind
    return 0


cdef int first_message(const uint8_t* data, Message* envelope, int64_t* start, int64_t* end) noexcept nogil:
    """Where the first inner message of an envelope is; 0 when it has none."""
    if envelope.data_count == 0:
        return 0
    end[0] = variable(data, envelope.body_value, envelope.body_end, start)
    return 1


cdef int is_taken(
    const uint8_t* data, Message* message, int64_t message_format, const uint8_t* name, int64_t name_length
) noexcept nogil:
    """INGEST_DONE when the delivery may lie under this name, INGEST_NAME or INGEST_MALFORMED otherwise."""
    cdef int64_t start = 0, end = 0
    cdef int found
    if message_format == 0 and name_length == 0:
        return INGEST_DONE
    found = key_of(data, message, &start, &end)
    if found == NOWHERE:
        return INGEST_MALFORMED
    if found == 0:
        return INGEST_DONE if name_length == 0 else INGEST_NAME
    if end - start != name_length or memcmp(data + start, name, <size_t>name_length) != 0:
        return INGEST_NAME
    return INGEST_DONE


cdef int check_batch(const uint8_t* data, int64_t at, int64_t end, uint64_t nonce) noexcept nogil:
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


cdef int scan(
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


cdef int64_t digits(const uint8_t* data, int64_t start, int64_t end) noexcept nogil:
    """The number that 1 to 18 decimal digits spell; -1 for other text."""
    cdef int64_t value = 0, at
    if not 1 <= end - start <= 18:
        return -1
    for at in range(start, end):
        if data[at] < 0x30 or data[at] > 0x39:
            return -1
        value = value * 10 + (data[at] - 0x30)
    return value


cdef void fill_annotations(const uint8_t* data, Message* message, int64_t* row) noexcept nogil:
    """The service's names as integers; where a name stands twice the last one that has its type counts."""
    cdef Items items
    cdef int64_t at, value, behind, start = 0, stop, number
    cdef uint8_t code
    if message.annotations == NOWHERE:
        return
    if compound(data, message.annotations, message.annotations_end, &items) == NOWHERE:
        return
    at = items.start
    while at < items.end:
        value = skip_value(data, at, items.end)
        if value == NOWHERE:
            return
        behind = skip_value(data, value, items.end)
        if behind == NOWHERE:
            return
        code = data[value]
        if code == 0x81 or code == 0x55:
            if is_name(data, at, value, b"x-opt-sequence-number", 21):
                row[E_SEQUENCE_NUMBER] = (
                    <int64_t>load64(data + value + 1) if code == 0x81 else <signed char>data[value + 1]
                )
        elif code == 0x83:
            if is_name(data, at, value, b"x-opt-enqueued-time", 19):
                row[E_ENQUEUED_TIME] = <int64_t>load64(data + value + 1)
        elif code == 0xA1 or code == 0xB1:
            stop = variable(data, value, behind, &start)
            if is_name(data, at, value, b"x-opt-offset", 12):
                number = digits(data, start, stop)
                if number >= 0:
                    row[E_OFFSET] = number
            elif is_name(data, at, value, PARTITION_KEY, 19):
                row[E_KEY] = start
                row[E_KEY_LENGTH] = stop - start
        at = behind


cdef int open_event(const uint8_t* data, int64_t start, int64_t end, int64_t* row) noexcept nogil:
    cdef Message message
    cdef int index
    cdef int64_t content = 0, stop
    if read_message(data, start, end, &message) == NOWHERE:
        return NOWHERE
    for index in range(EVENT_WIDTH):
        row[index] = -1
    fill_annotations(data, &message, row)
    row[E_PROPERTIES] = message.at[PROPERTIES - HEADER]
    row[E_APPLICATION_PROPERTIES] = message.at[APPLICATION_PROPERTIES - HEADER]
    row[E_BODY] = message.body
    if message.data_count == 1:
        stop = variable(data, message.body_value, message.body_end, &content)
        row[E_BODY] = content
        row[E_BODY_LENGTH] = stop - content
    return 0


# The wrappers: borrow the buffers, check the call, raise.


cdef int check_deliveries(Py_buffer* data, Py_buffer* rows, int64_t first, int64_t last) except -1:
    """Refuse delivery rows that do not lie in their table, or deliveries that do not lie in data."""
    cdef int64_t* row
    cdef int64_t index
    check_rows(rows, DELIVERY_WIDTH, first, last)
    for index in range(first, last):
        row = <int64_t*>rows.buf + index * DELIVERY_WIDTH
        if row[D_START] < 0 or row[D_START] > data.len or row[D_LENGTH] < 0 or row[D_LENGTH] > data.len - row[D_START]:
            raise refusal(f"delivery row {index} does not lie in {data.len} bytes")
    return 0


def crc32c(data, int64_t seed=0):
    cdef Py_buffer view
    if seed < 0 or seed > 0xFFFFFFFF:
        raise refusal(f"seed {seed} is no 32-bit number")
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return crc(<uint32_t>seed, <const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def crc32c_by_table(data, int64_t seed=0):
    """What crc32c is where the processor has no instruction for it; the tests compare the two."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return crc_by_table(<uint32_t>seed ^ <uint32_t>0xFFFFFFFF, <const uint8_t*>view.buf, <size_t>view.len) ^ 0xFFFFFFFF
    finally:
        PyBuffer_Release(&view)


def ingest(
    data, rows, int64_t first_row, int64_t last_row, int64_t resume_at, bytes name, bytearray out not None, int64_t room
):
    cdef Py_buffer view, table
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        borrow_table(rows, &table, False)
        try:
            check_deliveries(&view, &table, first_row, last_row)
            return ingest_rows(
                <const uint8_t*>view.buf, <int64_t*>table.buf, first_row, last_row, resume_at, name, out, room
            )
        finally:
            PyBuffer_Release(&table)
    finally:
        PyBuffer_Release(&view)


cdef tuple ingest_rows(
    const uint8_t* data, int64_t* rows, int64_t first, int64_t last, int64_t resume_at, bytes name, bytearray out,
    int64_t room
):
    cdef Records records
    cdef Message message
    cdef int64_t* delivery
    cdef int64_t row = first, at, start, end, message_format, mark, events_before, bytes_in = 0
    cdef int status = INGEST_DONE
    cdef const uint8_t* wanted = NULL if name is None else <const uint8_t*>PyBytes_AS_STRING(name)
    cdef int64_t wanted_length = 0 if name is None else len(name)
    if resume_at != 0:
        delivery = rows + first * DELIVERY_WIDTH
        if first == last or delivery[D_FORMAT] != <int64_t><uint32_t>BATCH_FORMAT or not (
            delivery[D_START] < resume_at < delivery[D_START] + delivery[D_LENGTH]
        ):
            raise refusal(f"no delivery can be resumed at {resume_at}")
    for row in range(first, last):
        bytes_in += rows[row * DELIVERY_WIDTH + D_LENGTH]
    row = first
    records.begun = records.used = PyByteArray_GET_SIZE(out)
    records.room = room
    records.events = records.needed = 0
    # A quarter more than came in holds the records of all but tiny events; more is asked for when it is needed.
    records.capacity = records.begun + max(<int64_t>256, min(room, bytes_in + bytes_in // 4))
    records.out = grow(out, records.capacity)
    try:
        while row < last:
            delivery = rows + row * DELIVERY_WIDTH
            start = delivery[D_START]
            end = start + delivery[D_LENGTH]
            message_format = delivery[D_FORMAT]
            mark, events_before = records.used, records.events
            at = start
            if resume_at != 0:
                at = resume_at
            else:
                if open_envelope(data, start, end, message_format, &message) == NOWHERE:
                    status = INGEST_MALFORMED
                    break
                if name is not None:
                    status = is_taken(data, &message, message_format, wanted, wanted_length)
                    if status != INGEST_DONE:
                        break
                if mark > records.begun and room - (mark - records.begun) < (
                    RECORD_HEADER_SIZE + end - start if message_format == 0
                    else RECORD_HEADER_SIZE * message.data_count + message.data_bytes
                ):
                    status = INGEST_ROOM
                    break
            while True:
                if message_format == 0:
                    status = append_record(data, start, end, &records)
                else:
                    status = append_envelope(data, &at, end, &records)
                if status != GROW:
                    break
                records.capacity = max(records.used + records.needed, records.begun + 2 * (records.used - records.begun))
                records.out = grow(out, records.capacity)
            if status == INGEST_ROOM:
                return row, at, records.events, status
            if status == INGEST_MALFORMED:
                records.used, records.events = mark, events_before
                break
            resume_at = 0
            row += 1
    finally:
        PyByteArray_Resize(out, records.used)
    return row, 0, records.events, status


def find_key(data, int64_t start, int64_t end, int64_t message_format):
    cdef Py_buffer view
    cdef Message message
    cdef int64_t key = 0, key_end = 0, inner = 0, inner_end = 0
    cdef int found, where
    cdef const uint8_t* p
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        p = <const uint8_t*>view.buf
        if open_envelope(p, start, end, message_format, &message) == NOWHERE:
            return 0, 0, <int>KEY_MALFORMED
        found = key_of(p, &message, &key, &key_end)
        where = KEY_MESSAGE if message_format == 0 else KEY_ENVELOPE
        if found == 0 and message_format != 0 and first_message(p, &message, &inner, &inner_end):
            if read_message(p, inner, inner_end, &message) == NOWHERE:
                return 0, 0, <int>KEY_MALFORMED
            found = key_of(p, &message, &key, &key_end)
            where = KEY_MESSAGE
        if found == NOWHERE:
            return 0, 0, <int>KEY_MALFORMED
        if found == 0:
            return 0, 0, <int>KEY_NONE
        return key, key_end - key, where
    finally:
        PyBuffer_Release(&view)


def count_events(data, int64_t start, int64_t end, int64_t message_format):
    cdef Py_buffer view
    cdef Message message, inner
    cdef Section section
    cdef int64_t at, stop, content = 0
    cdef const uint8_t* p
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        p = <const uint8_t*>view.buf
        if open_envelope(p, start, end, message_format, &message) == NOWHERE:
            return -1
        if message_format == 0:
            return 1
        at = start
        while at < end:
            at = read_section(p, at, end, &section)
            if at == NOWHERE:
                return -1
            if section.code == DATA:
                stop = variable(p, section.value, section.end, &content)
                if read_message(p, content, stop, &inner) == NOWHERE:
                    return -1
        return message.data_count
    finally:
        PyBuffer_Release(&view)


def find_record(run, int64_t batch_at, int64_t ordinal):
    cdef Py_buffer view
    cdef Batch batch
    cdef int64_t at, place
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        if open_batch(<const uint8_t*>view.buf, view.len, batch_at, &batch) == NOWHERE:
            raise refusal(f"no stored batch at {batch_at} of {view.len} bytes")
        if ordinal < 0:
            raise refusal(f"no record has the place {ordinal}")
        at = batch.records
        for place in range(batch.count):
            stop = record_end(<const uint8_t*>view.buf, at, &batch)
            if stop == NOWHERE:
                raise refusal(f"no record at {at} of the batch at {batch_at}")
            if place == ordinal:
                return at
            at = stop
        return -1
    finally:
        PyBuffer_Release(&view)


def find_offset(run, int64_t batch_at, offset):
    cdef Py_buffer view
    cdef Batch batch
    cdef int64_t at, stop, ordinal
    cdef uint64_t wanted
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        if open_batch(<const uint8_t*>view.buf, view.len, batch_at, &batch) == NOWHERE:
            raise refusal(f"no stored batch at {batch_at} of {view.len} bytes")
        if not 0 <= offset <= 0xFFFFFFFFFFFFFFFF:
            raise refusal(f"{offset} is no offset")
        wanted = offset
        at = batch.records
        for ordinal in range(batch.count):
            stop = record_end(<const uint8_t*>view.buf, at, &batch)
            if stop == NOWHERE:
                raise refusal(f"no record at {at} of the batch at {batch_at}")
            if batch.first_offset + <uint64_t>(at - batch.records) >= wanted:
                return at, ordinal
            at = stop
        return -1, batch.count
    finally:
        PyBuffer_Release(&view)


def scan_records(data, int64_t batch_at, table):
    cdef Py_buffer view, rows
    cdef Batch batch
    cdef int64_t at, stop, ordinal
    cdef int64_t* row
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if open_batch(<const uint8_t*>view.buf, view.len, batch_at, &batch) == NOWHERE:
            raise refusal(f"no stored batch at {batch_at} of {view.len} bytes")
        if batch.kind != KIND_EVENTS:
            raise refusal(f"the batch at {batch_at} holds no events")
        borrow_table(table, &rows, True)
        try:
            at = batch.records
            for ordinal in range(min(batch.count, rows_of(&rows, RECORD_WIDTH))):
                stop = record_end(<const uint8_t*>view.buf, at, &batch)
                if stop == NOWHERE:
                    raise refusal(f"no record at {at} of the batch at {batch_at}")
                row = <int64_t*>rows.buf + ordinal * RECORD_WIDTH
                row[R_RECORD] = at
                row[R_LENGTH] = stop - at
                row[R_MESSAGE] = at + RECORD_HEADER_SIZE
                row[R_MESSAGE_LENGTH] = stop - at - RECORD_HEADER_SIZE
                at = stop
            return min(batch.count, rows_of(&rows, RECORD_WIDTH))
        finally:
            PyBuffer_Release(&rows)
    finally:
        PyBuffer_Release(&view)


def scan_batches(data, int64_t start, int64_t end, nonce, table):
    cdef Py_buffer view, rows
    cdef int64_t at = start, count = 0
    cdef int status
    cdef uint64_t wanted
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        if not 0 <= nonce <= 0xFFFFFFFFFFFFFFFF:
            raise refusal(f"{nonce} is no nonce")
        wanted = nonce
        borrow_table(table, &rows, True)
        try:
            status = scan(
                <const uint8_t*>view.buf, &at, end, wanted, <int64_t*>rows.buf, rows_of(&rows, BATCH_WIDTH), &count
            )
            return count, at, status
        finally:
            PyBuffer_Release(&rows)
    finally:
        PyBuffer_Release(&view)


def open_events(data, rows, int64_t first_row, int64_t last_row, table):
    cdef Py_buffer view, deliveries, events
    cdef int64_t opened = 0, room
    cdef int64_t* delivery
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        borrow_table(rows, &deliveries, False)
        try:
            check_deliveries(&view, &deliveries, first_row, last_row)
            borrow_table(table, &events, True)
            try:
                room = min(rows_of(&events, EVENT_WIDTH), last_row - first_row)
                while opened < room:
                    delivery = <int64_t*>deliveries.buf + (first_row + opened) * DELIVERY_WIDTH
                    if delivery[D_FORMAT] != 0 or open_event(
                        <const uint8_t*>view.buf, delivery[D_START], delivery[D_START] + delivery[D_LENGTH],
                        <int64_t*>events.buf + opened * EVENT_WIDTH,
                    ) == NOWHERE:
                        break
                    opened += 1
                return opened
            finally:
                PyBuffer_Release(&events)
        finally:
            PyBuffer_Release(&deliveries)
    finally:
        PyBuffer_Release(&view)
