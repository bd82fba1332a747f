"""What the documents tell a reader to type exists, and the files they point at are there.

Convention: a block marked ```console holds commands, each line starting with "$ ", and their output. Every command of
such a block is held against the menu of ./run and, for ./run hubweir and ./run serve, against the command line.
"""

import importlib
import re
import shlex
from pathlib import Path

import click
import pytest

from bootstrap.verbs import VERBS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
# Programs that a reader has anyway.
ANYWHERE = {
    "cd", "curl", "docker", "echo", "export", "git", "kill", "kubectl", "openssl", "pip", "printf", "python3",
    "python3.12", "sudo", "uv",
}  # fmt: skip


def commands(text: str) -> list[str]:
    """Return the commands of all console blocks, without the prompt."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def inline_commands(text: str) -> list[str]:
    """Return the commands of ours that stand in sentences and tables, but for those with a place to fill in."""
    sentences = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = [re.sub(r"\s+", " ", code) for code in re.findall(r"`((?:\./run|hubweir) [^`]+)`", sentences)]
    return [code for code in found if not re.search(r"[…⇥|]| COMMAND$|^hubweir is ready$", code)]


def links(text: str) -> list[str]:
    """Return where the page's links inside the repository lead, without the part after #."""
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target.split("#")[0] for target in found if "://" not in target and not target.startswith("#")]


def objection(command: str) -> str:
    """Return why a reader who types this gets nowhere, or an empty text."""
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    if words and words[0].startswith("/"):  # a program of an environment that the page made
        words[0] = Path(words[0]).name
    if not words or words[0] in ANYWHERE:
        return ""
    if words[0] == "./run":
        if len(words) == 1:
            return ""
        if words[1] not in VERBS:
            return f"./run has no verb {words[1]}"
        return command_line_objection(["serve", *words[2:]] if words[1] == "serve" else words[2:], words[1])
    if words[0] == "hubweir":
        return command_line_objection(words[1:], "hubweir")
    return f"{words[0]} is no program that the reader has"


def command_line_objection(words: list[str], verb: str) -> str:
    """Walk the command tree down along words; return what is not there."""
    if verb not in ("hubweir", "serve"):
        return ""
    try:
        module = importlib.import_module("hubweir.cli.main")
    except ModuleNotFoundError as error:
        return f"the command line cannot be loaded: {error}"
    command: click.Command = next(value for value in vars(module).values() if isinstance(value, click.Group))
    context = click.Context(command)
    for position, word in enumerate(words):
        if word.startswith("-"):
            known = {option for p in command.params for option in (*p.opts, *p.secondary_opts)} | {
                "--help",
                "--version",
            }
            if word.split("=")[0] not in known:
                return f"{' '.join(words[:position])} has no option {word}"
        elif isinstance(command, click.Group):
            try:
                below = command.get_command(context, word)
            except ModuleNotFoundError as error:
                return f"hubweir {word} cannot be loaded: {error}"
            if below is None:
                return f"hubweir has no command {' '.join(words[: position + 1])}"
            command = below
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_exists(page: Path) -> None:
    text = page.read_text()
    typed = commands(text) + inline_commands(text)
    wrong = [f"{command}: {why}" for command in typed if (why := objection(command))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert not [target for target in links(page.read_text()) if not (page.parent / target).exists()]


def test_the_readme_shows_how_to_run_the_tests_and_ci_does_the_same() -> None:
    assert "./run test" in commands((ROOT / "README.md").read_text())
    assert "./run test" in (ROOT / ".ci/run").read_text()


def test_the_menu_and_the_verbs_are_the_same() -> None:
    """The menu's indented lines begin with a verb each."""
    menu = (ROOT / "run").read_text().split('"""')[1]
    assert {line.split()[0] for line in menu.splitlines() if line.startswith("  ")} == set(VERBS)


def test_no_page_names_a_place_of_its_makers_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/home/|/root/|/tmp/\w|/work/", page.read_text()), page


@pytest.mark.parametrize(
    "command", ["./run dmeo", "hubwier serve", "./run hubweir no-such-command", "./run serve --no"]
)
def test_a_command_that_is_not_there_is_caught(command: str) -> None:
    assert objection(command)


def test_a_command_outside_console_blocks_is_not_read() -> None:
    page = "Text $ ./run\n```\n$ ./run dmeo\n```\n```console\n$ ./run test\nall good\n$ FAST=1 ./run demo\n```\n"
    assert commands(page) == ["./run test", "FAST=1 ./run demo"]
    sentence = "Say `hubweir queue\nlist`, `hubweir queue …`, `./run demo`, not `run`.\n"
    assert inline_commands(sentence + page) == ["hubweir queue list", "./run demo"]
    assert links("[a](docs/a.md#part) [b](https://example.org) [c](#here)") == ["docs/a.md"]
