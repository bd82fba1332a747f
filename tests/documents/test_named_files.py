"""Every file that a text of the package names is there, so a reader of a docstring finds what it speaks of."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "benchmarks", "demo", "bootstrap", "docs")
# A path from any folder on, such as `topic/rule.py`; no part of another word, and no pattern.
NAMED = re.compile(r"(?<![\w/.*{}<>-])(?:[\w-]+/)*[\w-]+\.(?:py|pyx|pyi|pxd|toml)\b")
# Of Spark, and words that stand for a name.
OTHERS = {"pyspark/daemon.py", "FILE.toml", "_ROOM.pyx", "_ROOM.pyi"}


def known() -> set[str]:
    """The files of the checkout, each by its path from every folder above it on."""
    found: set[str] = set()
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")):
        parts = path.relative_to(ROOT).parts
        found |= {"/".join(parts[at:]) for at in range(len(parts))}
    return found | {path.name for path in ROOT.glob("*.*")}


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Every docstring and comment of a module, with the number of its first line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
            yield token.start[0], token.string


def lost(source: str, files: set[str]) -> list[str]:
    """What the texts of a module name and is not there."""
    named = (f"{line}: {name}" for line, text in texts_of(source) for name in NAMED.findall(text))
    return [each for each in named if each.split()[1] not in files | OTHERS]


def test_every_file_that_a_text_of_the_package_names_is_there() -> None:
    files = known()
    wrong = {}
    for path in sorted((ROOT / "src/hubweir").rglob("*.py")):
        if "tests" not in path.parts:
            wrong[path.relative_to(ROOT).as_posix()] = lost(path.read_text(), files)
    assert {name: found for name, found in wrong.items() if found} == {}


def test_a_file_that_is_gone_is_found_in_docstrings_and_comments_and_nowhere_else() -> None:
    planted = '"""See gone.py, env.py and queue/gone.py."""\nname = "lost.toml"  # as in missing.pxd\n'
    assert lost(planted, known()) == ["1: gone.py", "1: queue/gone.py", "2: missing.pxd"]
