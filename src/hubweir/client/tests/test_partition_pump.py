import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_run import EventRun
from hubweir.client.memory_checkpoint_store import MemoryCheckpointStore
from hubweir.client.partition_context import GroupName, PartitionContext
from hubweir.client.partition_pump import PartitionPump
from hubweir.client.processor_options import CloseReason, Handlers, OnEvents, ProcessorOptions
from hubweir.client.receiver import ReceiverOptions
from hubweir.client.resuming_receiver import ResumingReceiver
from hubweir.client.retry import RetryPolicy
from hubweir.event_hub.event_position import LATEST
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace

NewHub = Callable[..., str]


class Watch:
    """Handlers with a memory."""

    def __init__(self, store: MemoryCheckpointStore, client: EventHubClient) -> None:
        self.context = PartitionContext(GroupName(client.namespace, client.hub, "$Default"), "0", store)
        self.client = client
        self.numbers: list[int] = []
        self.errors: list[Exception] = []
        self.closed: list[CloseReason] = []
        self.most_unmarked = 0

    async def on_events(self, context: PartitionContext, run: EventRun) -> None:
        self.numbers += run.sequence_numbers()
        self.most_unmarked = max(self.most_unmarked, context.unmarked_count)

    async def on_error(self, context: PartitionContext | None, error: Exception) -> None:
        self.errors.append(error)

    async def on_closed(self, context: PartitionContext, reason: CloseReason) -> None:
        self.closed.append(reason)

    def pump(self, on_events: OnEvents | None = None, **options: Any) -> PartitionPump:
        handlers = Handlers(on_events or self.on_events, self.on_error, on_closed=self.on_closed)
        return PartitionPump(self.client, self.context, handlers, ProcessorOptions(**options))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds():
                await asyncio.sleep(0.005)


def client_of(namespace: RunningNamespace, hub: str) -> EventHubClient:
    retry = RetryPolicy(first_s=0.01, longest_s=0.02)
    return EventHubClient.from_connection_string(namespace.connection_string(), hub, retry=retry)


@pytest.mark.parametrize("every", [1, 7, 100, 10_000])
def test_no_more_than_the_interval_is_ever_handled_and_unmarked(
    namespace: RunningNamespace, new_hub: NewHub, every: int
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 250)
            watch = Watch(MemoryCheckpointStore(), client)
            pump = watch.pump(checkpoint_every=every)
            pump.start()
            await watch.until(lambda: len(watch.numbers) == 250)
            await pump.stop(CloseReason.SHUTDOWN)
            assert watch.numbers == list(range(250))
            assert 0 < watch.most_unmarked <= every
            assert watch.closed == [CloseReason.SHUTDOWN]
            position = await watch.context.stored_position()
            assert position is not None
            assert position.value == 249  # the stop marks what was handled

    run_on("asyncio", scenario())


def test_quiet_partition_gets_its_checkpoint(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 3)
            watch = Watch(MemoryCheckpointStore(), client)
            pump = watch.pump()
            pump.start()
            await watch.until(lambda: len(watch.numbers) == 3 and watch.context.unmarked_count == 0)
            await pump.stop(CloseReason.OWNERSHIP_LOST)

    run_on("asyncio", scenario())


def test_failed_run_comes_again_and_is_never_marked_before_it_is_handled(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 10)
            watch = Watch(MemoryCheckpointStore(), client)

            async def fails(context: PartitionContext, run: EventRun) -> None:
                if run[0].sequence_number >= 5:
                    raise LookupError("poison")
                await watch.on_events(context, run)

            pump = watch.pump(on_events=fails, checkpoint_every=5)
            pump.start()
            await watch.until(lambda: len(watch.errors) >= 3)
            await pump.stop(CloseReason.SHUTDOWN)
            position = await watch.context.stored_position()
            assert position is not None
            assert position.value == 4
            assert watch.numbers == list(range(5))

    run_on("asyncio", scenario())


def test_latest_is_stored_so_that_the_next_owner_begins_at_the_same_place(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            sender = client.sender()
            await sender.send([b"old"] * 4)
            store = MemoryCheckpointStore()
            first = Watch(store, client)

            async def dies(context: PartitionContext, run: EventRun) -> None:
                first.numbers += run.sequence_numbers()
                await asyncio.sleep(60)

            pump = first.pump(position=LATEST, on_events=dies, grace_s=0)
            pump.start()
            await first.until(lambda: store._store._checkpoints != {})  # type: ignore[attr-defined]
            await sender.send([b"new"])
            await first.until(lambda: first.numbers == [4])
            await pump.stop(CloseReason.OWNERSHIP_LOST)
            second = Watch(store, client)
            pump = second.pump(position=LATEST)
            pump.start()
            await second.until(lambda: second.numbers == [4])
            await pump.stop(CloseReason.SHUTDOWN)
            assert isinstance(first.errors[-1], TimeoutError)

    run_on("asyncio", scenario())


def test_stop_waits_for_the_handler_and_cancels_one_that_does_not_end(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"])
            for grace_s, ends in ((5.0, True), (0.01, False)):
                watch = Watch(MemoryCheckpointStore(), client)
                began, done = asyncio.Event(), []

                async def slow(context: PartitionContext, run: EventRun) -> None:
                    began.set()  # noqa: B023 - called in this turn of the loop only
                    await asyncio.sleep(0.2)
                    done.append(run.count)  # noqa: B023

                pump = watch.pump(on_events=slow, grace_s=grace_s)
                pump.start()
                await began.wait()
                await pump.stop(CloseReason.SHUTDOWN)
                assert bool(done) is ends
                assert (await watch.context.stored_position() is not None) is ends
                assert watch.closed == [CloseReason.SHUTDOWN]

    run_on("asyncio", scenario())


@pytest.mark.usefixtures("owner_levels")
def test_displaced_pump_drops_what_waits_and_marks_nothing_more(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 50)
            watch = Watch(MemoryCheckpointStore(), client)
            held, go_on = asyncio.Event(), asyncio.Event()

            async def holds(context: PartitionContext, run: EventRun) -> None:
                await watch.on_events(context, run)
                held.set()
                await go_on.wait()

            pump = watch.pump(on_events=holds, checkpoint_every=10)
            opened: list[ResumingReceiver] = []
            plain = pump._receiver
            pump._receiver = lambda position: (opened.append(plain(position)), opened[-1])[1]  # type: ignore[method-assign]
            pump.start()
            await held.wait()
            thief = client.receiver("0", ReceiverOptions(epoch=0))
            await thief.open()
            await watch.until(lambda: opened[-1].is_stolen)
            go_on.set()
            await watch.until(lambda: pump.is_over)
            assert len(watch.numbers) <= 10
            assert watch.closed == [CloseReason.OWNERSHIP_LOST]
            assert not watch.context.is_owned
            await pump.stop(CloseReason.OWNERSHIP_LOST)
            assert watch.closed == [CloseReason.OWNERSHIP_LOST]

    run_on("asyncio", scenario())
