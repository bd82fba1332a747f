"""hubweir message send | receive | peek | dead-letter | resubmit | purge: the messages of a queue.

QUEUE is the name of a queue, or TOPIC/Subscriptions/NAME of a subscription; `send` takes a topic, too.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator

import click

from hubweir.cli.counted import counted
from hubweir.cli.durations import Duration
from hubweir.cli.message_options import (
    Moment,
    Property,
    as_json_lines,
    count_option,
    queue_argument,
    sub_queue_option,
    wait_option,
)
from hubweir.cli.message_output import MessageOutput
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, ask_before, print_json, without_asking
from hubweir.client.message_run import MessageRun
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiver, QueueReceiverOptions
from hubweir.queue.dead_letter_properties import sent_again
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

# Messages that are received, looked at or deleted at once.
PAGE = 1_000
DELETE_PAGE = 4_000  # the most that a service deletes at once
SCHEDULE_PAGE = 1_000
SETTLEMENTS = ("complete", "abandon", "defer", "dead-letter", "release")


@click.group(name="message")
def message() -> None:
    """Send, receive, peek, dead-letter, resubmit and purge messages of a queue or a subscription."""


@message.command()
@queue_argument
@click.argument("bodies", nargs=-1)
@click.option("--session-id", help="The session that they belong to.")
@click.option("--message-id", help="The id of the message; with one body only.")
@click.option("--subject", help="What they are about; also called the label.")
@click.option("--correlation-id", help="What they answer or belong to.")
@click.option("--content-type", help="Such as application/json.")
@click.option("--reply-to", help="Where answers go.")
@click.option("--partition-key", help="Of a partitioned queue: messages of one key stay in order.")
@click.option("--property", "properties", type=Property(), multiple=True, help="NAME=TEXT; may be repeated.")
@click.option("--time-to-live", type=Duration(), help="How long they wait at most, such as 10m.")
@click.option("--at", "at_ms", type=Moment(), help="When they become active: a time (ISO 8601) or +DURATION.")
@as_json
@takes_target
def send(
    target: NamespaceAccess,
    queue: str,
    bodies: tuple[str, ...],
    message_id: str | None,
    properties: tuple[tuple[str, str], ...],
    time_to_live: int | None,
    at_ms: int | None,
    as_json: bool,
    **fields: str | None,
) -> None:
    """Send BODIES to QUEUE, one message each.

    Without BODIES every line of standard input is a message. The command ends when all of them are stored. With --at
    they are scheduled, and their sequence numbers are printed.
    """
    if message_id is not None and len(bodies) != 1:
        raise click.UsageError("--message-id is for one message: give one body")
    texts = (body.encode() for body in bodies) if bodies else _lines()
    messages = (
        QueueMessage(
            text,
            dict(properties) or None,
            message_id=message_id,
            time_to_live_ms=time_to_live,
            **fields,  # type: ignore[arg-type]  # the options above have the names of its fields
        )
        for text in texts
    )
    if at_ms is None:
        sent = target.run_queues(lambda client: client.sender(queue).send_all(messages))
        if as_json:
            print_json({"sent": sent})
        else:
            click.echo(f"{counted(sent, 'message')} sent to {queue}")
        return
    numbers = target.run_queues(lambda client: _schedule(client, queue, list(messages), at_ms))
    if as_json:
        print_json({"sent": len(numbers), "sequence_numbers": numbers})
    else:
        click.echo("".join(f"{number}\n" for number in numbers), nl=False)
        click.echo(f"{counted(len(numbers), 'message')} scheduled in {queue}", err=True)


@message.command()
@queue_argument
@sub_queue_option
@count_option
@wait_option
@click.option("--session-id", help="Accept this session; '' is one, too.")
@click.option("--next-session", is_flag=True, help="Accept the next session that has messages.")
@click.option("--delete", "deletes", is_flag=True, help="Delete what comes at once: a failure may lose it.")
@click.option(
    "--settle",
    type=click.Choice(SETTLEMENTS),
    default="complete",
    show_default=True,
    help="What becomes of a message when it is printed.",
)
@click.option("--deferred", type=int, multiple=True, metavar="NUMBER", help="Only this deferred one; may be repeated.")
@as_json_lines
@takes_target
def receive(
    target: NamespaceAccess,
    queue: str,
    sub_queue: SubQueue,
    count: int | None,
    wait: float,
    session_id: str | None,
    next_session: bool,
    deletes: bool,
    settle: str,
    deferred: tuple[int, ...],
    as_json: bool,
) -> None:
    """Print the messages of QUEUE, one a line, and settle each: it is gone, unless --settle says otherwise.

    A message is printed before it is settled: one whose settlement fails comes again.
    """
    output = MessageOutput(as_json)
    options = QueueReceiverOptions(
        mode=ReceiveMode.RECEIVE_AND_DELETE if deletes else ReceiveMode.PEEK_LOCK, sub_queue=sub_queue
    )

    async def job(client: QueueClient) -> None:
        if next_session or session_id is not None:
            receiver: QueueReceiver = await client.accept_session(queue, session_id, options, max_wait_s=wait)
        else:
            receiver = client.receiver(queue, options)
        async with receiver:
            settler = _Settler(receiver, None if deletes else settle)
            if deferred:
                found = await receiver.receive_deferred(*deferred)
                output.take(found)
                await settler.settle(found)
            else:
                async for run in _received(receiver, count, wait):
                    output.take(run)
                    await settler.settle(run)
            await settler.end()

    target.run_queues(job)
    output.end()


@message.command()
@queue_argument
@sub_queue_option
@count_option
@click.option("--from", "begin", type=click.IntRange(min=1), default=1, help="The first sequence number to show.")
@as_json_lines
@takes_target
def peek(
    target: NamespaceAccess, queue: str, sub_queue: SubQueue, count: int | None, begin: int, as_json: bool
) -> None:
    """Print the messages of QUEUE in any state, and leave them as they are: active, deferred, scheduled, locked."""
    output = MessageOutput(as_json)

    async def job(client: QueueClient) -> None:
        receiver, number = client.receiver(queue, QueueReceiverOptions(sub_queue=sub_queue)), begin
        while count is None or output.printed < count:
            run = await receiver.peek(
                PAGE if count is None else min(PAGE, count - output.printed), from_sequence_number=number
            )
            if not run:
                return
            output.take(run)
            number = run.sequence_numbers()[-1] + 1

    target.run_queues(job)
    output.end()


@message.command(name="dead-letter")
@queue_argument
@count_option
@wait_option
@click.option("--reason", help="Why, in a word or two.")
@click.option("--description", help="Why, in full.")
@as_json
@takes_target
def dead_letter(
    target: NamespaceAccess,
    queue: str,
    count: int | None,
    wait: float,
    reason: str | None,
    description: str | None,
    as_json: bool,
) -> None:
    """Move active messages of QUEUE to its dead letters, the oldest first."""

    async def job(client: QueueClient) -> int:
        moved = 0
        async with client.receiver(queue) as receiver:
            async for run in _received(receiver, count, wait):
                await receiver.dead_letter(run, reason, description)
                moved += len(run)
        return moved

    _told(target.run_queues(job), "dead_lettered", f"moved to the dead letters of {queue}", as_json)


@message.command()
@queue_argument
@click.option("--to", help="Send them here instead of to QUEUE.")
@click.option("--new-message-id", is_flag=True, help="Give them new ids: where duplicates are detected.")
@count_option
@wait_option
@as_json
@takes_target
def resubmit(
    target: NamespaceAccess,
    queue: str,
    to: str | None,
    new_message_id: bool,
    count: int | None,
    wait: float,
    as_json: bool,
) -> None:
    """Send the dead letters of QUEUE again, the oldest first, and take each away when its copy is stored.

    A failure between the two leaves the dead letter, and its copy is there. Where duplicates are detected a message
    with an id that was sent before is dropped: use --new-message-id.
    """
    goal = to or queue.partition("/Subscriptions/")[0]

    async def job(client: QueueClient) -> int:
        moved, sender = 0, client.sender(goal)
        async with client.receiver(queue, QueueReceiverOptions(sub_queue=SubQueue.DEAD_LETTERS)) as receiver:
            async for run in _received(receiver, count, wait):
                await sender.send_all(sent_again(each.message, keeps_id=not new_message_id) for each in run)
                await receiver.complete(run)
                moved += len(run)
        return moved

    _told(target.run_queues(job), "resubmitted", f"sent again to {goal}", as_json)


@message.command()
@queue_argument
@sub_queue_option
@click.option("--before", "before_ms", type=Moment(), help="Only what was enqueued before: a time, or -DURATION.")
@without_asking
@as_json
@takes_target
def purge(
    target: NamespaceAccess, queue: str, sub_queue: SubQueue, before_ms: int | None, yes: bool, as_json: bool
) -> None:
    """Delete the active messages of QUEUE; those that are locked, deferred or scheduled stay."""
    ask_before(f"delete the messages of {queue}", yes=yes)

    async def job(client: QueueClient) -> int:
        receiver, deleted = client.receiver(queue, QueueReceiverOptions(sub_queue=sub_queue)), 0
        while gone := await receiver.delete(DELETE_PAGE, before_ms=before_ms):
            deleted += gone
        return deleted

    _told(target.run_queues(job), "deleted", f"deleted from {queue}", as_json)


def _told(messages: int, key: str, what: str, as_json: bool) -> None:
    if as_json:
        print_json({key: messages})
    else:
        click.echo(f"{counted(messages, 'message')} {what}")


def _lines() -> Iterator[bytes]:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n")


async def _schedule(client: QueueClient, queue: str, messages: list[QueueMessage], at_ms: int) -> list[int]:
    sender, numbers = client.sender(queue), list[int]()
    for first in range(0, len(messages), SCHEDULE_PAGE):
        numbers += await sender.schedule(messages[first : first + SCHEDULE_PAGE], at_ms)
    return numbers


async def _received(receiver: QueueReceiver, count: int | None, wait_s: float) -> AsyncIterator[MessageRun]:
    """Messages as they come, up to count, until none came for wait_s."""
    left = count
    while left is None or left > 0:
        run = await receiver.receive(PAGE if left is None else min(PAGE, left), max_wait_s=wait_s)
        if not run:
            return
        yield run
        left = None if left is None else left - len(run)


class _Settler:
    """Settles what was printed. Given back is last: what is abandoned or released earlier would come again at once."""

    def __init__(self, receiver: QueueReceiver, settle: str | None) -> None:
        """settle: one of SETTLEMENTS; None: nothing, for it is deleted."""
        self._settle = None if settle is None else getattr(receiver, settle.replace("-", "_"))
        self._is_given_back = settle in ("abandon", "release")
        self._held: list[MessageRun] = []

    async def settle(self, run: MessageRun) -> None:
        """They are printed."""
        if self._is_given_back:
            self._held.append(run)
        elif self._settle is not None:
            await self._settle(run)

    async def end(self) -> None:
        """All are printed."""
        for run in self._held:
            await self._settle(run)  # type: ignore[misc]  # nothing is held without it
