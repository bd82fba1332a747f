"""The demo's two users of the official client library, unmodified: a publisher, and a consumer with checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from azure.eventhub import (
    CheckpointStore,
    EventData,
    EventHubConsumerClient,
    EventHubProducerClient,
    LoadBalancingStrategy,
    PartitionContext,
)

from flight_data import Flight
from tally import Tally


def publish(
    connection_string: str,
    hub: str,
    flights: Iterable[tuple[str | None, list[Flight]]],
    progress: Callable[[int], None],
) -> int:
    """Send every group of flights in batches with its tail as partition key; return how many batches were accepted."""
    sent = batches = 0
    with EventHubProducerClient.from_connection_string(connection_string, eventhub_name=hub) as producer:
        for tail, group in flights:
            batch = producer.create_batch(partition_key=tail) if tail else producer.create_batch()
            for flight in group:
                try:
                    batch.add(EventData(flight.body))
                except ValueError:  # the batch is full
                    producer.send_batch(batch)
                    batches += 1
                    batch = producer.create_batch(partition_key=tail) if tail else producer.create_batch()
                    batch.add(EventData(flight.body))
            producer.send_batch(batch)
            batches += 1
            sent += len(group)
            progress(sent)
    return batches


def consume(
    connection_string: str,
    hub: str,
    group: str,
    checkpoints: CheckpointStore,
    tally: Tally,
    *,
    until: int,
    seconds: float,
    progress: Callable[[int], None],
) -> None:
    """Read with checkpoints into tally until it holds `until` events, or until `seconds` have passed."""
    enough = threading.Event()
    mutex = threading.Lock()

    def on_batch(context: PartitionContext, events: list[EventData]) -> None:
        if not events:
            return
        with mutex:
            for event in events:
                key = event.partition_key
                tally.add(None if key is None else key.decode(), event.body_as_str().encode())
            progress(tally.count)
            if tally.count >= until:
                enough.set()
        context.update_checkpoint(events[-1])

    client = EventHubConsumerClient.from_connection_string(
        connection_string,
        group,
        eventhub_name=hub,
        checkpoint_store=checkpoints,
        load_balancing_strategy=LoadBalancingStrategy.GREEDY,
    )
    reader = threading.Thread(
        target=client.receive_batch,
        kwargs={"on_event_batch": on_batch, "starting_position": "-1", "max_batch_size": 300, "max_wait_time": 1},
        daemon=True,
    )
    reader.start()
    enough.wait(seconds)
    client.close()
    reader.join(30)
