"""The promises of each kernel: buffers in, integers out, who owns the bytes.

A kernel is a function over buffers: no state, no clock, no knowledge of hubs or links. Integers that belong together
come in a value that names them (below: RunCursor, TransferForm, SendRoom). Each exists twice, in plain Python (the
oracle; twins.py lists them) and compiled (`_ROOM.pyx` in its room); `hubweir.kernels` exports whichever this process
has. Both raise KernelRefusal for a call that breaks this contract (a mistake of ours), and
report what is wrong with a peer's bytes as a status, never as an exception. No kernel keeps a buffer after it
returned. `out` buffers grow at their end and are left as they were when the status is an error.

Tables are `array('q')` of rows of fixed width, named by the constants below.

    crc32c(data, seed=0) -> int
        CRC-32C (Castagnoli, reflected, as iSCSI) of data; seed continues an earlier value.

    scan_frames(data, start, end, max_frame_size, table) -> (rows, position, status)
        Cut data[start:end] into AMQP frames (part 2 section 2.3) and write one row each, as many as table has room
        for. position: where the first frame not reported starts. Transfers in the usual form (descriptor 00 53 14,
        list8 or list32, any legal width of each field) fill all columns; every other frame has F_CODE = its numeric
        descriptor (as 00 53 XX or 80 + 8 bytes), or -1 when it has none such or its fields are not in usual form (as
        is a transfer that resumes, or whose settle mode is not `first`): the engine then decodes it in full. A frame
        without a body (keep-alive) has F_CODE = EMPTY_FRAME.
        status: SCAN_OK (ends at data's end, at a partial frame, or at a full table), SCAN_TOO_LARGE (a frame over
        max_frame_size stands at position), SCAN_MALFORMED (size under 8, data offset under 2 or over the size).

    collect_deliveries(frames, first, last, rows) -> taken
        From frames[first:last], take the leading transfers that share channel and handle, are whole in one frame (no
        more, not aborted, no state, not resumed), have a tag of at most MOST_TAG_BYTES, are all settled or all not,
        carry a delivery id, each one higher than the one before (wrapping at 2**32), and write one delivery row each
        (as many as rows has room for). taken: how many; 0 when the first frame is none such.

    collect_dispositions(data, frames, first, last, rows, states, flows) -> (taken, count, kinds, flows)
        From frames[first:last], which scan_frames cut out of data, take the leading dispositions and flows in usual
        form, as receivers mix them: descriptor 00 53 15 or 00 53 13, list8 or list32, any legal width of each field,
        nothing behind the list; of a disposition no more than half of the ids, of a flow no properties. Each flow is a
        flow row. Each disposition is a disposition row, or makes the row of the one before longer, when it says the
        same on the same channel of the deliveries behind that row's (ids wrap at 2**32, and a row has at most half of
        them). Accepted and released without fields have an outcome of their own; any other state, of which only the
        bounds were looked at, has OUTCOME_STATED and its number: the row of states that holds the same bytes.
        taken: how many frames, 0 when the first is none such; it ends before a frame whose row, or whose state, has no
        room. count, kinds, flows: how many rows of each table.

    merge_dispositions(rows, count) -> count
        Put the disposition rows[:count] in order by channel, settled and outcome, those that say the same in the order
        of their ids, and make one of those that say the same of one delivery after the other: how many are left. They
        stay as they are when they do not all have the same role, when a delivery is QUARTER ids or more away from the
        first row's first, or when a channel names one twice and not all rows say the same: there the first word counts.
        What stands in rows behind those that are left says nothing.

    ingest(data, rows, first_row, last_row, resume_at, name, out, room) -> (row, resume_at, events, status)
        Append event records (table in stored_batch.py) for the deliveries rows[first_row:last_row] to out. A delivery
        of message format 0 is one event; of BATCH_FORMAT, each data section of its envelope is one encoded message.
        Sections may stand in any order, in any legal encoding; every section's bounds are checked, bodies are not
        decoded. At most `room` bytes of records are written by a call, except that the first event may be larger. A
        delivery is not begun unless it fits whole into what is left of the room or is the first of the call; then it
        may stop inside, and the next call goes on with resume_at.
        name: the partition key (UTF-8) that a batch envelope must carry to be taken, b"" for none; None: do not look.
        A single message is taken under b"" whatever its own key, and under another name when its own key is that.
        An absent, a null and an empty key are the same: none. A message format that is neither is malformed.
        row: the first row not finished. resume_at: 0, or the position in data of its next inner message. events: how
        many were written. status: INGEST_DONE (all rows), INGEST_ROOM, INGEST_NAME (row's envelope has another key),
        INGEST_MALFORMED (row is no legal message, or its key is no string; a delivery that was begun in this call
        leaves nothing behind, but what earlier calls wrote of it is the caller's to drop), INGEST_PROPERTIES (the same
        for a message whose sections before the body have over PROPERTIES_LIMIT bytes together, or whose properties,
        application properties or annotations hold one, name and value, of over PROPERTY_LIMIT bytes).

    find_key(data, start, end, message_format) -> (key_start, key_length, where)
        The partition key of one delivery: of a batch its envelope's x-opt-partition-key, else the first inner
        message's; of a single message its own. where: KEY_NONE, KEY_ENVELOPE, KEY_MESSAGE, or KEY_MALFORMED (a key
        that is no string, or no legal message). key_start is a position in data.

    find_keys(data, rows, first_row, last_row, most_characters, table) -> without
        The partition keys of the deliveries rows[first_row:last_row], one key row each from the table's start on (it
        has room for all): K_START, K_LENGTH and K_WHERE as find_key answers; KEY_TOO_LONG for a key of more than
        most_characters characters. K_HASH: hash_key of it; 0 where there is none that counts. without: how many
        deliveries have no key (KEY_NONE).

    check_messages(data, rows, first_row, last_row, most_characters, needs_session) -> (row, status)
        The first of the deliveries rows[first_row:last_row] that no queue takes, because of itself or of a message in
        its envelope; last_row and CHECK_OK when there is none. CHECK_MALFORMED: what ingest would not take, or
        deliver_messages could not send, or an id, a session or a key of a type that has no meaning there. CHECK_LONG: a
        message id (of a string or binary), a session id, the session to reply to or a partition key of more than
        most_characters characters. CHECK_SESSION: no session id, though needs_session. CHECK_KEY: a partition key that
        is not the session id. A partition key may be a binary: the text in it.

    find_message_keys(data, rows, first_row, last_row, takes_ids, fragments, table) -> (without, refused)
        What chooses the fragments of the deliveries rows[first_row:last_row] of an entity that has so many: one key row
        each from the table's start on (it has room for all). The key of a message is its session id, also an empty one;
        else its partition key, unless that is empty; else, where takes_ids, its message id: the bytes in it, of a
        number all eight, big endian. Of an envelope the keys of its messages count; those without one go along.
        K_WHERE: KEY_NONE, KEY_MESSAGE, KEY_MALFORMED (a message whose keys check_messages could not read), or
        KEY_SCATTERED (an envelope's messages have keys of several fragments). K_HASH: hash_key of the key, of an
        envelope the first; 0 where there is none that counts. K_START and K_LENGTH: 0. without: how many deliveries
        have no key (KEY_NONE). refused: how many are malformed or scattered.

    hash_key(key) -> int
        The hash of a key's UTF-8 bytes, -32768 to 32767, that chooses its partition: abs(hash) % partition count.
        Never changed: a key would move to another partition.

    group_deliveries(rows, first_row, last_row, keys, turns, grouped, ends)
        Sort delivery rows by partition into grouped (room for all), each partition's in the order they came. keys: as
        find_keys filled it for the same rows. turns: the partitions of those without a key, in order, one each at
        least; the number of partitions says that one goes to none of them. ends: partitions + 1 numbers; ends[p]
        becomes the row of grouped behind partition p's last. Rows that go to none, and those whose key is malformed,
        too long or scattered, stand behind all partitions, and ends[-1] is behind them.

    count_events(data, start, end, message_format) -> int
        How many events ingest would make of this delivery; -1 when it is malformed.

    deliver(run, cursor, form, delivery_id, room, out, inserted=b"") -> (events, frames, cursor)
        Write transfer frames for the events of a run, from cursor on, to out, one delivery each, the first under
        delivery_id, message format 0, delivery tag = the delivery id as 4 bytes, all 11 fields of the performative on
        every frame, more=true on all but a delivery's last frame. The message goes out as: its header section; its own
        delivery annotations; message annotations; everything else in the order it came. Message annotations are the
        stored ones less the service's names, plus x-opt-sequence-number (long), x-opt-offset (string),
        x-opt-enqueued-time (timestamp), and from the name block x-opt-partition-key and x-opt-publisher (a publisher is
        both). A sender's own x-opt-partition-key stays where the batch has no name block.
        inserted: b"", or the bytes of one delivery annotations section, which every delivery gets in the place of its
        own: those are between two peers, and we are the peer now.
        Batches that are not events are stepped over. Stops at the end of run, or before an event for which there is no
        room; the first event of a call is always written whole (the session holds frames back if its window is
        smaller), unless room.deliveries is 0.
        Returns how many events and frames, and where to go on; batch_at = len(run) at the end.

    deliver_batches(run, cursor, form, delivery_id, room, max_events, out) -> (events, deliveries, frames, cursor)
        Write transfer frames that carry the stored batches of a run, for a peer that reads these: message format
        STORED_FORMAT, everything else of the frames as deliver writes it. A delivery is one frame full of batches of
        events; a batch that does not fit whole begins the next delivery where the frame is half full, else it is cut
        between two events. One event that is larger than a frame is a delivery of as many as it needs.
        A batch goes out with what a reader needs and with zeros for everything else: kind, length, count, name block,
        records, first_index, first_offset and enqueued_time as of its events; of the flags those about the name; no
        producer block; writer_epoch, nonce, batch_number, unsynced and header_crc zero, for the nonce is secret, and so
        is a checksum of it. payload_crc is of the payload that goes out.
        Cursor, form and room are as of deliver, except that a delivery which is not the call's first is begun only
        where a full frame is left of room.bytes; the first is as small as room.bytes wants, but one event at least.

    deliver_messages(run, rows, first_row, id_prefix, form, delivery_id, room, out, handles=None) -> (messages, frames)
        Write transfer frames for messages of a queue, one delivery for each message row from first_row on, to the end
        of rows or until there is no room for the next one, message format 0; form and room are as of deliver. The
        tag has 16 bytes: the lock token (Q_LOCK, then Q_LOCK_CHECK, big endian) in the layout of a GUID, its first
        three groups turned round; eight zeros and the sequence number where there is no lock. The message goes out as:
        - its header, with the ttl of the row and its delivery count, also when none was sent;
        - its delivery annotations, with x-opt-lock-token (uuid) where there is a lock;
        - message annotations: the broker's, each where its column says so (x-opt-enqueued-time,
          x-opt-sequence-number, x-opt-enqueue-sequence-number, x-opt-locked-until, x-opt-message-state,
          x-opt-partition-id), then the stored ones less these names, less x-opt-deadletter-source unless
          Q_ID_NUMBER says that the message was forwarded, and less nulls under it and names that a sender may set;
        - its properties, with the absolute expiry time of the row; a message without an id gets one of 32 digits:
          id_prefix (16 bytes) and Q_ID_NUMBER in hexadecimal digits;
        - everything else in the order it came.
        handles: a number for each row of rows, the handle of the link that it goes to, in the place of the form's.
        The first message of a call is always written whole, unless room.deliveries is 0. Raises KernelRefusal, and
        leaves out as it was, where a row names no record of run.

    encode_message(run, rows, row, id_prefix) -> bytes
        The message of one message row, as deliver_messages sends it.

    find_record(run, batch_at, ordinal) -> int
        Position in run of that record of the batch; -1 when the batch has fewer.

    find_offset(run, batch_at, offset) -> (record_at, ordinal)
        The first record of an events batch whose first byte's offset is at least `offset`; (-1, count) when none is.

    scan_batches(data, start, end, nonce, table) -> (rows, position, status)
        Walk stored batches, one row each. Header CRC, payload CRC, magic, version, nonce and lengths are checked.
        status: BATCHES_OK (the end, or a full table), BATCHES_PARTIAL (the last batch is cut off by end; position is
        its start), BATCHES_DAMAGED (what stands at position is no sound batch of this log), BATCHES_NEWER (a sound
        header with a newer version). nonce 0: a run that its owner has not completed yet, so only magic, version,
        lengths and payload CRC are checked.

    follow_batches(data, nonce, walk, entries, table) -> (rows, entries, status)
        Go over stored batches that continue each other, from the start of data on, and keep in one walk row what a
        start wants to know of them all. A batch is checked as scan_batches checks it; it must also have the index and
        the offset behind the one before, and a batch number that is higher. Each one that is taken moves the walk on.
        walk: one walk row, changed. entries: a sparse index row is written for each batch that stands at W_NEXT_ENTRY
        of the file or behind it, the next one W_ENTRY_BYTES later. table: None, or a table of batch rows, one each.
        rows: how many batches were taken. entries: how many sparse index rows were written.
        status: BATCHES_OK (the end of data, or no room for a row that is wanted), BATCHES_PARTIAL and BATCHES_NEWER as
        of scan_batches, BATCHES_DAMAGED also where a sound batch does not continue what came before, BATCHES_LIMIT
        (a batch that does has the index W_LIMIT or a higher one). What the status is about is not taken: the walk's
        position is its start.

    scan_records(data, batch_at, table) -> rows
        One row per event record of the batch: where record and message start, their lengths.

    open_events(data, rows, first_row, last_row, table) -> opened
        For a client: one row per delivery of message format 0, with the service's annotations as integers and where
        sections lie. A column is -1 where the thing is absent or of another type. E_BODY and E_BODY_LENGTH are the
        bytes inside a body that is one data section; of any other body E_BODY is where its first section starts and
        E_BODY_LENGTH is -1. opened: rows filled; it stops before a delivery that is no legal message.
"""

