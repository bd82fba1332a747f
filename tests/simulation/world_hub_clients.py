"""The clients of the event hub in the whole world: a publisher, and a reader of each partition."""

from __future__ import annotations

from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.resuming_receiver import ResumingReceiver
from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import ServiceError
from hubweir.testing.log_history import PartitionHistory, Seen, make_body, read_body
from tests.simulation.world_clients import CONNECTION_STRING, HUB, ONCE, PARTITIONS, TIMEOUT_S, World, pause


class SeenHub:
    """An event hub as its clients see it. is_written: its publisher is done."""

    def __init__(self) -> None:
        self.partitions = [PartitionHistory(number, may_be_late=True) for number in range(PARTITIONS)]
        self.is_written = False

    def is_read(self, partition: PartitionHistory) -> bool:
        """Whether all of a partition was seen that must be there."""
        found = {content[1] for event in partition.seen if (content := read_body(event.body)) is not None}
        return self.is_written and found.issuperset(partition.accepted)


async def publish(world: World, hub: SeenHub, least: int) -> None:
    """Batches to any partition, until the world is healed and each has taken so many."""
    histories = hub.partitions
    client = EventHubClient.from_connection_string(CONNECTION_STRING, HUB, retry=ONCE, timeout_s=TIMEOUT_S)
    senders = [client.sender(partition_id=str(each.partition), resend_unknown=False) for each in histories]
    batch = 0
    while not world.is_healed or any(len(each.accepted) < least for each in histories):
        place = world.random.randrange(len(histories))
        history, count = histories[place], world.random.choice([1, 1, 3])
        filler = b"x" * world.random.choice([5, 200, 3_000])
        bodies = [make_body(history.partition, batch, each, count, filler) for each in range(count)]
        try:
            await senders[place].send(bodies)
        except OutcomeUnknown:
            world.note(f"batch {batch} unknown")
            await pause(world, 0.05, 0.5)
        except ServiceError as error:
            history.refused.add(batch)
            world.note(f"batch {batch} refused {error.condition.symbol}")
            await pause(world, 0.1, 0.8)
        else:
            history.accepted[batch] = count
            world.note(f"batch {batch} accepted")
            await pause(world, 0.05, 0.6)
        batch += 1
    hub.is_written = True
    await client.close()


async def read(world: World, hub: SeenHub, history: PartitionHistory) -> None:
    """All events of a partition, over one link after the other."""
    client = EventHubClient.from_connection_string(CONNECTION_STRING, HUB, retry=ONCE, timeout_s=TIMEOUT_S)
    receiver = client.receiver(str(history.partition))
    while not hub.is_read(history):
        try:
            await _read_on(receiver, history.seen, 0.5)
        except ServiceError as error:
            world.note(f"reader {history.partition} {error.condition.symbol}")
            await pause(world, 0.1, 0.8)
        else:
            if world.random.random() < 0.05:
                await receiver.close()
    await client.close()


async def _read_on(receiver: ResumingReceiver, seen: list[Seen], wait_s: float) -> int:
    run = await receiver.receive(max_wait_s=wait_s)
    events = [] if run is None else list(run)
    for event in events:
        seen.append(Seen(event.sequence_number, int(event.offset), event.enqueued_time_ms, bytes(event.body or b"")))
    return len(events)


async def read_again(history: PartitionHistory) -> list[str]:
    """What is wrong with a partition, by what readers saw and by another read of everything; the world is at rest."""
    async with EventHubClient.from_connection_string(CONNECTION_STRING, HUB, timeout_s=TIMEOUT_S) as client:
        receiver, events = client.receiver(str(history.partition)), list[Seen]()
        try:
            while await _read_on(receiver, events, 1.0):
                pass
        except ServiceError as error:
            return [f"partition {history.partition} cannot be read to its end: {error}"]
    known, history.seen = history.seen, events
    again = PartitionHistory(history.partition, seen=known)
    return history.check() + again.again(events[: len(known)])
