"""Rows in pages: what is ready, due, dropped, over the ends of pages."""

from __future__ import annotations

from array import array

from hubweir.kernels.queue_contract import (
    ACTIVE,
    DEFERRED,
    I_LENGTH,
    I_ORDINAL,
    I_SCHEDULED,
    INCOMING_WIDTH,
    LOCKED,
    M_FIRST,
    M_SESSION,
    PAGE_ROWS,
    QUEUE_WIDTH,
    SCHEDULED,
    SETTLING,
    T_ACTIVE,
    T_MESSAGES,
    T_SCHEDULED,
    T_SIZE,
)
from hubweir.queue.message_table import MessageTable

BIG = 1 << 40


def table(messages: int, *, scheduled_ms: int = -1, into: MessageTable | None = None) -> MessageTable:
    """Messages of 10 bytes each, enqueued at 100."""
    made = into or MessageTable()
    fields = array("q", [-1] * INCOMING_WIDTH * messages)
    fields[I_ORDINAL::INCOMING_WIDTH] = array("q", range(messages))
    fields[I_LENGTH::INCOMING_WIDTH] = array("q", [10]) * messages
    fields[I_SCHEDULED::INCOMING_WIDTH] = array("q", [scheduled_ms]) * messages
    made.add(fields, messages, first_index=0, enqueued_ms=100, default_ttl_ms=-1)
    return made


def ready(messages: MessageTable, most: int = 20_000, sub_queue: int = 0) -> list[int]:
    picked = array("q", bytes(8 * most))
    many, _ = messages.select(sub_queue, 200, picked, most, BIG)
    return list(picked[:many])


def test_messages_are_selected_in_order_over_pages() -> None:
    assert ready(table(10_000)) == list(range(1, 10_001))


def test_what_was_passed_over_is_found_again_when_it_is_unlocked() -> None:
    messages = table(10_000)
    taken = array("q", ready(messages, 9_000))
    messages.mark_settling(taken)
    rest = ready(messages)
    assert rest == list(range(9_001, 10_001))
    messages.mark_settling(array("q", rest))
    messages.unlock(array("q", [5_000, 3, 8_999]), 3, marks=SETTLING, change=0, most_deliveries=10)
    assert ready(messages) == [3, 5_000, 8_999]


