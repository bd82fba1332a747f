"""Small real disks for tests: an ext4 image behind a loop device, and a tmpfs. They need root; tests skip loudly."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MIB = 1024 * 1024


COPIES = 20


def make_image(path: Path, size: int) -> None:
    """An empty ext4 file system of this many bytes, nothing of it kept for root."""
    with path.open("wb") as image:
        image.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(path)], check=True, capture_output=True, timeout=60)


@contextmanager
def mounted(image: Path) -> Iterator[Path]:
    """The image's folder, for as long as the context lasts."""
    mount = image.with_suffix(".mount")
    mount.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(mount)], check=True, capture_output=True, timeout=60)
    try:
        yield mount
    finally:
        subprocess.run(["umount", str(mount)], check=True, capture_output=True, timeout=60)


def copy_of_one_moment(image: Path, copy: Path) -> None:
    """Copy a mounted image as its device holds it at one moment. Stop first who uses the disk.

    The kernel goes on: it writes its journal and what was not synced, some seconds later each. Blocks of one moment
    beside a journal of another are what no power cut leaves, so a copy that was written to meanwhile is made again;
    AssertionError when the image is never left alone for so long. Holes are not read: the shorter, the seldomer.
    """
    for _ in range(COPIES):
        before_ns = image.stat().st_mtime_ns
        subprocess.run(["cp", "--sparse=always", str(image), str(copy)], check=True, capture_output=True, timeout=60)
        if image.stat().st_mtime_ns == before_ns:
            return
    raise AssertionError(f"{image} was written to during each of {COPIES} copies")


@contextmanager
def mounted_tmpfs(mount: Path, size: int) -> Iterator[Path]:
    """A tmpfs of this many bytes on a folder, which is made."""
    mount.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
    subprocess.run(["mount", *options, str(mount)], check=True, capture_output=True, timeout=60)
    try:
        yield mount
    finally:
        subprocess.run(["umount", str(mount)], check=True, capture_output=True, timeout=60)


def skip_without_disks(folder: Path, what: str) -> None:
    """Skip the test, and say loudly what is not tested, where this user cannot mount images."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip(f"{what} NOT TESTED: they need root and mkfs.ext4")
    probe = folder / "probe.img"
    make_image(probe, 16 * MIB)
    try:
        with mounted(probe):
            pass
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{what} NOT TESTED: no loop mounts here ({error.stderr.decode().strip()})")
    probe.unlink()
