"""A topic at its broker: its subscriptions are residents beside it, which come, change and go with their rules."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import pytest

from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Command, Owner
from hubweir.broker.commands.fragment import (
    AskFragmentInfo,
    ChangeFragment,
    DeleteFragment,
    EnqueueMessages,
    FragmentInfo,
    MessagesEnqueued,
    MessagesReceived,
    MessagesSettled,
    OpenReceiver,
    PeekMessages,
    ReceiveMessages,
    ReceiverOpened,
    SettleMessages,
)
from hubweir.broker.commands.process import CloseOwner, Done, Refusal
from hubweir.broker.commands.topic import (
    CreateTopic,
    OpenTopic,
    PutSubscription,
    PutSubscriptionRules,
    RemoveSubscription,
    RemoveSubscriptionRule,
    TopicSubscription,
)
from hubweir.broker.hosted_topic import HostedSubscription, HostedTopic
from hubweir.broker.rule_forms import encode_rules
from hubweir.counters import Counters
from hubweir.errors import DECODE_ERROR, ENTITY_MOVED, NOT_ALLOWED, NOT_FOUND, STORE_OFFLINE
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCK_CHECK
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.subscription_rule import SqlFilterDescription, SubscriptionRuleDescription
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import MASK, message, run_of
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

TOPIC, SETTINGS, ME = "a" * 32, FragmentSettings(), Owner(1, 7)
ALL = encode_rules([SubscriptionRuleDescription()])
RED = SubscriptionRuleDescription("red", SqlFilterDescription("color = 'red'"))


def subscription(name: str, rules: bytes = ALL, **settings: Any) -> TopicSubscription:
    return TopicSubscription(name * 32, f"news/Subscriptions/{name}", FragmentSettings(**settings), True, rules)


class World:
    """A broker with a topic; `restart` opens it with these subscriptions."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(7)
        self._begin()
        assert self.ask(CreateTopic(TOPIC, "news", SETTINGS)) == Done()

    def _begin(self) -> None:
        self.counters = Counters()
        self.broker = Broker(self.env, MessagingStore.open(self.env, "store-0"), self.counters)
        self.broker.start()
        self.pushed: list[Any] = []
        self.broker.on_push = self.pushed.append

    def restart(self, *subscriptions: TopicSubscription) -> None:
        self.env.crash(power_cut=True)
        self.env = self.env.restart()
        self._begin()
        assert self.ask(OpenTopic(TOPIC, "news", SETTINGS, "ns", subscriptions)) == Done()

    def begin(self, command: Command) -> list[Answer]:
        answers: list[Answer] = []
        self.broker.submit(command, answers.append)
        return answers

    def ask(self, command: Command) -> Answer:
        answers = self.begin(command)
        self.env.run_for(500)
        [answer] = answers
        return answer

    def put(self, *subscriptions: TopicSubscription) -> None:
        for each in subscriptions:
            assert self.ask(PutSubscription(TOPIC, each)) == Done()

    def send(self, *bodies: str, **properties: object) -> None:
        messages = [message(body, properties=properties or None) for body in bodies]
        answer = self.ask(EnqueueMessages(TOPIC, run_of(*messages), len(messages), 100))
        assert isinstance(answer, MessagesEnqueued)

    def active(self, name: str) -> int:
        answer = self.ask(AskFragmentInfo(name * 32))
        assert isinstance(answer, FragmentInfo) and answer.log_id == name * 32
        return answer.active

    def unused_ms(self, name: str) -> int:
        answer = self.ask(AskFragmentInfo(name * 32))
        assert isinstance(answer, FragmentInfo)
        return answer.unused_ms

    def opened(self, name: str) -> int:
        answer = self.ask(OpenReceiver(name * 32, ME, SubQueue.MAIN, ReceiveMode.PEEK_LOCK))
        assert isinstance(answer, ReceiverOpened)
        return answer.receiver_id

    def refused(self, command: Command) -> Refusal:
        answer = self.ask(command)
        assert isinstance(answer, Refusal)
        return answer


