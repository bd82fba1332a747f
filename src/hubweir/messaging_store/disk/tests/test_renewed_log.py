"""renewed_log.py: an empty log behind every number that the lost one used, and only where a log is lost."""

from __future__ import annotations

import pytest

from hubweir.errors import StoreError
from hubweir.messaging_store.disk.layout import NEWEST_FOLDER
from hubweir.messaging_store.disk.newest_segment import is_lost, load_newest
from hubweir.messaging_store.disk.recovery import UsedNumbers
from hubweir.messaging_store.disk.renewed_log import renew_log
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE
from hubweir.messaging_store.log import Bounds
from hubweir.messaging_store.tests.conftest import FOLDER, LOG_ID, Bench
from hubweir.testing.answers import made_log
from hubweir.testing.simulated_env import SimulatedEnv

NOTE = f"store-0/{NEWEST_FOLDER}/{LOG_ID}"


def lose(bench: Bench, *, note_too: bool = False) -> None:
    """The log's folder is gone, and a new process has the store."""
    bench.append(b"one", b"two")
    bench.store.close(lambda: None)
    bench.env.run()
    bench.env.crash()
    bench.env = bench.env.restart()
    files = bench.env.files
    for name in files.list(FOLDER):
        files.remove(f"{FOLDER}/{name}")
    files.remove_folder(FOLDER)
    files.sync_folder("store-0/logs")
    if note_too:
        files.remove(NOTE)
    bench.open_store()


def renew(bench: Bench, used: UsedNumbers | None = None) -> UsedNumbers:
    given = {} if used is None else {"used": used}
    return renew_log(bench.env, "store-0", LOG_ID, writer_epoch=bench.store.writer_epoch, **given)


def test_it_begins_empty_behind_every_number_that_the_lost_one_can_have_used(bench: Bench) -> None:
    lose(bench)
    remembered = load_newest(bench.env.files, "store-0", LOG_ID)
    assert remembered is not None and remembered.index_limit > 2
    begin = renew(bench)
    assert begin == UsedNumbers(remembered.index_limit, remembered.offset_limit)
    files = bench.env.files
    assert [files.size_of(f"{FOLDER}/{name}") for name in files.list(FOLDER)] == [SEGMENT_HEADER_SIZE]
    assert not files.open_files, "neither space nor a descriptor is kept for a log that nobody uses yet"
    bench.log = made_log(bench.env, bench.store, LOG_ID)
    at = begin.index, begin.offset
    assert bench.log.bounds == Bounds(at[0], at[0], at[1], at[1], -1, None, -1)
    assert bench.append(b"after").first_index == begin.index
    bench.reopen(power_cut=True)
    assert bench.everything() == {begin.index: b"after"}


@pytest.mark.parametrize("seed", range(10))
def test_it_stays_through_a_power_cut_and_is_remembered(seed: int) -> None:
    bench = Bench(env=SimulatedEnv(seed))
    lose(bench)
    begin = renew(bench)
    bench.env.crash(power_cut=True)
    bench.env = bench.env.restart()
    assert not is_lost(bench.env.files, "store-0", LOG_ID)
    newest = load_newest(bench.env.files, "store-0", LOG_ID)
    assert newest is not None and newest.index_limit >= begin.index and newest.had_segments
    bench.open()
    assert bench.append(b"after").first_index >= begin.index


@pytest.mark.parametrize("is_above", [True, False])
def test_numbers_known_from_elsewhere_count_where_they_are_higher(bench: Bench, is_above: bool) -> None:
    lose(bench)
    newest = load_newest(bench.env.files, "store-0", LOG_ID)
    assert newest is not None
    known = UsedNumbers(newest.index_limit + 5, newest.offset_limit + 70) if is_above else UsedNumbers(1, 1)
    assert renew(bench, known) == (known if is_above else UsedNumbers(newest.index_limit, newest.offset_limit))


def test_a_log_of_which_nothing_is_remembered_needs_numbers_from_elsewhere(bench: Bench) -> None:
    """From 0 on it would give its numbers to other events. (Promise P4)"""
    lose(bench, note_too=True)
    with pytest.raises(StoreError, match="nothing tells which numbers"):
        renew(bench)
    assert not bench.env.files.exists(FOLDER)
    assert renew(bench, UsedNumbers(100, 5_000)) == UsedNumbers(100, 5_000)
    bench.log = made_log(bench.env, bench.store, LOG_ID)
    assert bench.append(b"after").first_index == 100


def test_a_log_that_is_not_lost_is_left_alone(bench: Bench) -> None:
    bench.append(b"kept")
    before = bench.segments()
    with pytest.raises(StoreError, match="is not lost: nothing was changed"):
        renew(bench, UsedNumbers(100, 5_000))
    with pytest.raises(StoreError, match="is not lost"):
        renew_log(bench.env, "store-0", "../x", writer_epoch=1, used=UsedNumbers(100, 5_000))
    assert bench.segments() == before and bench.everything() == {0: b"kept"}
