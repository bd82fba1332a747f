"""Processors over a live service: one, several in one process, and three processes of which one is killed."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.client.checkpoint_store import Record
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_processor import EventProcessor
from hubweir.client.event_run import EventRun
from hubweir.client.load_balancer import Strategy
from hubweir.client.memory_checkpoint_store import MemoryCheckpointStore
from hubweir.client.partition_context import PartitionContext
from hubweir.client.processor_options import ProcessorOptions
from hubweir.client.sqlite_checkpoint_store import BlockingSqliteCheckpointStore
from hubweir.errors import ILLEGAL_STATE, ServiceError
from hubweir.testing.event_loops import LOOPS, run_on
from hubweir.testing.running_namespace import RunningNamespace

NewHub = Callable[..., str]

# A process that a busy machine keeps from its loop for less than the lease, a round and a read keeps what it has.
LEASE_S, INTERVAL_S = 4.0, 0.3
# A machine that starts a process for half a minute handles a round in some seconds; the default lease is a minute.
LATE_S = 15.0
CHECKPOINT_EVERY = 25

PROCESSOR = """
import asyncio, sys
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_processor import EventProcessor
from hubweir.client.processor_options import ProcessorOptions
from hubweir.client.sqlite_checkpoint_store import SqliteCheckpointStore

async def main(text, hub, file, lease_s, interval_s, every):
    async def handle(context, run):
        for event in run:
            print(context.partition_id, event.sequence_number, flush=True)
        await asyncio.sleep(0.002)
    async with EventHubClient.from_connection_string(text, hub) as client, SqliteCheckpointStore(file) as store:
        async with EventProcessor(client, store, handle, ProcessorOptions(
            lease_s=float(lease_s), interval_s=float(interval_s), checkpoint_every=int(every)
        )):
            await asyncio.sleep(3600)