def test_all_that_is_active_without_a_mark_is_found_page_by_page_wherever_others_were_given_from() -> None:
    messages = table(9_000)
    ready(messages, 8_500)  # what was given is not looked at again, unless it comes back
    messages.mark_settling(array("q", [2, 8_999]))
    messages.place(3, 1, DEFERRED, None)
    messages.place(4, 1, ACTIVE, 1)
    messages.drop([(1, 1), (5, 8_000)])
    found = [page.first + at // QUEUE_WIDTH for page, at in messages.ready_in(0)]
    assert found == [*range(8_005, 8_999), 9_000]
    assert [page.first + at // QUEUE_WIDTH for page, at in messages.ready_in(1)] == [4]
    brief, fields = MessageTable(), array("q", [-1] * INCOMING_WIDTH)
    fields[I_ORDINAL], fields[I_LENGTH] = 0, 10
    brief.add(fields, 1, first_index=0, enqueued_ms=100, default_ttl_ms=1)
    assert [at for _, at in brief.ready_in(0)] == [0] and ready(brief) == [], "expired, and there"


def test_messages_are_put_into_sessions_in_a_row_and_with_others_between_them_over_pages() -> None:
    messages = table(2 * PAGE_ROWS)
    in_a_row = range(PAGE_ROWS - 2, PAGE_ROWS + 4)
    scattered = [5, 9, PAGE_ROWS - 10, PAGE_ROWS + 100]
    messages.in_sessions(in_a_row, array("q", (7, 6, 7, 6, 7, 6)))
    messages.in_sessions(scattered, array("q", (8, 9, 8, 9)))
    numbers = [number for page in messages.pages.values() for number in page.rows[M_SESSION::QUEUE_WIDTH]]
    found = {count: number for count, number in enumerate(numbers, 1) if number >= 0}
    by_turns = dict(zip(in_a_row, (7, 6) * 3, strict=True)) | dict(zip(scattered, (8, 9) * 2, strict=True))
    assert found == by_turns


def test_pages_whose_messages_are_all_gone_are_dropped_but_not_the_newest() -> None:
    messages = table(2 * PAGE_ROWS + 10)
    messages.drop([(2, PAGE_ROWS - 1)])
    assert list(messages.pages) == [0, 1, 2]
    messages.drop([(1, 1)])
    assert list(messages.pages) == [1, 2]
    messages.drop([(PAGE_ROWS + 1, PAGE_ROWS + 10)])
    assert list(messages.pages) == [2]
    assert messages.tally == array("q", [0] * 7)
    table(5, into=messages)
    assert ready(messages) == list(range(2 * PAGE_ROWS + 11, 2 * PAGE_ROWS + 16))


def test_a_page_that_was_filled_and_dropped_is_followed_by_the_next() -> None:
    messages = table(PAGE_ROWS)
    messages.drop([(1, PAGE_ROWS)])
    assert not messages.pages
    table(1, into=messages)
    assert ready(messages) == [PAGE_ROWS + 1]


def test_a_range_that_is_dropped_twice_counts_once() -> None:
    messages = table(100)
    messages.drop([(10, 20)])
    messages.drop([(1, 100)])
    assert messages.tally[T_MESSAGES] == messages.tally[T_SIZE] == messages.tally[T_ACTIVE] == 0


def test_activated_messages_go_to_the_end_and_expire_from_there() -> None:
    messages = table(PAGE_ROWS - 2, scheduled_ms=150)
    table(5, into=messages)
    assert messages.next_due_ms == 150
    assert ready(messages) == list(range(PAGE_ROWS - 1, PAGE_ROWS + 4))
    due = messages.due(150, SCHEDULED, 10_000)
    assert len(due) == PAGE_ROWS - 2
    messages.mark_settling(due)
    assert messages.next_due_ms is None
    messages.activate(array("q", range(1, PAGE_ROWS - 1)))
    assert ready(messages)[-1] == 2 * PAGE_ROWS + 1
    assert messages.tally[T_ACTIVE] == PAGE_ROWS + 3 and messages.find(1) is None


def test_messages_of_many_pages_are_activated_in_the_order_that_is_said() -> None:
    messages = table(2 * PAGE_ROWS, scheduled_ms=150)
    messages.drop([(7, 1)])
    messages.activate(array("q", [PAGE_ROWS + 1, 3, 7, 2 * PAGE_ROWS, 2]))
    first = 2 * PAGE_ROWS + 1
    assert ready(messages) == [first, first + 1, first + 2, first + 3]
    rows = messages.pages[2].rows
    assert list(rows[M_FIRST::QUEUE_WIDTH]) == [PAGE_ROWS + 1, 3, 2 * PAGE_ROWS, 2]
    assert [messages.find(count) for count in (PAGE_ROWS + 1, 3, 7, 2 * PAGE_ROWS, 2)] == [None] * 5
    left = 2 * PAGE_ROWS - 5
    assert messages.tally[T_SCHEDULED] == left and messages.tally[T_MESSAGES] == left + 4
    assert messages.tally[T_SIZE] == 10 * (left + 4)
    assert [page.live for page in messages.pages.values()] == [PAGE_ROWS - 3, PAGE_ROWS - 2, 4]


def test_a_page_whose_last_message_is_activated_is_dropped() -> None:
    messages = table(PAGE_ROWS, scheduled_ms=150)
    messages.activate(array("q", range(1, PAGE_ROWS + 1)))
    assert list(messages.pages) == [1] and len(ready(messages)) == PAGE_ROWS


def test_only_so_many_are_due_at_once_and_the_page_stays_due() -> None:
    messages = table(10, scheduled_ms=150)
    due = messages.due(150, SCHEDULED, 4)
    assert list(due) == [1, 2, 3, 4]
    messages.mark_settling(due)
    assert messages.next_due_ms == 150
    assert list(messages.due(150, SCHEDULED, 100)) == [5, 6, 7, 8, 9, 10]


def test_a_placed_message_is_counted_where_it_is() -> None:
    messages = table(10)
    assert list(messages.place(2, 3, DEFERRED, None)) == []
    messages.place(4, 3, ACTIVE, 1)
    assert ready(messages) == [1, 7, 8, 9, 10]
    assert ready(messages, sub_queue=1) == [4, 5, 6]
    assert list(messages.tally) == [5, 3, 0, 2, 0, 100, 10]


def test_the_locks_of_dropped_messages_are_told() -> None:
    messages = table(5)
    counts = array("q", [2, 3])
    messages.give(
        counts, 2, marks=LOCKED, delivered=1, lock_number=700, secret=bytes(16), until_ms=0, number_base=0,
        partition=-1, indexes=array("q", [0, 0]), out=array("q", bytes(8 * 26)),
    )  # fmt: skip
    assert list(messages.drop([(1, 5)])) == [700, 701]


def test_ranges_of_several_pages_are_dropped_together_in_any_order() -> None:
    messages = table(3 * PAGE_ROWS)
    dropped = [(2, 3), (10, 1), (PAGE_ROWS, 2), (1, 1), (2 * PAGE_ROWS + 1, PAGE_ROWS), (PAGE_ROWS - 1, 1)]
    counts = array("q", [3, 10, PAGE_ROWS + 1, 20, 1])
    messages.give(
        counts, 5, marks=LOCKED, delivered=1, lock_number=700, secret=bytes(16), until_ms=0, number_base=0,
        partition=-1, indexes=array("q", bytes(8 * 5)), out=array("q", bytes(8 * 5 * 13)),
    )  # fmt: skip
    assert list(messages.drop(dropped)) == [700, 701, 702, 704]
    gone = {count for first, many in dropped for count in range(first, first + many)}
    there = [count for count in range(1, 3 * PAGE_ROWS + 1) if messages.find(count)]
    assert there == [count for count in range(1, 3 * PAGE_ROWS + 1) if count not in gone]
    assert (messages.tally[T_MESSAGES], list(messages.pages)) == (len(there), [0, 1])


def test_what_was_delivered_too_often_is_marked_in_every_page_of_the_main_sub_queue() -> None:
    messages = table(2 * PAGE_ROWS + 10)
    often = [1, PAGE_ROWS, PAGE_ROWS + 1, 2 * PAGE_ROWS + 10]
    for count in often:
        messages.count_deliveries(count, 1, 1)
        messages.count_deliveries(count, 1, 1)
    messages.count_deliveries(7, 1, 1)
    assert list(messages.delivered_often(2)) == often
    assert list(messages.delivered_often(2)) == []  # they are marked
    there = ready(messages)
    assert len(there) == 2 * PAGE_ROWS + 10 - len(often) and not set(there) & set(often)


def test_a_page_is_packed_anew_when_messages_of_it_are_gone() -> None:
    messages = table(10, scheduled_ms=150)
    page = messages.pages[0]
    before = messages.pack(page)
    messages.drop([(3, 1)])
    dropped = messages.pack(page)
    messages.activate(array("q", [4]))
    assert len({before, dropped, messages.pack(page)}) == 3


def test_what_was_due_is_due_again_where_nothing_became_of_it() -> None:
    messages = table(10, scheduled_ms=150)
    due = messages.due(150, SCHEDULED, 100)
    messages.mark_settling(due)
    assert not messages.due(150, SCHEDULED, 100)
    messages.unlock(due, len(due), marks=SETTLING, change=0, most_deliveries=10)
    messages.look_again(messages.pages[0])
    assert messages.next_due_ms == 0 and messages.due(150, SCHEDULED, 100) == due


def test_a_page_that_is_restored_knows_what_of_it_is_due() -> None:
    messages, restored = table(10, scheduled_ms=150), MessageTable()
    data = memoryview(messages.pack(messages.pages[0]))
    assert restored.restore(0, 10, data, 0, len(data))
    assert list(restored.due(100, SCHEDULED, 100)) == [] and restored.next_due_ms is not None
    assert list(restored.due(150, SCHEDULED, 100)) == list(range(1, 11))
