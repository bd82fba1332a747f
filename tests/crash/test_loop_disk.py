"""Copies of a disk for power cuts: of one moment, though the kernel writes to the image meanwhile."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.crash import loop_disk
from tests.crash.loop_disk import COPIES, copy_of_one_moment


class Kernel:
    """Writes to the image at the end of so many copies, as the kernel does beside them."""

    def __init__(self, image: Path, monkeypatch: pytest.MonkeyPatch, *, writes: int) -> None:
        self.copies = 0
        run = subprocess.run

        def copied(*arguments: Any, **how: Any) -> Any:
            ended = run(*arguments, **how)
            self.copies += 1
            if self.copies <= writes:
                image.write_bytes(b"journal of moment %d" % self.copies)
            return ended

        monkeypatch.setattr(loop_disk.subprocess, "run", copied)


@pytest.mark.parametrize("writes", [0, 1, 3])
def test_a_copy_is_made_again_until_nobody_wrote_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    image, copy = tmp_path / "disk.img", tmp_path / "cut.img"
    image.write_bytes(b"journal of moment 0")
    kernel = Kernel(image, monkeypatch, writes=writes)
    copy_of_one_moment(image, copy)
    assert kernel.copies == writes + 1
    assert copy.read_bytes() == image.read_bytes() == b"journal of moment %d" % writes


def test_an_image_that_is_never_left_alone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(b"journal of moment 0")
    kernel = Kernel(image, monkeypatch, writes=10 * COPIES)
    with pytest.raises(AssertionError, match="was written to during each"):
        copy_of_one_moment(image, tmp_path / "cut.img")
    assert kernel.copies == COPIES
