"""hubweir receive and hubweir tail: read events of a hub to standard output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial

import click

from hubweir.amqp.messaging.annotations import ENQUEUED_TIME, OFFSET, PARTITION_KEY, SEQUENCE_NUMBER
from hubweir.amqp.messaging.message import Message
from hubweir.cli.counted import counted
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.printed_body import body_line, body_members
from hubweir.client.connection import Connection
from hubweir.client.event_run import Event, EventRun
from hubweir.client.management import Management
from hubweir.client.plain_values import plain_value
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.errors import EVENTS_LOST, ServiceError
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind

_OURS = (SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME, PARTITION_KEY)


class Start(click.ParamType[EventPosition]):
    """A start position on the command line."""

    name = "position"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> EventPosition:
        if isinstance(value, EventPosition):
            return value
        text = str(value)
        if text in ("earliest", "latest"):
            return EARLIEST if text == "earliest" else LATEST
        kind, _, number = text.partition(":")
        if kind in ("sequence", "offset") and number.isascii() and number.isdigit():
            counting = PositionKind.SEQUENCE_NUMBER if kind == "sequence" else PositionKind.OFFSET
            return EventPosition(counting, int(number), True)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(
                f"{text!r} is no position: earliest, latest, sequence:N, offset:N, or a time such as 2026-01-31T12:00Z",
                param,
                ctx,
            )
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return EventPosition(PositionKind.ENQUEUED_TIME, int(moment.timestamp() * 1000), True)


@click.command()
@click.argument("hub")
@click.option("--group", default="$Default", show_default=True, help="Consumer group.")
@click.option("--partition", "partitions", multiple=True, help="Only this partition; may be repeated.  [default: all]")
@click.option("--from", "start", type=Start(), default="earliest", show_default=True, help="Where to start.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after this many events.")
@click.option("--wait", type=float, default=2.0, show_default=True, help="Stop after so many seconds without an event.")
@click.option("--follow", is_flag=True, help="Never stop waiting.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object an event, with its metadata; a body that is no UTF-8 as body_base64, a value as body_value.",
)
@takes_target
def receive(
    target: NamespaceAccess,
    hub: str,
    group: str,
    partitions: tuple[str, ...],
    start: EventPosition,
    count: int | None,
    wait: float,
    follow: bool,
    as_json: bool,
) -> None:
    """Print the events of the event hub HUB, one a line.

    --from takes earliest, latest, sequence:N, offset:N, or a time (ISO 8601, UTC when it has no zone). Events of one
    partition come in order; between partitions there is no order.
    """
    if start.kind in (PositionKind.SEQUENCE_NUMBER, PositionKind.OFFSET) and len(partitions) != 1:
        raise click.UsageError("each partition counts its own sequence numbers and offsets: add one --partition")
    _print(target, hub, group, partitions, start, None if follow else wait, _Output(count, as_json))


@click.command()
@click.argument("hub")
@click.option("--group", default="$Default", show_default=True, help="Consumer group.")
@click.option("--partition", "partitions", multiple=True, help="Only this partition; may be repeated.  [default: all]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object an event, as hubweir receive does.")
@takes_target
def tail(target: NamespaceAccess, hub: str, group: str, partitions: tuple[str, ...], as_json: bool) -> None:
    """Print the events of the event hub HUB that come from now on, until Ctrl-C.

    The same as `hubweir receive HUB --from latest --follow`.
    """
    _print(target, hub, group, partitions, LATEST, None, _Output(None, as_json))


def _print(
    target: NamespaceAccess,
    hub: str,
    group: str,
    partitions: tuple[str, ...],
    start: EventPosition,
    wait_s: float | None,
    output: _Output,
) -> None:
    """wait_s: None follows for ever; then Ctrl-C is how it ends."""
    try:
        target.run(lambda connection: _read(connection, hub, group, partitions, start, wait_s, output))
    except KeyboardInterrupt:
        if wait_s is not None:
            raise
    click.echo(counted(output.printed, "event"), err=True)


class _Output:
    """Where events go, and how many more are wanted."""

    def __init__(self, most: int | None, as_json: bool) -> None:
        self.printed = 0
        self._most = most
        self._as_json = as_json

    @property
    def is_full(self) -> bool:
        return self._most is not None and self.printed >= self._most

    def take(self, partition_id: str, run: EventRun) -> None:
        for place, event in enumerate(run):
            if self.is_full:
                return
            self.printed += 1
            if self._as_json:
                click.echo(json.dumps(_document(partition_id, event, run.open_message(place))))
            elif event.body is not None:
                click.echo(event.body)
            else:
                click.echo(body_line(None, run.open_message(place)))


async def _read(
    connection: Connection,
    hub: str,
    group: str,
    partitions: tuple[str, ...],
    start: EventPosition,
    wait_s: float | None,
    output: _Output,
) -> None:
    ids = partitions or (await Management(connection).hub(hub)).partition_ids

    async def opened(partition_id: str, position: EventPosition) -> Receiver:
        return await Receiver.open(connection, address_of(hub, group, partition_id), ReceiverOptions(position=position))

    receivers = [(one, await opened(one, start)) for one in ids]
    ended: list[BaseException] = []
    try:
        async with asyncio.TaskGroup() as readers:
            for partition_id, receiver in receivers:
                again = partial(opened, partition_id)
                readers.create_task(_copy(partition_id, receiver, wait_s, output, again))
    # The group has stopped all other readers. BrokenPipeError: nobody reads what is printed any more.
    except* (ServiceError, BrokenPipeError, _Enough) as ends:
        ended += ends.exceptions
    refused = [each for each in ended if not isinstance(each, _Enough)]
    if refused:
        raise refused[0]


class _Enough(Exception):
    """The output has all that is wanted: who reads other partitions need not wait on."""


async def _copy(
    partition_id: str,
    receiver: Receiver,
    wait_s: float | None,
    output: _Output,
    again: Callable[[EventPosition], Awaitable[Receiver]],
) -> None:
    """Print one partition until it is quiet for wait_s. _Enough: the output is full; ServiceError: the link ended.

    again: attaches anew, behind events that are lost.
    """
    while True:
        try:
            run = await receiver.receive(max_wait_s=3600.0 if wait_s is None else wait_s)
        except ServiceError as error:
            if error.condition is not EVENTS_LOST:
                raise
            click.echo(error.text, err=True)
            receiver = await again(receiver.position)
            continue
        if run is not None:
            output.take(partition_id, run)
        if output.is_full:
            raise _Enough
        if run is None and wait_s is not None:
            return


def _document(partition_id: str, event: Event, message: Message) -> dict[str, object]:
    """One event. properties are application properties; system_properties are AMQP's standard ones that it has, and
    its annotations, by their names on the wire. Its body: see body_members.
    """
    return {
        "partition_id": partition_id,
        "sequence_number": event.sequence_number,
        "offset": event.offset,
        "enqueued_time_ms": event.enqueued_time_ms,
        "partition_key": event.partition_key,
        "properties": plain_value(message.application_properties or {}),
        "system_properties": _system_properties(message),
        **body_members(event.body, message),
    }


def _system_properties(message: Message) -> dict[str, object]:
    """Without those of the service, which stand in the document by themselves."""
    annotations = message.message_annotations or {}
    found: dict[str, object] = {str(name): value for name, value in annotations.items() if name not in _OURS}
    if message.properties is not None:
        for field in fields(message.properties):
            found[field.name.replace("_", "-")] = getattr(message.properties, field.name)
    return {name: plain_value(value) for name, value in found.items() if value is not None}
