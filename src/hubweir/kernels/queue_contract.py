"""The promises of each kernel of a queue (kernels/queue/). The rules of contract.py hold here, too.

A fragment keeps a queue row for each message and a lock row for each lock, in pages: tables of at most PAGE_ROWS rows.
The messages of a view are counted from 1 on; page_first is the count of a page's first message, so a count's row is
count - page_first. Locks have ordinals, from 0 on in one opening; page_first is then the ordinal of a page's first row.
A kernel that takes counts or ordinals (numbers[at:last] of a table of width 1) works on the leading ones that lie in
the page and returns where the next page is needed: the caller goes on from there with another page. A count of 0 is
no message and is passed over in any page.

    read_fields(run, batch_at, table) -> rows
        One incoming row for each record of an events batch, as many as table has room for.

    add_messages(rows, row, fields, first, last, first_index, enqueued_ms, default_ttl_ms, first_count)
            -> (scheduled, size, due_ms)
        Fill the queue rows from `row` on for the incoming rows fields[first:last], counted from first_count on.
        A message scheduled for later than enqueued_ms is SCHEDULED, its enqueued time the scheduled one; others are
        ACTIVE. It expires when the lesser of its time to live and default_ttl_ms (-1: none) is over behind its enqueued
        time. first_index: the log index of the batch's first record. scheduled: how many. size: bytes of their records.
        due_ms: the least time at which one is to be activated or expires; -1: none.

    copy_messages(rows, row, last_row, default_ttl_ms, out, out_row) -> (row, out_row, size, due_ms)
        Write the queue rows rows[row:last_row] that are not gone to out, from out_row on, until it is full: ACTIVE in
        the main sub-queue, without marks, lock, session and deliveries; what is told of their records, their times and
        M_FIRST stays. One expires no later than default_ttl_ms (-1: none) behind its enqueued time. row: where to go
        on. size: bytes of their records. due_ms: the least time at which one expires; -1: none. out is not rows.

    select_messages(rows, row, page_first, wanted, sub_queue, now_ms, picked, at, last, size, max_bytes)
            -> (at, row, size)
        Write the counts of messages of a sub-queue to picked[at:last], from `row` on. wanted: WANT_READY those that are
        active, carry no mark, and of the main sub-queue have not expired by now_ms; WANT_ANY all there are.
        size: bytes of what was picked before, and answered with what is picked now; a message that would bring it over
        max_bytes ends the selection, unless it is the first of all. row: where to go on; len(rows) behind the page.

    give_messages(rows, page_first, counts, at, last, marks, delivered, lock_number, secret, until_ms, number_base,
            partition, indexes, out) -> at
        Fill the message rows out[at:last] and their log indexes, indexes[at:last], for counts[at:last]; then set marks
        (LOCKED, SETTLING or 0) and count a delivery where delivered is 1. Q_RECORD stays for collect_records.
        lock_number: of counts[0]'s lock, that of counts[i] is i higher; 0: no locks, whose columns are 0 then.
        secret: 16 bytes for the check of tokens. until_ms: the locks' end on the wall clock, -1: none. number_base: is
        added to a count where it is told. partition: of all of them.

    read_tokens(tokens, secret, first_number, next_number, ordinals)
        The ordinal of each token's lock (its number less first_number); -1 where the check is wrong, or the number not
        from first_number to next_number - 1.

    message_tokens(rows, first_row, last_row) -> bytes
        The tokens of the locks on the messages of these message rows (contract.py), back to back.

    find_locks(locks, page_first, ordinals, at, last, now_ms, counts) -> at
        The count of each ordinal's message, into counts; 0 where the lock is over or ends by now_ms, or the ordinal
        is -1 (in any page).

    mark_messages(rows, page_first, counts, at, last, ordinals, first_number, codes) -> at
        Mark messages SETTLING whose locks are to be settled: codes[i] becomes 0 where the message carries that lock
        and is not being settled yet. Elsewhere codes[i] is 1 and counts[i] becomes 0. codes: a bytearray.

    number_ranges(numbers, first, last, ranges) -> pairs
        Write numbers[first:last] as pairs (first, count) of numbers that follow each other, leaving out those that are
        0. ranges has room for a pair each.

    drop_messages(rows, first_row, last_row, tally, locks, at) -> at
        The messages of these rows are gone. tally: one row, to which they are added by what they were. The lock numbers
        of those that are locked are written to locks from `at` on (room for all).

    activate_messages(rows, page_first, counts, at, last, tally, out, out_row) -> (at, out_row, due_ms)
        The messages counts[at:last] are gone here, and rows of out from out_row on, until it is full: ACTIVE, without
        marks and lock, the rest as it was. Those that are gone are passed over. tally: one row, to which they are added
        by what they were. due_ms: the least time at which one of them expires; -1: none. out may be rows.

    end_locks(locks, page_first, ordinals, at, last) -> (at, ended)
        These locks are over. ended: how many of them were not.

    count_deliveries(rows, first_row, last_row, change)
        Add change (1 or -1) to the deliveries of these rows, never below 0; those that are gone, or not in the main
        sub-queue, stay as they are.

    unlock_messages(rows, page_first, counts, at, last, marks, change, most_deliveries, over)
            -> (at, over, lowest_row, due_ms)
        Take marks away, and the lock with LOCKED; add change (0, 1 or -1) to the deliveries in the main sub-queue,
        never below 0. A message that is active in the main sub-queue and has most_deliveries then keeps the mark
        SETTLING, and its count is written to over (room for all). over: how many. lowest_row: the first row that is
        ready now, -1: none. due_ms: the least time at which one of them expires, -1: none.

    due_messages(rows, page_first, state, now_ms, picked) -> (count, due_ms)
        Write the counts of the messages to picked, as many as it has room for, whose time has come: SCHEDULED ones, or
        ACTIVE ones of the main sub-queue that expire, without marks. due_ms: the least time of those that were not
        written; -1: none.

    ended_locks(locks, page_first, now_ms, picked) -> (count, due_ms)
        Write the ordinals of the locks that ended by now_ms to picked, as many as it has room for. due_ms: the least
        end of those that were not written; -1: none.

    least_index(rows) -> int
        The least log index of the messages that are not gone; -1 when all are.

    pack_rows(rows, width, out)
        Write a table to out, small: column by column, where each number is kept by how it differs from the one before,
        and equal differences once. Marks, locks and what is gone should be cleared before (clear_marks).

    unpack_rows(data, start, end, width, rows) -> position
        Fill a table, all of it, from what pack_rows wrote for one of its size. -1: data[start:end] is no such thing.

    clear_marks(rows)
        Take all marks and locks away, and all that is told of messages that are gone.

    collect_records(run, indexes, at, last, rows, out) -> at
        Append the records of these log indexes to out, and write where they lie there to Q_RECORD of rows[at:last]; it
        stops before the first that is not in the run.
"""