@pytest.fixture
def world() -> World:
    return World()


def test_subscriptions_are_received_from_by_their_own_ids(world: World) -> None:
    world.put(subscription("b"), subscription("c"))
    world.send("one", "two")
    answer = world.ask(ReceiveMessages("b" * 32, world.opened("b"), 10, 10_000))
    assert isinstance(answer, MessagesReceived)
    rows = array("q", answer.rows)
    assert len(rows) == 2 * MESSAGE_WIDTH
    token = (rows[Q_LOCK] & MASK).to_bytes(8, "big") + (rows[Q_LOCK_CHECK] & MASK).to_bytes(8, "big")
    assert world.ask(SettleMessages("c" * 32, token, SettleOutcome.COMPLETE)) == MessagesSettled(b"\x01")
    assert world.ask(SettleMessages("b" * 32, token, SettleOutcome.COMPLETE)) == MessagesSettled(b"\x00")
    assert (world.active("b"), world.active("c"), world.active("a")) == (1, 2, 0)


def test_a_topic_gives_nothing_out_and_a_subscription_takes_nothing_in_by_the_wrong_command(world: World) -> None:
    world.put(subscription("b"))
    assert world.refused(PeekMessages(TOPIC, SubQueue.MAIN, 1, 1, 1)).condition is NOT_ALLOWED
    assert world.refused(PutSubscription("b" * 32, subscription("c"))).condition is NOT_ALLOWED


def test_a_start_has_the_subscriptions_and_rules_that_the_command_names(world: World) -> None:
    world.put(subscription("b"), subscription("c"))
    world.send("one")
    world.restart(subscription("c", encode_rules([RED])), subscription("d"))
    assert world.refused(AskFragmentInfo("b" * 32)).condition is ENTITY_MOVED
    world.send("blue", color="blue")
    world.send("red", color="red")
    assert (world.active("c"), world.active("d")) == (2, 2)


def test_putting_again_sets_settings_and_rules_and_keeps_messages(world: World) -> None:
    world.put(subscription("b"))
    world.send("one")
    world.put(subscription("b", encode_rules([RED]), max_delivery_count=1))
    world.send("blue", color="blue")
    assert world.active("b") == 1
    world.ask(ReceiveMessages("b" * 32, world.opened("b"), 10, 10_000))
    world.env.run_for(61_000)
    info = world.ask(AskFragmentInfo("b" * 32))
    assert isinstance(info, FragmentInfo) and (info.active, info.dead_lettered) == (0, 1)
    world.restart(subscription("b"))
    info = world.ask(AskFragmentInfo("b" * 32))
    assert isinstance(info, FragmentInfo) and (info.active, info.dead_lettered) == (0, 1)


def test_rules_come_and_go_one_by_one(world: World) -> None:
    world.put(subscription("b", encode_rules([])))
    world.send("nobody")
    assert world.ask(PutSubscriptionRules(TOPIC, "b" * 32, encode_rules([RED]))) == Done()
    world.send("red", color="red")
    assert world.ask(RemoveSubscriptionRule(TOPIC, "b" * 32, "RED")) == Done()
    assert world.ask(RemoveSubscriptionRule(TOPIC, "b" * 32, "RED")) == Done()
    world.send("red", color="red")
    assert world.active("b") == 1
    for command in (
        PutSubscriptionRules(TOPIC, "d" * 32, encode_rules([RED])),
        RemoveSubscriptionRule(TOPIC, "d" * 32, "x"),
    ):
        assert world.refused(command).condition is NOT_FOUND
    assert world.refused(PutSubscriptionRules(TOPIC, "b" * 32, b"\xff")).condition is DECODE_ERROR


