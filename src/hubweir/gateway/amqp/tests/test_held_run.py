"""A run that was read and not sent: how far it is sent, when it is dropped, and where the next read begins."""

from __future__ import annotations

import pytest

from hubweir.amqp.transport.sender_link import SendProgress
from hubweir.broker.commands.reader import EventsRead
from hubweir.gateway.amqp.held_run import HeldRun
from hubweir.gateway.amqp.run_cursor import cursor_at
from hubweir.gateway.amqp.tests.test_run_cursor import FIRST, batch, completed
from hubweir.gateway.held_runs import HeldRuns, ReadSize
from hubweir.kernels.contract import RunCursor

RUN = completed(batch(range(4)), batch(range(6)))
EMPTY = EventsRead(1, FIRST, FIRST, b"")


@pytest.fixture
def pool() -> HeldRuns:
    return HeldRuns()


@pytest.fixture
def held(pool: HeldRuns) -> HeldRun:
    """It holds ten events, and the next one to send is the second."""
    held = HeldRun(ReadSize(pool, least_bytes=1_000, limit_bytes=8_000))
    held.size.next_bytes()
    held.came(EventsRead(1, FIRST + 1, FIRST + 10, RUN))
    return held


def progress(events: int, cursor: RunCursor) -> SendProgress:
    return SendProgress(events, 100 * events, cursor, 0)


def test_a_run_goes_on_where_the_read_and_each_send_left_it(held: HeldRun, pool: HeldRuns) -> None:
    assert (held.run, held.events, held.cursor) == (RUN, 9, cursor_at(RUN, FIRST + 1))
    assert pool.used_bytes == len(RUN)
    held.sent(RUN, progress(5, cursor_at(RUN, FIRST + 6)))
    assert (held.run, held.events, held.cursor) == (RUN, 4, cursor_at(RUN, FIRST + 6))
    held.sent(RUN, progress(4, RunCursor(len(RUN), 0, 0)))
    assert held.run is None and held.again_from is None
    assert pool.used_bytes == 0


def test_a_run_that_was_dropped_is_read_again_from_the_first_event_that_was_not_sent(
    held: HeldRun, pool: HeldRuns
) -> None:
    held.sent(RUN, progress(5, cursor_at(RUN, FIRST + 6)))
    held.drop()
    held.drop()
    assert (held.run, held.again_from, pool.used_bytes) == (None, FIRST + 6, 0)
    held.came(EMPTY)
    assert held.run is None and held.again_from is None


def test_a_run_is_stale_when_nothing_was_sent_from_it_between_two_looks(held: HeldRun) -> None:
    held.drop_when_stale()  # it came since the last look
    held.sent(RUN, progress(1, cursor_at(RUN, FIRST + 2)))
    held.drop_when_stale()
    assert held.run is not None
    held.sent(RUN, progress(0, cursor_at(RUN, FIRST + 2)))
    held.drop_when_stale()
    assert (held.run, held.again_from) == (None, FIRST + 2)


def test_the_end_of_a_link_gives_its_bytes_back(held: HeldRun, pool: HeldRuns) -> None:
    held.close()
    assert held.run is None and pool.used_bytes == 0
