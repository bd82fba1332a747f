from __future__ import annotations

import pytest

from hubweir.messaging_store.disk.whole_file import (
    read_sealed,
    read_whole,
    seal,
    seal_twice,
    unseal,
    unseal_twice,
    write_whole,
)
from hubweir.testing.memory_faults import Fault, PowerCut
from hubweir.testing.memory_files import MemoryFiles


def test_a_sealed_body_comes_back() -> None:
    assert unseal(seal(b"body")) == b"body" and unseal(seal(b"")) == b""


def test_no_cut_and_no_flipped_bit_goes_unnoticed() -> None:
    data = seal(b"some body")
    assert all(unseal(data[:cut]) is None for cut in range(len(data)))
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        assert unseal(bytes(damaged)) is None
    assert unseal(data + b"\0") is None


def test_of_two_copies_one_that_is_whole_is_enough() -> None:
    data = bytearray(seal_twice(b"some body"))
    assert unseal_twice(bytes(data)) == (b"some body", True)
    for spoilt, expected in (([0], b"some body"), ([-1], b"some body"), ([0, -1], None)):
        for at in spoilt:
            data[at] ^= 1
        assert unseal_twice(bytes(data)) == (expected, False)
        for at in spoilt:
            data[at] ^= 1
    assert unseal_twice(b"") == (None, False)


def test_an_absent_file_is_told_from_an_empty_one() -> None:
    files = MemoryFiles()
    assert read_whole(files, "f") is None and read_sealed(files, "f") is None
    write_whole(files, "", "f", b"")
    assert read_whole(files, "f") == b"" and read_sealed(files, "f") is None


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_leaves_the_old_file_or_the_new_one(seed: int) -> None:
    nth = 1
    while True:
        files = MemoryFiles(seed)
        write_whole(files, "", "f", seal(b"old"))
        files.plan(Fault.POWER_CUT, nth)
        try:
            write_whole(files, "", "f", seal(b"new" * 500))
        except PowerCut:
            files.heal()
            files.power_cut()
            assert read_sealed(files, "f") in (b"old", b"new" * 500)
            nth += 1
            continue
        files.heal()
        files.power_cut()
        assert read_sealed(files, "f") == b"new" * 500
        return


def test_what_can_be_rebuilt_is_not_synced() -> None:
    files = MemoryFiles()
    files.call_names = []
    write_whole(files, "", "f", b"x", durable=False)
    assert "sync" not in files.call_names and "sync_folder" not in files.call_names
