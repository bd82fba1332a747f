from __future__ import annotations

from random import Random

from hubweir.testing.memory_inode import SECTOR, Inode


def test_a_write_inside_a_sector_keeps_the_rest_of_it() -> None:
    inode = Inode()
    inode.write(0, b"a" * 600)
    inode.sync()
    inode.write(10, b"b" * 5)
    inode.fail_sync(Random(2))
    inode.write(20, b"c")
    inode.sync()
    inode.cut(Random(1))
    assert inode.read(0, 30)[20:21] == b"c" and inode.read(500, 100) == b"a" * 100


def test_an_unsynced_length_is_kept_or_not() -> None:
    sizes = set()
    for seed in range(20):
        inode = Inode()
        inode.write(0, b"a" * SECTOR)
        inode.sync()
        inode.write(SECTOR, b"b" * SECTOR)
        inode.cut(Random(seed))
        sizes.add(inode.size)
        assert inode.read(0, SECTOR) == b"a" * SECTOR
    assert sizes == {SECTOR, 2 * SECTOR}
