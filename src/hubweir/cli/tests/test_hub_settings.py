"""The settings of a hub as they are typed."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from hubweir.cli.hub_settings import STATUSES, retention_of, takes_settings_of_a_hub


@click.command()
@takes_settings_of_a_hub
def probe(**given: Any) -> None:
    click.echo(repr(sorted(given.items())))


def test_statuses_are_taken_in_any_case_and_shown_as_they_are_spelt() -> None:
    typed = CliRunner().invoke(probe, ["--status", "senddisabled", "--cleanup-policy", "delete"])
    assert typed.output == "[('hours', None), ('status', 'SendDisabled'), ('user_metadata', None)]\n"
    shown = CliRunner().invoke(probe, ["--help"]).output
    assert f"[{'|'.join(STATUSES)}]" in shown and "[Delete]" in shown
    assert CliRunner().invoke(probe, ["--status", "off"]).exit_code == 2


@pytest.mark.parametrize(
    ("retention_ms", "hours", "found"),
    [(None, None, None), (7_200_000, None, 7_200_000), (None, 2, 7_200_000), (7_200_000, 2, 7_200_000)],
)
def test_retention_is_whichever_was_given(retention_ms: int | None, hours: int | None, found: int | None) -> None:
    assert retention_of(retention_ms, hours) == found


def test_two_lengths_of_retention_are_not_guessed_between() -> None:
    with pytest.raises(click.UsageError, match="give one of them"):
        retention_of(7_200_000, 3)
