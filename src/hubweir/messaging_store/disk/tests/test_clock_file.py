"""clock_file.py: the state that was saved comes back, and nothing that is no state does."""

from __future__ import annotations

import pytest

from hubweir.messaging_store.disk.clock_file import load_clock, save_clock
from hubweir.messaging_store.disk.layout import CLOCK_NAME
from hubweir.messaging_store.disk.whole_file import seal, write_whole
from hubweir.messaging_store.trusted_clock import ClockState
from hubweir.testing.memory_files import MemoryFiles


def test_what_was_saved_last_comes_back() -> None:
    files = MemoryFiles()
    assert load_clock(files, "") is None
    for state in (ClockState(1, 2), ClockState(2**40, -7)):
        save_clock(files, "", state)
        assert load_clock(files, "") == state
    files.power_cut()
    assert load_clock(files, "") == ClockState(2**40, -7)


@pytest.mark.parametrize("size", [0, 8, 15, 17, 24])
def test_a_sealed_file_of_another_size_is_no_state(size: int) -> None:
    files = MemoryFiles()
    write_whole(files, "", CLOCK_NAME, seal(bytes(size)))
    assert load_clock(files, "") is None
