"""hubweir send: publish events from the command line, a file or standard input."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator

import click

from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.client.connection import Connection
from hubweir.client.event_batch import batches_of
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
@takes_target
def send(
    target: NamespaceAccess,
    hub: str,
    bodies: tuple[str, ...],
    key: str | None,
    partition: str | None,
    publisher: str | None,
) -> None:
    """Publish BODIES to the event hub HUB, one event each.

    Without BODIES every line of standard input is an event. Events go in batches; a batch lands whole in one
    partition. The command ends when all of them are accepted; when something goes wrong it says how many were.
    """
    if sum(choice is not None for choice in (key, partition, publisher)) > 1:
        raise click.UsageError("--key, --partition and --publisher exclude each other")
    address = hub if partition is None else f"{hub}/Partitions/{partition}"
    address = address if publisher is None else f"{hub}/Publishers/{publisher}"
    events = (body.encode() for body in bodies) if bodies else _lines()
    sent = target.run(lambda connection: _publish(connection, address, events, key))
    click.echo(f"{sent} event{'' if sent == 1 else 's'} accepted by {address}")


def _lines() -> Iterator[bytes]:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n")


async def _publish(connection: Connection, address: str, events: Iterable[bytes], key: str | None) -> int:
    """How many events were accepted. ServiceError: what went wrong first; what became of all events is told before."""
    sender = await Sender.open(connection, address)
    under_way: deque[tuple[int, asyncio.Future[None]]] = deque()
    accepted = 0
    try:
        for batch in batches_of(events, sender.max_message_size, partition_key=key):
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
