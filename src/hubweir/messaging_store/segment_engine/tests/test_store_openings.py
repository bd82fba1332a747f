"""messaging_store.py opens logs: away from the loop, each once at a time, and none any more when it closes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.env import Lane, Result
from hubweir.errors import LogOffline
from hubweir.messaging_store.log_store import NotOpened
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.messaging_store.tests.conftest import FOLDER, LOG_ID, Bench
from hubweir.testing.answers import opened_log
from hubweir.testing.memory_faults import Fault


def newer_log(bench: Bench, epoch: int) -> None:
    """The log, closed, and then put back from a store that had come to this epoch."""
    bench.append(b"a")
    bench.store.close_log(LOG_ID, lambda: None)
    bench.env.run()
    (path,) = [path for path in bench.env.files.paths() if path.startswith(FOLDER) and path.endswith(".log")]
    bench.env.files.rename(path, f"{FOLDER}/{0:020d}-{epoch:08x}.log")


def test_a_log_is_not_opened_while_the_epoch_above_it_cannot_be_made_durable_and_is_afterwards(bench: Bench) -> None:
    newer_log(bench, 7)
    bench.env.files.plan(Fault.SYNC_EIO)  # of the file that is to be EPOCH
    with pytest.raises(OSError, match="EPOCH.new"):
        opened_log(bench.env, bench.store, LOG_ID)
    bench.env.files.heal()
    assert opened_log(bench.env, bench.store, LOG_ID).lease.writer_epoch > 7


def test_a_log_is_opened_once_at_a_time_and_an_open_one_is_given_again(bench: Bench) -> None:
    bench.store.close_log(LOG_ID, lambda: None)
    bench.env.run()
    answers: list[SegmentLog | NotOpened] = []
    for _ in range(2):
        bench.store.open_log(LOG_ID, answers.append)
    assert answers == []
    bench.env.run_for(100)
    refused, log = answers
    assert isinstance(refused, NotOpened) and "is being opened" in str(refused.error)
    bench.store.open_log(LOG_ID, answers.append)
    assert len(answers) == 2, "an answer came inside the call"
    bench.env.run_for(100)
    assert answers[2] is log


@pytest.mark.parametrize("fails", [False, True])
def test_a_store_that_is_closed_while_a_log_is_opened_keeps_its_folder_until_that_is_over(
    bench: Bench, fails: bool
) -> None:
    bench.append(b"a")
    bench.reopen()
    bench.append(b"not vouched for")
    bench.env.crash()
    bench.env = bench.env.restart()
    bench.open_store()
    bench.env.stall(Lane.RECOVERY)
    answers: list[SegmentLog | NotOpened] = []
    closed: list[bool] = []
    bench.store.open_log(LOG_ID, answers.append)
    bench.env.run_for(100)
    bench.store.close(lambda: closed.append(True))
    bench.env.run_for(100)
    assert not closed and bench.env.files.locks == {"store-0"}
    if fails:
        bench.env.files.plan(Fault.EIO, forever=True)
    bench.env.go_on(Lane.RECOVERY)
    bench.env.run_for(100)
    (refused,) = answers
    assert isinstance(refused, NotOpened) and closed == [True] and not bench.env.files.locks
    bench.env.files.heal()
    assert not bench.env.files.open_files
    bench.store.open_log(LOG_ID, answers.append)
    bench.env.run_for(100)
    assert isinstance(answers[1], NotOpened) and "closed" in str(answers[1].error)


def test_a_store_that_closes_while_a_log_waits_for_an_epoch_above_it_gives_up_its_folder(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is asked for once more behind the epoch, and refused then: that is the last thing the close waits for."""
    newer_log(bench, 7)
    answers: list[SegmentLog | NotOpened] = []
    closed: list[bool] = []
    take_epoch_above = bench.store.epochs.take_epoch_above

    def closes_meanwhile(newest: int, on_done: Callable[[Result[int]], None]) -> str | None:
        bench.store.close(lambda: closed.append(True))
        return take_epoch_above(newest, on_done)

    monkeypatch.setattr(bench.store.epochs, "take_epoch_above", closes_meanwhile)
    bench.store.open_log(LOG_ID, answers.append)
    bench.env.run_for(2_000)
    (refused,) = answers
    assert isinstance(refused, NotOpened) and isinstance(refused.error, LogOffline)
    assert closed == [True] and not bench.env.files.locks