from __future__ import annotations

from msgspec import Struct

# What kernels read: of all of these the bytes lie where they are.
Readable = bytes | bytearray | memoryview


class RunCursor(Struct, frozen=True):
    """Where in a run to go on: the position of a batch header, and of a record of that batch.

    record_at: 0: the batch's first record. ordinal: how many records of the batch stand before that one.
    """

    batch_at: int = 0
    record_at: int = 0
    ordinal: int = 0


class TransferForm(Struct, frozen=True):
    """What all transfer frames that a link sends have in common; it is the same for as long as the link stands.

    channel, handle: ours. max_frame_size: of the peer, in bytes, 512 at least. settled: whether deliveries go out so.
    """

    channel: int
    handle: int
    max_frame_size: int
    settled: bool


class SendRoom(Struct, frozen=True):
    """The most that one call writes: deliveries (the link's credit), frames (the session's window), bytes of frames."""

    deliveries: int
    frames: int
    bytes: int


BATCH_FORMAT = 0x80013700
# A delivery of stored batches, to a reader that asked for them: their magic number, whose last octet is a version.
STORED_FORMAT = 0x68576201

# A delivery row, as the engine reports deliveries and ingest takes them.
D_DELIVERY_ID, D_START, D_LENGTH, D_SETTLED, D_FORMAT = range(5)
DELIVERY_WIDTH = 5

