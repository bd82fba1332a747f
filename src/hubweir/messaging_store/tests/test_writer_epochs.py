"""writer_epochs.py: no epoch is given twice, and a process that was taken over learns it."""

from __future__ import annotations

import pytest

from hubweir.env import Result
from hubweir.errors import LogFenced
from hubweir.messaging_store.whole_file import seal
from hubweir.testing.memory_files import Fault


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
    assert bench.store.writer_epoch == 3 and "EPOCH" in bench.store.alarms[0]
    assert bench.everything() == {0: b"a", 1: b"b"}


def test_two_failing_logs_take_two_epochs_one_after_the_other(bench) -> None:
    taken: list[int] = []
    for _ in range(3):
        bench.store.epochs.take_epoch(lambda result: taken.append(result.value()))
    bench.env.run()
    assert taken == [2, 3, 4] == [2, 3, bench.store.writer_epoch]


def test_an_epoch_that_could_not_be_written_is_not_given_again(bench) -> None:
    results: list[Result[int]] = []
    bench.env.files.plan(1, Fault.EIO, forever=True)
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
