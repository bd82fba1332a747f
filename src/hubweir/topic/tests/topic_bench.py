"""A bench with one topic on a real log in a simulated world: a QueueBench whose fragment takes what is sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.subscription_rule import SqlActionDescription, SqlFilterDescription, SubscriptionRuleDescription
from hubweir.queue.fragment import Fragment
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.tests.conftest import LOG_ID, QueueBench
from hubweir.queue.traced_step import StepTracer
from hubweir.testing.answers import answered, made_log
from hubweir.topic.rule import Rule, TrueFilter, read_rule
from hubweir.topic.topic_fragment import TopicFragment

ALL = Rule("$Default", TrueFilter())


def sql(expression: str, action: str | None = None, *, name: str = "rule") -> Rule:
    """A rule of SQL."""
    changes = None if action is None else SqlActionDescription(action)
    return read_rule(SubscriptionRuleDescription(name, SqlFilterDescription(expression), changes))


@dataclass
class Subscribed:
    """A subscription as the catalog has it."""

    settings: FragmentSettings = field(default_factory=FragmentSettings)
    rules: tuple[Rule, ...] = (ALL,)
    keeps_failed: bool = True


class SubscriptionBench(QueueBench):
    """What receivers of one subscription do. Made by a TopicBench, and good until its next restart."""

    def __init__(self, topic: TopicBench) -> None:
        self.topic, self.env, self.log = topic, topic.env, topic.log
        self._timer: Any = None
        self.late_ms = 0

    def open(self) -> None:
        raise AssertionError("its topic opens it")


@dataclass
class TopicBench(QueueBench):
    """One topic and its owner; subscriptions is its catalog."""

    subscriptions: dict[str, Subscribed] = field(default_factory=dict)
    tracer: StepTracer | None = None

    def open(self) -> None:
        self.store = MessagingStore.open(self.env, "store-0", settings=self.segments)
        self.log = made_log(self.env, self.store, LOG_ID, durability=self.settings.durability)
        self._timer: Any = None
        self.topic = TopicFragment(
            self.log,
            self.settings,
            entity="news",
            secret=self.env.random_bytes(16),
            wake=self._wake,
            new_id=lambda: UUID(bytes=self.env.random_bytes(16)),
            fragment_number=self.number,
            tracer=self.tracer,
        )
        self.fragment = self.topic.own
        self.benches: dict[str, SubscriptionBench] = {}
        named = {name: each.settings for name, each in self.subscriptions.items()}
        load = partial(self.topic.load, self.times(), named)
        refused = answered(self.env, lambda on_done: load(on_done))
        if refused is not None:
            raise refused.error
        for name in self.subscriptions:
            self._open_subscription(name)
        self.topic.begin()
        self._turn()

    def _open_subscription(self, name: str) -> None:
        bench, said = SubscriptionBench(self), self.subscriptions[name]
        answers: list[Any] = []
        bench.fragment = self.topic.subscription(
            name,
            said.settings,
            entity=f"news/Subscriptions/{name}",
            secret=self.env.random_bytes(16),
            wake=bench._wake,
            keeps_failed=said.keeps_failed,
            rules=said.rules,
            times=self.times(),
            on_done=answers.append,
        )
        bench._wake()
        self.benches[name] = bench

    def _turn(self) -> None:
        self.topic.turn(self.times())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self.topic.next_deadline_ms
        if due_ms is not None:
            self._timer = self.env.call_later(max(0, due_ms - self.env.monotonic_ms()) + self.late_ms, self._turn)

    def enqueue(self, *messages: bytes, wait_ms: int = 50) -> Any:
        """As of a queue; what it answers is with the subscriptions, too."""
        answer = super().enqueue(*messages, wait_ms=wait_ms)
        self.run_for(500)
        return answer

    def of(self, name: str) -> SubscriptionBench:
        """What receivers of this subscription do."""
        return self.benches[name]

    def subscribe(
        self, name: str, rules: Iterable[Rule] = (ALL,), *, keeps_failed: bool = True, **settings: Any
    ) -> None:
        """Have a subscription more."""
        said = self.subscriptions[name] = Subscribed(FragmentSettings(**settings), tuple(rules), keeps_failed)
        adds = partial(self.topic.add_subscription, name, said.settings, self.times())
        assert self.answer(adds, 500) is None
        self._open_subscription(name)
        self.run_for(50)

    def unsubscribe(self, name: str) -> None:
        """Have one less."""
        del self.subscriptions[name]
        assert self.answer(lambda on_done: self.topic.remove_subscription(name, self.times(), on_done)) is None
        self.benches.pop(name)

    def maintained(self, times: int = 3) -> None:
        for _ in range(times):
            self.topic.maintain(self.times())
            self.run_for(300)

    def fragment_of(self, name: str) -> Fragment:
        return self.of(name).fragment