def test_the_end_of_a_subscription_ends_its_receivers_and_nobody_else_s(world: World) -> None:
    world.put(subscription("b"), subscription("c"))
    waits = {name: world.begin(ReceiveMessages(name * 32, world.opened(name), 10, 10_000)) for name in "bc"}
    assert world.ask(RemoveSubscription(TOPIC, "b" * 32)) == Done()
    [told] = waits["b"]
    assert isinstance(told, Refusal) and told.condition is NOT_FOUND and "could not be found" in told.text
    assert waits["c"] == []
    assert world.ask(RemoveSubscription(TOPIC, "b" * 32)) == Done()
    assert world.refused(AskFragmentInfo("b" * 32)).condition is ENTITY_MOVED
    world.send("one")
    assert isinstance(waits["c"][0], MessagesReceived)


def test_the_end_of_a_topic_ends_its_subscriptions(world: World) -> None:
    world.put(subscription("b"))
    waiting = world.begin(ReceiveMessages("b" * 32, world.opened("b"), 10, 10_000))
    assert world.ask(DeleteFragment(TOPIC)) == Done()
    [told] = waiting
    assert isinstance(told, Refusal) and told.condition is NOT_FOUND
    assert world.refused(AskFragmentInfo("b" * 32)).condition is ENTITY_MOVED
    assert len(world.broker._residents) == 0


def test_the_end_of_an_owner_closes_its_receivers_of_subscriptions(world: World) -> None:
    world.put(subscription("b"))
    receiver = world.opened("b")
    assert world.ask(CloseOwner(ME)) == Done()
    assert world.refused(ReceiveMessages("b" * 32, receiver, 10, 10_000)).condition is NOT_FOUND


def test_a_topic_is_told_its_settings_as_a_queue_is(world: World) -> None:
    world.put(subscription("b"))
    assert world.ask(ChangeFragment(TOPIC, FragmentSettings(max_size_bytes=100))) == Done()
    run = run_of(message("x" * 200))
    assert "may hold 100 bytes" in world.refused(EnqueueMessages(TOPIC, run, 1, 100)).text


def test_two_that_put_the_same_subscription_at_once_have_one(world: World) -> None:
    answers = [world.begin(PutSubscription(TOPIC, subscription("b"))) for _ in range(2)]
    world.env.run_for(500)
    assert answers == [[Done()], [Done()]]
    world.send("one")
    assert world.active("b") == 1
    world.restart(subscription("b"))
    assert world.active("b") == 1


def test_a_topic_sweeps_for_its_subscriptions_and_each_of_them_alone_does_nothing(world: World) -> None:
    world.put(subscription("b"))
    world.send(*map(str, range(50)))
    topic = world.broker._residents.by_log_id[TOPIC]
    topic._topic.upkeep.snapshot_records = 1  # type: ignore[attr-defined]
    for resident in world.broker._residents:
        resident.sweep(world.env.now_ms())
    world.env.run_for(500)
    assert topic._topic.upkeep.snapshot_index > 50  # type: ignore[attr-defined]
    assert world.broker._residents.by_log_id["b" * 32].fragment.upkeep.snapshot_index == 0  # type: ignore[attr-defined]


def test_a_use_of_a_subscription_is_one_of_its_topic_and_a_send_is_none_of_the_subscription(world: World) -> None:
    world.put(subscription("b"), subscription("c"))
    world.env.run_for(60_000)
    assert min(map(world.unused_ms, "abc")) >= 60_000
    world.send("one")
    assert world.unused_ms("a") < 2_000 and world.unused_ms("b") >= 60_000
    world.env.run_for(60_000)
    world.ask(PeekMessages("b" * 32, SubQueue.MAIN, 1, 1, 1_000))
    assert max(world.unused_ms("a"), world.unused_ms("b")) < 3_000
    assert world.unused_ms("c") >= 120_000


