import re
from hashlib import sha256

import pytest

from hubweir.portal.assets import ASSETS, FOLDER, asset, version


@pytest.mark.parametrize("name", ASSETS)
def test_every_file_is_there_and_may_be_kept(name: str) -> None:
    found = asset(name)
    assert found is not None and found.body == (FOLDER / name).read_bytes()
    assert "immutable" in found.headers["cache-control"]
    assert re.fullmatch("[0-9a-f]{12}", version(name))


@pytest.mark.parametrize("name", ["", "..", "../portal.py", "licenses/NOTICE.txt", "htmx.min.js.map", "PORTAL.CSS"])
def test_nothing_else_of_the_folder_is_served(name: str) -> None:
    assert asset(name) is None


def test_vendored_files_are_those_that_the_note_names() -> None:
    note = (FOLDER / "licenses/NOTICE.txt").read_text()
    named = dict(reversed(line.split()) for line in note.splitlines() if re.match("[0-9a-f]{64}  ", line))
    assert set(named) == {"htmx.min.js", "uPlot.iife.min.js", "uPlot.min.css"}
    for name, digest in named.items():
        assert sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name
    assert {path.name for path in (FOLDER / "licenses").iterdir()} == {"NOTICE.txt", "htmx.txt", "uPlot.txt"}
