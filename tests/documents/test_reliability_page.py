"""docs/reliability.md says what each rule, promise and test is that a text of the checkout names by its number."""

import re
from pathlib import Path

from tests.documents.test_named_files import ROOT, texts_of

ROWS = re.compile(r"^\| ((?:[PRT]\d+a?)(?:, [PRT]\d+a?)*) \|", re.MULTILINE)
# "rule R10a", "Promise P4", "promises P3, P4"; tests and models are named by "(T15", or begin a text: "T21: ".
NAMED = re.compile(r"(?:[Rr]ules? |[Pp]romises? |and |, )([PR]\d+a?)\b|(?:\(|, |^\"\"\")(T\d+a?)[,:;)]")
NUMBER = re.compile(r"\b[PRT]\d")
FOLDERS = ("src", "tests", "benchmarks", "demo")


def explained(page: str) -> set[str]:
    return {number for row in ROWS.findall(page) for number in row.split(", ")}


def named(source: str) -> set[str]:
    if not NUMBER.search(source):
        return set()  # as of most modules: to take its texts out takes a hundred times as long
    return {number for _, text in texts_of(source) for found in NAMED.findall(text) for number in found if number}


def unexplained(source: str, page: str) -> set[str]:
    return named(source) - explained(page)


PAGE = (ROOT / "docs/reliability.md").read_text()


def test_every_number_that_a_text_names_is_on_the_page() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    lost = {path.relative_to(ROOT).as_posix(): unexplained(path.read_text(), PAGE) for path in files if is_ours(path)}
    assert not {path: numbers for path, numbers in lost.items() if numbers}


def is_ours(path: Path) -> bool:
    """The control arm below names numbers that are nowhere."""
    return path != Path(__file__).resolve()


def test_control_arm_a_number_that_is_nowhere_is_found() -> None:
    planted = '''"""T97: a test (rule R98, promise P99, T15). R96 is not named so, nor is a time 00T95."""'''
    assert unexplained(planted, PAGE) == {"T97", "R98", "P99"}
    assert {"P1", "R10a", "T15"} <= explained(PAGE)
