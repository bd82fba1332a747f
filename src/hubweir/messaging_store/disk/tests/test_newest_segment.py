"""newest_segment.py: what a store remembers of a log outlives the log, and is never behind what was answered."""

from __future__ import annotations

import pytest

from hubweir.errors import LogLost
from hubweir.messaging_store.disk.newest_segment import (
    NEVER_WRITTEN,
    NewestSegment,
    forget_newest,
    load_newest,
    log_ids_in,
    save_newest,
)
from hubweir.messaging_store.log import Refused
from hubweir.testing.answers import made_log, opened_log
from hubweir.testing.memory_faults import Fault, PowerCut
from hubweir.testing.memory_files import MemoryFiles

LOG_ID = "ab" * 16


def remembered(bench) -> NewestSegment | None:
    return load_newest(bench.env.files, "store-0", LOG_ID)


def test_a_log_is_remembered_from_its_making_on_and_forgotten_with_its_end(bench) -> None:
    assert remembered(bench) == NEVER_WRITTEN
    bench.store.close_log(LOG_ID, lambda: None)
    bench.env.run()
    bench.store.delete_log(LOG_ID, lambda result: result.value())
    bench.env.run()
    assert remembered(bench) is None and log_ids_in(bench.env.files, "store-0") == []


def test_every_new_segment_is_remembered_with_a_limit_that_it_cannot_reach(bench) -> None:
    for number in range(60):
        bench.append(b"%d" % number)
        newest = remembered(bench)
        assert newest is not None and newest.name.file_name == bench.segments()[-1]
        assert newest.index_limit > bench.log.bounds.next_index
        assert newest.offset_limit > bench.log.bounds.next_offset
    assert len(bench.segments()) > 1


def test_a_run_larger_than_a_segment_stays_below_the_limit(bench) -> None:
    bench.append(b"a")
    bench.append(b"x" * 3 * bench.settings.segment_bytes)
    newest = remembered(bench)
    assert newest is not None and newest.offset_limit > bench.log.bounds.next_offset


def test_nothing_is_answered_before_its_segment_is_remembered(bench) -> None:
    """The disk refuses the small file only: the send is not accepted, and works when the disk does."""
    bench.append(b"a", wait_ms=0)
    folder = bench.env.files.sync_folder
    refused = []

    def sick(path: str) -> None:
        if path.endswith("/newest"):
            refused.append(path)
            raise OSError(5, "sick")
        folder(path)

    bench.env.files.sync_folder = sick
    bench.env.run_for(500)
    assert refused and [type(outcome) for outcome in bench.outcomes] == [Refused]
    bench.env.files.sync_folder = folder
    bench.env.run_for(60_000)
    bench.append(b"b")
    assert bench.everything() == {0: b"b"}


def test_a_power_cut_at_any_call_leaves_the_old_or_the_new() -> None:
    old, new = NewestSegment(1, 2, 3, 4), NewestSegment(5, 6, 7, 8)
    nth, done = 1, False
    while not done:
        files = MemoryFiles(nth)
        files.make_folder("s/newest")
        files.sync_folder("")
        files.sync_folder("s")
        save_newest(files, "s", LOG_ID, old)
        files.plan(Fault.POWER_CUT, nth)
        try:
            save_newest(files, "s", LOG_ID, new)
            done = True
        except PowerCut:
            files.power_cut()
        files.heal()
        assert load_newest(files, "s", LOG_ID) in ((new,) if done else (old, new))
        nth += 1
    assert nth > 4


@pytest.mark.parametrize("is_folder_there", [True, False])
def test_a_lost_log_is_not_made_anew(bench, is_folder_there: bool) -> None:
    bench.append(b"a")
    bench.env.run_for(2_000)
    bench.env.crash()
    bench.env = bench.env.restart()
    files, folder = bench.env.files, f"store-0/logs/{LOG_ID}"
    files.remove_folder(folder)
    if is_folder_there:
        files.make_folder(folder)
    files.sync_folder("store-0/logs")
    for opens in (opened_log, made_log):
        with pytest.raises(LogLost, match="put it back"):
            bench.open_store()
            opens(bench.env, bench.store, LOG_ID)
        assert LOG_ID in bench.store.log_ids(), "a lost log is still named"
        assert files.list(folder) == []
        bench.env.crash()
        bench.env = bench.env.restart()
        files = bench.env.files


def test_a_log_whose_making_was_interrupted_is_made(bench) -> None:
    other = "cd" * 16
    bench.env.files.make_folder(f"store-0/logs/{other}")
    with pytest.raises(LogLost):
        opened_log(bench.env, bench.store, other)
    assert made_log(bench.env, bench.store, other).bounds.next_index == 0


def test_what_was_forgotten_stays_forgotten_when_its_first_sync_failed() -> None:
    for seed in range(20):  # of these power cuts every second one brings back what no sync covers
        files = MemoryFiles(seed)
        files.make_folder("store-0/newest")
        files.sync_folder("")
        files.sync_folder("store-0")
        save_newest(files, "store-0", LOG_ID, NEVER_WRITTEN)
        files.plan(Fault.EIO, call="sync_folder")
        with pytest.raises(OSError):
            forget_newest(files, "store-0", LOG_ID)
        forget_newest(files, "store-0", LOG_ID)
        files.power_cut()
        assert load_newest(files, "store-0", LOG_ID) is None
