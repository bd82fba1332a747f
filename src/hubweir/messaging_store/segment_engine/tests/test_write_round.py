from __future__ import annotations

import errno

import pytest

from hubweir.env import SyncFailed
from hubweir.errors import DiskFull, LogFenced, OutOfFiles
from hubweir.messaging_store.segment_engine.write_round import write_round
from hubweir.testing.memory_faults import Fault


@pytest.fixture
def active(bench):
    bench.append(b"kept")
    return bench.log._state.active


def test_a_round_is_durable_when_it_returns(bench, active) -> None:
    assert write_round(bench.log._state, active, None, [b"abc", b"de"], 5, 0) is active
    bench.env.files.power_cut()
    assert bytes(bench.env.files.bytes_of(active.path)[active.end : active.end + 5]) == b"abcde"


def test_a_write_without_space_leaves_nothing(bench, active) -> None:
    bench.env.files.plan(Fault.ENOSPC)
    with pytest.raises(DiskFull):
        write_round(bench.log._state, active, None, [b"x" * 3000], 3000, 4096)
    bench.env.files.power_cut()
    assert len(bench.env.files.bytes_of(active.path)) <= active.end


@pytest.mark.parametrize("mark_room", [0, 4096], ids=["mark", "events"])
def test_a_sync_without_space_is_a_failed_sync(bench, active, mark_room: int) -> None:
    bench.env.files.plan(Fault.ENOSPC, 2)
    with pytest.raises(SyncFailed) as caught:
        write_round(bench.log._state, active, None, [b"x"], 1, mark_room)
    assert caught.value.errno == errno.ENOSPC


def test_a_new_segment_closes_the_old_one_first(bench, active) -> None:
    header = bench.log._state.new_header(bench.log._state.visible)
    made = write_round(bench.log._state, active, header, [b"abc"], 3, 0)
    assert made is not active and active.file.size() == active.end


def test_a_new_segment_needs_the_store_to_be_ours(bench, active) -> None:
    bench.take_over()
    header = bench.log._state.new_header(bench.log._state.visible)
    with pytest.raises(LogFenced):
        write_round(bench.log._state, active, header, [], 0, 0)


def test_a_segment_without_space_leaves_no_unfinished_file(bench, active) -> None:
    bench.env.files.capacity_bytes = 0
    header = bench.log._state.new_header(bench.log._state.visible)
    with pytest.raises(DiskFull):
        write_round(bench.log._state, active, header, [], 0, 0)
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
        write_round(bench.log._state, active, header, [], 0, 0)


def test_an_epoch_that_cannot_be_read_behind_a_sync_is_as_good_as_a_failed_sync(bench, active) -> None:
    def refuse() -> None:
        raise OSError(errno.EIO, "an I/O error")

    bench.log._state.check_epoch = refuse
    with pytest.raises(SyncFailed, match="epoch cannot be read"):
        write_round(bench.log._state, active, None, [b"x"], 1, 0)
