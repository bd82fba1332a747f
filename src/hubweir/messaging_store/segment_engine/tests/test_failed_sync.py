from __future__ import annotations

import pytest

from hubweir.env import Lane
from hubweir.errors import LogFenced, LogOffline
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.service_log import REPAIRED
from hubweir.testing.memory_faults import Fault
from hubweir.testing.memory_files import MemoryFile
from hubweir.testing.simulated_env import SimulatedEnv


def fail_next(bench, fault: Fault, *, forever: bool = False) -> None:
    """Let the next sync fail; of other faults the next call that they fit."""
    bench.env.files.plan(fault, forever=forever)


def test_a_failed_sync_refuses_and_the_log_goes_on_in_a_new_segment(bench) -> None:
    bench.append(b"kept")
    fail_next(bench, Fault.SYNC_EIO)
    bench.append(b"refused", wait_ms=300)
    assert isinstance(bench.outcomes[-1], Refused) and bench.outcomes[-1].known
    assert bench.log.lease.writer_epoch == 2 == bench.store.writer_epoch
    assert bench.append(b"after").first_index == 1
    assert bench.everything() == {0: b"kept", 1: b"after"}
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"kept", 1: b"after"}


def test_a_repair_is_a_line_of_the_log(bench, caplog) -> None:
    fail_next(bench, Fault.SYNC_EIO)
    bench.append(b"refused", wait_ms=300)
    [line] = [record.msg for record in caplog.records if record.msg.kind is REPAIRED]
    assert line.fields["text"].endswith("in a new segment, at record 0, writer epoch 2; 1 refused")


def test_the_refusal_waits_until_the_new_segment_is_durable(bench, make_events) -> None:
    bench.append(b"kept")
    fail_next(bench, Fault.SYNC_EIO)
    durable: list[int] = []

    def refused(outcome: object) -> None:
        durable.append(sum(path.endswith(".log") for path in bench.env.files.names.durable_files()))

    bench.log.append(make_events([b"refused"]), now_ms=bench.env.now_ms(), on_done=refused)
    bench.env.run_for(300)
    assert durable == [2]
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"kept"}


def test_without_a_new_segment_the_end_is_unknown_and_the_log_offline(bench) -> None:
    bench.append(b"kept")
    fail_next(bench, Fault.SYNC_EIO, forever=True)
    bench.append(b"lost?", wait_ms=500)
    assert isinstance(bench.outcomes[-1], Refused) and not bench.outcomes[-1].known
    with pytest.raises(LogOffline):
        bench.append(b"more")
    assert bench.everything() == {0: b"kept"} and bench.store.alarms.current()
    bench.env.files.heal()
    bench.reopen()
    assert bench.everything()[0] == b"kept" and bench.append(b"again").first_index >= 1


def test_relaxed_keeps_what_it_has_shown(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.append(b"b", wait_ms=0)
    bench.append(b"c", wait_ms=0)
    bench.env.turn()
    assert bench.log.bounds.next_index == 3
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.env.run_for(400)
    assert bench.counters["log.failed_syncs"] == 1
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"a", 1: b"b", 2: b"c"}


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_what_was_shown_behind_a_sync_is_kept_when_the_next_one_fails(make_bench, seed) -> None:
    """A sync vouches for what was there when it was asked for, not for what came before its end."""
    bench = make_bench(durability=Durability.RELAXED, env=SimulatedEnv(seed))
    bench.append(b"a")
    bench.append(b"b", wait_ms=0)
    while not bench.env.fault_hits.get("log.before_relaxed_sync"):
        bench.env.run_for(1)
    bench.append(b"c", wait_ms=0)
    bench.env.turn()
    assert bench.log._commit._syncing and bench.log.bounds.next_index == 3, "it is shown between a sync and its end"
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.env.run_for(400)
    assert bench.counters["log.failed_syncs"] == 1
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"a", 1: b"b", 2: b"c"}


