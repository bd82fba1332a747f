"""What is new, what is a duplicate, who is fenced and who is expired, with and without a round.

Long because every row of the module's tables, and every order in which a log may answer, is a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from hubweir.errors import (
    OUT_OF_ORDER_SEQUENCE,
    PRODUCER_EPOCH_STOLEN,
    RESOURCE_LIMIT,
    Condition,
    LogOffline,
    ServiceError,
)
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import AttachedProducer, Kept, NumberedSend
from hubweir.messaging_store.log import Appended, Refused

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

    def open(
        self, producer_id: int | None = 7, epoch: int | None = 0, number: int | None = 0, round: int = 0
    ) -> tuple[int, AttachedProducer]:
        opening = next(self.openings)
        opened = self.sequences.open(
            opening, producer_id=producer_id, epoch=epoch, number=number, new_id=self.ids.__next__,
            expire=self.written.append, round=round,
        )  # fmt: skip
        return opening, opened

    def fenced(self, opened: AttachedProducer, *, round: int = 0, number: int | None = None) -> AttachedProducer:
        return self.sequences.fenced(opened, number=number, round=round, time_ms=3)

    def attach(self, round: int, epoch: int | None = None) -> tuple[int, AttachedProducer]:
        """As a sink that resumes; the fence is durable."""
        opening, opened = self.open(7, epoch, None, round)
        assert opened.needs_fence
        return opening, self.fenced(opened, round=round)

    def send(
        self, opening: int, first: int, events: int = 1, *, epoch: int = 0, producer_id: int = 7, round: int = 0,
        digest: int = 0,
    ) -> list[object]:  # fmt: skip
        def append(on_stored: OnStored) -> Appended:
            self.waiting.append(on_stored)
            return Appended(0, 0, 0, 0, 0)

        answers: list[object] = []
        self.sequences.send(
            opening, NumberedSend(producer_id, epoch, first, events, round, digest), append, answers.append
        )
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

    table.sequences.send(opening, NumberedSend(7, 0, 1, 1), append, lambda _: again.append(table.send(opening, 1)))
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
    assert opened == AttachedProducer(7, epoch, 1, needs_fence=epoch == 4)
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
    assert table.open(None, None, None)[1] == AttachedProducer(1_000, 0, 0)
    assert table.open(9, 2, 57)[1] == AttachedProducer(9, 2, 57, needs_fence=True, begins=True)
    opening, _ = table.open(11, 0, 0)
    table.send(opening, 1, 4, producer_id=11)
    assert table.open(11, 0, 2)[1] == AttachedProducer(11, 0, 2, needs_fence=True)  # its own word, though 4 came
    assert table.open(11, None, None)[1] == AttachedProducer(
        11, 1, 4, needs_fence=True
    )  # the next epoch, and the last one


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
    table = Table(producers_limit=2)
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


# -- fences and rounds


def test_only_the_lowest_epoch_of_a_producer_that_nobody_knows_needs_no_fence() -> None:
    table = Table()
    assert not table.open(7, 0)[1].needs_fence and not table.open(None, None, None)[1].needs_fence
    assert table.open(8, 1)[1].needs_fence and table.open(9, 0, None, 1)[1].needs_fence


def test_a_fence_that_is_durable_is_kept_and_not_written_again() -> None:
    table = Table()
    _, opened = table.open(8, 5, 57)
    assert table.fenced(opened, number=57) == opened
    assert table.sequences.kept() == [Kept(8, 5, 0, 3)]
    assert not table.open(8, 5, 57)[1].needs_fence
    opening, opened = table.open(8, 5, 60)
    assert opened.number == 60, "nothing was stored, so its word still counts"
    assert table.send(opening, 61, epoch=5, producer_id=8) == []


def test_a_fence_answers_with_what_became_durable_before_it() -> None:
    table = Table()
    old, _ = table.open()
    table.send(old, 1, 2)
    table.complete()
    table.send(old, 3, 2)
    _, opened = table.open(epoch=1, number=None)
    assert opened.number == 4 and opened.needs_fence
    table.complete(OFFLINE)
    assert table.fenced(opened).number == 2


def test_the_same_round_resumes_with_the_last_number_its_digest_and_the_next_epoch() -> None:
    table = Table()
    first, opened = table.attach(5)
    assert (opened.epoch, opened.number, opened.digest) == (0, 0, 0)
    table.send(first, 1, 3, round=5, digest=77)
    table.complete()
    table.send(first, 4, round=5, digest=88)
    again, opened = table.open(7, None, None, 5)
    table.complete()
    opened = table.fenced(opened, round=5)
    assert (opened.epoch, opened.number, opened.digest) == (1, 4, 88)
    assert table.refused(first, 5) is PRODUCER_EPOCH_STOLEN
    assert table.send(again, 2, 3, epoch=1, round=5, digest=9) == [None], "a duplicate is taken, and changes nothing"
    assert table.sequences.kept() == [Kept(7, 1, 4, 3, 5, 88)]


def test_a_higher_round_begins_at_number_one_with_epoch_zero() -> None:
    table = Table()
    table.attach(5)
    old, _ = table.attach(5)
    table.send(old, 1, 3, epoch=1, round=5, digest=77)
    table.complete()
    new, opened = table.attach(6)
    assert (opened.epoch, opened.number, opened.digest) == (0, 0, 0)
    assert table.refused(old, 4, epoch=1) is PRODUCER_EPOCH_STOLEN
    assert table.send(new, 1, round=6, digest=5) == []
    table.complete()
    assert table.sequences.kept() == [Kept(7, 0, 1, 5, 6, 5)]


@pytest.mark.parametrize("lower", [0, 4])
def test_a_lower_round_or_none_is_fenced(lower: int) -> None:
    table = Table()
    table.attach(5)
    with pytest.raises(ServiceError) as caught:
        table.open(7, 9, None, lower)
    assert caught.value.condition is PRODUCER_EPOCH_STOLEN


def test_what_an_older_round_had_on_its_way_changes_nothing_of_the_newer_one() -> None:
    table = Table()
    old, _ = table.attach(5)
    sent = table.send(old, 1, 3, round=5, digest=77)
    new, opened = table.open(7, None, None, 6)
    table.complete()
    assert len(sent) == 1 and table.sequences.kept() == [Kept(7, 0, 3, 5, 5, 77)], "the log has no fence yet"
    assert table.fenced(opened, round=6).number == 0
    assert table.refused(new, 2, epoch=0) is PRODUCER_EPOCH_STOLEN  # of no round
    assert table.send(new, 1, 2, round=6) == []
    refused = table.send(new, 3, round=6)
    table.complete(OFFLINE)
    assert refused == [OFFLINE]
    assert table.send(new, 1, round=6) == []


def test_a_round_goes_with_a_null_number_and_its_epochs_end() -> None:
    table = Table()
    with pytest.raises(ServiceError, match="null"):
        table.open(7, None, 4, 5)
    table.attach(5, 2**15 - 1)
    with pytest.raises(ServiceError) as caught:
        table.open(7, None, None, 5)
    assert caught.value.condition is RESOURCE_LIMIT
    assert table.attach(6)[1].epoch == 0


def test_producers_with_rounds_live_longer_and_do_not_make_room_for_others() -> None:
    table = Table(lifetime_ms=100, resuming_lifetime_ms=1_000, producers_limit=1)
    opening, _ = table.attach(1)
    table.sequences.close(opening)
    assert table.sequences.expired(500) == [] and table.sequences.expired(1_004) == [7]
    with pytest.raises(ServiceError) as caught:
        table.open(9)
    assert caught.value.condition is RESOURCE_LIMIT and table.written == []


def test_a_refusal_that_comes_late_changes_nothing_of_what_was_sent_after_an_earlier_one() -> None:
    """A log tells refusals one by one, and who hears of the first may send again before the second comes."""
    table = Table()
    opening, _ = table.open()
    table.send(opening, 1)
    table.send(opening, 2)
    first, second = table.waiting
    table.waiting = []
    first(OFFLINE)
    again = table.send(opening, 1)
    assert len(table.waiting) == 1
    second(OFFLINE)
    repeated = table.send(opening, 1)
    assert len(table.waiting) == 1, "it is on its way: a second one would be stored twice"
    assert not table.send(opening, 2)
    table.complete()
    assert [type(answer) for answer in again] == [Appended] and repeated == [None]


def test_a_producer_that_has_something_on_its_way_does_not_expire() -> None:
    table = Table(lifetime_ms=1_000)
    opening, _ = table.open()
    table.send(opening, 1)
    table.complete(time_ms=5)
    table.send(opening, 2)
    table.sequences.close(opening)
    assert table.sequences.expired(10_000) == []
    table.complete(time_ms=9_500)
    assert table.sequences.expired(10_000) == []
    assert [kept.last for kept in table.sequences.kept()] == [2]
    assert table.sequences.expired(10_501) == [7]
