"""log_replay.py with a log and a state that remember: the newest snapshot first, then all behind it, or the refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.errors import CorruptStore, LogOffline
from hubweir.messaging_store.log import Refused, Replayed, Run, Snapshot
from hubweir.queue.log_replay import load_state

DAMAGE = CorruptStore("planted", first_index=3, resume_index=5)
RUNS = [Run(b"first", 0, 4), Run(b"second", 4, 9)]


class Remembered:
    """A state that remembers which runs it took in, and how."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.taken: list[tuple[bytes, bool, int]] = []

    def apply_run(self, data: Any, *, is_replay: bool, from_index: int = 0) -> None:
        self.taken.append((bytes(data), is_replay, from_index))


class HandLog:
    """A log that has a snapshot or none, and whose replay ends as the test says. asked: from which index."""

    def __init__(self, snapshot: Snapshot | Refused | None, outcome: Replayed | Refused) -> None:
        self.snapshot = snapshot
        self.outcome = outcome
        self.asked: list[int] = []

    def load_snapshot(self, read: Callable[[Snapshot], Any], on_done: Callable[[Any], None]) -> None:
        on_done(read(self.snapshot) if isinstance(self.snapshot, Snapshot) else self.snapshot)

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Replayed | Refused], None]) -> None:
        self.asked.append(index)
        for run in RUNS:
            visit(run)
        on_done(self.outcome)


class Told:
    """What an Upkeep is told."""

    snapshot_index = snapshot_offset = 0


def load(log: HandLog) -> tuple[list[Remembered | Refused], Remembered, Told]:
    """What load_state answers, the state of an empty log, and what upkeep knows then."""
    answers: list[Remembered | Refused] = []
    empty, upkeep = Remembered("empty"), Told()
    decode: Callable[[bytes], Remembered] = lambda state: Remembered(state.decode())  # noqa: E731
    load_state(log, upkeep, empty, decode, answers.append)  # type: ignore[arg-type]
    return answers, empty, upkeep


def test_a_log_without_a_snapshot_is_replayed_from_its_start_into_the_empty_state() -> None:
    log = HandLog(None, Replayed())
    [state], empty, upkeep = load(log)
    assert state is empty and empty.taken == [(b"first", True, 0), (b"second", True, 0)]
    assert log.asked == [0] and (upkeep.snapshot_index, upkeep.snapshot_offset) == (0, 0)


def test_a_snapshot_is_the_state_that_all_behind_it_is_taken_into() -> None:
    """The run that holds the snapshot's index may begin before it: the state is told where to go on."""
    log = HandLog(Snapshot(2, 900, b"saved"), Replayed())
    [state], empty, upkeep = load(log)
    assert isinstance(state, Remembered) and state.said == "saved" and empty.taken == []
    assert state.taken == [(b"first", True, 2), (b"second", True, 2)]
    assert log.asked == [2] and (upkeep.snapshot_index, upkeep.snapshot_offset) == (2, 900)


def test_a_snapshot_that_cannot_be_read_is_the_refusal_and_nothing_is_replayed() -> None:
    refused = Refused(LogOffline("planted"))
    log = HandLog(refused, Replayed())
    answers, empty, _ = load(log)
    assert answers == [refused] and log.asked == [] and empty.taken == []


@pytest.mark.parametrize(
    ("outcome", "error"),
    [(Refused(LogOffline("planted")), LogOffline), (Replayed((DAMAGE, CorruptStore("later"))), CorruptStore)],
    ids=["refused", "damaged"],
)
def test_a_replay_that_did_not_see_all_gives_no_state(outcome: Replayed | Refused, error: type[Exception]) -> None:
    [answer], _, _ = load(HandLog(None, outcome))
    assert isinstance(answer, Refused) and isinstance(answer.error, error)
    assert not isinstance(outcome, Replayed) or answer.error is DAMAGE, "the first damage is told"
