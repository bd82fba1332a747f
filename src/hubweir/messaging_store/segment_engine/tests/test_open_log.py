from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from hubweir.errors import DiskFull, LogOffline
from hubweir.messaging_store.control_batch import CONTROL_SKIPPED, control_of
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import headers_of
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.open_log import SKIPPED_NUMBERS
from hubweir.testing.answers import made_log, opened_log
from hubweir.testing.memory_faults import Fault, Killed
from hubweir.testing.memory_files import MemoryFile
from hubweir.testing.simulated_env import SimulatedEnv


def test_what_nobody_vouched_for_is_rewritten_before_it_is_shown(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    bench.reopen()
    assert len(bench.segments()) == 2
    *_, mark = (header for run in bench.runs() for header in headers_of(run.data))
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
    # Behind the sync of the log's folder that every open begins with.
    files.plan(fault, 2, forever=True)
    with pytest.raises(error):
        made_log(bench.env, bench.store, "ab" * 16)
    files.heal()
    bench.log = made_log(bench.env, bench.store, "ab" * 16)
    assert bench.everything() == {0: b"a", 1: b"b"}


def test_skipped_numbers_stand_in_the_log(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.reopen()
    controls = [
        control_of(run.data, header)[0] for run in bench.runs() for header in headers_of(run.data) if not header.count
    ]
    assert CONTROL_SKIPPED in controls and "skipped" in str(bench.store.alarms.current()[0])
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
        expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=1_000)
    bench.env.run_for(10_000)
    bench.reopen()
    bounds = bench.log.bounds
    assert bench.everything() == {} and bounds.first_index > 1 and bounds.last_index == 1


def test_a_log_without_a_record_has_no_last_index(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    assert bench.log.bounds.last_index == -1
    bench.control(wait_ms=100)
    bench.reopen()
    assert bench.log.bounds.last_index == -1 and bench.log.bounds.next_index > 0


def test_the_mode_of_the_newest_segment_is_kept(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run()
    assert opened_log(bench.env, bench.store, bench.log.log_id).durability is Durability.RELAXED


def test_what_an_open_shows_is_durable_wherever_the_open_before_it_was_killed(make_bench) -> None:
    """Killed between a write and its sync, then before each sync of a folder in the next open; one more open, a cut."""
    killed = 0
    for seed in range(150):
        bench = make_bench(env=SimulatedEnv(seed))
        bench.append(b"a")
        bench.env.files.plan(Fault.KILL, call="sync")
        with pytest.raises(Killed):
            bench.append(b"b")
        plan = bench.env.files.plan(Fault.KILL, 1 + seed % 6, call="sync_folder")
        with suppress(Killed):
            bench.reopen()
        bench.env.files.heal()
        killed += plan.fired
        bench.reopen()
        shown = bench.everything()
        bench.reopen(power_cut=True)
        assert shown.items() <= bench.everything().items(), f"seed {seed}"
    assert killed > 100


def sizes(bench) -> list[int]:
    files = bench.env.files
    return [files.size_of(f"{bench.folder}/{name}") for name in bench.segments()]


@pytest.mark.parametrize("durability", Durability)
def test_a_log_that_is_killed_again_and_again_keeps_no_unused_space(make_bench, durability) -> None:
    bench = make_bench(durability=durability, settings=LogSettings())
    for life in range(6):
        bench.append(b"%d" % life, wait_ms=2000 if life % 2 else 70)
        bench.reopen()
        assert len(bench.env.files.open_files) <= 1  # the one that is appended to
    assert sum(sizes(bench)[:-1]) < 10_000  # the newest one is being appended to
    assert list(bench.everything().values()) == [b"%d" % life for life in range(6)]


@pytest.mark.parametrize("ends_in", [b"", b"\0" * 700])
def test_space_is_given_back_behind_a_torn_write_and_none_of_its_bytes(make_bench, ends_in: bytes) -> None:
    bench = make_bench(settings=LogSettings())
    bench.append(b"kept", bytes(5000), wait_ms=2000)
    active = bench.log._state.segments.active
    active.file.write(active.end, [b"hWb\1 torn" + ends_in])
    end = active.end
    bench.reopen()
    assert sizes(bench) == [end + len(b"hWb\1 torn")]
    assert list(bench.everything().values()) == [b"kept", bytes(5000)]


@pytest.mark.parametrize("size", [1, 256 * 1024, 256 * 1024 + 1, 700_000])
def test_space_of_any_size_is_given_back_and_nothing_of_the_last_record(make_bench, size: int) -> None:
    bench = make_bench(settings=LogSettings())
    bench.append(bytes(3000))
    active = bench.log._state.segments.active
    active.file.truncate(active.end)
    active.file.reserve(active.end + size)
    end = active.end
    bench.reopen()
    assert sizes(bench)[0] == end


def test_a_log_opens_when_space_cannot_be_given_back(make_bench, monkeypatch) -> None:
    bench = make_bench(settings=LogSettings())
    bench.append(b"kept", wait_ms=2000)

    def refuse(file: MemoryFile, size: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(MemoryFile, "truncate", refuse)
    bench.reopen()
    assert bench.everything() == {0: b"kept"} and not bench.store.alarms.current()


def test_a_log_that_was_opened_for_nobody_closes_its_file(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a deletion overtook, or whose capture cannot be opened: each try would keep a descriptor for good."""
    bench.append(b"a")
    bench.append(b"unvouched")
    bench.env.crash()
    bench.env = bench.env.restart()
    bench.open_store()
    asked = bench.store._begin_opening("ab" * 16, Durability.DURABLE, "log", makes=False)
    opened = bench.store.recover_log(asked)
    assert opened._state.segments.active is not None  # what nobody vouched for was rewritten into it
    closed: list[MemoryFile] = []
    monkeypatch.setattr(MemoryFile, "close", lambda file: closed.append(file))
    opened.discard()
    assert closed == [opened._state.segments.active.file]
