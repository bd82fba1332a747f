from __future__ import annotations

import pytest

from hubweir.messaging_store.snapshot import Snapshot, load, save
from hubweir.testing.memory_files import Fault, MemoryFiles, PowerCut


def test_the_two_newest_are_kept() -> None:
    files = MemoryFiles()
    for index in (1, 2, 3):
        save(files, "", Snapshot(index, b"state %d" % index))
    assert load(files, "") == [Snapshot(3, b"state 3"), Snapshot(2, b"state 2")]


def test_a_damaged_newest_one_leaves_the_one_before() -> None:
    files = MemoryFiles()
    save(files, "", Snapshot(1, b"one"))
    save(files, "", Snapshot(2, b"two"))
    files.bytes_of("snapshot")[-1] ^= 1
    assert load(files, "") == [Snapshot(1, b"one")]
    save(files, "", Snapshot(3, b"three"))
    assert load(files, "") == [Snapshot(3, b"three"), Snapshot(1, b"one")], "a damaged one never pushes out a good one"


@pytest.mark.parametrize("seed", range(10))
def test_a_power_cut_at_any_call_leaves_a_snapshot(seed: int) -> None:
    nth = 1
    while True:
        files = MemoryFiles(seed)
        save(files, "", Snapshot(1, b"one" * 400))
        files.plan(files.calls + nth, Fault.POWER_CUT)
        try:
            save(files, "", Snapshot(2, b"two" * 400))
            done = True
        except PowerCut:
            done = False
        files.heal()
        files.power_cut()
        found = load(files, "")
        assert found and found[0] in (Snapshot(1, b"one" * 400), Snapshot(2, b"two" * 400))
        if done:
            assert found[0].index == 2
            return
        nth += 1
