"""The promises of the kernels of columns: Capture's records, and event columns in the form of Apache Arrow.

The rules of contract.py hold here too: buffers in, integers out, KernelRefusal for a call that breaks this page, a
status for what is wrong with bytes of others, no buffer kept. A buffer that a kernel writes belongs to it until it
returns: no other thread may touch it meanwhile, since the interpreter's lock may be free. The rooms
are columns/ and capture/.

Text of an AMQP value (text.py). One rule for properties in columns, for nested values and for bodies that are no
bytes: a value is written as JSON; where that is a JSON string and stands alone, its quotes and escapes are left out.
null `null`; boolean `true` `false`; integers in decimal; float and double in the fewest digits that read back as the
same double, but NaN, Infinity and -Infinity as strings; string and symbol themselves (what is no UTF-8 replaced by
U+FFFD); char a string; timestamp a string like 2026-11-21T14:15:16.789Z, or its milliseconds in decimal outside the
years 1 to 9999; uuid a string, 8-4-4-4-12; decimals a string, the hexadecimal digits of their bytes; binary a string,
base64; list and array an array; map an object, a key being the text of its value; a described value what it
describes. A value whose inside cannot be walked (malformed, nested deeper than MAX_TEXT_DEPTH, a list or map as a
nested key, an array of more than 4 elements without width) is the base64 of its encoded bytes, whole.

Map entries come in the order they stand in, doubles included; a map or list that breaks off in the middle gives the
entries before the break. Names of AMQP properties are those of the specification, `message-id` to
`reply-to-group-id`; null fields are left out.

Body: data sections joined; an amqp-value of string, symbol or binary its bytes (a string's as UTF-8); another
amqp-value its text as JSON, quotes included; sequence sections one JSON array of all their items; a null amqp-value,
or no body section: none.

    capture_block(run, batch_at, record_at, ordinal, max_bytes, max_events, until, out)
            -> (events, batch_at, record_at, ordinal, first, last, first_time, last_time, status)
        Append one Avro record `EventData` to out for each event of the run (stored_batch.py) from the place given on,
        as deliver takes it; batches that are no events are stepped over. Records only: header, block counts and sync
        markers are the caller's. Stops at the run's end, at max_events, before the event whose sequence number is
        `until` or more (-1: no such end), or before one that would make the bytes written exceed max_bytes; the first
        event of a call is written whatever its size, unless max_events is 0.
        first, last: sequence numbers of the first and last event written; first_time, last_time: their enqueued times
        in ms since 1970; all -1 when there are none. status: CAPTURE_OK, or CAPTURE_DAMAGED: the place returned is
        that of a batch or record that is not sound; what was written before it stays.
        Fields: SequenceNumber long; Offset string, decimal; EnqueuedTimeUtc string, `M/d/yyyy h:mm:ss tt`;
        SystemProperties: x-opt-sequence-number long, x-opt-offset string, x-opt-enqueued-time string (text above, so
        milliseconds are kept), from the name block x-opt-partition-key and x-opt-publisher as deliver gives them, the
        stored annotations less the service's names, the AMQP properties; Properties: the application properties;
        Body. Map values: boolean and integers are long (an ulong beyond 2**63-1 is a string), float and double are
        double, binary is bytes, all else is a string, the text above. Maps are written in blocks of at most 63
        entries.

    read_capture_block(data, start, end, count, since, until, mask, rows, columns, most_bytes=MOST_COLUMN_BYTES)
            -> (position, records, taken, first, last, status)
        Append the `count` Avro records of data[start:end] to columns, which hold `rows` rows, those only whose
        enqueued time t (ms since 1970) has since <= t < until. Maps may have any legal block form. A null body is an
        empty one. enqueuedTime comes from SystemProperties' x-opt-enqueued-time (a string as above, or long ms), else
        from EnqueuedTimeUtc (`M/d/yyyy h:mm:ss tt`, `M/d/yyyy H:mm:ss`, or ISO 8601 in UTC). publisher and
        partitionKey are the strings x-opt-publisher and x-opt-partition-key there; these and the service's three are
        left out of the column systemProperties. Long and double values are their text, bytes their base64.
        position: where the first record not read starts. records: how many were read; taken: how many of them became
        rows. first, last: sequence numbers of the first and last row; -1 when none. status: COLUMNS_OK: all, and they
        end at end; COLUMNS_FULL: the next row may make a column outgrow most_bytes: go on at position with
        fresh columns and count - records; COLUMNS_MALFORMED: the record at position is no record, or count records do
        not end at end.

    event_columns(data, deliveries, first_row, last_row, expected, until, mask, rows, columns,
            most_bytes=MOST_COLUMN_BYTES)
            -> (row, first, last, gap, status)
        Append delivered events (delivery rows of contract.py, message format 0, with the service's annotations) to
        columns, which hold `rows` rows. expected: the sequence number that the first event should have, -1 for any.
        until: stop before the first event with this sequence number or a higher one; -1: none.
        row: the first delivery row not taken. first, last: sequence numbers of the first and last event taken; -1
        when none was. gap: the first delivery row taken whose sequence number is not the one before plus one
        (for the first: not expected), -1 when there is none; the call goes on behind it.
        status: COLUMNS_OK (all), COLUMNS_UNTIL (until was met), COLUMNS_FULL (see above), COLUMNS_MALFORMED: row is
        no legal message of format 0, or has no x-opt-sequence-number (long), x-opt-offset (string) or
        x-opt-enqueued-time (timestamp).
        Where an annotation stands twice the last one that has its type counts. An empty partition key or publisher is
        none. systemProperties: all other message annotations, then the AMQP properties.

    stored_columns(data, batches, first_row, last_row, expected, until, mask, rows, columns,
            most_bytes=MOST_COLUMN_BYTES)
            -> (row, first, last, gap, status)
        The same of events in stored batches: batches is a table of batch rows (contract.py), of which position,
        length and count are used, and rows are counted through all of them. The columns are those that event_columns
        makes of what deliver makes of the batches. The bytes may be a peer's: everything is looked at before it is
        followed, except checksums. COLUMNS_MALFORMED: the batch or record of row is not sound, its time is none in
        microseconds, or a section that a column in mask needs is not where the record's header says. A body of one
        data section that ends the message is taken from there, any other only out of a legal message.

    Columns: a list of COLUMN_BUFFERS bytearrays, named by the constants below, all empty at first (rows 0). A kernel
    appends to the buffers of the columns in mask (bit 1 << COLUMN_…) and looks at no others; columns not asked for
    are not even decoded. The same mask for all calls on one list. After a call rows + taken rows are there. Numbers
    have the machine's byte order; offsets are 32-bit and one longer than rows; validity is a bitmap, bit set: there
    is a value. An empty offsets buffer still means one zero where no row was ever appended. A row is begun only while
    each column of bytes could take 16 times the row's own bytes and 4096 more without outgrowing most_bytes, which is
    at most what 32-bit offsets can say. On an error the rows before it stay. So, for pyarrow:
    `pa.Array.from_buffers(pa.binary(), rows, [None, columns[BODY_OFFSETS], columns[BODY_BYTES]])` with each wrapped by
    `pa.py_buffer`; a map is a list of non-null structs of its keys and values. A bytearray that Arrow holds cannot
    grow: columns that were wrapped are not appended to any more (BufferError).

    Arrow input of the sink. Variable: (validity or None, 32-bit offsets, bytes, offset), of a string or binary array
    as `array.buffers()` and `array.offset` give them. MapColumn: (validity or None, 32-bit offsets, offset, keys:
    Variable, values: Variable), of a map<string, string> array and its whole child arrays. Row i stands at i + offset,
    and a row that does not lie in its buffers is malformed.
    order: array('q') of row numbers, None for the rows as they stand; first and last count places in order.

    event_batches(body, keys, properties, order, first, last, max_bytes, envelope, out) -> (place, size, status)
        Append the payload of one batch transfer (message format BATCH_FORMAT) to out: the bytes `envelope` (whole
        sections; b"" for none), then one data section for each row, in it an encoded message: message annotations
        with x-opt-partition-key when keys is given and the row has one that is not empty, application properties
        when properties is given and the row's map has an entry, one data section with the body. A null body is an
        empty one, a null property is null.
        At most max_bytes, envelope included. place: first place not taken. size: bytes appended; 0 when no row was
        taken. status: ROWS_OK (last was reached), ROWS_ROOM (the next one does not fit), ROWS_TOO_LARGE (the first
        one alone does not fit), ROWS_MALFORMED (the row at place has offsets that do not lie in its buffers; the rows
        before it were taken).

    rows_by_partition(keys, ids, first, last, partitions, spread, order, starts) -> (row, status)
        Choose a partition for each row of first to last and write the row numbers to order, grouped by partition,
        in each group as they stood; starts (room for partitions + 1) says where each group starts in order. A row
        with an id (a decimal number as text) goes there, one with a key to the absolute value of hash_key modulo
        partitions, all others in turn: (spread + row) modulo partitions. keys, ids: Variable or None. An empty key
        or id is none.
        row: last, or the first row refused. status: ROWS_OK, ROWS_TWO_TARGETS (key and id), ROWS_NO_PARTITION (the id
        is no number below partitions), ROWS_MALFORMED.

    rows_digest(seed, body, keys, properties, order, first, last) -> (digest, place)
        Go on with a running digest of 64 bits (0 at the start) over the rows order[first:last]: equal rows in equal
        order give equal digests, however they were cut into calls. place: last, or the first place whose row is
        malformed (then digest is that of the rows before). Null and empty are different.
"""

