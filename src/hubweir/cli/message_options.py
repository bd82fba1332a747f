"""Arguments and options of the commands below `hubweir message`."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import click

from hubweir.cli.durations import Duration
from hubweir.queue.sub_queue import SubQueue

SUB_QUEUES = {
    "main": SubQueue.MAIN,
    "dead-letter": SubQueue.DEAD_LETTERS,
    "transfer-dead-letter": SubQueue.TRANSFER_DEAD_LETTERS,
}


class Moment(click.ParamType[int]):
    """A time, or how far from now it is, as milliseconds since 1970."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        if text[:1] in ("+", "-"):
            distance_ms = Duration().convert(text[1:], param, ctx)
            return int(time.time() * 1000) + (distance_ms if text[0] == "+" else -distance_ms)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is no time: write one such as 2026-01-31T12:00Z, or +10m, or -2h", param, ctx)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)


class Property(click.ParamType[tuple[str, str]]):
    """An application property: NAME=TEXT."""

    name = "property"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not name or not equals:
            self.fail(f"{value!r} is no property: write NAME=TEXT", param, ctx)
        return name, text


class SubQueueName(click.Choice[str]):
    """The word for a sub-queue, as the value for it."""

    def __init__(self) -> None:
        super().__init__(list(SUB_QUEUES))

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> SubQueue:  # type: ignore[override]
        return value if isinstance(value, SubQueue) else SUB_QUEUES[super().convert(str(value), param, ctx)]


queue_argument = click.argument("queue")
sub_queue_option = click.option(
    "--sub-queue", type=SubQueueName(), default="main", show_default=True, help="Which messages of it."
)
count_option = click.option("--count", type=click.IntRange(min=1), help="Stop after this many messages.")
wait_option = click.option(
    "--wait", type=float, default=2.0, show_default=True, help="Stop after so many seconds without a message."
)
as_json_lines = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object a message, with its metadata; a body that is no UTF-8 as body_base64, a value as body_value.",
)