def test_a_torn_write_behind_a_mark_whose_sync_failed_is_no_damage(make_bench) -> None:
    """No new segment has the mark: its number is missing, and nothing with that number was lost."""
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"kept", wait_ms=200)
    fail_next(bench, Fault.SYNC_EIO)
    bench.env.run_for(2000)  # the idle mark
    assert bench.counters["log.failed_syncs"] == 1 and len(bench.segments()) == 2
    for message in (b"a" * 600, b"b"):
        bench.append(message, wait_ms=0)
    bench.env.turn()
    assert bench.log.bounds.next_index == 3, "they are shown, and no sync covers them"
    data = bench.env.files.bytes_of(bench.log._state.segments.active.path)
    at = data.index(b"a" * 600)
    data[at : at + 512] = bytes(512)  # a power cut took a part of the first batch
    bench.reopen()
    assert not bench.counters["log.corrupt_records"]
    assert bench.log.bounds.next_index > 3, "readers may have seen numbers that are used again"
    assert bench.everything() == {0: b"kept"}


def test_a_file_is_not_closed_under_the_call_that_uses_it(make_bench, monkeypatch) -> None:
    """Its descriptor may be another file's by then: that one would be synced, and this one said to be."""
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"kept", wait_ms=200)
    failed, close, closed = bench.log._state.segments.active.file, MemoryFile.close, list[MemoryFile]()

    def closes(file: MemoryFile) -> None:
        closed.append(file)
        close(file)

    monkeypatch.setattr(MemoryFile, "close", closes)
    bench.env.stall(Lane.WRITES)
    bench.append(b"shown", wait_ms=60)
    assert bench.env.stalled_calls(Lane.WRITES) == 1, "a sync that has not begun"
    bench.env.files.plan(Fault.EIO)
    bench.append(b"refused", wait_ms=500)
    assert bench.counters["log.failed_syncs"] == 1 and failed not in closed
    bench.env.go_on(Lane.WRITES)
    bench.env.run_for(500)
    assert closed.count(failed) == 1
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"kept", 1: b"shown"}


def test_a_repair_leaves_alone_what_others_write_meanwhile(bench) -> None:
    bench.append(b"kept")
    folder, files = bench.folder, bench.env.files
    unfinished = [f"{folder}/{name}.new" for name in ("capture", "snapshot", "0.offsets")]
    for path in unfinished:
        files.set_bytes(path, b"")
    listed = files.list
    files.list = lambda name: [*listed(name), "renamed.new", "0" * 20 + "-0000000f.log"]  # gone since it was listed
    fail_next(bench, Fault.SYNC_EIO)
    bench.append(b"refused", wait_ms=300)
    assert bench.outcomes[-1].known and not bench.store.alarms.current()
    assert bench.append(b"after").first_index == 1
    assert set(unfinished) <= set(files.paths())


def test_tries_that_fail_leave_no_files(bench) -> None:
    bench.append(b"kept")
    before = bench.segments()
    fail_next(bench, Fault.SYNC_EIO, forever=True)
    folder = bench.folder
    # Epochs can be had: it is the segment whose sync fails.
    bench.log._repair._epochs = TakenEpochs()
    bench.append(b"unknown", wait_ms=100_000)
    assert bench.counters["log.offline_retries"] >= 4
    assert [path for path in bench.env.files.paths() if path.startswith(folder)] == [f"{folder}/{before[0]}"]


@pytest.mark.parametrize("tries", [1, 3])
def test_a_repair_gives_back_what_the_failed_segment_had_set_aside(make_bench, tries: int) -> None:
    bench = make_bench(settings=LogSettings())
    bench.append(b"kept", wait_ms=2000)
    failed = bench.log._state.segments.active
    fail_next(bench, Fault.SYNC_EIO, forever=tries > 1)
    bench.append(b"refused", wait_ms=300)
    bench.env.run_for(2000 * (tries - 1))
    bench.env.files.heal()
    bench.env.run_for(20_000)
    assert bench.append(b"after").first_index == 1
    assert bench.env.files.size_of(failed.path) == failed.end
    bench.reopen()
    assert bench.everything() == {0: b"kept", 1: b"after"}


class TakenEpochs:
    """Epochs without a file."""

    def __init__(self) -> None:
        self.epoch = 1

    def take_epoch(self, on_done) -> None:
        self.epoch += 1
        on_done(self)

    def value(self) -> int:
        return self.epoch


def test_a_failed_write_is_treated_alike(bench) -> None:
    bench.append(b"kept")
    bench.env.files.plan(Fault.SHORT)
    bench.append(b"refused", wait_ms=300)
    assert bench.outcomes[-1].known and bench.append(b"after").first_index == 1
    bench.reopen()
    assert bench.everything() == {0: b"kept", 1: b"after"}


