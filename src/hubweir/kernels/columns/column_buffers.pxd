"""Column buffers, compiled: what event_columns and read_capture_block append to. The twin: column_buffers.py."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from hubweir.kernels.buffers.tables cimport refusal
from hubweir.kernels.columns_contract cimport *
from hubweir.kernels.buffers.growing cimport Out, close_out, open_out, patch, put, put_byte

cdef enum:
    # The text of a value is at most this much longer than its bytes, and a row's names at most this long.
    MOST_GROWTH = 16
    MOST_NAMES = 4096

    NO_BUFFER = -1

cdef struct Columns:
    Out buffers[COLUMN_BUFFERS]
    int mask
    int64_t rows
    int64_t most_bytes


cdef inline bint has(Columns* columns, int column) noexcept nogil:
    return columns.mask >> column & 1


cdef inline int column_of(int buffer) noexcept nogil:
    """Which column a buffer belongs to."""
    if buffer <= BODY_BYTES:
        return COLUMN_BODY
    if buffer <= OFFSET_BYTES:
        return COLUMN_OFFSET
    if buffer == SEQUENCE_NUMBERS:
        return COLUMN_SEQUENCE_NUMBER
    if buffer == ENQUEUED_TIMES:
        return COLUMN_ENQUEUED_TIME
    if buffer <= PUBLISHER_BYTES:
        return COLUMN_PUBLISHER
    if buffer <= PARTITION_KEY_BYTES:
        return COLUMN_PARTITION_KEY
    if buffer <= PROPERTIES_VALUE_BYTES:
        return COLUMN_PROPERTIES
    return COLUMN_SYSTEM_PROPERTIES


cdef inline int64_t check_offsets(list buffers, int offsets, int content, int64_t rows) except -1:
    """Refuse offsets that are not of rows rows or do not end where their content ends; return the last one."""
    cdef bytearray buffer = buffers[offsets]
    cdef int64_t size = PyByteArray_GET_SIZE(buffer), ends_at = 0
    cdef int32_t last = 0
    if content != NO_BUFFER:
        ends_at = PyByteArray_GET_SIZE(<bytearray>buffers[content])
    if size == 0 and rows == 0 and ends_at == 0:
        return 0
    if size >= 4:
        memcpy(&last, PyByteArray_AS_STRING(buffer) + size - 4, 4)
    if size != 4 * (rows + 1) or last < 0 or (content != NO_BUFFER and last != ends_at):
        raise refusal(f"buffer {offsets} does not hold the offsets of {rows} rows")
    return last


cdef inline int check_texts(list buffers, int offsets, int content, int validity, int64_t rows) except -1:
    check_offsets(buffers, offsets, content, rows)
    if validity != NO_BUFFER and PyByteArray_GET_SIZE(<bytearray>buffers[validity]) != (rows + 7) // 8:
        raise refusal(f"buffer {validity} is no bitmap of {rows} rows")
    return 0


cdef inline int check_numbers(list buffers, int buffer, int64_t rows) except -1:
    if PyByteArray_GET_SIZE(<bytearray>buffers[buffer]) != 8 * rows:
        raise refusal(f"buffer {buffer} does not hold {rows} rows")
    return 0


cdef inline int check_map(list buffers, int entries, int64_t rows) except -1:
    cdef int64_t last = check_offsets(buffers, entries, NO_BUFFER, rows)
    check_offsets(buffers, entries + 1, entries + 2, last)
    check_offsets(buffers, entries + 3, entries + 4, last)
    return 0


cdef inline int64_t likely(int buffer, int64_t rows, int64_t size) noexcept:
    """How many bytes `rows` rows made from `size` bytes will put into a buffer, as far as one can say beforehand."""
    if buffer == SEQUENCE_NUMBERS or buffer == ENQUEUED_TIMES:
        return 8 * rows
    if buffer == BODY_BYTES:
        return size // 4 * 3
    if buffer == BODY_OFFSETS or buffer == OFFSET_OFFSETS or buffer == PUBLISHER_OFFSETS:
        return 4 * rows + 4
    if buffer == PARTITION_KEY_OFFSETS or buffer == PROPERTIES_OFFSETS or buffer == SYSTEM_OFFSETS:
        return 4 * rows + 4
    return 0


cdef inline int open_columns(
    list buffers, int64_t mask, int64_t rows, int64_t most_bytes, int64_t new_rows, int64_t size, Columns* columns
) except -1:
    """Borrow the buffers of the columns in mask for new_rows rows from `size` bytes; close_columns gives them back."""
    cdef int index
    cdef object buffer
    if len(buffers) != COLUMN_BUFFERS or mask < 0 or mask > ALL_COLUMNS or rows < 0 or rows > MOST_COLUMN_BYTES:
        raise refusal(f"{len(buffers)} buffers, mask {mask} and {rows} rows are no columns")
    # Each is grown on its own while pointers into it are held.
    if len({id(buffer) for buffer in buffers}) != COLUMN_BUFFERS:
        raise refusal("one buffer stands twice in the columns")
    for buffer in buffers:
        if type(buffer) is not bytearray:
            raise refusal("a buffer of the columns is no bytearray")
    if most_bytes < 0 or most_bytes > MOST_COLUMN_BYTES:
        raise refusal(f"{most_bytes} is no limit for a column")
    columns.mask = <int>mask
    columns.most_bytes = most_bytes
    columns.rows = rows
    if has(columns, COLUMN_BODY):
        check_texts(buffers, BODY_OFFSETS, BODY_BYTES, NO_BUFFER, rows)
    if has(columns, COLUMN_OFFSET):
        check_texts(buffers, OFFSET_OFFSETS, OFFSET_BYTES, NO_BUFFER, rows)
    if has(columns, COLUMN_SEQUENCE_NUMBER):
        check_numbers(buffers, SEQUENCE_NUMBERS, rows)
    if has(columns, COLUMN_ENQUEUED_TIME):
        check_numbers(buffers, ENQUEUED_TIMES, rows)
    if has(columns, COLUMN_PUBLISHER):
        check_texts(buffers, PUBLISHER_OFFSETS, PUBLISHER_BYTES, PUBLISHER_VALIDITY, rows)
    if has(columns, COLUMN_PARTITION_KEY):
        check_texts(buffers, PARTITION_KEY_OFFSETS, PARTITION_KEY_BYTES, PARTITION_KEY_VALIDITY, rows)
    if has(columns, COLUMN_PROPERTIES):
        check_map(buffers, PROPERTIES_OFFSETS, rows)
    if has(columns, COLUMN_SYSTEM_PROPERTIES):
        check_map(buffers, SYSTEM_OFFSETS, rows)
    for index in range(COLUMN_BUFFERS):
        if has(columns, column_of(index)):
            try:
                open_out(<bytearray>buffers[index], likely(index, new_rows, size), &columns.buffers[index])
            except BaseException:  # somebody holds a view of it: the ones before it are given back
                close_first(columns, index)
                raise
    return 0


cdef inline int close_first(Columns* columns, int count) except -1:
    cdef int index
    for index in range(count):
        if has(columns, column_of(index)):
            close_out(&columns.buffers[index])
    return 0


cdef inline int close_columns(Columns* columns) except -1:
    return close_first(columns, COLUMN_BUFFERS)


cdef inline bint is_full(Columns* columns, int content, int64_t most) noexcept nogil:
    return has(columns, column_of(content)) and columns.buffers[content].used > most


cdef inline bint has_room(Columns* columns, int64_t size, int64_t rows) noexcept nogil:
    """Whether rows made from `size` bytes together cannot make a column outgrow its limit."""
    cdef int64_t most
    if size > MOST_COLUMN_BYTES or rows > MOST_COLUMN_BYTES // MOST_NAMES:
        return False
    most = columns.most_bytes - MOST_GROWTH * size - MOST_NAMES * rows
    return not (
        is_full(columns, BODY_BYTES, most) or is_full(columns, OFFSET_BYTES, most)
        or is_full(columns, PUBLISHER_BYTES, most) or is_full(columns, PARTITION_KEY_BYTES, most)
        or is_full(columns, PROPERTIES_KEY_BYTES, most) or is_full(columns, PROPERTIES_VALUE_BYTES, most)
        or is_full(columns, SYSTEM_KEY_BYTES, most) or is_full(columns, SYSTEM_VALUE_BYTES, most)
    )


cdef inline void put_number(Columns* columns, int buffer, int64_t value) noexcept nogil:
    put(&columns.buffers[buffer], <const uint8_t*>&value, 8)


cdef inline void begin_offsets(Columns* columns, int offsets) noexcept nogil:
    cdef int32_t zero = 0
    if columns.buffers[offsets].used == 0:
        put(&columns.buffers[offsets], <const uint8_t*>&zero, 4)


cdef inline void end_text(Columns* columns, int offsets) noexcept nogil:
    """The bytes of a value are there: say where they end. The buffer behind the offsets is the bytes'."""
    cdef int32_t last = <int32_t>columns.buffers[offsets + 1].used
    begin_offsets(columns, offsets)
    put(&columns.buffers[offsets], <const uint8_t*>&last, 4)


cdef inline void put_validity(Columns* columns, int buffer, bint valid) noexcept nogil:
    cdef Out* bits = &columns.buffers[buffer]
    if columns.rows % 8 == 0:
        put_byte(bits, 0)
    if valid and bits.used > 0:
        patch(bits, bits.used - 1, bits.bytes[bits.used - 1] | 1 << (columns.rows % 8))


cdef inline void end_map(Columns* columns, int entries) noexcept nogil:
    """The entries of a row are there: say how many there are now."""
    cdef int32_t count
    begin_offsets(columns, entries)
    begin_offsets(columns, entries + 1)
    begin_offsets(columns, entries + 3)
    count = <int32_t>(columns.buffers[entries + 1].used // 4 - 1)
    put(&columns.buffers[entries], <const uint8_t*>&count, 4)
