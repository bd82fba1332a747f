"""A name as an argument or as an option."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from hubweir.cli.names import in_hub, of_hub, takes_name


@click.command()
@takes_name("THING", "--thing-name")
@in_hub
@click.option("--more", default="")
def command(name: str, hub: str, more: str) -> None:
    """What it does."""
    click.echo(f"{name} in {hub}{more}")


@pytest.mark.parametrize("given", [("a",), ("--name", "a"), ("-n", "a"), ("--thing-name", "a"), ("a", "--name", "a")])
def test_every_way_gives_the_same_name(given: tuple[str, ...]) -> None:
    assert CliRunner().invoke(command, [*given, "--eventhub-name", "h"]).output == "a in h\n"
    assert CliRunner().invoke(command, ["--more", "!", "--eventhub", "h", *given]).output == "a in h!\n"


@pytest.mark.parametrize("given", [(), ("a", "--name", "b"), ("a", "b")])
def test_none_or_two_names_are_usage_errors(given: tuple[str, ...]) -> None:
    assert CliRunner().invoke(command, [*given, "--eventhub", "h"]).exit_code == 2


def test_the_help_keeps_the_commands_text() -> None:
    assert "What it does." in CliRunner().invoke(command, ["--help"]).output


def test_a_thing_of_a_hub_is_given_behind_the_hub() -> None:
    @click.command()
    @of_hub("thing")
    def both(hub: str, thing: str) -> None:
        click.echo(f"{thing} of {hub}")

    assert CliRunner().invoke(both, ["h", "t"]).output == "t of h\n"
    assert CliRunner().invoke(both, ["h"]).exit_code == 2
    assert "NAME THING" in CliRunner().invoke(both, ["--help"]).output
