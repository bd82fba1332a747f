"""docs/cli.md has a line for every command, and no line for one that is not there."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from hubweir.cli.main import hubweir

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name))


def test_every_command_has_its_line() -> None:
    lines = [re.sub(r" [A-Z]+", "", line) for line in re.findall(r"^\| `hubweir ([^`]+)`", PAGE, re.MULTILINE)]
    assert sorted(lines) == sorted(commands(hubweir))
