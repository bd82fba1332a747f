"""T1: random walks of the session's model, played to a fragment; each planted defect of the fragment is found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hubweir.kernels.queue_contract import LOCKED, SETTLING
from hubweir.queue import session_holds
from hubweir.queue.fragment import Fragment, Times
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.message_session import MessageSession, MessageSessions
from hubweir.queue.operation import SESSION_STATE, Operation
from hubweir.queue.session_holds import SessionHolds
from tests.models.play_session_lock import SessionPlayer
from tests.models.played_fragment import first_difference, play_walks
from tests.models.session_lock import SessionLock

MODEL = SessionLock(messages=3, receivers=3, keepers=3, values=3, tail_limit=4, faults=4)
player = partial(SessionPlayer, MODEL)


@pytest.mark.timeout(900)
def test_walks_of_the_model_are_what_the_fragment_does(measure: Callable[[int], int], first_seed: int) -> None:
    actions = play_walks(MODEL, player, range(first_seed, first_seed + measure(10_000)))
    accepted = {f"{how} {answer}" for how in ("accept", "accept_next") for answer in ("granted", "waits", "refused")}
    hows = ("complete", "abandon", "modify")
    settled = {f"settle {how} {which} lost" for how in hows for which in ("current", "stale")}
    settled |= {"settle complete current waits", "settle modify current waits", "settle abandon current done"}
    assert actions == (accepted - {"accept_next refused"}) | settled | {
        "receive", "renew held", "renew lost", "set_state waits", "set_state lost", "time_over", "lose", "close",
        "sync", *MODEL.FAULTS,
    }  # fmt: skip


def free_before_all_is_decided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FragmentCore, "is_decided", lambda self, number: True)


def an_ending_session_is_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageSession, "is_free", property(lambda self: self.holder is None))


def nothing_is_held_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageSessions, "hold_back", lambda self, messages, counts: None)


def settled_behind_the_end(patch: pytest.MonkeyPatch) -> None:
    def settle(self: Fragment, tokens: bytes, outcome: Any, times: Times, on_done: Any, *, details: Any = None) -> None:
        self._settlements.settle(tokens, outcome, times, on_done, details)

    patch.setattr(Fragment, "settle", settle)


def state_set_behind_the_end(patch: pytest.MonkeyPatch) -> None:
    set_state = SessionHolds.set_state

    def late(self: SessionHolds, session_id: str, state: Any, times: Times, on_done: Any) -> None:
        set_state(self, session_id, state, Times(times.stamp_ms, 0), on_done)

    patch.setattr(SessionHolds, "set_state", late)


def renewed_behind_the_end(patch: pytest.MonkeyPatch) -> None:
    def late(self: SessionHolds, session_id: str, times: Times) -> int:
        return self._hold(self._held(session_id), self._held(session_id).holder, times)

    patch.setattr(SessionHolds, "renew", late)


def state_answered_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    def early(self: SessionHolds, session_id: str, state: Any, times: Times, on_done: Any) -> None:
        self.expire(times)
        session = self._held(session_id)
        self._core.gather([Operation(SESSION_STATE, session_id=session.session_id, state=state)])
        on_done(None)

    patch.setattr(SessionHolds, "set_state", early)


def unlock_at_the_end(patch: pytest.MonkeyPatch, **given: int) -> None:
    """The end of a hold unlocks its messages so."""
    free, unlock = SessionHolds.free, FragmentCore.unlock

    def unlocked(self: FragmentCore, counts: Any, *, marks: int, change: int) -> None:
        unlock(self, counts, **({"marks": marks, "change": change} | given))

    def freed(self: SessionHolds, receiver: Any) -> None:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(FragmentCore, "unlock", unlocked)
            free(self, receiver)

    patch.setattr(SessionHolds, "free", freed)


def a_loss_takes_deliveries_back(patch: pytest.MonkeyPatch) -> None:
    unlock_at_the_end(patch, change=-1)


def what_is_undone_stays_at_its_limit(patch: pytest.MonkeyPatch) -> None:
    unlock = FragmentCore.unlock

    def unlocked(self: FragmentCore, counts: Any, *, marks: int, change: int) -> None:
        if marks == SETTLING:
            self.state.messages.unlock(counts, len(counts), marks=marks, change=change, most_deliveries=1 << 30)
            self.state.sessions.look_again(self.state.messages, counts)
        else:
            unlock(self, counts, marks=marks, change=change)

    patch.setattr(FragmentCore, "unlock", unlocked)


def what_is_settled_is_active_at_the_end_of_its_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(session_holds, "SETTLING", 0)
    unlock_at_the_end(patch, marks=LOCKED | SETTLING)


def the_next_holder_goes_on_behind_the_last_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MessageSessions, "look_again", lambda self, messages, counts: None)


def who_has_lost_a_session_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SessionHolds, "_lose", lambda self, receiver, error: self.free(receiver))


def the_next_session_may_have_no_message(patch: pytest.MonkeyPatch) -> None:
    def next_free(self: MessageSessions, messages: Any, now_ms: int) -> MessageSession | None:
        return next((each for each in self.by_number.values() if each.is_free), None)

    patch.setattr(MessageSessions, "next_free", next_free)


# Each with what the first difference tells.
PLANTED = {
    free_before_all_is_decided: "waits for the session: False",
    an_ending_session_is_free: "who asks is answered",
    nothing_is_held_back: "a message is given, and none may be",
    settled_behind_the_end: "a request has no answer",
    state_set_behind_the_end: "a state is answered",
    renewed_behind_the_end: "a renewal is answered",
    state_answered_before_it_is_durable: "clients wait for",
    a_loss_takes_deliveries_back: "a peek shows",
    what_is_undone_stays_at_its_limit: "message 0 came, not 1",
    what_is_settled_is_active_at_the_end_of_its_hold: "appends are in flight",
    the_next_holder_goes_on_behind_the_last_one: "message 1 came, not 0",
    who_has_lost_a_session_is_not_told: "told of a lost session",
    the_next_session_may_have_no_message: "who asks is answered",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_defect_of_the_fragment_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert PLANTED[plant] in first_difference(MODEL, player)
