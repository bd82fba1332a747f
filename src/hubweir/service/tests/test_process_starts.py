"""process_starts.py: whose end ends the start of a service, and what people are told then."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from hubweir.service.process_starts import ENDS_LIMIT, BrokerProcessFailed, ProcessStarts
from hubweir.testing.event_loops import run_on


@dataclass
class Process:
    """Stands for a SupervisedProcess whose newest life is over."""

    index: int = 1
    was_up: bool = True
    unserved: str = ""
    starts: int = 1
    is_serving: bool = False
    life: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(is_child=True))


def told_of(process: Process) -> str:
    """What ends the start of two processes when a life of this one is over; "": it goes on until both serve."""

    async def scenario() -> str:
        starts, processes = ProcessStarts(), [Process(0, is_serving=True), process]
        waits = asyncio.ensure_future(starts.all(processes, lambda each: each.is_serving))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        starts.ended(process)  # type: ignore[arg-type]
        for _ in range(3):
            await asyncio.sleep(0)
        if not waits.done():
            process.is_serving = True
            starts.changed()
        try:
            await waits
        except BrokerProcessFailed as failed:
            return str(failed)
        return ""

    return run_on("asyncio", scenario())


def test_a_start_goes_on_when_a_process_ended_that_had_been_reached() -> None:
    assert told_of(Process()) == told_of(Process(starts=ENDS_LIMIT - 1)) == ""


@pytest.mark.parametrize(
    ("process", "told"),
    [
        (Process(was_up=False), "broker process 1 ended before it could be reached; the log above says why"),
        (
            Process(unserved="does not follow the keeper"),
            "broker process 1 does not follow the keeper, and was killed for it after a minute; its lines in the log "
            "above say why. Mend what they name, then start the service again",
        ),
        (
            Process(starts=ENDS_LIMIT),
            "broker process 1 ended 5 times before the service was ready; the log above says how",
        ),
    ],
    ids=["not reached", "takes no clients", "again and again"],
)
def test_a_start_ends_where_the_next_life_would_do_as_the_one_before(process: Process, told: str) -> None:
    assert told_of(process) == told


def test_whatever_one_of_an_earlier_supervisor_did_another_one_takes_its_place() -> None:
    earlier = SimpleNamespace(is_child=False)
    assert told_of(Process(was_up=False, unserved="does not follow the keeper", life=earlier)) == ""


def test_the_first_reason_is_the_one_that_is_told() -> None:
    async def scenario() -> None:
        starts = ProcessStarts()
        starts.ended(Process(2, was_up=False))  # type: ignore[arg-type]
        starts.ended(Process(3, was_up=False))  # type: ignore[arg-type]
        with pytest.raises(BrokerProcessFailed, match="broker process 2 "):
            await starts.all([Process()], lambda each: each.is_serving)  # type: ignore[list-item]

    run_on("asyncio", scenario())