@pytest.mark.parametrize(
    "command",
    [
        PutSubscription(TOPIC, subscription("b", max_delivery_count=1)),
        PutSubscriptionRules(TOPIC, "b" * 32, encode_rules([RED])),
        RemoveSubscriptionRule(TOPIC, "b" * 32, "$Default"),
    ],
    ids=["settings", "a rule more", "a rule less"],
)
def test_another_description_is_a_use_of_the_subscription(world: World, command: Command) -> None:
    world.put(subscription("b"), subscription("c"))
    world.env.run_for(60_000)
    assert world.ask(command) == Done()
    assert max(world.unused_ms("a"), world.unused_ms("b")) < 2_000
    assert world.unused_ms("c") >= 60_000


def test_the_end_of_a_subscription_is_no_use_and_what_it_was_used_for_counts_on(world: World) -> None:
    world.put(subscription("b"), subscription("c"))
    world.env.run_for(60_000)
    assert world.ask(RemoveSubscription(TOPIC, "c" * 32)) == Done()
    assert world.unused_ms("a") >= 60_000
    world.opened("b")
    world.env.run_for(60_000)
    assert world.unused_ms("a") == 0
    assert world.ask(RemoveSubscription(TOPIC, "b" * 32)) == Done()
    assert 0 < world.unused_ms("a") < 2_000


def test_whoever_asks_for_a_subscription_while_its_topic_is_being_opened_is_told_to_come_back(world: World) -> None:
    world.put(subscription("b"))
    world.env.crash(power_cut=True)
    world.env = world.env.restart()
    world._begin()
    opening = world.begin(OpenTopic(TOPIC, "news", SETTINGS, "ns", (subscription("b"),)))
    ask = OpenReceiver("b" * 32, ME, SubQueue.MAIN, ReceiveMode.PEEK_LOCK)
    [early] = world.begin(ask)
    assert isinstance(early, Refusal) and early.condition is STORE_OFFLINE and "topic news" in early.text
    world.env.run_for(500)
    assert opening == [Done()] and isinstance(world.ask(ask), ReceiverOpened)
    assert world.ask(RemoveSubscription(TOPIC, "b" * 32)) == Done()
    assert world.refused(ask).condition is ENTITY_MOVED


def test_a_topic_that_could_not_be_opened_leaves_no_subscription_behind(world: World) -> None:
    world.put(subscription("b"), subscription("c"))
    world.env.crash(power_cut=True)
    world.env = world.env.restart()
    world._begin()
    made: list[HostedSubscription] = []
    opened = HostedTopic._open

    def noted(*args: Any) -> HostedSubscription:
        made.append(opened(*args))
        return made[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(HostedTopic, "_open", noted)
        inside = (subscription("b", max_delivery_count=3), subscription("c"))
        opening = world.begin(OpenTopic(TOPIC, "news", SETTINGS, "ns", inside))
        while not made:
            world.env.run_for(1)
        world.env.files.plan(Fault.ENOSPC, forever=True)
        world.env.run_for(900)
        assert isinstance(opening[0], Refusal) and all(each._is_over for each in made)
        world.env.files.heal()
        world.env.run_for(5_000)
    assert [each._is_over for each in made] == [True, True, False, False]
    assert world.active("b") == 0


def test_the_later_of_two_that_put_the_same_subscription_at_once_is_what_it_is(world: World) -> None:
    puts = subscription("b"), subscription("b", encode_rules([RED]))
    answers = [world.begin(PutSubscription(TOPIC, each)) for each in puts]
    world.env.run_for(500)
    assert answers == [[Done()], [Done()]]
    world.send("blue", color="blue")
    assert world.active("b") == 0


def test_putting_again_says_anew_whether_messages_that_no_rule_can_be_asked_about_are_kept(world: World) -> None:
    bad = encode_rules([SubscriptionRuleDescription("bad", SqlFilterDescription("sys.nothing = 1"))])
    for kept, dead in ((True, 1), (False, 1), (True, 2)):
        world.put(replace(subscription("b", bad), keeps_failed=kept))
        world.send("one")
        info = world.ask(AskFragmentInfo("b" * 32))
        assert isinstance(info, FragmentInfo) and info.dead_lettered == dead
