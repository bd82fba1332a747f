"""A topic at its owner: the resident of its log; each of its subscriptions is a resident of its own beside it.

The topic decides (topic/topic_fragment.py). Its subscriptions are hosted as the fragments of queues are, by their own
ids, from when the topic is hosted until it or they end. After a crash a topic is its log, with the subscriptions and
rules that the command names that opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar
from uuid import UUID

from hubweir.broker.commands.command import LogCommand, OnAnswer
from hubweir.broker.commands.forwarding import StoreTransfer
from hubweir.broker.commands.fragment import AskFragmentInfo, CancelScheduled, ChangeFragment, EnqueueMessages
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.topic import (
    CreateTopic,
    PutSubscription,
    PutSubscriptionRules,
    RemoveSubscription,
    RemoveSubscriptionRule,
    TopicSubscription,
)
from hubweir.broker.fragment_tools import FragmentTools
from hubweir.broker.hosted_fragment import SECRET_BYTES, HostedFragment, answer_done
from hubweir.broker.hosted_transactions import HostedTransactions
from hubweir.broker.residents import Handler, Residents
from hubweir.broker.rule_forms import read_rules
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.messaging_store.log import Log, Refused
from hubweir.queue.fragment import Fragment, Times
from hubweir.topic.rule import Rule
from hubweir.topic.topic_fragment import TopicFragment

OnDone = Callable[[Refused | None], None]


# What the fragment that takes messages does as that of a queue.
_AS_A_QUEUE: tuple[type[LogCommand], ...] = (
    AskFragmentInfo,
    CancelScheduled,
    ChangeFragment,
    EnqueueMessages,
    StoreTransfer,
    *HostedTransactions.steps,
)


class HostedSubscription(HostedFragment):
    """A subscription at its owner: what it says is in its topic's log, which does the upkeep."""

    def sweep(self, now_ms: int) -> None:
        """Its topic's sweep is its own, too."""