# A message row: how one message of a queue goes out. Q_RECORD: position in the run of its record. -1: there is none, of
# times, Q_TTL_MS, Q_ENQUEUE_NUMBER (its number before it was forwarded) and Q_PARTITION. Q_STATE: 0 active, 1 deferred,
# 2 scheduled. Q_LOCK, Q_LOCK_CHECK: the halves of the lock token; 0: not locked. Q_ID_NUMBER: the number that the
# message got first, which is the end of the id of a message that came without one; its bit FORWARDED_BIT says that
# the message was forwarded to where it is.
(
    Q_RECORD, Q_SEQUENCE_NUMBER, Q_ENQUEUED_MS, Q_LOCKED_UNTIL_MS, Q_DELIVERY_COUNT, Q_STATE, Q_LOCK, Q_LOCK_CHECK,
    Q_TTL_MS, Q_EXPIRES_MS, Q_ENQUEUE_NUMBER, Q_PARTITION, Q_ID_NUMBER,
) = range(13)  # fmt: skip
MESSAGE_WIDTH = 13
FORWARDED_BIT = 62

# A frame row. Positions count from the start of the buffer. -1: null or absent.
(
    F_START, F_END, F_CHANNEL, F_TYPE, F_CODE, F_BODY, F_HANDLE, F_DELIVERY_ID, F_TAG, F_TAG_LENGTH, F_FORMAT,
    F_SETTLED, F_MORE, F_ABORTED, F_STATE, F_PAYLOAD,
) = range(16)  # fmt: skip
FRAME_WIDTH = 16
# The standard's own limit on a delivery tag (part 2 section 2.8.7).
MOST_TAG_BYTES = 32
EMPTY_FRAME = -2
# A disposition row: of deliveries O_FIRST to O_LAST. O_ROLE: 1 when their receiver speaks. O_SETTLED: 0 or 1.
O_ROLE, O_FIRST, O_LAST, O_SETTLED, O_OUTCOME, O_CHANNEL = range(6)
DISPOSITION_WIDTH = 6
QUARTER = 2**30
OUTCOME_NONE, OUTCOME_ACCEPTED, OUTCOME_RELEASED = -1, 0x24, 0x26
OUTCOME_STATED = 0x100
# A row of states: the frame of the table that said it first, and where it lies in the bytes.
STATE_FRAME, STATE_START, STATE_END = range(3)
STATE_WIDTH = 3
# A flow row: its frame of the table, and what it says; -1: null or absent. C_DRAIN, C_ECHO: 0 or 1.
(
    C_FRAME, C_CHANNEL, C_NEXT_INCOMING, C_WINDOW, C_HANDLE, C_DELIVERY_COUNT, C_CREDIT, C_DRAIN, C_ECHO,
) = range(9)  # fmt: skip
FLOW_WIDTH = 9
SCAN_OK, SCAN_TOO_LARGE, SCAN_MALFORMED = range(3)

