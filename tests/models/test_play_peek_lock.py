"""T1: random walks of the peek-lock model, played to a fragment; each planted defect of the fragment is found."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.kernels.queue_contract import LOCKED, SETTLING
from hubweir.queue.due_messages import DueMessages
from hubweir.queue.fragment import ReceivedMessages, Times
from hubweir.queue.fragment_core import FragmentCore, OnLogged
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.lock_table import LockTable
from hubweir.queue.message_giving import MessageGiving
from hubweir.queue.message_table import MessageTable
from hubweir.queue.operation import DEFERRED, REJECTED, SETTLED, Operation
from hubweir.queue.operation import LOCKED as LOGGED_LOCKED
from hubweir.queue.settle_outcome import TOKEN_BYTES
from hubweir.queue.settlements import Settlements
from hubweir.queue.sub_queue import ReceiveMode
from tests.models.peek_lock import SETTLEMENTS, PeekLock
from tests.models.play_peek_lock import PeekLockPlayer
from tests.models.played_fragment import first_difference, play_walks

MODEL = PeekLock(messages=3, receivers=3, tail_limit=4, faults=4, scheduled=(1,))


@pytest.mark.timeout(900)
def test_walks_of_the_model_are_what_the_fragment_does(measure: Callable[[int], int], first_seed: int) -> None:
    seeds = range(first_seed, first_seed + measure(10_000))
    actions = play_walks(MODEL, lambda: PeekLockPlayer(MODEL), seeds)
    settled = {f"settle {how} lost" for how in SETTLEMENTS} | {f"settle {how} waits" for how in SETTLEMENTS}
    settled = settled - {"settle abandon waits"} | {"settle abandon done", "settle release done"}
    assert actions == settled | {
        "send", "schedule", "activate", "cancel", "lock", "take", "time_over", "run_out", "die", "sync", *MODEL.FAULTS,
    }  # fmt: skip


def settle_after_expiry(patch: pytest.MonkeyPatch) -> None:
    find = LockTable.find
    patch.setattr(LockTable, "find", lambda self, tokens, now_ms: find(self, tokens, 0))


def run_out_while_settling(patch: pytest.MonkeyPatch) -> None:
    def end_locks(self: DueMessages, times: Times) -> None:
        ordinals, counts = self._core.locks.ended(times.monotonic_ms, 100)
        self._core.locks.end_ordinals(ordinals)
        self._core.unlock(counts, marks=LOCKED | SETTLING, change=0)

    patch.setattr(DueMessages, "end_locks", end_locks)


def release_counts(patch: pytest.MonkeyPatch) -> None:
    unlock = FragmentCore.unlock
    patch.setattr(
        FragmentCore, "unlock", lambda self, counts, *, marks, change: unlock(self, counts, marks=marks, change=0)
    )


def locks_not_logged(patch: pytest.MonkeyPatch) -> None:
    gather = FragmentCore.gather_joined

    def gathered(self: FragmentCore, code: int, counts: array[int], on_done: OnLogged | None = None) -> None:
        if code != LOGGED_LOCKED:
            gather(self, code, counts, on_done)

    patch.setattr(FragmentCore, "gather_joined", gathered)


def counts_not_logged_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FragmentCore, "_keep_counts", lambda self, number, operations: None)


def over_not_tried_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FragmentCore, "_over_done", lambda self, over, refused: None)


def taken_before_durable(patch: pytest.MonkeyPatch) -> None:
    def read(self: MessageGiving, given: Any, answer: bytearray) -> None:
        if given.receiver is not None:
            given.receiver.reading = array("q")
        if given.mode is ReceiveMode.RECEIVE_AND_DELETE:
            self._core.gather(self._core.ranged(SETTLED, given.counts))
        given.on_done(ReceivedMessages(memoryview(answer), given.rows))

    patch.setattr(MessageGiving, "read", read)


def tokens_without_start(patch: pytest.MonkeyPatch) -> None:
    begin = LockTable.__init__
    patch.setattr(LockTable, "__init__", lambda self, epoch, secret: begin(self, 1, bytes(16)))


def settled_before_durable(patch: pytest.MonkeyPatch) -> None:
    settle = Settlements.settle

    def early(self: Settlements, tokens: bytes, outcome: Any, times: Times, on_done: Any, details: Any) -> None:
        codes: list[Any] = []
        settle(self, tokens, outcome, times, codes.append, details)
        on_done(codes[0] if codes else bytes(len(tokens) // TOKEN_BYTES))

    patch.setattr(Settlements, "settle", early)


def what_is_put_aside_counts(patch: pytest.MonkeyPatch) -> None:
    """No limit is near it, so its count alone shows that."""
    apply, count_deliveries, applied = FragmentState.apply, MessageTable.count_deliveries, []

    def noting(self: FragmentState, operation: Operation, *, is_replay: bool) -> Any:
        applied.append(operation.code)
        return apply(self, operation, is_replay=is_replay)

    def counted(self: MessageTable, first: int, many: int, change: int) -> None:
        if applied[-1] not in (DEFERRED, REJECTED):
            count_deliveries(self, first, many, change)

    patch.setattr(FragmentState, "apply", noting)
    patch.setattr(MessageTable, "count_deliveries", counted)


def refused_settlement_keeps_its_mark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FragmentCore, "unmark", lambda self, counts, refused: None)


def too_many_failures_are_left_at_a_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageTable, "delivered_often", lambda self, most: array("q"))


# Each with what the first difference tells.
PLANTED = {
    settle_after_expiry: "a request has no answer",
    run_out_while_settling: "the fragment asks for another one",
    release_counts: "a peek shows",
    locks_not_logged: "appends are in flight",
    counts_not_logged_again: "appends are in flight",
    over_not_tried_again: "a peek shows",
    taken_before_durable: "is answered: True",
    tokens_without_start: "a request has no answer",
    settled_before_durable: "is answered: True",
    what_is_put_aside_counts: "a peek shows",
    refused_settlement_keeps_its_mark: "is answered: True",
    too_many_failures_are_left_at_a_start: "appends are in flight",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_defect_of_the_fragment_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert PLANTED[plant] in first_difference(MODEL, lambda: PeekLockPlayer(MODEL))
