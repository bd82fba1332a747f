"""The pins are complete, agree with one another, and work with whatever index the machine is set up for."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def pins(name: str) -> dict[str, str]:
    """Return package and version of each line of a requirements file."""
    return dict(re.findall(r"^([\w.-]+)==([\w.+!-]+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0] for requirement in requirements}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_pins_name_no_index_and_no_place(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash=)", text, re.MULTILINE), "an option"
    assert not re.search(r"(^|\s)/\w", text), "an absolute path"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_pin_has_a_hash(path: Path) -> None:
    entries = re.split(r"\n(?=\S)", path.read_text().strip())
    assert entries
    assert not [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry]


def test_pins_hold_what_the_project_asks_for() -> None:
    runtime = names(PROJECT["dependencies"])
    assert runtime <= pins("run.txt").keys()
    assert runtime | names(EXTRAS["demo"]) | names(EXTRAS["build"]) <= pins("demo.txt").keys()
    assert runtime | names(EXTRAS["test"]) | names(EXTRAS["build"]) <= pins("test.txt").keys()
    assert runtime | names(EXTRAS["spark"]) <= pins("spark.txt").keys()
    assert names(EXTRAS["java"]) == pins("java.txt").keys()


def test_one_package_has_one_version_and_the_tests_have_all_of_the_demo() -> None:
    tested = pins("test.txt").items()
    assert pins("run.txt").items() <= pins("demo.txt").items() <= tested
    shared = pins("spark.txt").keys() & pins("test.txt").keys()
    assert {name: pins("spark.txt")[name] for name in shared}.items() <= tested
