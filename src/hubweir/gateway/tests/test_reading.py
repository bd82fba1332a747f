"""reading.py: readers of a namespace's own hubs alone, and stores that say nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.reader import OpenReader
from hubweir.broker.commands.status import AskReaders, ReadersTold, ReaderTold
from hubweir.errors import STORE_OFFLINE
from hubweir.event_hub.event_position import EARLIEST
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


def test_of_some_partitions_of_a_hub_nothing_else_is_asked() -> None:
    world = World(hubs={"hub": 2, "other": 1})
    opened = {}
    for hub, partition in (("hub", "0"), ("hub", "1"), ("other", "0")):
        opened[hub, partition] = world.gateway.directory.partition(hub, partition).log_id
        world.ask(OpenReader(opened[hub, partition], Owner(7, 1), "$Default", EARLIEST, None, None))
    asked: list[Any] = []

    async def ask(hub: str | None, partitions: tuple[str, ...]) -> Any:
        asking = asyncio.ensure_future(readers_of(world.gateway, hub, partitions))
        for _ in range(20):
            await asyncio.sleep(0)
            world.env.run_for(1)
        return await asking

    for hub, partitions, count in ((None, (), 3), ("hub", ("1",), 1), ("hub", ("0", "1"), 2), ("other", (), 0)):
        found = asyncio.run(ask(hub, partitions))
        asked.append([(each["event_hub"], each["partition"]) for each in found["readers"]])
        assert len(asked[-1]) == count
    assert asked[1] == [("hub", "1")]
    assert world.gate.sent(AskReaders)[1] == AskReaders((opened["hub", "1"],))