asyncio.run(main(*sys.argv[1:]))
"""


async def until(holds: Callable[[], bool], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_one_processor_handles_every_event_of_every_partition_once(
    loop: str, namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub(partition_count=4)

    async def scenario() -> None:
        handled: dict[str, list[int]] = {str(each): [] for each in range(4)}

        async def handle(context: PartitionContext, run: EventRun) -> None:
            handled[context.partition_id] += run.sequence_numbers()

        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            for partition in handled:
                await client.sender(partition_id=partition).send([b"x"] * 100)
            store = MemoryCheckpointStore()
            for life in range(2):  # the second goes on behind the first
                processor = EventProcessor(client, store, handle, ProcessorOptions(checkpoint_every=30))
                async with processor:
                    with pytest.raises(ServiceError) as twice:
                        await processor.start()
                    assert twice.value.condition is ILLEGAL_STATE
                    await until(lambda: sum(map(len, handled.values())) == 400 + life)  # noqa: B023
                    assert processor.partition_ids == ("0", "1", "2", "3")
                assert processor.partition_ids == ()
                await client.sender(partition_id="0").send([b"more"])
            assert handled["0"] == list(range(101))
            assert handled["3"] == list(range(100))

    run_on(loop, scenario(), seconds=60)


@pytest.mark.parametrize("strategy", Strategy)
def test_partitions_are_shared_evenly_and_given_back_at_a_stop(
    strategy: Strategy, namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub(partition_count=4)

    async def scenario() -> None:
        async def handle(context: PartitionContext, run: EventRun) -> None:
            pass

        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            store = MemoryCheckpointStore()

            def make() -> EventProcessor:
                return EventProcessor(
                    client,
                    store,
                    handle,
                    ProcessorOptions(lease_s=60, interval_s=0.1, strategy=strategy, group="$DEFAULT"),
                )

            first, second = make(), make()
            await first.start()
            await until(lambda: len(first.partition_ids) == 4)
            await second.start()
            await until(lambda: len(first.partition_ids) == len(second.partition_ids) == 2)
            assert sorted(first.partition_ids + second.partition_ids) == ["0", "1", "2", "3"]
            await first.stop()
            await first.stop()
            await until(lambda: len(second.partition_ids) == 4)  # long before the leases of a minute are over
            await second.stop()

    run_on("asyncio", scenario(), seconds=60)


def test_store_that_fails_is_told_and_changes_nothing(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    class Failing(MemoryCheckpointStore):
        fails = False

        async def list_ownership(self, *group: str, **kwargs: object) -> list[dict[str, object]]:
            if self.fails:
                raise OSError("the store is away")
            return list(await super().list_ownership(*group, **kwargs))

    async def scenario() -> None:
        numbers: list[int] = []
        errors: list[tuple[object, str]] = []

        async def handle(context: PartitionContext, run: EventRun) -> None:
            numbers.extend(run.sequence_numbers())

        async def on_error(context: PartitionContext | None, error: Exception) -> None:
            errors.append((context, str(error)))
            raise ValueError("a handler with a fault of its own")

        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            store = Failing()
            async with EventProcessor(
                client, store, handle, ProcessorOptions(lease_s=60, interval_s=0.05), on_error=on_error
            ) as processor:
                await until(lambda: processor.partition_ids == ("0",))
                store.fails = True
                await until(lambda: len(errors) >= 3)
                assert errors[0] == (None, "the store is away")
                await client.sender().send([b"x"])
                await until(lambda: numbers == [0])
                store.fails = False

    run_on("asyncio", scenario(), seconds=60)


@pytest.mark.parametrize("answers", [True, False])
def test_a_stop_in_the_middle_of_a_claim_gives_up_what_the_claim_got(
    answers: bool, namespace: RunningNamespace, new_hub: NewHub
) -> None:
    """A store that does not answer is not waited for without end: those leases run out by themselves."""
    hub = new_hub(partition_count=4)

    class Slow(MemoryCheckpointStore):
        """It stores a claim before it answers."""

        async def claim_ownership(self, *claims: object, **more: object) -> list[dict[str, object]]:
            claimed = list(await super().claim_ownership(*claims, **more))
            stored.set()
            await answer.wait()
            return claimed

    stored, answer = asyncio.Event(), asyncio.Event()

    async def scenario() -> None:
        async def handle(context: PartitionContext, run: EventRun) -> None:
            pass

        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            store = Slow()
            options = ProcessorOptions(lease_s=60, interval_s=0.1, grace_s=30.0 if answers else 0.05)
            processor = EventProcessor(client, store, handle, options)
            await processor.start()
            await stored.wait()
            if answers:
                asyncio.get_running_loop().call_later(0.05, answer.set)
            await processor.stop()
            leases = await store.list_ownership(client.namespace, hub, "$Default")
            assert len(leases) > 0 and {not lease["owner_id"] for lease in leases} == {answers}

    run_on("asyncio", scenario())


def test_killed_processor_s_partitions_move_within_the_lease_nothing_is_skipped_and_repeats_are_bounded(
    namespace: RunningNamespace, new_hub: NewHub, tmp_path: Path
) -> None:
    """Three processes share six partitions while events come; one is killed with SIGKILL in the middle."""
    hub, file = new_hub(partition_count=6), tmp_path / "group.db"
    arguments = [namespace.connection_string(), hub, str(file), str(LEASE_S), str(INTERVAL_S), str(CHECKPOINT_EVERY)]
    with BlockingSqliteCheckpointStore(file) as store:
        name = EventHubClient.from_connection_string(namespace.connection_string(), hub).namespace
        before: dict[str, str] = {}
        marks: dict[str, int] = {}

        def owners() -> dict[str, str]:
            return {lease["partition_id"]: lease["owner_id"] for lease in store.list_ownership(name, hub, "$Default")}

        def checkpoints() -> list[Record]:
            return store.list_checkpoints(name, hub, "$Default")

        def share() -> list[int]:
            held = list(owners().values())
            return sorted(map(held.count, set(held)))

        outputs = [tmp_path / f"out-{number}" for number in range(3)]
        processes = []
        try:
            for output in outputs:
                with output.open("w") as stream:
                    processes.append(subprocess.Popen([sys.executable, "-c", PROCESSOR, *arguments], stdout=stream))

            async def scenario() -> tuple[float, int]:
                async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
                    senders = [client.sender(partition_id=str(each)) for each in range(6)]
                    sent = 0

                    async def send_until(holds: Callable[[], bool], seconds: float) -> float:
                        nonlocal sent
                        began = time.monotonic()
                        while not holds():
                            assert time.monotonic() - began < seconds, (owners(), sent)
                            for sender in senders:
                                await sender.send([b"x"] * 5)
                            sent += 5
                            await asyncio.sleep(0.02)
                        return time.monotonic() - began

                    await send_until(lambda: share() == [2, 2, 2], 60)
                    await send_until(lambda: all(len(each.read_text()) > 1_000 for each in outputs), 60)
                    processes[0].send_signal(signal.SIGKILL)
                    processes[0].wait()
                    before.update(owners())
                    marks.update({each["partition_id"]: each["sequence_number"] for each in checkpoints()})
                    took_s = await send_until(lambda: share() == [3, 3], LEASE_S + LATE_S)
                    return took_s, sent

            took_s, sent = run_on("asyncio", scenario(), seconds=150)
            after = owners()
            end = time.monotonic() + 60
            while time.monotonic() < end and len(seen := set(events(outputs))) < 6 * sent:
                time.sleep(0.05)
        finally:
            for process in processes:
                process.kill()
                process.wait()

    # The lease, from its last renewal; and the time of a round for a machine that is busy.
    assert took_s < LEASE_S + INTERVAL_S + LATE_S
    assert seen == {(str(partition), number) for partition in range(6) for number in range(sent)}
    dead = events(outputs[:1])
    moved = [partition for partition, owner in before.items() if owner not in set(after.values())]
    assert len(moved) == 2
    for partition in moved:
        last = max(number for each, number in dead if each == partition)
        # Everything behind the mark comes again, and that is no more than the interval.
        assert last - marks[partition] <= CHECKPOINT_EVERY
        others = {number for each, number in events(outputs[1:]) if each == partition}
        assert set(range(marks[partition] + 1, sent)) <= others


def events(outputs: list[Path]) -> list[tuple[str, int]]:
    """Partition and sequence number of each whole line that the processes wrote."""
    lines = [line for output in outputs for line in output.read_text().splitlines(keepends=True)]
    return [(line.split()[0], int(line.split()[1])) for line in lines if line.endswith("\n") and len(line.split()) == 2]
