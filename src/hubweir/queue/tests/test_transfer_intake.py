"""transfer_intake.py: what a destination answers to a transfer, while it is stored, behind it, and to an older attempt.

The log is a list: a test says when a run becomes visible, and whether.
"""

from __future__ import annotations

from array import array
from typing import Any, cast

import pytest
from msgspec import Struct

from hubweir.errors import RESOURCE_LIMIT, SERVER_BUSY, LogOffline, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_values import NumberRange, OnDone, Times
from hubweir.queue.operation import RECEIVED, decode_operation
from hubweir.queue.transfer_intake import TransferIntake

NOW, LATER = Times(1_000, 10), Times(2_000, 20)
A, B = b"source a", b"source b"


class Received(Struct):
    """The highest number of each source, as the log says."""

    received: dict[bytes, int]


class State(Struct):
    transfers: Received


class Core(Struct):
    """What intake asks of a fragment."""

    entity: str
    state: State


class Run(Struct):
    """One run on its way to the log."""

    messages: int
    operations: list[bytes]
    times: Times
    on_done: OnDone[NumberRange]


class Destination:
    """A fragment whose log does what the test says; answers: each with the name that the test gave its question."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}
        core = Core("orders", State(Received(self.known)))
        self.intake = TransferIntake(cast(FragmentCore, core), self._store)
        self.runs: list[Run] = []
        self.answers: list[tuple[str, Any]] = []
        self.refuses: ServiceError | None = None

    def _store(
        self, run: bytearray, messages: int, operations: list[bytes], times: Times, on_done: OnDone[NumberRange]
    ) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.runs.append(Run(messages, operations, times, on_done))

    def store(self, name: str, attempt: int, number: int, many: int = 2, source: bytes = A, times: Times = NOW) -> None:
        """Offer a transfer of so many messages; 0: ask."""
        firsts, ends = array("q", range(1, many + 1)), array("q", [0] * many)
        self.intake.store(
            source,
            attempt,
            number,
            bytearray(many),
            firsts,
            ends,
            times,
            lambda answer: self.answers.append((name, answer)),
        )

    def becomes_visible(self) -> None:
        """The oldest run; the state says so before anybody is told."""
        run = self.runs.pop(0)
        operation = decode_operation(memoryview(run.operations[0]))
        self.known[operation.name] = operation.number
        run.on_done(NumberRange(100, 100 + run.messages))

    def is_refused(self, outcome: Refused | ServiceError) -> None:
        self.runs.pop(0).on_done(outcome)


@pytest.fixture
def there() -> Destination:
    return Destination()


def test_messages_are_stored_behind_the_word_of_their_transfer_and_the_answer_waits_for_the_log(
    there: Destination,
) -> None:
    there.store("it", 1, 5)
    [run] = there.runs
    [record] = run.operations
    said = decode_operation(memoryview(record))
    assert (said.code, said.number, said.name, list(said.firsts), list(said.ends_ms)) == (
        RECEIVED,
        5,
        A,
        [1, 2],
        [0, 0],
    )
    assert (run.messages, run.times, there.answers) == (2, NOW, [])
    there.becomes_visible()
    assert there.answers == [("it", True)]


@pytest.mark.parametrize("number", [4, 5])
@pytest.mark.parametrize("many", [0, 2])
def test_what_was_stored_before_is_not_stored_again(there: Destination, number: int, many: int) -> None:
    there.known[A] = 5
    there.store("again", 1, number, many)
    assert (there.runs, there.answers) == ([], [("again", True)])


def test_sources_count_for_themselves(there: Destination) -> None:
    there.known[A] = 5
    there.store("of another", 1, 5, source=B)
    there.store("the next", 1, 6)
    assert [run.messages for run in there.runs] == [2, 2] and there.answers == []


def test_a_question_is_answered_at_once_and_no_earlier_attempt_is_taken_behind_it(there: Destination) -> None:
    there.store("asked", 3, 5, many=0)
    assert there.answers == [("asked", False)]
    for many in (0, 2):
        with pytest.raises(ServiceError, match="'orders' was offered this transfer anew") as refused:
            there.store("late", 2, 5, many)
        assert refused.value.condition is SERVER_BUSY
    there.store("of another source", 2, 5, source=B)
    there.store("the same attempt", 3, 5)
    assert len(there.runs) == 2


def test_whoever_asks_while_it_is_stored_hears_how_that_ended(there: Destination) -> None:
    there.store("first", 1, 5)
    there.store("question", 2, 5, many=0, times=LATER)
    there.store("once more", 2, 5, times=LATER)
    assert len(there.runs) == 1 and there.answers == []
    there.becomes_visible()
    assert there.answers == [("first", True), ("question", True), ("once more", True)] and there.runs == []


def test_where_the_log_refused_a_question_hears_no_and_an_offer_is_stored(there: Destination) -> None:
    refused = Refused(LogOffline("the disk is full"))
    there.store("first", 1, 5)
    there.store("question", 2, 5, many=0)
    there.store("offer", 2, 5)
    there.is_refused(refused)
    assert there.answers == [("first", refused), ("question", False)]
    there.becomes_visible()
    assert there.answers[2:] == [("offer", True)]


def test_an_offer_that_waited_and_was_made_anew_meanwhile_is_refused(there: Destination) -> None:
    there.store("first", 1, 5)
    there.store("waits", 2, 5)
    there.store("anew", 3, 5, many=0)
    there.is_refused(ServiceError(RESOURCE_LIMIT, "over the quota"))
    (_, over_quota), (name, error), last = there.answers
    assert over_quota.condition is RESOURCE_LIMIT
    assert name == "waits" and error.condition is SERVER_BUSY
    assert last == ("anew", False) and there.runs == []


def test_a_refusal_at_once_leaves_nothing_that_others_wait_for(there: Destination) -> None:
    there.refuses = ServiceError(RESOURCE_LIMIT, "over the quota")
    with pytest.raises(ServiceError, match="over the quota"):
        there.store("refused", 1, 5)
    there.refuses = None
    there.store("later", 1, 5)
    there.becomes_visible()
    assert there.answers == [("later", True)]