def go_offline(bench, fault: Fault = Fault.EIO) -> None:
    bench.append(b"kept")
    fail_next(bench, fault, forever=True)
    bench.append(b"unknown", wait_ms=300)
    assert not bench.outcomes[-1].known


@pytest.mark.parametrize("fault", [Fault.EIO, Fault.SYNC_EIO])
@pytest.mark.parametrize("durability", Durability)
def test_an_offline_log_comes_back_by_itself(make_bench, durability: Durability, fault: Fault) -> None:
    bench = make_bench(durability=durability)
    bench.append(b"first")
    if durability is Durability.RELAXED:
        bench.append(b"kept", wait_ms=0)
        bench.env.turn()
        fail_next(bench, fault, forever=True)  # the sync that follows
        bench.env.run_for(400)
    else:
        go_offline(bench, fault)
    assert len(bench.store.alarms.current()) == 1
    with pytest.raises(LogOffline, match="tried again within 30 s"):
        bench.append(b"refused")
    bench.env.files.heal()
    bench.env.run_for(5000)
    assert not bench.store.alarms.current() and bench.counters["log.offline_healed"] == 1
    assert bench.append(b"after") == bench.outcomes[-1]
    expected = [b"first", b"kept", b"after"]
    assert list(bench.everything().values()) == expected
    bench.env.run_for(1000)
    bench.reopen(power_cut=True)
    assert list(bench.everything().values()) == expected


def test_a_disk_that_stays_broken_is_tried_ever_more_seldom(bench) -> None:
    go_offline(bench)
    tries = []
    for _ in range(10):
        bench.env.run_for(60_000)
        tries.append(bench.counters["log.offline_retries"])
    assert tries[0] >= 5 and tries[-1] - tries[-2] in (1, 2)
    assert len(bench.store.alarms.current()) == 1


def test_the_file_that_failed_is_closed_though_the_disk_stays_broken(bench) -> None:
    """Each failure would keep a descriptor until the process ends."""
    go_offline(bench)
    bench.env.run_for(100_000)
    assert not bench.env.files.open_files
    bench.env.files.heal()
    bench.env.run_for(31_000)
    bench.append(b"goes on", wait_ms=300)
    assert list(bench.env.files.open_files.values()) == [bench.log._state.segments.active.path]


def test_a_closed_log_is_not_tried_again(bench) -> None:
    go_offline(bench)
    closed: list[bool] = []
    bench.store.close(lambda: closed.append(True))
    bench.env.run()
    before = bench.env.files.calls
    bench.env.run_for(100_000)
    assert closed == [True] and bench.env.files.calls == before


def test_a_log_that_closes_while_it_is_tried_ends(bench) -> None:
    go_offline(bench)
    while not bench.counters["log.offline_retries"]:
        bench.env.run_for(1)
    closed: list[bool] = []
    bench.store.close(lambda: closed.append(True))
    bench.env.run()
    assert closed == [True]


def test_an_offline_log_whose_store_has_a_newer_writer_is_fenced(bench) -> None:
    go_offline(bench)
    bench.env.files.heal()
    bench.take_over()
    bench.env.run_for(2000)
    with pytest.raises(LogFenced):
        bench.append(b"no")


def test_a_log_that_is_closed_is_not_tried_again(bench) -> None:
    """A log of a hub that was deleted would else come back as a file, in a folder that is somebody else's by then."""
    go_offline(bench)
    tried = bench.counters["log.offline_retries"]
    closed: list[bool] = []
    bench.log.close(lambda: closed.append(True))
    bench.env.run_for(1)
    bench.env.files.heal()
    before = bench.segments()
    bench.env.run_for(120_000)
    assert closed == [True] and bench.segments() == before
    assert bench.counters["log.offline_retries"] == tried


def test_a_failure_that_is_over_at_once_is_not_counted_as_one_that_was_told(bench) -> None:
    go_offline(bench)
    bench.env.files.heal()
    bench.env.run_for(5_000)
    assert bench.counters["log.offline_healed"] == 1
    fail_next(bench, Fault.SYNC_EIO)
    bench.append(b"refused", wait_ms=300)
    assert isinstance(bench.outcomes[-1], Refused)
    assert bench.append(b"after") == bench.outcomes[-1]
    assert bench.counters["log.offline_healed"] == 1 and not bench.store.alarms.current()
