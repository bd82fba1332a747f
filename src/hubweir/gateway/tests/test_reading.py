"""reading.py: readers of a namespace's own hubs alone, and stores that say nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.status import ReadersTold, ReaderTold
from hubweir.errors import STORE_OFFLINE
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.reading import readers_of
from hubweir.namespace.event_hub_description import EventHubDescription


def told(log_id: str, group: str = "$default", name: str = "", level: int = -1) -> ReaderTold:
    return ReaderTold(log_id, group, name, level, 5, 3, 0, "peer", "client")


def test_a_reader_of_a_log_that_is_not_the_namespaces_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(hubs={"hub": 2})
    hub = world.namespace.find("hub", EventHubDescription)
    assert hub is not None
    logs = [place.log_id for place in hub.placements]
    answer = ReadersTold((told(logs[1], name="n"), told("0" * 32), told(logs[0], level=0)))
    found = asked(world, monkeypatch, answer)
    assert [(each["partition"], each["name"], each["owner_level"]) for each in found["readers"]] == [
        ("0", None, 0),
        ("1", "n", None),
    ]
    assert {each["consumer_group"] for each in found["readers"]} == {"$Default"}
    assert found["stores_without_answer"] == []


def test_a_store_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(hubs={"hub": 1})
    assert asked(world, monkeypatch, Refusal(STORE_OFFLINE, "away"))["stores_without_answer"] == [0]


def asked(world: World, monkeypatch: pytest.MonkeyPatch, answer: Any) -> dict[str, Any]:
    """What is told when the broker answers this."""
    [broker] = world.gateway.brokers
    monkeypatch.setattr(broker, "submit", lambda command, on_answer: on_answer(answer))
    return asyncio.run(readers_of(world.gateway))
