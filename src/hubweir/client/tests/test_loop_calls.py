"""Faces for threads have every coroutine of the object behind them, with its parameters and its documentation."""

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from hubweir.client.blocking import BlockingEventHubClient, BlockingNumberedSender, BlockingReceiver, BlockingSender
from hubweir.client.blocking_processor import BlockingEventProcessor, BlockingPartitionContext
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_processor import EventProcessor
from hubweir.client.loop_calls import BlockingClient, BlockingFace, beginning, waiting
from hubweir.client.loop_thread import LoopThread
from hubweir.client.numbered_sender import NumberedSender
from hubweir.client.partition_context import PartitionContext
from hubweir.client.resending_sender import ResendingSender
from hubweir.client.resuming_receiver import ResumingReceiver
from hubweir.errors import ServiceError

FACES = [
    (BlockingEventHubClient, EventHubClient),
    (BlockingSender, ResendingSender),
    (BlockingReceiver, ResumingReceiver),
    (BlockingNumberedSender, NumberedSender),
    (BlockingPartitionContext, PartitionContext),
    (BlockingEventProcessor, EventProcessor),
]
# A connection is for code on its loop. A payload is submitted, so that several are on their way; in a transaction only
# senders of queues send one. A handler marks what it was given, not numbers of its own, and needs no position.
LEFT_OUT = {"connection", "send_payload", "send_payload_in", "mark", "stored_position"}


def without_a_face(face: type, inner: type) -> set[str]:
    """The public coroutines of inner that the face does not have."""
    names = {
        name
        for name, member in vars(inner).items()
        if not name.startswith("_") and inspect.iscoroutinefunction(member)  # class methods are none
    }
    return {name for name in names if not hasattr(face, name)} - LEFT_OUT


@pytest.mark.parametrize(("face", "inner"), FACES)
def test_a_face_has_every_coroutine(face: type, inner: type) -> None:
    assert not without_a_face(face, inner)


def test_a_coroutine_without_a_face_is_found() -> None:
    class More(PartitionContext):
        async def rewind(self) -> None: ...

    assert without_a_face(BlockingPartitionContext, More) == {"rewind"}


class Counter:
    """Something that lives on a loop."""

    async def add(self, amount: int, *, times: int = 1) -> int:
        """Amount, so many times."""
        if times < 0:
            raise ValueError("not so often")
        return amount * times


class BlockingCounter(BlockingFace[Counter]):
    add = waiting(Counter.add)
    begin_add = beginning(Counter.add)


@pytest.fixture
def counter() -> Iterator[BlockingCounter]:
    thread = LoopThread("counter")
    yield BlockingCounter(thread, Counter())
    thread.close()


def test_calls_wait_or_begin_and_raise_what_the_coroutine_raises(counter: BlockingCounter) -> None:
    assert counter.add(3, times=2) == 6
    assert counter.begin_add(4).result(10) == 4
    with pytest.raises(ValueError, match="not so often"):
        counter.add(1, times=-1)
    with pytest.raises(ValueError, match="not so often"):
        counter.begin_add(1, times=-1).result(10)


def test_a_face_shows_the_documentation_and_the_parameters_of_the_coroutine() -> None:
    assert BlockingCounter.add.__doc__ == Counter.add.__doc__
    assert inspect.signature(BlockingCounter.add) == inspect.signature(Counter.add)
    assert not inspect.iscoroutinefunction(BlockingCounter.add)


def test_a_client_whose_close_fails_ends_its_thread_all_the_same_and_is_closed_once() -> None:
    class Failing:
        async def close(self) -> None:
            raise ValueError("planted")

    client = BlockingClient(Failing(), "nobody")
    with pytest.raises(ValueError, match="planted"):
        client.close()
    with pytest.raises(ServiceError, match="closed"):
        client.thread.run(asyncio.sleep(0))
    client.close()
