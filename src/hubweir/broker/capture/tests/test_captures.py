"""What the captures of a broker share: slots with their pace, or a refusal; and gauges of those that run now."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from hubweir.alarms import Alarms
from hubweir.broker.broker import Broker
from hubweir.broker.capture.captures import Captures
from hubweir.broker.capture.places import CapturePlaces
from hubweir.broker.capture.slots import LOCAL_SLOTS
from hubweir.broker.capture.tests.capture_world import CAPTURED, HOUR_MS, LOG_ID, CaptureWorld
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import CreatePartition
from hubweir.broker.commands.process import AskCounters, CountersTaken, Refusal
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.counters import Counters
from hubweir.errors import STORE_OFFLINE, ServiceError
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv


@dataclass(eq=False)
class Behind:
    """A capture, as the gauges see it."""

    behind_events: int
    behind_bytes: int
    failure: str | None = None


def captures(counters: Counters, places: CapturePlaces | None = None) -> Captures:
    env = SimulatedEnv(0, files=MemoryFiles("captures"))
    return Captures(env, BrokerDeadlines(env), TrustedClock(env), counters, Alarms(env, counters), places)


def gauges(counters: Counters) -> tuple[int, ...]:
    """Partitions, events, bytes, failing."""
    names = ("partitions", "behind_events", "behind_bytes", "failing")
    return tuple(counters[f"capture.{name}"] for name in names)


def test_a_broker_without_places_has_no_tools_and_says_so_when_they_are_needed() -> None:
    made = captures(Counters())
    assert made.tools is None
    with pytest.raises(ServiceError, match="no place for captured files") as refused:
        made.need_tools()
    assert refused.value.condition is STORE_OFFLINE


def test_all_captures_have_the_same_tools_whose_slots_follow_their_pace() -> None:
    counters, places = Counters(), CapturePlaces(MemoryFiles("captures"), "capture")
    made, went = captures(counters, places), list[int]()
    tools = made.need_tools()
    assert made.need_tools() is tools and tools.places is places and tools.counters is counters
    assert tools.env is made.env and tools.clock is made.clock and tools.alarms is made.alarms
    for number in range(LOCAL_SLOTS):
        tools.slots.take(CaptureDestination.LOCAL_FOLDER, lambda number=number: went.append(number))
    assert len(went) == LOCAL_SLOTS // 2, "it gives way until it is known what comes in"
    tools.pace.gives_way = False
    tools.slots.give(CaptureDestination.LOCAL_FOLDER)
    assert len(went) == LOCAL_SLOTS


def test_a_broker_without_places_refuses_capture() -> None:
    with CaptureWorld() as world:
        broker = Broker(world.env, MessagingStore.open(world.env, "store-0"), Counters())
        answers: list[Answer] = []
        broker.submit(CreatePartition(LOG_ID, "hub", "0", Durability.DURABLE, HOUR_MS, "", CAPTURED), answers.append)
        world.run_s(1)
        [answer] = answers
        assert isinstance(answer, Refusal) and "no place" in answer.text


def test_gauges_are_sums_over_the_captures_that_run_now() -> None:
    counters = Counters()
    made, first, second = captures(counters), Behind(5, 700), Behind(30, 4_000, "the destination is away")
    made.running = {first: None, second: None}  # type: ignore[dict-item]
    made.set_gauges()
    assert gauges(counters) == (2, 35, 4_700, 1)
    del made.running[first]  # type: ignore[arg-type]
    second.failure = ""  # an error without a text fails, too
    made.set_gauges()
    assert gauges(counters) == (1, 30, 4_000, 1)
    second.failure = None
    made.set_gauges()
    assert gauges(counters) == (1, 30, 4_000, 0)
    made.running.clear()
    made.set_gauges()
    assert gauges(counters) == (0, 0, 0, 0), "the last one ended: no gauge tells of it any more"


def test_gauges_tell_how_far_all_of_them_are_behind() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(5)
        world.run_s(1)
        [taken] = world.ask(AskCounters())
        assert isinstance(taken, CountersTaken)
        assert (taken.values["capture.partitions"], taken.values["capture.behind_events"]) == (1, 5)
        world.run_s(70)
        [taken] = world.ask(AskCounters())
        assert isinstance(taken, CountersTaken)
        assert (taken.values["capture.behind_events"], taken.values["capture.events"]) == (0, 5)


def test_a_hub_whose_capture_is_ended_is_counted_no_more() -> None:
    with CaptureWorld() as world:
        world.open()
        world.send(5)
        world.run_s(1)
        world.ask(AskCounters())
        world.change(replace(CAPTURED, enabled=False))
        [taken] = world.ask(AskCounters())
        assert isinstance(taken, CountersTaken)
        assert gauges(Counters(taken.values)) == (0, 0, 0, 0)