INGEST_DONE, INGEST_ROOM, INGEST_NAME, INGEST_MALFORMED, INGEST_PROPERTIES = range(5)
# Bytes as they are encoded. Readers keep properties apart from bodies, and hold those of many events at once.
PROPERTY_LIMIT, PROPERTIES_LIMIT = 32 * 1024, 64 * 1024
KEY_NONE, KEY_ENVELOPE, KEY_MESSAGE, KEY_MALFORMED, KEY_TOO_LONG, KEY_SCATTERED = range(6)

CHECK_OK, CHECK_MALFORMED, CHECK_LONG, CHECK_SESSION, CHECK_KEY = range(5)

# A key row.
K_START, K_LENGTH, K_WHERE, K_HASH = range(4)
KEY_WIDTH = 4

# A batch row. B_RECORDS: position in data of its first record. Numbers of 64 bits stand as two's complement.
(
    B_POSITION, B_LENGTH, B_KIND, B_FLAGS, B_COUNT, B_FIRST_INDEX, B_FIRST_OFFSET, B_ENQUEUED_TIME, B_DURABLE_UPTO,
    B_WRITER_EPOCH, B_RECORDS, B_NUMBER,
) = range(12)  # fmt: skip
BATCH_WIDTH = 12
BATCHES_OK, BATCHES_PARTIAL, BATCHES_DAMAGED, BATCHES_NEWER, BATCHES_LIMIT = range(5)

