from __future__ import annotations

import pytest

from hubweir.errors import DiskFull, LogOffline
from hubweir.messaging_store.control_batch import CONTROL_EPOCH, CONTROL_SKIPPED, control_of
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.messaging_store.open_log import SKIPPED_NUMBERS
from hubweir.messaging_store.record import headers_of
from hubweir.testing.memory_files import Fault


def test_what_nobody_vouched_for_is_rewritten_before_it_is_shown(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    bench.reopen()
    assert len(bench.segments()) == 2
    *_, mark = (header for run in bench.log.replay() for header in headers_of(run.data))
    assert mark.count == 0 and mark.durable_upto == 2


def test_a_vouched_log_opens_without_a_new_file(bench) -> None:
    bench.append(b"a")
    bench.env.run_for(2000)
    bench.reopen()
    assert len(bench.segments()) == 1 and bench.everything() == {0: b"a"}


@pytest.mark.parametrize(("fault", "error"), [(Fault.ENOSPC, DiskFull), (Fault.SYNC_EIO, LogOffline)])
def test_a_tail_that_cannot_be_made_durable_is_not_shown(bench, fault: Fault, error: type[Exception]) -> None:
    bench.append(b"a")
    bench.append(b"b")
    bench.env.crash()
    bench.env = bench.env.restart()
    bench.store = MessagingStore.open(bench.env, "store-0", settings=bench.settings)
    files = bench.env.files
    # Behind make_folder, the two syncs of folders and the list that every open begins with.
    files.plan(files.calls + 6, fault, forever=True)
    with pytest.raises(error):
        bench.store.create_log("ab" * 16)
    files.heal()
    bench.log = bench.store.create_log("ab" * 16)
    assert bench.everything() == {0: b"a", 1: b"b"}


def test_skipped_numbers_stand_in_the_log(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.reopen()
    controls = [
        control_of(run.data, header)[0]
        for run in bench.log.replay()
        for header in headers_of(run.data)
        if not header.count
    ]
    assert CONTROL_SKIPPED in controls and "skipped" in bench.store.alarms[0]
    before = bench.log.bounds.next_index
    bench.reopen()
    assert bench.log.bounds.next_index > before, "numbers may have been shown since: they are skipped again"


def test_the_last_index_is_that_of_a_record_however_often_numbers_were_skipped_behind_it(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.append(b"b")
    for starts in range(1, 4):
        bench.reopen()
        assert bench.log.bounds.next_index > starts * SKIPPED_NUMBERS
        assert bench.log.bounds.last_index == 1
    bench.append(b"c")
    last = bench.log.bounds.last_index
    assert bench.everything()[last] == b"c" and last > SKIPPED_NUMBERS


def test_the_last_index_outlives_the_records_that_retention_took(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.append(b"b")
    bench.reopen()
    for _ in range(4):
        bench.env.run_for(10_000)
        bench.log.expire(now_ms=bench.env.now_ms(), retention_ms=1_000)
    bench.env.run_for(10_000)
    bench.reopen()
    bounds = bench.log.bounds
    assert bench.everything() == {} and bounds.first_index > 1 and bounds.last_index == 1


def test_a_log_without_a_record_has_no_last_index(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    assert bench.log.bounds.last_index == -1
    bench.log.append_control(CONTROL_EPOCH, b"", now_ms=0)
    bench.env.run_for(100)
    bench.reopen()
    assert bench.log.bounds.last_index == -1 and bench.log.bounds.next_index > 0


def test_the_mode_of_the_newest_segment_is_kept(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run()
    assert bench.store.open_log(bench.log.log_id).durability is Durability.RELAXED
