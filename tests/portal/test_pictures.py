"""The pictures of docs/ can be made anew, all of them, small enough for a page; docs/portal.md shows each."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

from tests.portal.chromium import chromium
from tests.portal.pictures import FOLDER, PICTURES, WIDTH, draw
from tests.workers.notices import notice

NAMES = {picture.name for picture in PICTURES}
LIMIT_BYTES = 100_000


def test_the_page_shows_each_picture_and_none_that_nobody_makes() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([\w.-]+\.png)\)", (FOLDER / "portal.md").read_text())
    assert sorted(shown) == sorted(NAMES)
    assert {path.name for path in FOLDER.glob("*.png")} == NAMES


def test_pictures_are_small() -> None:
    assert {path.name: path.stat().st_size for path in FOLDER.glob("*.png") if path.stat().st_size > LIMIT_BYTES} == {}


def test_they_are_made_of_a_running_portal(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    executable = chromium()
    if executable is None:
        line = "no Chromium is installed: pictures are NOT made (Debian: apt-get install chromium)"
        notice(request.config, "the portal in a browser", line)
        pytest.skip(line)
    draw(tmp_path, executable)
    assert {path.name for path in tmp_path.iterdir()} == NAMES
    for picture in PICTURES:
        data = (tmp_path / picture.name).read_bytes()
        assert data.startswith(b"\x89PNG") and 10_000 < len(data) < LIMIT_BYTES, (picture.name, len(data))
        assert struct.unpack(">II", data[16:24]) == (WIDTH, picture.height)
