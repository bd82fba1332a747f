from __future__ import annotations

import errno
from typing import Any

import pytest

from hubweir.env import SyncFailed
from hubweir.errors import DiskFull, LogFenced, OutOfFiles
from hubweir.messaging_store.completion import LogEnd
from hubweir.messaging_store.disk.segment import ActiveSegment, SegmentHeader
from hubweir.messaging_store.log import Appended
from hubweir.messaging_store.segment_engine.waiting import Entry
from hubweir.messaging_store.segment_engine.write_round import WriteRound
from hubweir.testing.memory_faults import Fault


@pytest.fixture
def active(bench):
    bench.append(b"kept")
    return bench.log._state.segments.active


def written(
    bench: Any, old: ActiveSegment, header: SegmentHeader | None, runs: list[bytes], *, is_mark: bool = False
) -> ActiveSegment:
    """Write these runs as one round."""
    entries = [
        Entry(bytearray(run), LogEnd(), LogEnd(), Appended(0, 0, 0, 0, 0), None, is_mark=is_mark) for run in runs
    ]
    return WriteRound(bench.log._state, entries, sum(len(run) for run in runs), old, header).write()


def test_a_round_is_durable_when_it_returns(bench, active) -> None:
    assert written(bench, active, None, [b"abc", b"de"]) is active
    bench.env.files.power_cut()
    assert bytes(bench.env.files.bytes_of(active.path)[active.end : active.end + 5]) == b"abcde"


def test_a_write_without_space_leaves_nothing(bench, active) -> None:
    bench.env.files.plan(Fault.ENOSPC)
    with pytest.raises(DiskFull):
        written(bench, active, None, [b"x" * 3000])
    bench.env.files.power_cut()
    assert len(bench.env.files.bytes_of(active.path)) <= active.end


@pytest.mark.parametrize("is_mark", [True, False], ids=["mark", "events"])
def test_a_sync_without_space_is_a_failed_sync(bench, active, is_mark: bool) -> None:
    bench.env.files.plan(Fault.ENOSPC, 2)
    with pytest.raises(SyncFailed) as caught:
        written(bench, active, None, [b"x"], is_mark=is_mark)
    assert caught.value.errno == errno.ENOSPC


def test_a_new_segment_closes_the_old_one_first(bench, active) -> None:
    header = bench.log._state.new_header(bench.log._state.visible)
    made = written(bench, active, header, [b"abc"])
    assert made is not active and active.file.size() == active.end


def test_a_new_segment_needs_the_store_to_be_ours(bench, active) -> None:
    bench.take_over()
    header = bench.log._state.new_header(bench.log._state.visible)
    with pytest.raises(LogFenced):
        written(bench, active, header, [])


def test_a_segment_without_space_leaves_no_unfinished_file(bench, active) -> None:
    bench.env.files.capacity_bytes = 0
    header = bench.log._state.new_header(bench.log._state.visible)
    with pytest.raises(DiskFull):
        written(bench, active, header, [])
    assert not any(path.endswith(".new") for path in bench.env.files.paths())


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("call", ["check_epoch", "create"])
def test_without_a_file_descriptor_the_round_is_refused_and_says_which_limit(
    bench, active, monkeypatch: pytest.MonkeyPatch, number: int, call: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "no more files")

    if call == "create":
        monkeypatch.setattr(bench.env.files, "open", refuse)
    else:
        bench.log._state.check_epoch = refuse
    header = bench.log._state.new_header(bench.log._state.visible)
    with pytest.raises(OutOfFiles, match="ulimit -n" if number == errno.EMFILE else "fs.file-max"):
        written(bench, active, header, [])


def test_an_epoch_that_cannot_be_read_behind_a_sync_is_as_good_as_a_failed_sync(bench, active) -> None:
    def refuse() -> None:
        raise OSError(errno.EIO, "an I/O error")

    bench.log._state.check_epoch = refuse
    with pytest.raises(SyncFailed, match="epoch cannot be read"):
        written(bench, active, None, [b"x"])
