"""A folder's front page, its __init__.py, names every module of the folder."""

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src/hubweir"
# Their modules are many and alike, and named by a table elsewhere: of kernels, of commands, of what a user may set.
WITH_A_TABLE = {"kernels", "cli", "config", "testing"}
FOLDERS = sorted(
    page.parent
    for page in PACKAGE.rglob("__init__.py")
    if page.parent != PACKAGE
    and "tests" not in page.relative_to(PACKAGE).parts
    and page.parent.relative_to(PACKAGE).parts[0] not in WITH_A_TABLE
)


def unnamed(folder: Path) -> list[str]:
    """The modules that the front page of a folder does not name."""
    named = set(re.findall(r"\w+\.py", (folder / "__init__.py").read_text()))
    return sorted({path.name for path in folder.glob("*.py")} - named - {"__init__.py"})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE).as_posix())
def test_a_front_page_names_every_module(folder: Path) -> None:
    assert not unnamed(folder)


def test_a_module_that_is_left_out_is_found(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""Parts. Start with open_log.py."""\n')
    (tmp_path / "open_log.py").touch()
    (tmp_path / "log.py").touch()  # a part of the other's name
    assert unnamed(tmp_path) == ["log.py"]


def test_folders_without_such_a_page_are_there() -> None:
    assert all((PACKAGE / name).is_dir() for name in WITH_A_TABLE) and len(FOLDERS) > 10