from __future__ import annotations

PAGE_ROWS = 4096

# A queue row: one message. M_INDEX: of its record in the log. M_ENQUEUED: its enqueued time, or when it is scheduled.
# M_EXPIRES: ms since 1970; -1: never. M_STATE: bits below. M_LOCK: number of the lock, 0: none. M_SESSION: number of
# its session, -1: none. M_FIRST: the count that the message got first.
M_INDEX, M_ENQUEUED, M_EXPIRES, M_STATE, M_LOCK, M_SESSION, M_FIRST = range(7)
QUEUE_WIDTH = 7

# Bits of M_STATE: the state; the sub-queue; marks; how often it was delivered; from SIZE_SHIFT on the record's bytes.
GONE, ACTIVE, DEFERRED, SCHEDULED = range(4)
STATE_BITS = 3
SUB_QUEUE_SHIFT = 2
SUB_QUEUE_BITS = 12
LOCKED = 16
SETTLING = 32
CHANGED = 64
DELIVERIES_SHIFT = 8
DELIVERIES_MOST = 16777215
SIZE_SHIFT = 32

# An incoming row: one record of an events batch. I_ORDINAL: its place in the batch. -1: absent, null or of another
# type. I_ID: where the value of message-id stands, constructor included; I_SESSION (group-id) and I_KEY
# (x-opt-partition-key, a binary too): where the text stands. I_SCHEDULED: x-opt-scheduled-enqueue-time.
(
    I_ORDINAL, I_RECORD, I_LENGTH, I_TTL, I_SCHEDULED, I_ID, I_ID_LENGTH, I_SESSION, I_SESSION_LENGTH, I_KEY,
    I_KEY_LENGTH,
) = range(11)  # fmt: skip
INCOMING_WIDTH = 11

# A lock row. L_COUNT: of its message, 0 when the lock is over. L_UNTIL: its end on the monotonic clock.
L_COUNT, L_UNTIL = range(2)
LOCK_WIDTH = 2

# A tally row: messages by what they were, deferred dead letters as dead letters, and the bytes of their records.
T_ACTIVE, T_DEAD, T_TRANSFER_DEAD, T_DEFERRED, T_SCHEDULED, T_SIZE, T_MESSAGES = range(7)
TALLY_WIDTH = 7

WANT_READY, WANT_ANY = range(2)
TOKEN_BYTES = 16
SECRET_BYTES = 16
