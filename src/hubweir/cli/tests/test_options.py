"""What several commands share: asking before a deed, and JSON for programs."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from hubweir.cli.options import as_json, ask_before, print_json, without_asking


@click.command()
@without_asking
@as_json
def probe(yes: bool, as_json: bool) -> None:
    ask_before("remove everything", yes=yes)
    print_json({"done": as_json, "größe": 1})


@pytest.mark.parametrize(("given", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_nothing_is_done_before_yes_was_said(given: str, code: int) -> None:
    typed = CliRunner().invoke(probe, [], input=given)
    assert typed.exit_code == code
    assert "remove everything? [y/N]" in typed.output
    assert ("done" in typed.output) is (code == 0)


def test_yes_on_the_command_line_is_not_asked_for_and_json_is_one_document() -> None:
    typed = CliRunner().invoke(probe, ["--yes", "--json"])
    assert typed.exit_code == 0
    assert json.loads(typed.stdout) == {"done": True, "größe": 1}