# A walk row: where a walk over stored batches is, and what it met. Positions are those of the file, in which data
# begins at W_POSITION. -1: there is none.
# W_POSITION, W_INDEX, W_OFFSET: of the next batch. W_NUMBER: the next batch has this number or a higher one.
# W_LIMIT: the walk ends before a batch of this index. W_FIRST_NUMBER: of the first batch that the last call took.
# W_DURABLE_UPTO: the largest of all batches. W_LAST_BATCH, W_LAST_TIME: position of the last batch with records, and
# when it was enqueued. W_IS_CLOSED: 1 when the last batch of all is the mark of a clean stop. W_MARKS_FROM: from this
# position on there are idle marks only.
# W_CHAIN_POSITION, W_CHAIN_INDEX, W_CHAIN_OFFSET, W_CHAIN_NUMBER: the first batch of a chain that has not ended yet.
# W_BEFORE_BATCH, W_BEFORE_TIME: W_LAST_BATCH and W_LAST_TIME as they were before it.
(
    W_POSITION, W_INDEX, W_OFFSET, W_NUMBER, W_LIMIT, W_FIRST_NUMBER, W_DURABLE_UPTO, W_LAST_BATCH, W_LAST_TIME,
    W_IS_CLOSED, W_MARKS_FROM, W_CHAIN_POSITION, W_CHAIN_INDEX, W_CHAIN_OFFSET, W_CHAIN_NUMBER, W_BEFORE_BATCH,
    W_BEFORE_TIME, W_NEXT_ENTRY, W_ENTRY_BYTES,
) = range(19)  # fmt: skip
WALK_WIDTH = 19

# A sparse index row: where a batch stands in the file, its first index and offset, when it was enqueued.
S_POSITION, S_INDEX, S_OFFSET, S_TIME = range(4)
SPARSE_WIDTH = 4

# A record row.
R_RECORD, R_LENGTH, R_MESSAGE, R_MESSAGE_LENGTH = range(4)
RECORD_WIDTH = 4

# An event row of a client.
(
    E_SEQUENCE_NUMBER, E_OFFSET, E_ENQUEUED_TIME, E_KEY, E_KEY_LENGTH, E_PROPERTIES, E_APPLICATION_PROPERTIES, E_BODY,
    E_BODY_LENGTH,
) = range(9)  # fmt: skip
EVENT_WIDTH = 9
