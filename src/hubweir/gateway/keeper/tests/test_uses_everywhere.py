"""What several processes saw of the use of an entity counts together, and none of it is lost unnoticed."""

from __future__ import annotations

import pytest

from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.entity_uses import EntityUses
from hubweir.gateway.idle_deletions import GATHER_MS, RETRY_MS
from hubweir.gateway.keeper.tests.keeper_world import KeeperWorld
from hubweir.gateway.keeper.uses_everywhere import UsesEverywhere
from hubweir.namespace.iso_duration import MINUTE_MS, written_duration
from hubweir.namespace.queue_description import QueueDescription
from hubweir.testing.simulated_env import SimulatedEnv

ONE, TWO = 11, 22
SPAN_MS = 5 * MINUTE_MS
ORDERS = QueueDescription("orders", auto_delete_on_idle=written_duration("PT5M"))


class Asked:
    """Uses of two processes, what each was asked, and what was seen in the end."""

    def __init__(self) -> None:
        self.env = SimulatedEnv()
        self.own = EntityUses(self.env)
        self.uses = UsesEverywhere(self.env, self.own)
        self.asked: list[tuple[int, int, str]] = []
        self.seen: list[int | None] = []

    def came(self, process: int) -> None:
        self.uses.came(process, lambda number, log_id: self.asked.append((process, number, log_id)))

    def ask(self, log_id: str = "log") -> None:
        self.uses.ask(log_id, self.seen.append)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_one_process_alone_answers_at_once(asked: Asked) -> None:
    asked.ask()
    assert asked.seen == [None]


def test_the_newest_use_of_all_counts_when_all_have_answered(asked: Asked) -> None:
    asked.came(ONE)
    asked.came(TWO)
    asked.ask()
    (_, number, log_id), (_, same, _) = asked.asked
    assert number == same and log_id == "log" and asked.seen == []
    asked.uses.told(ONE, number, 700)
    assert asked.seen == []
    asked.uses.told(ONE, number, 5)  # a process answers once
    asked.uses.told(TWO, number, None)
    assert asked.seen == [700]
    asked.uses.told(TWO, number, 1)
    assert asked.seen == [700]


def test_nobody_saw_it_is_an_answer(asked: Asked) -> None:
    asked.came(ONE)
    asked.ask()
    asked.uses.told(ONE, asked.asked[0][1], None)
    assert asked.seen == [None]


def test_a_process_that_is_lost_takes_with_it_what_it_saw(asked: Asked) -> None:
    asked.came(ONE)
    asked.came(TWO)
    asked.ask()
    asked.uses.told(ONE, 1, None)
    asked.uses.left(TWO)
    assert asked.seen == [0]
    asked.env.run_for(3_000)
    asked.ask("another")
    asked.uses.told(ONE, 2, None)
    assert asked.seen == [0, 3_000]
    asked.uses.left(TWO)  # it is lost once
    asked.env.run_for(1_000)
    asked.ask("another")
    asked.uses.told(ONE, 3, 9_000)
    assert asked.seen == [0, 3_000, 4_000]


def test_a_process_that_comes_again_has_forgotten_what_it_saw(asked: Asked) -> None:
    asked.came(ONE)
    asked.ask()
    asked.came(ONE)
    assert asked.seen == [0]


def test_a_second_question_about_the_same_takes_the_place_of_the_first(asked: Asked) -> None:
    asked.came(ONE)
    asked.ask()
    asked.ask()
    asked.ask("other")
    asked.uses.told(ONE, 1, 5)
    assert asked.seen == []
    asked.uses.told(ONE, 2, 6)
    asked.uses.told(ONE, 3, 7)
    assert asked.seen == [6, 7]


def is_there(world: World) -> bool:
    return world.namespace.find("orders", QueueDescription) is not None


def test_a_queue_with_a_sender_at_any_process_stays_and_goes_when_it_left() -> None:
    """The sender sends nothing: only its process knows of it."""
    world = KeeperWorld()
    followers = [world.follower(process) for process in (101, 202)]
    world.create(ORDERS)
    peer = followers[1].trusted_peer(tick_ms=500)
    sender = peer.sender("orders")
    world.run_for(9 * MINUTE_MS)  # below the time after which an idle link is detached
    assert is_there(world)
    sender.detach()
    peer.run(SPAN_MS - 10_000)
    assert is_there(world)
    peer.run(10_000 + RETRY_MS + 3 * GATHER_MS)
    assert not is_there(world) and not is_there(followers[0]) and not is_there(followers[1])


def test_a_queue_outlives_a_lost_process_by_its_whole_span() -> None:
    world = KeeperWorld()
    follower, _ = world.follower(101), world.follower(202)
    world.create(ORDERS)
    world.run_for(SPAN_MS - 10_000)
    follower.went()
    world.server.gone(101)
    world.run_for(SPAN_MS - 1_000)
    assert is_there(world)
    world.run_for(1_000 + 3 * GATHER_MS)
    assert not is_there(world)


def test_a_process_that_does_not_answer_keeps_the_queue_alive() -> None:
    world = KeeperWorld()
    follower = world.follower(101)
    world.create(ORDERS)
    follower.stream.is_held = True
    world.run_for(2 * SPAN_MS)
    assert is_there(world)
    follower.stream.release()
    world.run_for(RETRY_MS + 3 * GATHER_MS)
    assert not is_there(world)


def test_what_is_gone_is_forgotten_by_those_who_saw_it_used() -> None:
    world = KeeperWorld()
    follower = world.follower(101)
    world.create(QueueDescription("orders"))
    follower.trusted_peer().sender("orders").detach()
    world.run_for(100)
    assert follower.gateway.uses._used_ms
    world.wait(lambda done: world.gateway.keeper.delete("orders", QueueDescription, done))
    world.run_for(100)
    assert not follower.gateway.uses._used_ms
