"""A window of duplicate detection is never shorter than it should be, whatever the wall clock does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.errors import RESOURCE_LIMIT, ServiceError
from hubweir.queue.fragment import Times
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.tests.conftest import QueueBench, bodies, message
from hubweir.queue.window_clock import SLACK_MS, WindowClock
from hubweir.testing.memory_faults import Fault

WINDOW_MS = 20_000


@pytest.fixture
def window(bench_with: Callable[..., QueueBench]) -> QueueBench:
    return bench_with(duplicate_window_ms=WINDOW_MS)


def is_dropped(window: QueueBench, message_id: str) -> bool:
    before = window.fragment.counts().active
    window.send("again", message_id=message_id)
    return window.fragment.counts().active == before


@pytest.mark.parametrize("jump_ms", [WINDOW_MS, 59_000, 10**9])
def test_a_jump_ahead_ends_no_window_and_what_passes_then_does(window: QueueBench, jump_ms: int) -> None:
    window.send("a", message_id="m")
    window.env.jump(jump_ms)
    assert is_dropped(window, "m")
    window.run_for(WINDOW_MS // 2)
    window.send("b", message_id="between")
    window.run_for(WINDOW_MS // 2 - 300)
    assert is_dropped(window, "m")
    window.run_for(300 + SLACK_MS)
    assert not is_dropped(window, "m")
    assert is_dropped(window, "between")


def test_many_small_jumps_end_no_window(window: QueueBench) -> None:
    window.send("a", message_id="m")
    for _ in range(30):
        window.env.jump(1_000)
        assert is_dropped(window, "m")


def test_a_clock_that_is_set_back_and_right_again_ends_no_window(window: QueueBench) -> None:
    window.env.jump(-60_000)
    window.send("a", message_id="m")
    window.env.jump(-3_000)
    window.send("b", message_id="n")
    window.env.jump(3_000 + WINDOW_MS)
    assert is_dropped(window, "m") and is_dropped(window, "n")


@pytest.mark.parametrize("with_snapshot", [False, True])
@pytest.mark.parametrize("jump_ms", [0, 86_400_000])
def test_time_before_a_start_that_nobody_saw_pass_does_not_count(
    window: QueueBench, with_snapshot: bool, jump_ms: int
) -> None:
    window.send("a", message_id="m")
    window.env.jump(40_000)
    window.send("b", message_id="n")
    if with_snapshot:
        window.fragment.upkeep.snapshot_records = 1
        window.fragment.maintain(window.times())
        window.run_for(500)
    window.env.jump(jump_ms)
    window.restart()
    for each in window.receive(wait_ms=500):  # what is logged before a send must not hide what was skipped
        window.settle([each])
    assert is_dropped(window, "m") and is_dropped(window, "n")
    window.restart()
    assert is_dropped(window, "m") and is_dropped(window, "n")
    window.run_for(WINDOW_MS)
    assert not is_dropped(window, "m") and not is_dropped(window, "n")


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_what_was_logged_behind_a_jump_and_before_a_start_hides_it_from_no_window(
    window: QueueBench, with_snapshot: bool
) -> None:
    window.send("a", message_id="m")
    window.env.jump(WINDOW_MS)
    (got,) = window.receive()  # logged with a stamp of the new time, and nobody sends
    window.complete([got])
    if with_snapshot:
        window.fragment.upkeep.snapshot_records = 1
        window.fragment.maintain(window.times())
        window.run_for(500)
    window.restart()
    assert is_dropped(window, "m")
    window.run_for(WINDOW_MS + SLACK_MS)
    assert not is_dropped(window, "m")


@pytest.mark.parametrize("wait_ms", [0, 50])
def test_a_clock_that_was_ahead_while_something_else_was_logged_ends_no_window(
    window: QueueBench, wait_ms: int
) -> None:
    window.send("a", message_id="m")
    (got,) = window.receive()
    window.env.jump(WINDOW_MS)
    window.fragment.settle(got.token, SettleOutcome.COMPLETE, window.times(), lambda codes: None)
    window.run_for(wait_ms)
    window.env.jump(-WINDOW_MS)
    for _ in range(2):
        window.send("again", message_id="m")
        assert window.fragment.counts().active == 0
        window.restart()


def test_a_clock_that_was_ahead_and_is_set_back_while_the_service_is_off_ends_no_window(window: QueueBench) -> None:
    window.send("a", message_id="m")
    (got,) = window.receive()
    window.env.jump(2 * WINDOW_MS)
    window.complete([got])
    window.env.jump(-2 * WINDOW_MS)
    window.restart()
    assert is_dropped(window, "m")


def test_a_start_knows_the_newest_id_of_those_that_are_put_away(
    window: QueueBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubweir.queue.duplicate_window.GENERATION_IDS", 1)
    window.send("a", message_id="m")
    window.env.jump(2 * WINDOW_MS)
    window.restart()
    assert is_dropped(window, "m")


def test_what_the_log_refused_of_a_jump_is_told_with_the_next_send(window: QueueBench) -> None:
    window.send("a", message_id="m")
    window.env.jump(WINDOW_MS)
    window.env.files.plan(Fault.SYNC_EIO)
    window.enqueue(message("b", message_id="n"), wait_ms=3_000)
    assert is_dropped(window, "m")
    window.restart()
    assert is_dropped(window, "m")
    assert bodies(window.receive(wait_ms=500)) == ["a"]


def test_a_full_window_forgets_nothing_for_a_jump_that_is_on_its_way(window: QueueBench) -> None:
    window.fragment._core.state.duplicates.limit = 3
    window.send("a", message_id="1")
    window.env.jump(2 * WINDOW_MS)
    window.enqueue(message("b", message_id="2"), wait_ms=0)
    window.enqueue(message("c", message_id="3"), wait_ms=0)
    with pytest.raises(ServiceError) as refused:
        window.enqueue(message("d", message_id="4"), wait_ms=0)
    assert refused.value.condition is RESOURCE_LIMIT
    window.run_for(50)
    assert window.fragment.counts().active == 3


def test_the_first_message_of_a_queue_skips_nothing(window: QueueBench) -> None:
    before = window.log.bounds.next_index
    window.send("a", message_id="m")
    assert window.log.bounds.next_index == before + 1


def test_a_clock_within_its_slack_skips_nothing_and_all_of_it_beyond() -> None:
    clock = WindowClock()
    clock.begin(1_000_000, 500)
    assert clock.skipped_ms(Times(1_000_000 + SLACK_MS, 500)) == 0
    assert clock.skipped_ms(Times(1_000_001 + SLACK_MS, 500)) == SLACK_MS + 1


def test_a_clock_that_is_set_back_skips_what_it_is_put_forward_by() -> None:
    clock = WindowClock()
    clock.begin(1_000_000, 0)
    back = Times(990_000, 0)
    assert clock.skipped_ms(back) == 0
    clock.logged(back, 0)
    assert clock.skipped_ms(Times(1_000_000, 0)) == 10_000


def test_what_is_within_the_slack_makes_no_window_shorter(window: QueueBench) -> None:
    window.send("a", message_id="m")
    window.env.jump(SLACK_MS)
    window.run_for(WINDOW_MS - 100)
    assert is_dropped(window, "m")


def test_a_jump_between_two_sends_that_are_on_their_way_is_told(window: QueueBench) -> None:
    window.enqueue(message("a", message_id="m"), wait_ms=0)
    window.env.jump(WINDOW_MS + SLACK_MS)
    window.enqueue(message("b", message_id="m"))
    assert window.fragment.counts().active == 1
