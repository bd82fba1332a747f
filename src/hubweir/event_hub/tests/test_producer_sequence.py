"""What is new, what is a duplicate, who is fenced, who is expired; and that the log and a snapshot say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from hubweir.errors import (
    OUT_OF_ORDER_SEQUENCE,
    PRODUCER_EPOCH_STOLEN,
    RESOURCE_LIMIT,
    Condition,
    CorruptStore,
    LogOffline,
    NewerFormat,
    ServiceError,
)
from hubweir.event_hub.producer_log import encode_snapshot, expired_body, replay, restore_snapshot
from hubweir.event_hub.producer_sequence import Kept, Opened, ProducerSequences
from hubweir.messaging_store.log import Appended, Refused, Run
from hubweir.messaging_store.record import (
    CONTROL_EXPIRED_PRODUCERS,
    Producer,
    begin_batch,
    complete_run,
    pack_control,
    seal_batch,
)

OnStored = Callable[[Appended | Refused], None]
OFFLINE = Refused(LogOffline("a sync failed"))


class Table:
    """Producers over appends that complete when the test says so."""

    def __init__(self, **limits: int) -> None:
        self.sequences = ProducerSequences(**limits)
        self.waiting: list[OnStored] = []
        self.written: list[list[int]] = []
        self.openings: Iterator[int] = count(1)
        self.ids = iter(range(1_000, 2_000))

    def open(self, producer_id: int | None = 7, epoch: int | None = 0, number: int | None = 0) -> tuple[int, Opened]:
        opening = next(self.openings)
        opened = self.sequences.open(
            opening, producer_id=producer_id, epoch=epoch, number=number, new_id=self.ids.__next__,
            expire=self.written.append,
        )  # fmt: skip
        return opening, opened

    def send(self, opening: int, first: int, events: int = 1, *, epoch: int = 0, producer_id: int = 7) -> list[object]:
        def append(on_stored: OnStored) -> Appended:
            self.waiting.append(on_stored)
            return Appended(0, 0, 0, 0, 0)

        answers: list[object] = []
        self.sequences.send(opening, producer_id, epoch, first, events, append, answers.append)
        return answers

    def complete(self, outcome: Refused | None = None, *, time_ms: int = 5) -> None:
        waiting, self.waiting = self.waiting, []
        for on_stored in waiting:
            on_stored(outcome or Appended(0, 0, 0, 0, time_ms))

    def refused(self, opening: int, first: int, events: int = 1, *, epoch: int = 0) -> Condition:
        with pytest.raises(ServiceError) as caught:
            self.send(opening, first, events, epoch=epoch)
        assert not self.waiting
        return caught.value.condition


def test_numbers_that_go_on_are_stored_and_count_events_from_one() -> None:
    table = Table()
    opening, _ = table.open()
    table.send(opening, 1, 3)
    table.send(opening, 4)
    assert len(table.waiting) == 2
    table.complete()
    assert table.sequences.kept() == [Kept(7, 0, 4, 5)]


@pytest.mark.parametrize(("first", "events"), [(0, 1), (5, 1), (6, 2), (3, 3), (4, 2), (2**31, 1)])
def test_gaps_and_what_is_partly_stored_are_out_of_order(first: int, events: int) -> None:
    table = Table()
    opening, _ = table.open()
    table.send(opening, 1, 4)
    table.complete()
    if (first, events) == (5, 1):
        table.send(opening, first, events)  # the control: it goes on
        assert len(table.waiting) == 1
    else:
        assert table.refused(opening, first, events) is OUT_OF_ORDER_SEQUENCE


def test_a_duplicate_is_answered_when_its_original_is_durable() -> None:
    table = Table()
    opening, _ = table.open()
    original, duplicate = table.send(opening, 1, 3), table.send(opening, 1, 3)
    assert (original, duplicate) == ([], [])
    assert len(table.waiting) == 1
    table.complete()
    assert duplicate == [None] and len(original) == 1
    assert table.send(opening, 2) == [None]


def test_a_duplicate_of_a_refused_original_is_refused_and_the_number_is_free_again() -> None:
    table = Table()
    opening, _ = table.open()
    first, second, duplicate = table.send(opening, 1), table.send(opening, 2), table.send(opening, 1)
    table.complete(OFFLINE)
    assert first == second == duplicate == [OFFLINE]
    assert table.refused(opening, 2) is OUT_OF_ORDER_SEQUENCE  # what follows a refused one
    assert table.send(opening, 1) == []
    table.complete()
    assert table.sequences.kept()[0].last == 1


def test_a_retry_inside_a_refusal_is_not_undone_by_the_next_refusal() -> None:
    table = Table()
    opening, _ = table.open()
    again: list[list[object]] = []

    def append(on_stored: OnStored) -> Appended:
        table.waiting.append(on_stored)
        return Appended(0, 0, 0, 0, 0)

    table.sequences.send(opening, 7, 0, 1, 1, append, lambda _: again.append(table.send(opening, 1)))
    table.send(opening, 2)
    table.complete(OFFLINE)
    assert table.waiting and again == [[]]
    table.complete()
    assert table.sequences.kept()[0].last == 1


@pytest.mark.parametrize("epoch", [3, 4])
def test_an_equal_or_higher_epoch_takes_over_and_the_old_link_is_fenced(epoch: int) -> None:
    table = Table()
    old, _ = table.open(epoch=3)
    table.send(old, 1, epoch=3)
    table.complete()
    new, opened = table.open(epoch=epoch, number=None)
    assert opened == Opened(7, epoch, 1)
    assert table.refused(old, 2, epoch=3) is PRODUCER_EPOCH_STOLEN
    assert table.send(new, 1, epoch=epoch) == [None]  # a duplicate across epochs
    assert table.send(new, 2, epoch=epoch) == []


def test_a_lower_epoch_does_not_open() -> None:
    table = Table()
    table.open(epoch=3)
    with pytest.raises(ServiceError) as caught:
        table.open(epoch=2)
    assert caught.value.condition is PRODUCER_EPOCH_STOLEN


def test_an_attach_is_echoed_and_only_what_it_leaves_out_is_assigned() -> None:
    table = Table()
    assert table.open(None, None, None)[1] == Opened(1_000, 0, 0)
    assert table.open(9, 2, 57)[1] == Opened(9, 2, 57)
    opening, _ = table.open(11, 0, 0)
    table.send(opening, 1, 4, producer_id=11)
    assert table.open(11, 0, 2)[1] == Opened(11, 0, 2)  # its own word, though 4 is the last one here
    assert table.open(11, None, None)[1] == Opened(11, 1, 4)  # named by nobody: the next epoch, and the last one


def test_a_producer_that_is_not_known_any_more_goes_on_where_it_says() -> None:
    table = Table()
    opening, _ = table.open(number=57)
    assert table.refused(opening, 59) is OUT_OF_ORDER_SEQUENCE
    assert table.send(opening, 58) == []


@pytest.mark.parametrize(("what", "value"), [("producer_id", -1), ("epoch", 2**15), ("number", 2**31)])
def test_values_that_the_wire_has_no_type_for_are_refused(what: str, value: int) -> None:
    with pytest.raises(ServiceError):
        Table().open(**{what: value})


def test_producers_expire_after_their_lifetime_unless_a_link_holds_them() -> None:
    table = Table(lifetime_ms=100)
    for producer_id in (7, 8):
        opening, _ = table.open(producer_id)
        table.send(opening, 1, producer_id=producer_id)
    table.complete(time_ms=1_000)
    table.sequences.close(1)
    assert table.sequences.expired(1_100) == []
    assert table.sequences.expired(1_101) == [7]
    table.sequences.drop([7])
    assert [kept.producer_id for kept in table.sequences.kept()] == [8]


def test_above_the_cap_the_most_silent_one_goes_and_the_log_is_told() -> None:
    table = Table(producers_max=2)
    for producer_id in (7, 8):
        opening, _ = table.open(producer_id)
        table.send(opening, 1, producer_id=producer_id)
        table.complete(time_ms=producer_id)
    with pytest.raises(ServiceError) as caught:
        table.open(9)
    assert caught.value.condition is RESOURCE_LIMIT
    for opening in (1, 2):
        table.sequences.close(opening)
    table.open(9)
    assert table.written == [[7]] and len(table.sequences) == 2


def test_who_never_stored_anything_leaves_nothing_behind() -> None:
    table = Table()
    opening, _ = table.open()
    table.sequences.close(opening)
    opening, _ = table.open(8)
    table.send(opening, 1, producer_id=8)
    table.sequences.close(opening)
    table.complete(OFFLINE)
    assert len(table.sequences) == 0


def batch(producer_id: int, first: int, events: int, *, index: int, epoch: int = 0) -> bytes:
    run = bytearray()
    start = begin_batch(run, producer=Producer(producer_id, epoch, first))
    run += (b"\0\0\0\x20" + bytes(28)) * events
    seal_batch(run, start, count=events)
    return completed(run, index)


def completed(run: bytearray, index: int) -> bytes:
    complete_run(
        run, nonce=1, first_index=index, first_offset=0, enqueued_time_ms=9, durable_upto=0, writer_epoch=1
    )  # fmt: skip
    return bytes(run)


def test_the_log_from_a_snapshot_on_gives_the_same_producers() -> None:
    expired = completed(pack_control(CONTROL_EXPIRED_PRODUCERS, expired_body([8, 99])), 6)
    pieces = [batch(7, 1, 3, index=0), batch(8, 1, 2, index=3), batch(9, 5, 1, index=5, epoch=2), expired]
    pieces.append(batch(7, 4, 2, index=6, epoch=1))
    whole = ProducerSequences()
    replay(whole, [Run(b"".join(pieces), 0, 8)], 0)
    assert whole.kept() == [Kept(7, 1, 5, 9), Kept(9, 2, 5, 9)]
    half = ProducerSequences()
    replay(half, [Run(b"".join(pieces[:3]), 0, 6)], 0)
    rest = ProducerSequences()
    restore_snapshot(rest, encode_snapshot(half))
    assert rest.kept() == half.kept()
    replay(rest, [Run(b"".join(pieces), 0, 8)], 6)
    assert sorted(rest.kept(), key=lambda kept: kept.producer_id) == whole.kept()


def test_a_snapshot_of_another_version_or_length_is_refused() -> None:
    with pytest.raises(NewerFormat):
        restore_snapshot(ProducerSequences(), b"\x02")
    with pytest.raises(CorruptStore):
        restore_snapshot(ProducerSequences(), b"\x01abc")
