# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels that find where deliveries go: keys, their hash, rows by partition. Twins: keys.py, message_keys.py.

This page holds the doors and the sorting; the hash is keys.pxd, where a key stands is ingest.pxd, of a message for a
queue message_keys.pxd.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from hubweir.kernels.buffers.tables cimport borrow_table, check_deliveries, check_rows, refusal, rows_of
from hubweir.kernels.contract cimport *
from hubweir.kernels.messages.ingest cimport key_at
from hubweir.kernels.keys.keys cimport characters, hash_of
from hubweir.kernels.keys.message_keys cimport delivery_key


def hash_key(bytes key not None):
    return hash_of(<const uint8_t*>PyBytes_AS_STRING(key), len(key))


def find_keys(data, rows, int64_t first_row, int64_t last_row, int64_t most_characters, table):
    cdef Py_buffer view, deliveries, keys
    cdef int64_t row, without = 0
    cdef int64_t* delivery
    cdef int64_t* key
    cdef const uint8_t* p
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        p = <const uint8_t*>view.buf
        borrow_table(rows, &deliveries, False)
        try:
            check_deliveries(&view, &deliveries, first_row, last_row)
            borrow_table(table, &keys, True)
            try:
                check_rows(&keys, KEY_WIDTH, 0, last_row - first_row)
                key = <int64_t*>keys.buf
                for row in range(first_row, last_row):
                    delivery = <int64_t*>deliveries.buf + row * DELIVERY_WIDTH
                    key[K_WHERE] = key_at(
                        p, delivery[D_START], delivery[D_START] + delivery[D_LENGTH], delivery[D_FORMAT],
                        key + K_START, key + K_LENGTH,
                    )
                    key[K_HASH] = 0
                    if key[K_WHERE] == KEY_NONE:
                        without += 1
                    elif key[K_WHERE] != KEY_MALFORMED:
                        if characters(p + key[K_START], key[K_LENGTH]) > most_characters:
                            key[K_WHERE] = KEY_TOO_LONG
                        else:
                            key[K_HASH] = hash_of(p + key[K_START], key[K_LENGTH])
                    key += KEY_WIDTH
                return without
            finally:
                PyBuffer_Release(&keys)
        finally:
            PyBuffer_Release(&deliveries)
    finally:
        PyBuffer_Release(&view)


def find_message_keys(
    data, rows, int64_t first_row, int64_t last_row, bint takes_ids, int64_t fragments, table
):
    cdef Py_buffer view, deliveries, keys
    cdef int64_t row, without = 0, refused = 0
    cdef int64_t* delivery
    cdef int64_t* key
    if fragments < 1:
        raise refusal(f"an entity has no {fragments} fragments")
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        borrow_table(rows, &deliveries, False)
        try:
            check_deliveries(&view, &deliveries, first_row, last_row)
            borrow_table(table, &keys, True)
            try:
                check_rows(&keys, KEY_WIDTH, 0, last_row - first_row)
                key = <int64_t*>keys.buf
                for row in range(first_row, last_row):
                    delivery = <int64_t*>deliveries.buf + row * DELIVERY_WIDTH
                    key[K_START] = key[K_LENGTH] = 0
                    key[K_WHERE] = delivery_key(
                        <const uint8_t*>view.buf, delivery[D_START], delivery[D_START] + delivery[D_LENGTH],
                        delivery[D_FORMAT], takes_ids, fragments, key + K_HASH,
                    )
                    without += key[K_WHERE] == KEY_NONE
                    refused += key[K_WHERE] == KEY_MALFORMED or key[K_WHERE] == KEY_SCATTERED
                    key += KEY_WIDTH
                return without, refused
            finally:
                PyBuffer_Release(&keys)
        finally:
            PyBuffer_Release(&deliveries)
    finally:
        PyBuffer_Release(&view)


def group_deliveries(rows, int64_t first_row, int64_t last_row, keys, turns, grouped, ends):
    cdef Py_buffer tables[5]
    cdef int borrowed = 0
    cdef object table
    try:
        for table in (rows, keys, turns, grouped, ends):
            borrow_table(table, &tables[borrowed], borrowed >= 3)
            borrowed += 1
        check_rows(&tables[0], DELIVERY_WIDTH, first_row, last_row)
        check_rows(&tables[1], KEY_WIDTH, 0, last_row - first_row)
        check_rows(&tables[3], DELIVERY_WIDTH, 0, last_row - first_row)
        group_rows(
            <int64_t*>tables[0].buf + first_row * DELIVERY_WIDTH, last_row - first_row, <int64_t*>tables[1].buf,
            <int64_t*>tables[2].buf, rows_of(&tables[2], 1), <int64_t*>tables[3].buf, <int64_t*>tables[4].buf,
            rows_of(&tables[4], 1) - 1,
        )
    finally:
        while borrowed:
            borrowed -= 1
            PyBuffer_Release(&tables[borrowed])


cdef int group_rows(
    int64_t* rows, int64_t count, int64_t* keys, int64_t* turns, int64_t turn_count, int64_t* grouped, int64_t* ends,
    int64_t partitions
) except -1:
    """Count each group's rows, turn the counts into starts, then put every row behind its group's last."""
    cdef int64_t index, group, turn = 0, start = 0, size
    for index in range(turn_count):
        if turns[index] < 0 or turns[index] > partitions:
            raise refusal(f"a turn is none of {partitions} partitions")
    for index in range(count):
        if keys[index * KEY_WIDTH + K_WHERE] == KEY_NONE:
            turn += 1
    if partitions < 1:
        raise refusal(f"a turn is none of {partitions} partitions")
    if turn > turn_count:
        raise refusal(f"{turn} deliveries have no key, {turn_count} turns were given")
    memset(ends, 0, <size_t>((partitions + 1) * sizeof(int64_t)))
    turn = 0
    for index in range(count):
        ends[group_of(keys + index * KEY_WIDTH, turns, &turn, partitions)] += 1
    for group in range(partitions + 1):
        size = ends[group]
        ends[group] = start
        start += size
    turn = 0
    for index in range(count):
        group = group_of(keys + index * KEY_WIDTH, turns, &turn, partitions)
        memcpy(
            grouped + ends[group] * DELIVERY_WIDTH, rows + index * DELIVERY_WIDTH, DELIVERY_WIDTH * sizeof(int64_t)
        )
        ends[group] += 1
    return 0


cdef inline int64_t group_of(int64_t* key, int64_t* turns, int64_t* turn, int64_t partitions) noexcept nogil:
    """The partition of a delivery; partitions itself for one that goes to none."""
    if key[K_WHERE] == KEY_NONE:
        turn[0] += 1
        return turns[turn[0] - 1]
    if key[K_WHERE] == KEY_MALFORMED or key[K_WHERE] == KEY_TOO_LONG or key[K_WHERE] == KEY_SCATTERED:
        return partitions
    return (-key[K_HASH] if key[K_HASH] < 0 else key[K_HASH]) % partitions
