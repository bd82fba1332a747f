"""Receives over HTTP from a queue of 16 fragments at three brokers: one message of any, and nothing only of all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from hubweir.broker.commands.fragment import CloseReceiver, OpenReceiver, ReceiveMessages, SettleMessages
from hubweir.broker.commands.process import Refusal
from hubweir.errors import STORE_OFFLINE, TIMED_OUT
from hubweir.gateway.amqp.tests.partitioned_world import FRAGMENTS, fragment_of, partitioned_world
from hubweir.gateway.amqp.tests.queue_world import stored
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http import partitioned_receive
from hubweir.gateway.http.tests.service import Answer
from hubweir.gateway.http.tests.test_send_messages import said
from hubweir.gateway.http.tests.world_requests import Asking, ask_all, let_run
from hubweir.namespace.queue_description import QueueDescription
from hubweir.queue.settle_outcome import SettleOutcome
from tests.simulation.virtual_time import TimedLoop

T = TypeVar("T")
HEAD = "/orders/messages/head"
AWAY = Refusal(STORE_OFFLINE, "its broker is away")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return partitioned_world(monkeypatch)


def partition_key(key: str) -> tuple[bytes, bytes]:
    return b"brokerproperties", json.dumps({"PartitionKey": key}).encode()


def post(world: World, *keys: str) -> None:
    for key in keys:
        (answer,) = ask_all(world, "POST", "/orders/messages", key.encode(), headers=(partition_key(key),))
        assert answer is not None and answer.status == 201


def receive(world: World, method: str = "POST", *, timeout: int = 60) -> Answer | None:
    (answer,) = ask_all(world, method, f"{HEAD}?timeout={timeout}")
    return answer


def played(world: World, steps: Coroutine[Any, Any, T]) -> T:
    """In virtual time: a machine that lets this process wait makes no broker silent."""
    with asyncio.Runner(loop_factory=lambda: TimedLoop(world.env)) as runner:
        return runner.run(steps)


def commands(world: World, kind: Any) -> list[Any]:
    return [command for gate in world.gates for command in gate.sent(kind)]


def active(world: World) -> int:
    return sum(map(len, stored(world)))


def asked(world: World, method: str, scenario: Callable[[Asking], Any]) -> Answer | None:
    """A receive that waits already when the scenario begins."""

    async def run() -> Answer | None:
        asking = Asking(world, method, HEAD)
        task = asyncio.ensure_future(asking.run())
        await let_run(world, 300)
        await scenario(asking)
        await let_run(world, 300)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return asking.answer

    return played(world, run())


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_every_message_is_received_wherever_it_lies_and_nothing_behind_the_last(world: World, method: str) -> None:
    keys = [f"key-{number}" for number in range(20)]
    post(world, *keys)
    answers = [receive(world, method) for _ in keys]
    assert sorted(answer.body.decode() for answer in answers if answer is not None) == sorted(keys)
    assert [command for command in commands(world, SettleMessages) if command.outcome is SettleOutcome.RELEASE] == []
    for answer in answers:
        assert answer is not None
        assert said(answer)["SequenceNumber"] >> 48 == fragment_of(answer.body.decode())
        assert ("LockToken" in said(answer)) == ("location" in answer.headers) == (method == "POST")
    assert active(world) == (20 if method == "POST" else 0)
    assert len(commands(world, CloseReceiver)) == len(commands(world, OpenReceiver))


def test_a_lock_is_settled_and_renewed_at_its_fragment(world: World) -> None:
    post(world, "a", "b", "c")
    for method, left in (("POST", 3), ("PUT", 3), ("DELETE", 2)):
        answer = receive(world)
        assert answer is not None
        lock = answer.headers["location"].removeprefix("http://localhost")
        (settled,) = ask_all(world, method, lock)
        assert settled is not None and settled.status == 200
        assert active(world) == left
    (lost,) = ask_all(world, "DELETE", f"/orders/messages/1/7f{'0' * 6}-0000-0000-0000-{'0' * 12}")
    assert lost is not None and lost.status == 404


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_who_waits_gets_the_first_message_of_any_fragment_and_the_others_stay(world: World, method: str) -> None:
    async def scenario(asking: Asking) -> None:
        posts = [
            Asking(world, "POST", "/orders/messages", b"x", (partition_key(key),)).run() for key in ("a", "b", "c")
        ]  # fmt: skip
        await asyncio.gather(*posts, let_run(world))

    answer = asked(world, method, scenario)
    assert answer is not None and answer.status == (201 if method == "POST" else 200)
    assert active(world) == (3 if method == "POST" else 2)
    assert len(commands(world, CloseReceiver)) == len(commands(world, OpenReceiver))
    bodies = [receive(world) for _ in range(2)]
    assert all(each is not None and said(each)["DeliveryCount"] == 1 for each in bodies)


def test_nothing_comes_only_when_no_fragment_has_a_message(world: World) -> None:
    async def scenario(asking: Asking) -> None:
        async with asyncio.timeout(10):
            while asking.answer is None:
                await asyncio.sleep(0.005)
                world.run_for(1)

    async def run(timeout: int) -> Answer | None:
        asking = Asking(world, "POST", f"{HEAD}?timeout={timeout}")
        task = asyncio.ensure_future(asking.run())
        await scenario(asking)
        await task
        return asking.answer

    nothing = played(world, run(0))
    assert nothing is not None and nothing.status == 204
    assert len(commands(world, CloseReceiver)) == len(commands(world, OpenReceiver))
    for key in ("a", "b", "c", "d", "e"):
        post(world, key)
        found = played(world, run(0))
        assert found is not None and found.status == 201


def test_a_lone_receive_finds_nothing_where_another_fragment_has_the_message(world: World) -> None:
    gateway = world.gateway
    gateway.settings = replace(gateway.settings, lone_receives=True)
    post(world, *["a"] * 40)
    came, asked = [], []
    for _ in range(40):
        before = len(commands(world, ReceiveMessages))
        came.append(receive(world) is not None)
        asked.append({command.log_id for command in commands(world, ReceiveMessages)[before:]})
    assert {len(logs) for logs in asked} == {1} and set(came) == {True, False}


def test_a_receive_whose_time_ends_while_it_looks_ends_behind_the_last_fragment(world: World) -> None:
    world.gates[0].hold[ReceiveMessages] = []

    async def run() -> Answer | None:
        asking = Asking(world, "POST", f"{HEAD}?timeout=0")
        task = asyncio.ensure_future(asking.run())
        async with asyncio.timeout(10):
            for step in range(1_000):
                if asking.answer is not None:
                    break
                if step == 40:
                    world.gates[0].release(ReceiveMessages)
                await asyncio.sleep(0.005)
                world.run_for(1)
        assert asking.answer is not None, "it does not wait"
        await task
        return asking.answer

    answer = played(world, run())
    assert answer is not None and answer.status == 204


def test_a_fragment_that_is_away_is_passed_over_and_all_of_them_are_told(world: World) -> None:
    post(world, *(f"key-{number}" for number in range(20)))
    world.gates[0].refuse[OpenReceiver] = AWAY
    entity = world.namespace.find("orders", QueueDescription)
    assert entity is not None
    there = [placement.store_index != 0 for placement in entity.placements]
    wanted = [f"key-{number}" for number in range(20) if there[fragment_of(f"key-{number}")]]
    answers = [receive(world) for _ in wanted]
    assert sorted(answer.body.decode() for answer in answers if answer is not None) == sorted(wanted)
    assert receive(world) is None, "it waits for the others"
    for gate in world.gates:
        gate.refuse[OpenReceiver] = AWAY
    begun = len(commands(world, OpenReceiver))
    refused = receive(world)
    assert refused is not None and refused.status == 503
    assert len(commands(world, OpenReceiver)) - begun == FRAGMENTS, "each is asked once, and none to wait"


def test_a_fragment_that_does_not_answer_is_passed_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned_receive, "LOOK_S", 0.01)
    post(world, *(f"key-{number}" for number in range(20)))
    world.gates[0].hold[ReceiveMessages] = []

    async def run() -> Answer | None:
        asking = Asking(world, "DELETE", HEAD)
        task = asyncio.ensure_future(asking.run())
        async with asyncio.timeout(10):
            while asking.answer is None:
                await asyncio.sleep(0.005)
                world.run_for(1)
        await task
        return asking.answer

    for _ in range(5):
        answer = played(world, run())
        assert answer is not None and answer.status == 200
    assert active(world) == 15


@pytest.mark.parametrize("timeout", [0, 2])
def test_a_broker_that_does_not_answer_is_waited_for_once_and_no_longer_than_was_asked(
    world: World, monkeypatch: pytest.MonkeyPatch, timeout: int
) -> None:
    """It holds five or six of the fragments. `timeout=2` waits for all that are left, and ends without it, too."""
    monkeypatch.setattr(partitioned_receive, "LOOK_S", 0.2)
    world.gates[0].hold[OpenReceiver] = []

    async def run() -> tuple[Answer | None, float]:
        asking, loop = Asking(world, "POST", f"{HEAD}?timeout={timeout}"), asyncio.get_running_loop()
        task, began = asyncio.ensure_future(asking.run()), loop.time()
        async with asyncio.timeout(10):
            while asking.answer is None:
                await asyncio.sleep(0.005)
                world.run_for(1)
        await task
        took_s = loop.time() - began
        world.gates[0].release(OpenReceiver)
        await let_run(world, 100)
        return asking.answer, took_s

    answer, took_s = played(world, run())
    assert answer is not None and answer.status == 204
    assert took_s < timeout + 0.8, "it looked at each of them"
    assert len(commands(world, CloseReceiver)) == len(commands(world, OpenReceiver))


@pytest.mark.parametrize(("refusal", "status"), [(AWAY, 503), (Refusal(TIMED_OUT, "gone", known=False), 504)])
def test_a_deletion_that_fails_is_told(world: World, refusal: Refusal, status: int) -> None:
    post(world, "a")
    for gate in world.gates:
        gate.refuse[SettleMessages] = refusal
    answer = receive(world, "DELETE")
    assert answer is not None and answer.status == status
    assert active(world) == 1


def test_a_message_whose_lock_ended_before_it_could_be_deleted_is_looked_for_again(world: World) -> None:
    post(world, "a")
    for gate in world.gates:
        gate.hold[SettleMessages] = []

    async def scenario(asking: Asking) -> None:
        world.run_for(61_000)
        for gate in world.gates:
            gate.release(SettleMessages)

    answer = asked(world, "DELETE", scenario)
    assert answer is not None and answer.status == 200
    assert active(world) == 0


def test_a_peer_that_goes_away_leaves_nothing_locked_in_any_fragment(world: World) -> None:
    async def scenario(asking: Asking) -> None:
        asking.gone.set()
        await let_run(world)

    assert asked(world, "POST", scenario) is None
    assert len(commands(world, CloseReceiver)) == len(commands(world, OpenReceiver)) >= FRAGMENTS
    post(world, "a", "b")
    answers = [receive(world) for _ in range(2)]
    assert all(each is not None and said(each)["DeliveryCount"] == 1 for each in answers)
