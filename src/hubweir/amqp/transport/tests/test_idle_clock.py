from __future__ import annotations

import pytest

from hubweir.amqp.transport.idle_clock import SHORTEST_TICK_MS, IdleClock


def test_a_peer_is_lost_after_twice_the_time_and_any_byte_starts_it_anew() -> None:
    clock = IdleClock(1_000, now_ms=50)
    assert not clock.peer_is_lost(2_049)
    assert clock.peer_is_lost(2_050)
    clock.received(2_049)
    assert not clock.peer_is_lost(4_048)
    assert clock.peer_is_lost(4_049)


def test_without_a_time_of_ours_nobody_is_lost() -> None:
    clock = IdleClock(0, now_ms=0)
    assert clock.next_deadline_ms() is None
    assert not clock.peer_is_lost(10**12)


@pytest.mark.parametrize("wants", [None, 0])
def test_a_peer_that_wants_nothing_gets_no_heartbeat(wants: int | None) -> None:
    clock = IdleClock(0, now_ms=0)
    clock.peer_wants(wants, 0)
    assert not clock.heartbeat_due(10**9)


def test_a_tick_is_skipped_when_something_was_written_since_the_last() -> None:
    clock = IdleClock(0, now_ms=0)
    clock.peer_wants(5_000, 0)
    assert not clock.heartbeat_due(999)
    clock.has_written = True
    assert not clock.heartbeat_due(1_000)
    assert clock.next_deadline_ms() == 2_000
    assert clock.heartbeat_due(2_000), "two ticks make less than half of the peer's time"


def test_a_peer_that_asks_for_milliseconds_does_not_keep_us_writing() -> None:
    clock = IdleClock(0, now_ms=0)
    clock.peer_wants(1, 0)
    assert clock.next_deadline_ms() == SHORTEST_TICK_MS
