"""writer_epochs.py: no epoch is given twice, and a process that was taken over learns it."""

from __future__ import annotations

import pytest

from hubweir.env import Result
from hubweir.errors import CorruptStore, LogFenced
from hubweir.messaging_store.disk.whole_file import seal
from hubweir.messaging_store.segment_engine.writer_epochs import NEWEST_POSSIBLE
from hubweir.testing.answers import made_log, opened_log
from hubweir.testing.memory_faults import Fault


def test_every_open_has_a_higher_epoch_whatever_the_crash(bench) -> None:
    epochs = [bench.store.writer_epoch]
    for power_cut in (False, True, True):
        bench.reopen(power_cut=power_cut)
        epochs.append(bench.store.writer_epoch)
    assert epochs == [1, 2, 3, 4]


def test_a_damaged_epoch_file_never_gives_an_epoch_twice(bench) -> None:
    bench.append(b"a")
    bench.reopen()
    bench.append(b"b")
    bench.env.files.set_bytes("store-0/EPOCH", b"junk")
    bench.reopen()
    assert bench.store.writer_epoch == 3 and "EPOCH" in str(bench.store.alarms.current()[0])
    assert bench.everything() == {0: b"a", 1: b"b"}


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_an_epoch_of_another_process_is_a_take_over_whatever_its_number(bench, epoch: int) -> None:
    bench.env.files.set_bytes("store-0/EPOCH", seal(epoch.to_bytes(4, "big") + b"somebody"))
    with pytest.raises(LogFenced, match=f"with epoch {epoch}"):
        bench.store.epochs.check()


@pytest.mark.parametrize("data", [None, b"junk", b""])
def test_an_epoch_file_that_is_gone_or_damaged_is_no_owner(bench, data: bytes | None) -> None:
    if data is None:
        bench.env.files.remove("store-0/EPOCH")
    else:
        bench.env.files.set_bytes("store-0/EPOCH", data)
    bench.store.epochs.check()


def test_two_failing_logs_take_two_epochs_one_after_the_other(bench) -> None:
    taken: list[int] = []
    for _ in range(3):
        bench.store.epochs.take_epoch(lambda result: taken.append(result.value()))
    bench.env.run()
    assert taken == [2, 3, 4] == [2, 3, bench.store.writer_epoch]


def test_an_epoch_that_could_not_be_written_is_not_given_again(bench) -> None:
    results: list[Result[int]] = []
    bench.env.files.plan(Fault.EIO, forever=True)
    bench.store.epochs.take_epoch(results.append)
    bench.env.run()
    bench.env.files.heal()
    bench.store.epochs.take_epoch(results.append)
    bench.env.run()
    with pytest.raises(OSError):
        results[0].value()
    assert results[1].value() == 3


def test_a_process_that_was_taken_over_gets_no_epoch(bench) -> None:
    bench.store.epochs.check()
    bench.env.files.set_bytes("store-0/EPOCH", seal((9).to_bytes(4, "big")))
    with pytest.raises(LogFenced, match="newer writer"):
        bench.store.epochs.check()
    results: list[Result[int]] = []
    bench.store.epochs.take_epoch(results.append)
    bench.env.run()
    with pytest.raises(LogFenced):
        results[0].value()
    assert bench.env.files.bytes_of("store-0/EPOCH") == seal((9).to_bytes(4, "big"))


def test_names_that_are_no_segments_give_no_epoch(bench) -> None:
    bench.append(b"a")
    bench.env.files.open("store-0/logs/" + "ab" * 16 + "/note", create=True)
    bench.env.files.set_bytes("store-0/EPOCH", b"junk")
    bench.reopen()
    assert bench.store.writer_epoch == 2


@pytest.mark.parametrize("older", [seal((1).to_bytes(4, "big")), None])
def test_an_epoch_file_older_than_the_segments_is_not_believed_and_told(bench, older: bytes | None) -> None:
    """A copy or a backup may hold an old EPOCH, or none: what is accepted behind it must outlive the next start."""
    for message in (b"a", b"b", b"c"):
        bench.append(message)
        bench.reopen()
    if older is None:
        bench.env.files.remove("store-0/EPOCH")
        bench.env.files.sync_folder("store-0")
    else:
        bench.env.files.set_bytes("store-0/EPOCH", older)
    bench.reopen()
    assert bench.store.writer_epoch == 5
    assert any("older than the logs" in alarm for alarm in map(str, bench.store.alarms.current()))
    bench.append(b"d")
    bench.reopen()
    assert bench.everything() == {0: b"a", 1: b"b", 2: b"c", 3: b"d"}
    assert bench.store.alarms.current() == ()


def test_a_log_that_is_newer_than_the_store_is_written_under_a_newer_epoch_yet(bench) -> None:
    """A log's folder may be put back while the store is open: nothing that it holds may supersede what comes."""
    other, folder = "cd" * 16, "store-0/logs/" + "ab" * 16
    files = bench.env.files
    bench.append(b"a")
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run()
    (name,) = [path for path in files.paths() if path.startswith(folder) and path.endswith(".log")]
    files.rename(name, f"{folder}/{0:020d}-{7:08x}.log")
    log = opened_log(bench.env, bench.store, "ab" * 16)
    assert log.lease.writer_epoch == bench.store.writer_epoch == 8
    assert any("epoch 7" in alarm for alarm in map(str, bench.store.alarms.current()))
    taken: list[int] = []
    bench.store.epochs.take_epoch(lambda result: taken.append(result.value()))
    bench.env.run()
    assert taken == [9] and made_log(bench.env, bench.store, other).lease.writer_epoch == 9


def test_a_log_opened_again_by_its_own_process_raises_no_alarm(bench) -> None:
    bench.append(b"a")
    bench.store.close_log(bench.log.log_id, lambda: None)
    bench.env.run()
    bench.log = opened_log(bench.env, bench.store, bench.log.log_id)
    assert bench.log.lease.writer_epoch == 2 and bench.store.alarms.current() == ()


def test_behind_the_last_epoch_there_is_none(bench) -> None:
    folder = "store-0/logs/" + "ab" * 16
    bench.env.files.open(f"{folder}/{0:020d}-{2**32 - 1:08x}.log", create=True)
    with pytest.raises(CorruptStore, match="none comes behind it"):
        bench.reopen()


def test_a_store_that_was_raised_above_an_epoch_opens_logs_of_it_without_an_alarm(bench) -> None:
    epochs = bench.store.epochs
    taken: list[int] = []
    bench.store.raise_epoch(epochs.current + 40, lambda result: taken.append(result.value()))
    bench.env.run()
    assert taken == [epochs.current] and epochs.current > 41
    assert bench.store.alarms.current() == ()
    bench.reopen()
    assert bench.store.writer_epoch > taken[0], "it is durable"


def test_no_store_is_raised_above_the_last_epoch(bench) -> None:
    with pytest.raises(CorruptStore, match="none comes behind it"):
        bench.store.raise_epoch(NEWEST_POSSIBLE, lambda result: None)
