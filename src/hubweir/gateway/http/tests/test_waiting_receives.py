"""Receives over HTTP with a broker whose answers a test decides on: given up, refused, bounded, never answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hubweir.broker.commands.fragment import (
    CloseReceiver,
    OpenReceiver,
    ReceiveMessages,
    SettleMessages,
)
from hubweir.broker.commands.process import Refusal
from hubweir.errors import NOT_FOUND
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http import receive_messages
from hubweir.gateway.http.tests.service import Answer
from hubweir.gateway.http.tests.test_send_messages import said
from hubweir.gateway.http.tests.world_requests import Asking, ask_all, let_run, queue_world
from hubweir.gateway.receive_slots import ReceiveSlots
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription
from hubweir.queue.settle_outcome import SettleOutcome

HEAD = "/orders/messages/head"


def asked(world: World, scenario: Callable[[Asking], Any], path: str = HEAD) -> Answer | None:
    """One receive; scenario is a coroutine function that is told of it, and ends before it is cancelled."""

    async def run() -> Answer | None:
        asking = Asking(world, "POST", path)
        task = asyncio.ensure_future(asking.run())
        await let_run(world)
        await scenario(asking)
        await let_run(world)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return asking.answer

    return asyncio.run(run())


def test_a_message_that_comes_as_its_peer_goes_is_active_again_and_was_not_delivered() -> None:
    world = queue_world()
    ask_all(world, "POST", "/orders/messages", b"x")
    world.gate.hold[ReceiveMessages] = []

    async def scenario(asking: Asking) -> None:
        asking.gone.set()
        world.gate.release(ReceiveMessages)
        world.run_for(10)  # the message is there before the request hears of either

    assert asked(world, scenario) is None
    assert [command.outcome for command in world.gate.sent(SettleMessages)] == [SettleOutcome.RELEASE]
    (answer,) = ask_all(world, "POST", f"{HEAD}?timeout=0")
    assert answer is not None and said(answer)["DeliveryCount"] == 1
    assert world.gateway.process.receive_slots.used == 0


def test_a_request_that_is_cancelled_leaves_no_receiver_and_no_lock() -> None:
    """As the service does at its end."""
    world = queue_world()
    assert ask_all(world, "POST", HEAD) == [None]
    assert len(world.gate.sent(CloseReceiver)) == len(world.gate.sent(OpenReceiver)) == 1
    ask_all(world, "POST", "/orders/messages", b"x")
    (answer,) = ask_all(world, "DELETE", HEAD)
    assert answer is not None and answer.status == 200
    assert world.gateway.process.receive_slots.used == 0


def test_a_queue_that_is_switched_off_meanwhile_gives_nothing_out() -> None:
    world = queue_world()

    async def scenario(asking: Asking) -> None:
        def disabled(known: QueueDescription, context: object) -> QueueDescription:
            return replace(known, availability=Availability.RECEIVE_DISABLED)

        world.wait(lambda done: world.gateway.keeper.change("orders", QueueDescription, disabled, done))
        await Asking(world, "POST", "/orders/messages", b"x").run()

    async def send_and_wait(asking: Asking) -> None:
        task = asyncio.ensure_future(scenario(asking))
        await let_run(world)
        await task

    answer = asked(world, send_and_wait)
    assert answer is not None and answer.status == 403
    assert [command.outcome for command in world.gate.sent(SettleMessages)] == [SettleOutcome.RELEASE]


def test_a_queue_that_is_deleted_meanwhile_is_gone() -> None:
    world = queue_world()

    async def scenario(asking: Asking) -> None:
        world.wait(lambda done: world.gateway.keeper.delete("orders", QueueDescription, done))

    answer = asked(world, scenario)
    assert answer is not None and answer.status == 410 and "could not be found" in answer.text


def test_a_refusal_of_the_broker_is_told() -> None:
    world = queue_world()
    world.gate.refuse[OpenReceiver] = Refusal(NOT_FOUND, "The messaging entity could not be found.")
    (answer,) = ask_all(world, "POST", HEAD)
    assert answer is not None and answer.status == 410
    assert world.gateway.process.receive_slots.used == 0


def test_more_receives_than_the_process_takes_are_told_to_come_again() -> None:
    world = queue_world()
    world.gateway.process.receive_slots = ReceiveSlots(limit=3)
    answers = ask_all(world, "POST", HEAD, count=4)
    assert answers[:3] == [None, None, None]
    assert answers[3] is not None and answers[3].status == 503
    assert "retry-after" in answers[3].headers and "3 receives wait" in answers[3].text
    assert len(world.gate.sent(OpenReceiver)) == 3
    assert world.gateway.process.receive_slots.used == 0


def test_an_answer_counts_until_its_peer_has_read_it() -> None:
    world = queue_world()
    slots = world.gateway.process.receive_slots
    ask_all(world, "POST", "/orders/messages", b"x" * 1_000)
    seen: list[tuple[int, int]] = []

    class Slow(Asking):
        async def _send(self, message: Any) -> None:
            seen.append((slots.used, slots.used_bytes))
            await super()._send(message)

    async def run() -> Answer | None:
        asking = Slow(world, "DELETE", HEAD)
        task = asyncio.ensure_future(asking.run())
        await let_run(world)
        await task
        return asking.answer

    answer = asyncio.run(run())
    assert answer is not None and len(answer.body) == 1_000
    assert seen == [(1, 1_000)] * 3  # its head, its body, and what is sent when that was read
    assert (slots.used, slots.used_bytes) == (0, 0)


def test_an_answer_that_cannot_be_sent_counts_no_longer() -> None:
    world = queue_world()
    ask_all(world, "POST", "/orders/messages", b"x")

    class Broken(Asking):
        async def _send(self, message: Any) -> None:
            raise ConnectionError("the transport is gone")

    async def run() -> None:
        task = asyncio.ensure_future(Broken(world, "DELETE", HEAD).run())
        await let_run(world)
        with pytest.raises(ConnectionError):
            await task

    asyncio.run(run())
    assert (world.gateway.process.receive_slots.used, world.gateway.process.receive_slots.used_bytes) == (0, 0)


def test_a_receive_that_is_answered_leaves_no_task_behind() -> None:
    world = queue_world()
    ask_all(world, "POST", "/orders/messages", b"x")

    async def run() -> set[Any]:
        await asyncio.gather(Asking(world, "DELETE", HEAD).run(), let_run(world))
        await asyncio.sleep(0)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(run()) == set()


def test_a_broker_that_gives_no_answer_at_all_ends_with_504(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive_messages, "ANSWER_WAIT_S", 0.05)
    world = queue_world()
    world.gate.hold[OpenReceiver] = []

    async def scenario(asking: Asking) -> None:
        async with asyncio.timeout(10):
            while asking.answer is None:
                await asyncio.sleep(0.01)

    answer = asked(world, scenario, f"{HEAD}?timeout=0")
    assert answer is not None and answer.status == 504
    world.gate.release(OpenReceiver)
    assert len(world.gate.sent(CloseReceiver)) == 1
