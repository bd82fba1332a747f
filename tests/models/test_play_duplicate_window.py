"""T1: random walks of the duplicate window's model, played to a fragment; each planted defect of it is found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hubweir.kernels.queue_contract import I_ID, I_ID_LENGTH, INCOMING_WIDTH
from hubweir.queue import duplicate_window
from hubweir.queue.duplicate_window import DuplicateWindow as Table
from hubweir.queue.duplicate_window import hash_of
from hubweir.queue.fragment import Fragment, Times
from hubweir.queue.window_clock import WindowClock
from tests.models.duplicate_window import DuplicateWindow
from tests.models.play_duplicate_window import WindowPlayer
from tests.models.played_fragment import first_difference, play_walks

MODEL = DuplicateWindow(ids=4, room=5, tail_limit=3, units=12, jumps=6, faults=4)
player = partial(WindowPlayer, MODEL)


@pytest.fixture(autouse=True)
def small_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicate_window, "GENERATION_IDS", MODEL.generation)


@pytest.mark.timeout(900)
def test_walks_of_the_model_are_what_the_fragment_does(measure: Callable[[int], int], first_seed: int) -> None:
    actions = play_walks(MODEL, player, range(first_seed, first_seed + measure(10_000)))
    assert actions == {
        "send waits", "send no room", "sync", "consume", "save_snapshot", "time_passes", "clock_jumps ahead",
        "clock_jumps back", "clock_is_right", "kill", "power_cut", "sync_fails",
    }  # fmt: skip


def wall_clock_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WindowClock, "skipped_ms", lambda self, times: 0)


def a_start_believes_the_clock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Table, "newest_ms", property(lambda self: None))


def what_a_refused_send_skipped_is_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WindowClock, "refused", lambda self, skipped_ms: None)


def a_clock_that_was_set_back_skips_nothing(patch: pytest.MonkeyPatch) -> None:
    def logged(self: WindowClock, times: Times, skipped_ms: int) -> None:
        self._ahead_ms += skipped_ms

    patch.setattr(WindowClock, "logged", logged)


def room_is_made_in_advance(patch: pytest.MonkeyPatch) -> None:
    due = Table.due

    def forgotten(self: Table, before_ms: int) -> int:
        many = due(self, before_ms)
        self.forget(before_ms)
        return many

    patch.setattr(Table, "due", forgotten)


def the_oldest_id_decides(patch: pytest.MonkeyPatch) -> None:
    seal = Table._seal

    def sealed(self: Table) -> None:
        seal(self)
        last = self._generations[-1]
        self._generations[-1] = duplicate_window._Generation(last.hashes, last.times, min(last.times))

    patch.setattr(Table, "_seal", sealed)


def skipped_times_in_flight_make_room(patch: pytest.MonkeyPatch) -> None:
    check = Fragment._check_room
    patch.setattr(
        Fragment,
        "_check_room",
        lambda self, messages, oldest_ms: check(self, messages, oldest_ms + self._skipped_under_way_ms),
    )


def ids_in_flight_take_no_room(patch: pytest.MonkeyPatch) -> None:
    check = Fragment._check_room

    def unaware(self: Fragment, messages: int, oldest_ms: int) -> None:
        under_way, self._messages_under_way = self._messages_under_way, 0
        try:
            check(self, messages, oldest_ms)
        finally:
            self._messages_under_way = under_way

    patch.setattr(Fragment, "_check_room", unaware)


def a_dropped_message_begins_anew(patch: pytest.MonkeyPatch) -> None:
    find = Table.duplicates_in

    def renewed(self: Table, data: Any, fields: Any, *, enqueued_ms: int, **said: Any) -> list[int]:
        dropped = find(self, data, fields, enqueued_ms=enqueued_ms, **said)
        for place in dropped:
            start = fields[place * INCOMING_WIDTH + I_ID]
            again = hash_of(data, start, start + fields[place * INCOMING_WIDTH + I_ID_LENGTH])
            self._newest.pop(again, None)
            self._newest[again] = enqueued_ms - self._skipped_ms
        return dropped

    patch.setattr(Table, "duplicates_in", renewed)


def a_snapshot_forgets_what_was_skipped(patch: pytest.MonkeyPatch) -> None:
    encode = Table.encode

    def encoded(self: Table) -> bytes:
        skipped, self._skipped_ms = self._skipped_ms, 0
        try:
            return encode(self)
        finally:
            self._skipped_ms = skipped

    patch.setattr(Table, "encode", encoded)


def a_snapshot_has_the_newest_ids_alone(patch: pytest.MonkeyPatch) -> None:
    encode = Table.encode

    def encoded(self: Table) -> bytes:
        generations, self._generations = self._generations, []
        try:
            return encode(self)
        finally:
            self._generations = generations

    patch.setattr(Table, "encode", encoded)


def the_window_is_a_millisecond_too_long(patch: pytest.MonkeyPatch) -> None:
    find = Table.duplicates_in
    patch.setattr(
        Table,
        "duplicates_in",
        lambda self, data, fields, *, window_ms, **said: find(self, data, fields, window_ms=window_ms + 1, **said),
    )


# Each with what the first difference tells.
PLANTED = {
    wall_clock_counts: "a peek shows",
    a_start_believes_the_clock: "a peek shows",
    what_a_refused_send_skipped_is_lost: "a peek shows",
    a_clock_that_was_set_back_skips_nothing: "there is no room for",
    room_is_made_in_advance: "ids are remembered",
    the_oldest_id_decides: "a peek shows",
    skipped_times_in_flight_make_room: "there is no room for",
    ids_in_flight_take_no_room: "there is no room for",
    a_dropped_message_begins_anew: "ids are remembered",
    a_snapshot_forgets_what_was_skipped: "a peek shows",
    a_snapshot_has_the_newest_ids_alone: "a peek shows",
    the_window_is_a_millisecond_too_long: "a peek shows",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_defect_of_the_fragment_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert PLANTED[plant] in first_difference(MODEL, player)