class HostedTopic(HostedFragment):
    """One topic at its owner. Its fragment is the one that takes what is sent."""

    def __init__(self, tools: FragmentTools, residents: Residents, command: CreateTopic, log: Log) -> None:
        """On its log, which was just opened. Raises what read_rules raises."""
        self._residents = residents
        self._subscriptions: dict[str, HostedSubscription] = {}
        self._named = [(each, read_rules(each.rules)) for each in command.subscriptions]

        def make_fragment(wake: Callable[[], None]) -> Fragment:
            self._topic = TopicFragment(
                log,
                command.settings,
                entity=command.entity,
                secret=tools.env.random_bytes(SECRET_BYTES),
                wake=wake,
                new_id=lambda: UUID(tools.env.new_id()),
                fragment_number=command.fragment_number,
                tracer=tools.tracer,
            )
            return self._topic.own

        super().__init__(tools, log.log_id, command.entity, make_fragment, namespace=command.namespace)

    def last_used_ms(self) -> int:
        """As of a fragment; any use of a subscription is one of its topic."""
        return max(super().last_used_ms(), *(each.last_used_ms() for each in self._subscriptions.values()), 0)

    # As a resident (residents.py)

    def settle(self, on_done: OnDone) -> None:
        named = {each.subscription_id: each.settings for each, _ in self._named}
        self._topic.load(self._tools.times(), named, partial(self._open_subscriptions, on_done))

    def _open_subscriptions(self, on_done: OnDone, refused: Refused | None) -> None:
        named, self._named = self._named, []
        if refused is not None:
            self._loaded(on_done, refused)
            return
        left, first_refused = 1 + len(named), None

        def opened(refused: Refused | None) -> None:
            nonlocal left, first_refused
            left, first_refused = left - 1, first_refused or refused
            if not left:
                self._loaded(on_done, first_refused)

        for subscription, rules in named:
            self._open(subscription, rules, opened)
        opened(None)  # all of them are here, whichever answered at once

    def _open(self, said: TopicSubscription, rules: tuple[Rule, ...], on_done: OnDone) -> HostedSubscription:
        """Open a subscription that is in the log."""

        def make_fragment(wake: Callable[[], None]) -> Fragment:
            return self._topic.subscription(
                said.subscription_id,
                said.settings,
                entity=said.entity,
                secret=self._tools.env.random_bytes(SECRET_BYTES),
                wake=wake,
                keeps_failed=said.keeps_failed,
                rules=rules,
                times=self._tools.times(),
                on_done=on_done,
            )

        made = HostedSubscription(
            self._tools, said.subscription_id, said.entity, make_fragment, namespace=self._namespace
        )
        self._subscriptions[said.subscription_id] = made
        return made

    def begin(self) -> None:
        for subscription in self._subscriptions.values():
            self._residents.add(subscription)
        self._topic.begin()
        super().begin()

    def sweep(self, now_ms: int) -> None:
        self._topic.maintain(self._tools.times())

    def end(self, on_idle: Callable[[], None]) -> None:
        for subscription_id in list(self._subscriptions):
            self._end_subscription(subscription_id)
        super().end(on_idle)

    # Steps

    def _take_turn(self, times: Times) -> None:
        self._topic.turn(times)

    @property
    def _next_deadline_ms(self) -> int | None:
        return self._topic.next_deadline_ms

    def _end(self, error: ServiceError) -> None:
        for subscription in self._subscriptions.values():
            subscription._end(error)  # also where this was never hosted: nothing of it waits for a turn any more
        self._topic.end(error, self._tools.times())
        super()._end(error)

    def _let_go(self) -> None:
        self._topic.let_go()
        del self.transactions

    def _end_subscription(self, subscription_id: str) -> None:
        subscription = self._subscriptions.pop(subscription_id, None)
        if subscription is not None:
            # Its end is no use of the topic; what it was used for counts on.
            self._used_ms = max(self._used_ms, subscription.last_used_ms())
            self._residents.drop(subscription_id)
            subscription.end(lambda: None)

    def fragments(self) -> list[Fragment]:
        return [self.fragment, *(each.fragment for each in self._subscriptions.values())]

    def fragment_of(self, resident_id: str) -> Fragment:
        if resident_id == self.resident_id:
            return self.fragment
        subscription = self._known(resident_id)
        subscription.note_use()
        return subscription.fragment

    def _known(self, subscription_id: str) -> HostedSubscription:
        subscription = self._subscriptions.get(subscription_id)
        if subscription is None:
            raise ServiceError(NOT_FOUND, f"'{self._entity}' has no subscription of the id {subscription_id}")
        return subscription

    # One method a command; a HubweirError that is raised is the refusal

    def _put_subscription(self, command: PutSubscription, on_answer: OnAnswer) -> None:
        said, times = command.subscription, self._tools.times()
        rules = read_rules(said.rules)
        known = self._subscriptions.get(said.subscription_id)
        if known is not None:
            known.note_use()
            self._topic.change(said.subscription_id, keeps_failed=said.keeps_failed, rules=rules)
            known.fragment.change(said.settings, times, partial(answer_done, on_answer))
            return

        def added(outcome: Refused | ServiceError | None) -> None:
            if outcome is not None or self._is_over:
                answer_done(on_answer, outcome)
            elif said.subscription_id in self._subscriptions:
                self._put_subscription(command, on_answer)  # another put made it meanwhile: maybe as something else
            else:
                made = self._open(said, rules, partial(answer_done, on_answer))
                self._residents.add(made)

        self._topic.add_subscription(said.subscription_id, said.settings, times, added)

    def _remove_subscription(self, command: RemoveSubscription, on_answer: OnAnswer) -> None:
        def removed(outcome: Refused | ServiceError | None) -> None:
            if outcome is None:
                self._end_subscription(command.subscription_id)
            answer_done(on_answer, outcome)

        self._topic.remove_subscription(command.subscription_id, self._tools.times(), removed)

    def _put_rules(self, command: PutSubscriptionRules, on_answer: OnAnswer) -> None:
        self._known(command.subscription_id).note_use()
        for rule in read_rules(command.rules):
            self._topic.put_rule(command.subscription_id, rule)
        on_answer(Done())

    def _remove_rule(self, command: RemoveSubscriptionRule, on_answer: OnAnswer) -> None:
        self._known(command.subscription_id).note_use()
        self._topic.remove_rule(command.subscription_id, command.name)
        on_answer(Done())

    handlers: ClassVar[Mapping[type[LogCommand], Handler]] = {
        **{each: HostedFragment.handlers[each] for each in _AS_A_QUEUE},
        PutSubscription: _put_subscription,
        PutSubscriptionRules: _put_rules,
        RemoveSubscription: _remove_subscription,
        RemoveSubscriptionRule: _remove_rule,
    }
