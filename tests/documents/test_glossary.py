"""docs/glossary.md: each term once, in order, with a file and a class that are there."""

import ast
import re
from pathlib import Path

import pytest

from tests.floors.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/glossary.md").read_text()
PACKAGE = ROOT / "src/hubweir"
OWNERS = {"EH", "SB", "AMQP", "Spark", "ours"}
ROW = re.compile(
    r"\| (?P<term>[^|]+) \| (?P<of>[^|]+) \| (?P<what>[^|]+\.) \| `(?P<file>[^`]+)`(?: `(?P<name>\w+)`)? \|"
)


def classes_of(path: Path) -> set[str]:
    return {node.name for node in parsed(path).body if isinstance(node, ast.ClassDef)}


def mistakes(page: str) -> list[str]:
    """One line for every row that breaks a rule of the page."""
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    found = []
    before = ""
    for line in rows:
        row = ROW.fullmatch(line)
        if row is None:
            found.append(f"not a row of four cells, the third a sentence, the last a file: {line}")
            continue
        term, path = row["term"], PACKAGE / row["file"]
        if term.lower() <= before:
            found.append(f"{term}: stands behind {before}")
        before = term.lower()
        if row["of"] not in OWNERS:
            found.append(f"{term}: of {row['of']}")
        if not path.is_file():
            found.append(f"{term}: no file {row['file']}")
        elif row["name"] and row["name"] not in classes_of(path):
            found.append(f"{term}: {row['file']} has no class {row['name']}")
    return found if rows else ["no rows"]


def test_the_glossary_names_what_is_there() -> None:
    assert not mistakes(PAGE)


@pytest.mark.parametrize(
    ("planted", "complaint"),
    [
        ("| log | ours | One. | `messaging_store/log.py` `Journal` |", "has no class Journal"),
        ("| log | ours | One. | `messaging_store/journal.py` |", "no file"),
        ("| log | Kafka | One. | `messaging_store/log.py` |", "of Kafka"),
        ("| log | ours | no sentence | `messaging_store/log.py` |", "not a row"),
        ("| log | ours | One. | `messaging_store/log.py` |\n| lag | ours | One. | `env.py` |", "stands behind log"),
        ("| log | ours | One. | `messaging_store/log.py` |\n| log | ours | Two. | `env.py` |", "stands behind log"),
        ("", "no rows"),
    ],
)
def test_a_planted_mistake_is_found(planted: str, complaint: str) -> None:
    head = "| term | of | what it is | where |\n|---|---|---|---|\n"
    (line,) = mistakes(head + planted)
    assert complaint in line


def test_other_pages_lead_here() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        assert "docs/glossary.md" in (ROOT / name).read_text(), name
