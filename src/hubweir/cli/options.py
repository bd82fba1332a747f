"""Options that several commands have, each with one name and one text."""

from __future__ import annotations

import json

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
without_asking = click.option("--yes", is_flag=True, help="Do not ask.")
user_metadata = click.option("--user-metadata", help="A text of yours, at most 1,024 characters.")


def print_json(document: object) -> None:
    """A document on standard output, as `--json` promises it: indented, one a call."""
    click.echo(json.dumps(document, indent=2))


def ask_before(deed: str, *, yes: bool) -> None:
    """Ask whether the deed is meant, unless --yes was given; exit code 1 and nothing done when it is not."""
    if not yes:
        click.confirm(f"{deed}?", abort=True)
