"""Console blocks of docs/ that are marked with <!-- run --> do what they say, against a server of their page's own.

A command that the page shows with output prints it, where `…` stands for what differs each time; one that it shows
without ends with 0. A block whose command is `hubweir serve` says how the page's server is started.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.testing.server_process import ServerProcess
from tests.documents.test_readme_session import Step, steps

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile(r"^<!-- run -->\n```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if MARKED.search(page.read_text())]


def steps_of(page: Path) -> list[Step]:
    return [step for block in MARKED.findall(page.read_text()) for step in steps(block)]


def words(step: Step) -> list[str]:
    program, *arguments = shlex.split(step.command)
    assert program == "hubweir", f"{step.command}: only hubweir is run here"
    return arguments


def without_ends(text: str) -> str:
    """Without the blanks that fill a table's last column."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def problem(step: Step, connection_string: str) -> str | None:
    """What is not as the page says; None: all is. A question is answered with nothing, as nobody is there."""
    environment = {"HUBWEIR_CONNECTION_STRING": connection_string}
    result = CliRunner().invoke(hubweir, words(step), env=environment)
    if result.exit_code:
        return f"{step.command}: exit code {result.exit_code}: {result.output}{result.exception!r}"
    shown = re.escape(without_ends(step.output)).replace("…", ".*")
    if step.output and not re.fullmatch(shown, without_ends(result.output)):
        return f"{step.command}: printed {result.output!r}, not {step.output!r}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    shown = steps_of(page)
    served = [step for step in shown if words(step)[0] == "serve"]
    typed = [step for step in shown if step not in served]
    assert typed, f"{page.name}: nothing is typed at a server"
    with ServerProcess(tmp_path / "data", arguments=[part for step in served for part in words(step)[1:]]) as server:
        for step in typed:
            assert problem(step, server.connection_string()) is None


def test_pages_whose_commands_need_nothing_else_are_typed() -> None:
    assert {page.stem for page in PAGES} >= {
        *("publisher_policy", "shared_access_signature", "subscription", "throughput_unit")
    }


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("$ hubweir sas make flights\nSharedAccessSignature …&skn=Root\n", "printed"),
        ("$ hubweir sas make --lifetime never\n", "exit code 2"),
        ("$ hubweir sas explain nothing\n", "exit code 1"),
    ],
)
def test_control_arm_what_a_page_has_wrong_is_found(block: str, found: str) -> None:
    [step] = steps(block)
    there = "Endpoint=sb://127.0.0.1;SharedAccessKeyName=Other;SharedAccessKey=SAS_KEY_VALUE"
    assert found in str(problem(step, there))


def test_control_arm_what_a_page_has_right_is_not_found() -> None:
    [step] = steps("$ hubweir sas make flights\nSharedAccessSignature sr=sb%3A%2F%2F127.0.0.1%2Fflights&…&skn=Root\n")
    assert problem(step, "Endpoint=sb://127.0.0.1;SharedAccessKeyName=Root;SharedAccessKey=SAS_KEY_VALUE") is None