from __future__ import annotations

from hubweir.kernels.contract import Readable

MAX_TEXT_DEPTH = 16

CAPTURE_OK, CAPTURE_DAMAGED = range(2)
COLUMNS_OK, COLUMNS_UNTIL, COLUMNS_FULL, COLUMNS_MALFORMED = range(4)
ROWS_OK, ROWS_ROOM, ROWS_TOO_LARGE, ROWS_TWO_TARGETS, ROWS_NO_PARTITION, ROWS_MALFORMED = range(6)

# Columns: bit 1 << n of a mask.
(
    COLUMN_BODY, COLUMN_OFFSET, COLUMN_SEQUENCE_NUMBER, COLUMN_ENQUEUED_TIME, COLUMN_PUBLISHER, COLUMN_PARTITION_KEY,
    COLUMN_PROPERTIES, COLUMN_SYSTEM_PROPERTIES,
) = range(8)  # fmt: skip
ALL_COLUMNS = 0xFF

# Buffers of the columns. SEQUENCE_NUMBERS and ENQUEUED_TIMES (µs since 1970) hold 64-bit numbers.
(
    BODY_OFFSETS, BODY_BYTES, OFFSET_OFFSETS, OFFSET_BYTES, SEQUENCE_NUMBERS, ENQUEUED_TIMES,
    PUBLISHER_VALIDITY, PUBLISHER_OFFSETS, PUBLISHER_BYTES,
    PARTITION_KEY_VALIDITY, PARTITION_KEY_OFFSETS, PARTITION_KEY_BYTES,
    PROPERTIES_OFFSETS, PROPERTIES_KEY_OFFSETS, PROPERTIES_KEY_BYTES, PROPERTIES_VALUE_OFFSETS, PROPERTIES_VALUE_BYTES,
    SYSTEM_OFFSETS, SYSTEM_KEY_OFFSETS, SYSTEM_KEY_BYTES, SYSTEM_VALUE_OFFSETS, SYSTEM_VALUE_BYTES,
) = range(22)  # fmt: skip
COLUMN_BUFFERS = 22
# Which of them a column has. Of text and bytes: offsets, content, validity (None: every row has a value).
TEXT_BUFFERS = {
    COLUMN_BODY: (BODY_OFFSETS, BODY_BYTES, None),
    COLUMN_OFFSET: (OFFSET_OFFSETS, OFFSET_BYTES, None),
    COLUMN_PUBLISHER: (PUBLISHER_OFFSETS, PUBLISHER_BYTES, PUBLISHER_VALIDITY),
    COLUMN_PARTITION_KEY: (PARTITION_KEY_OFFSETS, PARTITION_KEY_BYTES, PARTITION_KEY_VALIDITY),
}
NUMBER_BUFFERS = {COLUMN_SEQUENCE_NUMBER: SEQUENCE_NUMBERS, COLUMN_ENQUEUED_TIME: ENQUEUED_TIMES}
# Of a map: offsets, then offsets and content of its keys, and of its values.
MAP_BUFFERS = {
    COLUMN_PROPERTIES: (
        PROPERTIES_OFFSETS,
        (PROPERTIES_KEY_OFFSETS, PROPERTIES_KEY_BYTES),
        (PROPERTIES_VALUE_OFFSETS, PROPERTIES_VALUE_BYTES),
    ),
    COLUMN_SYSTEM_PROPERTIES: (
        SYSTEM_OFFSETS,
        (SYSTEM_KEY_OFFSETS, SYSTEM_KEY_BYTES),
        (SYSTEM_VALUE_OFFSETS, SYSTEM_VALUE_BYTES),
    ),
}

# What 32-bit offsets can say.
MOST_COLUMN_BYTES = 2**31 - 1

Variable = tuple[Readable | None, Readable, Readable, int]
MapColumn = tuple[Readable | None, Readable, int, Variable, Variable]
