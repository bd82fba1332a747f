"""Restores the state of a log's owner: from the newest snapshot, and what the log holds behind it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from hubweir.messaging_store.log import Log, Refused, Replayed, Run, Snapshot
from hubweir.queue.arrived_records import Data
from hubweir.queue.upkeep import Upkeep


class LoggedState(Protocol):
    """A state that is a function of its log."""

    def apply_run(self, data: Data, *, is_replay: bool, from_index: int = 0) -> object:
        """Take in every batch of a run that begins at an index or behind it."""


S = TypeVar("S", bound=LoggedState)


def load_state(
    log: Log, upkeep: Upkeep, empty: S, decode: Callable[[bytes], S], on_done: Callable[[S | Refused], None]
) -> None:
    """on_done with what the log says. empty: of a log without a snapshot. upkeep: is told where the snapshot is.

    Refused: with the store's error, also where damage hides operations (CorruptStore): which messages there are cannot
    be told without them.
    """

    def replay(found: tuple[Snapshot, S] | None | Refused) -> None:
        if isinstance(found, Refused):
            on_done(found)
            return
        index, state = 0, empty
        if found is not None:
            snapshot, state = found
            index = snapshot.index
            upkeep.snapshot_index, upkeep.snapshot_offset = index, snapshot.offset

        def visit(run: Run) -> None:
            state.apply_run(run.data, is_replay=True, from_index=index)

        def replayed(outcome: Replayed | Refused) -> None:
            if isinstance(outcome, Refused):
                on_done(outcome)
            else:
                on_done(Refused(outcome.damage[0]) if outcome.damage else state)

        log.replay(index, visit, replayed)

    log.load_snapshot(partial(_decoded, decode), replay)


def _decoded(decode: Callable[[bytes], S], snapshot: Snapshot) -> tuple[Snapshot, S]:
    """Away from the loop: the state that a snapshot holds."""
    return snapshot, decode(snapshot.state)
