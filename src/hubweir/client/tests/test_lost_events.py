"""Our own clients at a damaged partition: told once what is lost, then given what is sound behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_processor import EventProcessor
from hubweir.client.event_run import EventRun
from hubweir.client.memory_checkpoint_store import MemoryCheckpointStore
from hubweir.client.partition_context import PartitionContext
from hubweir.client.processor_options import ProcessorOptions
from hubweir.client.receiver import ReceiverOptions
from hubweir.errors import EVENTS_LOST, ServiceError
from hubweir.event_hub.event_position import EARLIEST
from hubweir.testing.damaged_namespace import HUB, damaged_namespace
from hubweir.testing.running_namespace import RunningNamespace

EVENTS, DAMAGED = 20, 7
SOUND = [number for number in range(EVENTS) if number != DAMAGED]


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[RunningNamespace]:
    with damaged_namespace(tmp_path / "data", events=EVENTS, damaged=DAMAGED) as namespace:
        yield namespace


def named(error: BaseException) -> bool:
    text = f"Lost: events {DAMAGED} to {DAMAGED} of partition 0 of event hub '{HUB}'"
    return isinstance(error, ServiceError) and error.condition is EVENTS_LOST and text in error.text


@pytest.mark.parametrize("rests", [False, True], ids=["asks at once", "asks when the link has ended"])
@pytest.mark.parametrize("stored_batches", [False, True], ids=["events", "batches"])
def test_a_receiver_raises_once_and_the_next_call_goes_on(
    damaged: RunningNamespace, stored_batches: bool, rests: bool
) -> None:
    async def scenario() -> None:
        async with EventHubClient.from_connection_string(damaged.connection_string(), HUB) as client:
            receiver = client.receiver("0", ReceiverOptions(position=EARLIEST, stored_batches=stored_batches))
            taken: list[int] = []
            errors: list[ServiceError] = []
            while len(taken) < len(SOUND):
                try:
                    run = await receiver.receive(max_wait_s=30)
                except ServiceError as error:
                    errors.append(error)
                    assert taken == SOUND[:DAMAGED]
                else:
                    assert run is not None
                    taken += run.sequence_numbers()
                    await asyncio.sleep(0.3 if rests else 0)
            assert taken == SOUND and [named(error) for error in errors] == [True]

    asyncio.run(scenario())


def test_a_processor_is_told_once_and_gets_each_sound_event_once(damaged: RunningNamespace) -> None:
    taken: list[int] = []
    errors: list[Exception] = []

    async def take(context: PartitionContext, run: EventRun) -> None:
        taken.extend(run.sequence_numbers())

    async def heard(context: PartitionContext | None, error: Exception) -> None:
        errors.append(error)

    async def scenario() -> None:
        text = damaged.connection_string()
        async with (
            EventHubClient.from_connection_string(text, HUB) as client,
            EventProcessor(
                client,
                MemoryCheckpointStore(),
                take,
                ProcessorOptions(position=EARLIEST, interval_s=0.2),
                on_error=heard,
            ),
            asyncio.timeout(50),
        ):
            while len(taken) < len(SOUND):
                await asyncio.sleep(0.02)

    asyncio.run(scenario())
    assert taken == SOUND and [named(error) for error in errors] == [True]


def test_the_command_prints_what_is_lost_beside_the_events(damaged: RunningNamespace) -> None:
    environment = {"HUBWEIR_CONNECTION_STRING": damaged.connection_string()}
    result = CliRunner().invoke(hubweir, ["receive", HUB, "--wait", "1"], env=environment)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [f"event {number}." for number in SOUND]
    assert f"Lost: events {DAMAGED} to {DAMAGED} of partition 0 of event hub '{HUB}'" in result.stderr


def test_the_service_says_so_in_its_alarms_and_stays_ready(damaged: RunningNamespace) -> None:
    environment = {"HUBWEIR_CONNECTION_STRING": damaged.connection_string()}
    CliRunner().invoke(hubweir, ["receive", HUB, "--wait", "0.5"], env=environment)
    with urlopen(f"http://{damaged.host}:{damaged.port}/ready", timeout=30) as answer:
        assert answer.status == 200 and json.load(answer)["alarms"] == {"damage": 1}
    [alarm] = damaged.service.alarms.current()
    assert f"partition 0 of {HUB} in namespace" in alarm.about and f"records {DAMAGED} to {DAMAGED}" in alarm.text
