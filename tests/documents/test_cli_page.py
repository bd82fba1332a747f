"""docs/cli.md has a line for every command and every option, and no line for one that is not there."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hubweir.cli.main import hubweir

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "cli.md").read_text()
# The rows of the table by command, without the words in capitals that stand for arguments.
ROWS = {
    re.sub(r" [A-Z]+", "", found[1]): found[0] for found in re.finditer(r"^\| `hubweir ([^`]+)`.*$", PAGE, re.MULTILINE)
}
# Told once, above the table or for all commands of a kind.
EVERYWHERE = {"--help", "--connection-string", "--ca-file", "--name", "--data"}
# One flag for every setting: docs/settings.md is made from them.
TAKE_SETTINGS = {"serve", "config show"}


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(hubweir))


def options_of(command: click.Command) -> list[set[str]]:
    """The long names of each option."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    return [{name for name in (*each.opts, *each.secondary_opts) if name.startswith("--")} for each in options]


def untold(command: click.Command, row: str) -> list[set[str]]:
    """Options that neither the row names, nor a page that it leads to, nor the text about all commands."""
    told = row + "".join((DOCS / page).read_text() for page in re.findall(r"\(([a-z_]+\.md)\)", row))
    names = set(re.findall(r"--[a-z-]+", told)) | EVERYWHERE
    return [option for option in options_of(command) if not option & names]


def test_every_command_has_its_line() -> None:
    assert sorted(ROWS) == sorted(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - TAKE_SETTINGS))
def test_the_line_names_the_options_of_its_command_and_no_others(name: str) -> None:
    command, row = COMMANDS[name], ROWS[name]
    assert untold(command, row) == []
    assert set(re.findall(r"`(--[a-z-]+)", row)) <= set().union(*options_of(command))


def test_values_that_the_help_names_are_taken() -> None:
    """`such as 24h`: what a reader copies. A file that has to be there, and a part of a value, are not tried."""
    tried = set()
    for name, command in COMMANDS.items():
        for option in command.params:
            text = getattr(option, "help", None) or ""
            if not isinstance(option.type, click.Path):
                for value in re.findall(r"[Ss]uch as ([\w./:+=-]+[\w])", text):
                    option.type.convert(value, option, click.Context(command))  # else it says what is wrong
                    tried.add((name, value))
    assert {("eventhub create", "2d"), ("message send", "10m"), ("store move", "store-1")} <= tried


def test_an_option_that_is_not_told_is_found() -> None:
    row = ROWS["eventhub delete"]
    assert untold(COMMANDS["eventhub delete"], row.replace("--yes", "")) == [{"--yes"}]
