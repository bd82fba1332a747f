"""producer_loading.py: what a start finds of a partition's producers, and what damage leaves of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hubweir.errors import CorruptStore, LogOffline, StoreError
from hubweir.event_hub.producer_loading import LoadedProducers, load_producers
from hubweir.event_hub.producer_log import encode_snapshot, note_key
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import Kept
from hubweir.event_hub.tests.test_producer_log import AT_MS, PLAIN, State, events, fence, of, state
from hubweir.messaging_store.log import Log, Note, Refused, Replayed, Run, Snapshot
from hubweir.messaging_store.record import Producer


class SavedLog:
    """A log that has a snapshot, runs and notes, and ends its replay as a test says."""

    def __init__(
        self,
        snapshot: Snapshot | Refused | None = None,
        runs: Iterable[bytes] = (),
        notes: Iterable[Note] = (),
        *,
        outcome: Replayed | Refused | None = None,
        notes_damage: str | None = None,
    ) -> None:
        self.notes = {note.key: note for note in notes}
        self.notes_damage = notes_damage
        self.bounds = SimpleNamespace(first_index=2)
        self._snapshot = snapshot
        self._runs = list(runs)
        self._outcome = outcome
        self.replayed_from: list[int] = []

    def load_snapshot(self, read: Callable[[Snapshot], Any], on_done: Callable[[Any], None]) -> None:
        on_done(read(self._snapshot) if isinstance(self._snapshot, Snapshot) else self._snapshot)

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Any], None]) -> None:
        self.replayed_from.append(index)
        try:
            for run in self._runs:
                visit(Run(run, 0, 0))
        except StoreError as error:
            on_done(Refused(error))
        else:
            on_done(self._outcome or Replayed())


def loaded(log: SavedLog) -> tuple[Any, State]:
    sequences, outcomes = ProducerSequences(), list[Any]()
    load_producers(cast(Log, log), sequences, outcomes.append)
    (outcome,) = outcomes
    return outcome, state(sequences)


SNAPSHOT = Snapshot(4, 100, encode_snapshot(of(PLAIN)))
LATER = Kept(6, 0, 1, AT_MS)


def test_producers_are_what_the_snapshot_and_the_log_behind_it_say() -> None:
    log = SavedLog(SNAPSHOT, [events(Producer(6, 0, 1), 1, index=4)])
    assert loaded(log) == (LoadedProducers(4), [PLAIN, LATER]) and log.replayed_from == [4]


def test_a_log_that_never_had_a_producer_is_not_replayed() -> None:
    log = SavedLog(notes=[Note(b"capture", b"of another owner", 3, 0, AT_MS)])
    assert loaded(log) == (LoadedProducers(None), []) and log.replayed_from == []


def test_a_log_with_notes_of_producers_or_damaged_ones_is_replayed_from_its_begin() -> None:
    log = SavedLog(runs=[events(Producer(6, 0, 1), 1, index=4)], notes=[fence(6, 3, index=8)])
    assert loaded(log) == (LoadedProducers(None), [Kept(6, 3, 1, AT_MS)]) and log.replayed_from == [2]
    outcome, found = loaded(SavedLog(runs=[events(Producer(6, 0, 1), 1, index=4)], notes_damage="the notes are lost"))
    assert (
        found == [LATER]
        and outcome.saved_at is None
        and [str(each) for each in outcome.damage] == ["the notes are lost"]
    )


@pytest.mark.parametrize("is_refused", [False, True])
def test_damage_in_the_log_is_told_and_keeps_no_note_from_being_applied(is_refused: bool) -> None:
    damage = CorruptStore("records 4 to 9 are damaged")
    log = SavedLog(
        SNAPSHOT, [events(Producer(6, 0, 1), 1, index=4)], [fence(6, 3, index=8), fence(5, 9, index=4)],
        outcome=Refused(damage) if is_refused else Replayed((damage,)),
    )  # fmt: skip
    outcome, found = loaded(log)
    assert outcome == LoadedProducers(4, (damage,))
    assert found == [replace(PLAIN, epoch=9), Kept(6, 3, 1, AT_MS)]


@pytest.mark.parametrize("index", [3, 8])
def test_a_fence_that_is_none_is_told_as_damage_wherever_it_stands(index: int) -> None:
    wrong = Note(note_key(7), bytes(3), index + 1, 0, AT_MS)
    log = SavedLog(SNAPSHOT, [events(Producer(6, 0, 1), 1, index=4)], [wrong, fence(6, 2, index=9)])
    outcome, found = loaded(log)
    assert outcome.saved_at == 4 and [type(each) for each in outcome.damage] == [CorruptStore]
    assert found[0] == PLAIN and found[1].epoch == 2


def test_a_snapshot_that_is_none_is_told_and_nothing_is_replayed_on_it() -> None:
    log = SavedLog(Snapshot(4, 100, SNAPSHOT.state + b"x"), [events(Producer(6, 0, 1), 1, index=4)])
    outcome, found = loaded(log)
    assert outcome.saved_at == 4 and "no whole rows" in str(outcome.damage[0]) and found == log.replayed_from == []


def test_a_log_that_cannot_be_read_now_is_refused() -> None:
    for log in (SavedLog(Refused(LogOffline("away"))), SavedLog(SNAPSHOT, outcome=Refused(LogOffline("away")))):
        outcome, _ = loaded(log)
        assert isinstance(outcome, Refused) and type(outcome.error) is LogOffline
