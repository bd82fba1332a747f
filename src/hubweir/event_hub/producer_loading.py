"""Reads the idempotent producers of a partition whose log was just opened: from snapshot, notes and log.

What they say is producer_log.py. After a crash: nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.errors import CorruptStore
from hubweir.event_hub.producer_log import ProducerReplay, producer_notes, restore_snapshot
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.messaging_store.log import Log, Refused, Replayed, Snapshot


@dataclass(frozen=True, slots=True)
class LoadedProducers:
    """saved_at: the index that the newest snapshot covers, None when there is none. damage: what could not be read."""

    saved_at: int | None
    damage: tuple[CorruptStore, ...] = ()


def load_producers(
    log: Log, sequences: ProducerSequences, on_done: Callable[[LoadedProducers | Refused], None]
) -> None:
    """Read the producers of a partition from its newest snapshot and the log behind it; on_done comes later.

    What damage took from the log is not known: a producer's repeated send may then be stored twice, or an older epoch
    be let in. What follows the damage counts.
    """

    def read(snapshot: Snapshot) -> tuple[int, CorruptStore | None]:
        try:
            restore_snapshot(sequences, snapshot.state)
        except CorruptStore as error:
            return snapshot.index, error
        return snapshot.index, None

    def restored(found: tuple[int, CorruptStore | None] | None | Refused) -> None:
        if isinstance(found, Refused):
            on_done(found)
            return
        notes = log.notes.values()
        damage = () if log.notes_damage is None else (CorruptStore(log.notes_damage),)
        saved_at, error = (None, None) if found is None else found
        if error is not None or (found is None and not damage and not producer_notes(notes)):
            on_done(LoadedProducers(saved_at, damage if error is None else (*damage, error)))
            return
        start = log.bounds.first_index if saved_at is None else saved_at
        replay = ProducerReplay(sequences, notes, start)
        log.replay(start, replay.visit, lambda outcome: on_done(_loaded(saved_at, damage, replay, outcome)))

    log.load_snapshot(read, restored)


def _loaded(
    saved_at: int | None, damage: tuple[CorruptStore, ...], replay: ProducerReplay, outcome: Replayed | Refused
) -> LoadedProducers | Refused:
    if isinstance(outcome, Replayed):
        damage = (*damage, *outcome.damage)
    elif isinstance(outcome.error, CorruptStore):
        damage = (*damage, outcome.error)
    else:
        return outcome
    try:
        replay.end()
    except CorruptStore as error:
        damage = (*damage, error)
    return LoadedProducers(saved_at, damage)
