"""status.py: what a namespace may see, of brokers that answer, refuse, or say nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.alarms import CLOCK_AWAY, DAMAGE, LOG_OFFLINE
from hubweir.broker.commands.broker_process import ProcessesTold, ProcessTold
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.status import AlarmTold
from hubweir.errors import STORE_OFFLINE
from hubweir.gateway import status
from hubweir.gateway.amqp.tests.world import World
from hubweir.namespace.event_hub_description import EventHubDescription


def ask(world: World) -> dict[str, Any]:
    return asyncio.run(status.status_of(world.gateway))


def answering(world: World, answer: Answer | None) -> Callable[[Command, Callable[[Answer], None]], None]:
    """A broker's submit that answers this; None: never."""
    return lambda command, on_answer: None if answer is None else on_answer(answer)


def about(world: World, log_id: str, namespace: str = "") -> str:
    return f"partition 0 of hub in namespace {namespace or world.namespace.description.name} (log {log_id})"


def first_log(world: World) -> str:
    entity = world.namespace.find("hub", EventHubDescription)
    assert entity is not None
    return entity.placements[0].log_id


def test_a_sound_service_is_healthy_and_every_log_serves() -> None:
    world = World(hubs={"hub": 2})
    found = ask(world)
    assert (found["status"], found["alarms"], found["processes"]) == ("healthy", [], [])
    assert [(each["state"], each["open_logs"]) for each in found["stores"]] == [("serves", 2)]
    [hub] = found["entities"]
    assert (hub["kind"], hub["name"], hub["status"]) == ("event-hub", "hub", "Active")
    assert hub["logs"][1] == {"number": 1, "store": 0, "state": "serves", "alarms": [], "first": 0, "next": 0}


def test_an_alarm_stands_at_its_log_and_says_whether_it_blocks() -> None:
    world = World(hubs={"hub": 2})
    world.process.alarms.begin(DAMAGE, about(world, first_log(world)), "x")
    found = ask(world)
    assert found["status"] == "degraded" and found["entities"][0]["logs"][0]["alarms"] == ["damage"]
    assert found["entities"][0]["logs"][0]["state"] == "serves" and not found["entities"][0]["logs"][1]["alarms"]
    world.process.alarms.begin(LOG_OFFLINE, about(world, first_log(world)), "x")
    found = ask(world)
    assert found["status"] == "unhealthy" and found["entities"][0]["logs"][0]["state"] == "log-offline"
    assert [(each["kind"], each["blocks"]) for each in found["alarms"]] == [("damage", False), ("log-offline", True)]


def test_an_alarm_of_a_store_stands_at_the_store() -> None:
    world = World(hubs={"hub": 1})
    for store in ("store store-0", "store store-1", "store catalogs"):
        world.process.alarms.begin(CLOCK_AWAY, store, "x")
    assert ask(world)["stores"][0]["alarms"] == ["clock-away"]


def test_a_log_that_is_not_open_is_no_sound_service_even_without_an_alarm() -> None:
    world = World(hubs={"hub": 1})
    world.broker._residents.drop(first_log(world))
    found = ask(world)
    assert (found["status"], found["entities"][0]["logs"][0]["state"]) == ("unhealthy", "not-open")


def test_alarms_of_another_namespace_are_counted_and_not_told() -> None:
    world = World(hubs={"hub": 1})
    world.process.alarms.begin(DAMAGE, about(world, "0" * 32, "elsewhere"), "x")
    found = ask(world)
    assert (found["status"], found["alarms"], found["alarms_of_others"]) == ("degraded", [], 1)
    assert "elsewhere" not in str(found)


@pytest.mark.parametrize(
    ("answer", "state", "why"),
    [
        (Refusal(STORE_OFFLINE, "it is away"), "away", "it is away"),
        (None, "silent", "its broker did not answer within 0 s"),
    ],
)
def test_a_store_that_does_not_answer_is_told_and_waited_for_no_longer(
    monkeypatch: pytest.MonkeyPatch, answer: Answer | None, state: str, why: str
) -> None:
    world = World(hubs={"hub": 1})
    monkeypatch.setattr(status, "ANSWER_S", 0.05)
    [broker] = world.gateway.brokers
    monkeypatch.setattr(broker, "submit", answering(world, answer))
    found = ask(world)
    assert found["status"] == "unhealthy"
    assert (found["stores"][0]["state"], found["stores"][0]["why"]) == (state, why)
    assert found["entities"][0]["logs"][0]["state"] == "away"


def test_the_supervisor_tells_of_processes_and_of_its_own_alarms() -> None:
    world = World(hubs={"hub": 1})
    told = ProcessesTold(
        (ProcessTold(0, 7, (0,), "serves", 3, 1, ()),), (AlarmTold("clock-away", "store catalogs", "x", 5),)
    )
    world.process.supervisor = Supervisor(told)  # type: ignore[assignment]
    found = ask(world)
    assert found["processes"] == [
        {"broker": 0, "state": "serves", "pid": 7, "stores": [0], "connections": 3, "starts": 1}
    ]
    assert [each["about"] for each in found["alarms"]] == ["store catalogs"]


def test_connections_of_the_namespace_are_those_to_all_processes() -> None:
    world = World(hubs={"hub": 1})
    name = world.namespace.description.name
    world.process.supervisor = Supervisor(  # type: ignore[assignment]
        ProcessesTold(
            (
                ProcessTold(0, 7, (0,), "serves", 9, 1, (), {name: 3, "another": 6}),
                ProcessTold(1, 8, (1,), "silent", 2, 1, (), {name: 2}),
                ProcessTold(2, 0, (2,), "starts", 0, 2, ()),
            )
        )
    )
    assert ask(world)["namespace"]["connections"] == 0, "one process with several stores has a gateway that knows"
    world.process.processes = 3
    assert ask(world)["namespace"]["connections"] == 5
    world.process.supervisor = Supervisor(Refusal(STORE_OFFLINE, "it is away"))  # type: ignore[assignment]
    assert ask(world)["namespace"]["connections"] == 0, "what this process knows"


class Supervisor:
    """Answers one thing."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        on_answer(self._answer)
