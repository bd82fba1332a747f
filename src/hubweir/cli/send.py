"""hubweir send: publish events from the command line, a file or standard input."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from hubweir.cli.counted import counted
from hubweir.cli.message_options import Property
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.client.connection import Connection
from hubweir.client.event_batch import batches_of, event_head
from hubweir.client.sender import OutcomeUnknown, Sender
from hubweir.errors import ServiceError

# Batches under way at once; the next one waits for the oldest.
_IN_FLIGHT = 16


@click.command()
@click.argument("hub")
@click.argument("bodies", nargs=-1)
@click.option("--key", help="Partition key: events of one key go to one partition, in order.")
@click.option("--partition", help="Send to this partition instead.")
@click.option("--publisher", help="Send as this publisher instead.")
@click.option("--property", "properties", type=Property(), multiple=True, help="NAME=TEXT; may be repeated.")
@click.option("--content-type", help="Such as application/json.")
@click.option(
    "--from-file",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="An event with all bytes of this file; may be repeated.",
)
@takes_target
def send(
    target: NamespaceAccess,
    hub: str,
    bodies: tuple[str, ...],
    key: str | None,
    partition: str | None,
    publisher: str | None,
    properties: tuple[tuple[str, str], ...],
    content_type: str | None,
    files: tuple[Path, ...],
) -> None:
    """Publish BODIES to the event hub HUB, one event each, then files.

    Without any every line of standard input is an event. Properties are those of each event. Events go in batches; a
    batch lands whole in one partition. The command ends when all of them are accepted; when something goes wrong it
    says how many were.
    """
    if sum(choice is not None for choice in (key, partition, publisher)) > 1:
        raise click.UsageError("--key, --partition and --publisher exclude each other")
    address = hub if partition is None else f"{hub}/Partitions/{partition}"
    address = address if publisher is None else f"{hub}/Publishers/{publisher}"
    head = event_head(dict(properties), content_type)
    events = _given(bodies, files) if bodies or files else _lines()
    sent = target.run(lambda connection: _publish(connection, address, events, key, head))
    click.echo(f"{counted(sent, 'event')} accepted by {address}")


def _given(bodies: Iterable[str], files: Iterable[Path]) -> Iterator[bytes]:
    yield from (body.encode() for body in bodies)
    yield from (file.read_bytes() for file in files)


def _lines() -> Iterator[bytes]:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n")


async def _publish(connection: Connection, address: str, events: Iterable[bytes], key: str | None, head: bytes) -> int:
    """How many events were accepted. ServiceError: what went wrong first; what became of all events is told before."""
    sender = await Sender.open(connection, address)
    under_way: deque[tuple[int, asyncio.Future[None]]] = deque()
    accepted = 0
    try:
        for batch in batches_of(events, sender.max_message_size, partition_key=key, head=head):
            under_way.append((batch.count, sender.submit(batch)))
            if len(under_way) >= _IN_FLIGHT:
                accepted += await _oldest(under_way)
        while under_way:
            accepted += await _oldest(under_way)
    except ServiceError:
        click.echo(await _told(accepted, under_way), err=True)
        raise
    return accepted


async def _oldest(under_way: deque[tuple[int, asyncio.Future[None]]]) -> int:
    """Wait for the oldest batch and take it off; how many events it has. ServiceError: it is not stored, or unknown."""
    count, outcome = under_way[0]
    await outcome
    del under_way[0]
    return count


async def _told(accepted: int, under_way: Iterable[tuple[int, asyncio.Future[None]]]) -> str:
    """What became of all events that went out, when something went wrong with one batch."""
    events = Counter(accepted=accepted)
    for count, outcome in under_way:
        (ended,) = await asyncio.gather(outcome, return_exceptions=True)
        what = "accepted" if ended is None else "perhaps stored" if isinstance(ended, OutcomeUnknown) else "refused"
        events[what] += count
    return ", ".join(f"{count} {what}" for what, count in events.items())
