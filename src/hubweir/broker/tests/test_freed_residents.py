"""What was deleted is freed at once: no collection looks at a circle that is old (drivers/garbage_collector.py)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.fragment import CreateFragment, DeleteFragment, OpenReceiver, ReceiveMessages
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.topic import RemoveSubscription
from hubweir.broker.tests.test_hosted_topic import SETTINGS, TOPIC, World, subscription
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

QUEUE = "d" * 32


@contextmanager
def freed(world: World, *log_ids: str) -> Iterator[None]:
    """Of these residents, their fragments and logs nothing is left afterwards."""
    residents = [world.broker._residents.by_log_id[each] for each in log_ids]
    gc.disable()
    try:
        parts = [*residents, *(each.fragment for each in residents), *(each.fragment.core for each in residents)]
        known = [weakref.ref(part) for part in parts]
        del residents, parts
        yield
        world.env.run_for(1_000)
        assert [part() for part in known] == [None] * len(known)
    finally:
        gc.enable()


def used(world: World, resident_id: str) -> None:
    """One message was received, and for another one somebody waits."""
    receiver = world.ask(OpenReceiver(resident_id, Owner(1, 7), SubQueue.MAIN, ReceiveMode.PEEK_LOCK))
    for _ in range(2):
        world.begin(ReceiveMessages(resident_id, receiver.receiver_id, 1, 10_000))
        world.env.run_for(500)


def test_a_queue_is_freed_with_its_deletion() -> None:
    world = World()
    assert world.ask(CreateFragment(QUEUE, "orders", SETTINGS)) == Done()
    used(world, QUEUE)
    with freed(world, QUEUE):
        assert world.ask(DeleteFragment(QUEUE)) == Done()


def test_a_queue_with_sessions_is_freed_with_its_deletion() -> None:
    """One session is held, and its holder waits."""
    world = World()
    assert world.ask(CreateFragment(QUEUE, "orders", replace(SETTINGS, requires_session=True))) == Done()
    mode = ReceiveMode.PEEK_LOCK
    receiver = world.ask(OpenReceiver(QUEUE, Owner(1, 7), SubQueue.MAIN, mode, True, "s", 0))
    world.begin(ReceiveMessages(QUEUE, receiver.receiver_id, 1, 10_000))
    world.env.run_for(500)
    with freed(world, QUEUE):
        assert world.ask(DeleteFragment(QUEUE)) == Done()


def test_a_subscription_is_freed_with_its_removal_and_the_others_go_on() -> None:
    world = World()
    world.put(subscription("b"), subscription("c"))
    world.send("one")
    used(world, "b" * 32)
    with freed(world, "b" * 32):
        assert world.ask(RemoveSubscription(TOPIC, "b" * 32)) == Done()
    world.send("two")
    assert world.active("c") == 2


def test_a_topic_is_freed_with_its_subscriptions() -> None:
    world = World()
    world.put(subscription("b"), subscription("c"))
    world.send("one")
    used(world, "b" * 32)
    with freed(world, TOPIC, "b" * 32, "c" * 32):
        assert world.ask(DeleteFragment(TOPIC)) == Done()
