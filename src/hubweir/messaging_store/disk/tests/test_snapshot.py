from __future__ import annotations

import pytest

from hubweir.messaging_store.disk.snapshot import load_snapshots, save_snapshot
from hubweir.messaging_store.disk.whole_file import seal, write_whole
from hubweir.messaging_store.log import Snapshot
from hubweir.testing.memory_faults import Fault, PowerCut
from hubweir.testing.memory_files import MemoryFiles


def test_the_two_newest_are_kept() -> None:
    files = MemoryFiles()
    for index in (1, 2, 3):
        save_snapshot(files, "", Snapshot(index, 0, b"state %d" % index))
    assert load_snapshots(files, "") == [Snapshot(3, 0, b"state 3"), Snapshot(2, 0, b"state 2")]


def test_a_damaged_newest_one_leaves_the_one_before() -> None:
    files = MemoryFiles()
    save_snapshot(files, "", Snapshot(1, 0, b"one"))
    save_snapshot(files, "", Snapshot(2, 0, b"two"))
    files.bytes_of("snapshot")[-1] ^= 1
    assert load_snapshots(files, "") == [Snapshot(1, 0, b"one")]
    save_snapshot(files, "", Snapshot(3, 0, b"three"))
    assert load_snapshots(files, "") == [Snapshot(3, 0, b"three"), Snapshot(1, 0, b"one")], (
        "a damaged one never pushes out a good one"
    )


def test_an_owner_may_have_nothing_to_say_and_what_is_too_short_is_no_snapshot() -> None:
    files = MemoryFiles()
    save_snapshot(files, "", Snapshot(4, 50, b""))
    assert load_snapshots(files, "") == [Snapshot(4, 50, b"")]
    write_whole(files, "", "snapshot", seal(bytes(15)))
    assert load_snapshots(files, "") == []


@pytest.mark.parametrize("seed", range(10))
def test_a_power_cut_at_any_call_leaves_a_snapshot(seed: int) -> None:
    nth = 1
    while True:
        files = MemoryFiles(seed)
        save_snapshot(files, "", Snapshot(1, 0, b"one" * 400))
        files.plan(Fault.POWER_CUT, nth)
        try:
            save_snapshot(files, "", Snapshot(2, 0, b"two" * 400))
            done = True
        except PowerCut:
            done = False
        files.heal()
        files.power_cut()
        found = load_snapshots(files, "")
        assert found and found[0] in (Snapshot(1, 0, b"one" * 400), Snapshot(2, 0, b"two" * 400))
        if done:
            assert found[0].index == 2
            return
        nth += 1
