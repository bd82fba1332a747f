import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.blocking_processor import BlockingEventProcessor, BlockingPartitionContext
from hubweir.client.event_run import EventRun
from hubweir.client.memory_checkpoint_store import MemoryCheckpointStore
from hubweir.client.processor_options import CloseReason, ProcessorOptions
from hubweir.client.sqlite_checkpoint_store import BlockingSqliteCheckpointStore
from hubweir.testing.running_namespace import RunningNamespace


def test_plain_functions_handle_a_hub_over_a_plain_store(
    namespace: RunningNamespace, new_hub: Callable[..., str], tmp_path: Path
) -> None:
    hub, done = new_hub(partition_count=2), threading.Event()
    handled: dict[str, list[int]] = {"0": [], "1": []}
    claimed: list[str] = []
    closed: list[tuple[str, CloseReason]] = []

    def handle(context: BlockingPartitionContext, run: EventRun) -> None:
        assert threading.current_thread() is not threading.main_thread()
        handled[context.partition_id] += run.sequence_numbers()
        context.checkpoint()
        if sum(map(len, handled.values())) >= 20:
            done.set()

    with (
        BlockingEventHubClient.from_connection_string(namespace.connection_string(), hub) as client,
        BlockingSqliteCheckpointStore(tmp_path / "group.db") as store,
    ):
        for partition in ("0", "1"):
            client.sender(partition_id=partition).send([b"x"] * 10)
        with BlockingEventProcessor(
            client,
            store,
            handle,
            ProcessorOptions(checkpoint_every=None),
            on_claimed=lambda context: claimed.append(context.partition_id),
            on_closed=lambda context, reason: closed.append((context.partition_id, reason)),
        ) as processor:
            assert done.wait(30)
            assert processor.partition_ids == ("0", "1")
        assert handled == {"0": list(range(10)), "1": list(range(10))}
        assert sorted(claimed) == ["0", "1"]
        assert sorted(closed, key=str) == [("0", CloseReason.SHUTDOWN), ("1", CloseReason.SHUTDOWN)]
        name = (namespace.connection_string().split("//")[1].split(";")[0].rstrip("/"), hub, "$Default")
        assert {mark["sequence_number"] for mark in store.list_checkpoints(*name)} == {9}
        assert {lease["owner_id"] for lease in store.list_ownership(*name)} == {""}


def test_handler_that_raises_is_told_and_gets_the_run_again(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub, done = new_hub(), threading.Event()
    seen: list[list[int]] = []
    errors: list[str] = []

    def handle(context: BlockingPartitionContext, run: EventRun) -> None:
        seen.append(list(run.sequence_numbers()))
        if len(seen) == 1:
            raise LookupError("not yet")
        done.set()

    def on_error(context: BlockingPartitionContext | None, error: Exception) -> None:
        errors.append(f"{context.partition_id if context else None}: {error}")

    with BlockingEventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
        client.sender().send([b"x"] * 5)
        with BlockingEventProcessor(client, MemoryCheckpointStore(), handle, on_error=on_error):
            assert done.wait(30)
    assert seen == [list(range(5))] * 2
    assert errors == ["0: not yet"]


def test_options_of_the_processor_are_checked(namespace: RunningNamespace) -> None:
    with (
        BlockingEventHubClient.from_connection_string(namespace.connection_string(), "orders") as client,
        pytest.raises(ValueError, match="at least twice as long"),
    ):
        options = ProcessorOptions(lease_s=1, interval_s=1)
        BlockingEventProcessor(client, MemoryCheckpointStore(), lambda context, run: None, options)
