"""Options of an event processor: which are refused, and leases that official processors in its group can keep."""

from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError
from random import Random

import pytest

from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_processor import EventProcessor
from hubweir.client.event_run import EventRun
from hubweir.client.load_balancer import LoadBalancer, Ownership
from hubweir.client.memory_checkpoint_store import MemoryCheckpointStore
from hubweir.client.partition_context import GroupName, PartitionContext
from hubweir.client.processor_options import DEFAULT_OPTIONS, CloseReason, Handlers, ProcessorOptions

# Of the official clients: JavaScript's comes round every 10 s by default, Python's every 30 s and up to a fifth more.
SLOWEST_OFFICIAL_ROUND_S = 36.0

CLIENT = "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=name;SharedAccessKey=a2V5;EntityPath=hub"


async def on_events(context: PartitionContext, run: EventRun) -> None: ...


async def on_error(context: PartitionContext | None, error: Exception) -> None: ...


@pytest.mark.parametrize("every", [0, -1, -1_000])
def test_a_checkpoint_every_no_events_is_refused_with_what_to_give(every: int) -> None:
    with pytest.raises(ValueError, match=f"every {every} events: give 1 or more, or None"):
        ProcessorOptions(checkpoint_every=every)


@pytest.mark.parametrize("every", [1, 1_000_000, None])
def test_any_other_distance_of_checkpoints_is_taken(every: int | None) -> None:
    assert ProcessorOptions(checkpoint_every=every).checkpoint_every == every


def test_an_official_processor_keeps_its_lease_beside_one_of_ours_until_it_is_dead() -> None:
    balancer = LoadBalancer(
        "ours", lease_s=DEFAULT_OPTIONS.lease_s, interval_s=DEFAULT_OPTIONS.interval_s, random=Random(0)
    )
    now_s = 1_000_000.0
    renewed_last_round = Ownership("0", "official", now_s - SLOWEST_OFFICIAL_ROUND_S, "etag")
    assert balancer.decide([renewed_last_round], ["0"], now_s).claims == ()
    missed_a_round = Ownership("0", "official", now_s - 2 * SLOWEST_OFFICIAL_ROUND_S, "etag")
    assert [claim.partition_id for claim in balancer.decide([missed_a_round], ["0"], now_s).claims] == ["0"]


def test_the_options_that_everybody_shares_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        DEFAULT_OPTIONS.lease_s = 1.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Handlers(on_events, on_error).on_error = on_error  # type: ignore[misc]


def test_a_user_who_gives_no_handler_of_claims_and_closings_is_told_of_none() -> None:
    async def scenario() -> None:
        handlers = Handlers(on_events, on_error)
        context = PartitionContext(GroupName("ns", "hub", "$Default"), "0", MemoryCheckpointStore())
        await handlers.on_claimed(context)
        for reason in CloseReason:
            await handlers.on_closed(context, reason)

    asyncio.run(scenario())


def test_a_processor_has_the_name_that_it_is_given_or_one_of_its_own() -> None:
    client, store = EventHubClient.from_connection_string(CLIENT), MemoryCheckpointStore()

    def name(options: ProcessorOptions = DEFAULT_OPTIONS) -> str:
        return EventProcessor(client, store, on_events, options).owner_id

    assert name(ProcessorOptions(owner_id="films-7")) == "films-7"
    drawn = {name() for _ in range(20)}
    assert len(drawn) == 20 and "" not in drawn
