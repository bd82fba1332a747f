import asyncio

import pytest

from hubweir.client.event_run import Event
from hubweir.client.memory_checkpoint_store import MemoryCheckpointStore
from hubweir.client.partition_context import GroupName, PartitionContext
from hubweir.errors import ILLEGAL_STATE, LINK_STOLEN, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind

NAME = GroupName("namespace", "hub", "group")


def event(number: int) -> Event:
    return Event(number, str(number * 100), 0, None, b"")


def context() -> PartitionContext:
    return PartitionContext(NAME, "3", MemoryCheckpointStore())


def test_events_that_were_given_are_counted_until_they_are_marked() -> None:
    async def scenario() -> None:
        one = context()
        assert one.unmarked_count == 0
        one.give(event(10), event(14))
        assert one.unmarked_count == 5
        await one.checkpoint(event(12))
        assert one.unmarked_count == 2
        await one.checkpoint()
        assert one.unmarked_count == 0
        one.give(event(15), event(15))
        assert one.unmarked_count == 1

    asyncio.run(scenario())


def test_checkpoint_is_read_back_as_the_position_behind_it() -> None:
    async def scenario() -> None:
        one = context()
        assert await one.stored_position() is None
        one.give(event(0), event(7))
        await one.checkpoint()
        assert await one.stored_position() == EventPosition(PositionKind.SEQUENCE_NUMBER, 7)

    asyncio.run(scenario())


def test_checkpoint_with_an_offset_only_is_understood() -> None:
    async def scenario() -> None:
        store = MemoryCheckpointStore()
        await store.update_checkpoint(NAME.record("3", offset="4200"))
        one = PartitionContext(NAME, "3", store)
        assert await one.stored_position() == EventPosition(PositionKind.OFFSET, 4_200)

    asyncio.run(scenario())


def test_who_lost_the_partition_marks_nothing_and_nothing_is_marked_before_an_event() -> None:
    async def scenario() -> None:
        one = context()
        with pytest.raises(ServiceError, match="no event yet") as refused:
            await one.checkpoint()
        assert refused.value.condition is ILLEGAL_STATE
        one.give(event(0), event(7))
        one.is_owned = False
        with pytest.raises(ServiceError, match="another owner") as refused:
            await one.checkpoint()
        assert refused.value.condition is LINK_STOLEN
        assert await one.stored_position() is None

    asyncio.run(scenario())
