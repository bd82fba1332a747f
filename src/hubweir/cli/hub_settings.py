"""The settings of an event hub as options of `eventhub create` and `eventhub update`."""

from __future__ import annotations

from collections.abc import Callable

import click

from hubweir.cli.options import user_metadata
from hubweir.namespace.entity import Availability
from hubweir.namespace.tiers import HOUR_MS

STATUSES = [each.text for each in Availability]


def takes_settings_of_a_hub(command: Callable[..., None]) -> Callable[..., None]:
    """What both take besides --retention and --durability, as az names it: `hours`, `status`, `user_metadata`."""
    status = click.option(
        "--status",
        type=click.Choice(STATUSES, case_sensitive=False),
        metavar=f"[{'|'.join(STATUSES)}]",
        help="What it takes part in.",
    )
    policy = click.option(
        "--cleanup-policy",
        type=click.Choice(["Delete"], case_sensitive=False),
        metavar="[Delete]",
        expose_value=False,
        help="Events go by age; there is no other policy here.",
    )
    text = "The same as --retention, in hours."
    hours = click.option("--retention-time", "--retention-time-in-hours", "hours", type=click.IntRange(1), help=text)
    return hours(policy(status(user_metadata(command))))


def retention_of(retention_ms: int | None, hours: int | None) -> int | None:
    """Milliseconds, from the one of --retention and --retention-time that was given; UsageError when they differ."""
    if retention_ms is not None and hours is not None and retention_ms != hours * HOUR_MS:
        raise click.UsageError("--retention and --retention-time disagree: give one of them")
    return retention_ms if hours is None else hours * HOUR_MS
