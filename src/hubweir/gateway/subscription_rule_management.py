"""Makes, replaces and removes the rules of subscriptions, for every door of management.

A rule's texts of SQL are checked here, so that the catalog holds none that means nothing. Authorisation is the door's.
"""

from __future__ import annotations

from hubweir.gateway.keeper.keeper import Keeper
from hubweir.namespace.catalog_writer import OnRemoved, OnSubscriptionRule
from hubweir.namespace.subscription_rule import (
    KeptPart,
    SubscriptionRuleDescription,
    WantedRule,
    check_subscription_rule,
)
from hubweir.topic.rule import read_rule


class SubscriptionRuleManagement:
    """See the module's text. subscription: its path. Every on_done is called once, on the loop."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    def create(self, subscription: str, rule: SubscriptionRuleDescription, on_done: OnSubscriptionRule) -> None:
        """One rule more. Raises ServiceError for one that means nothing."""
        self._keeper.put_subscription_rule(subscription, WantedRule(check_rule(rule)), on_done)

    def replace(
        self,
        subscription: str,
        rule: SubscriptionRuleDescription,
        on_done: OnSubscriptionRule,
        *,
        keeps: KeptPart = KeptPart.NOTHING,
    ) -> None:
        """A rule in the place of the one of its name, but for what it keeps of that. Raises ServiceError for one that
        means nothing."""
        self._keeper.put_subscription_rule(subscription, WantedRule(check_rule(rule), keeps), on_done)

    def delete(self, subscription: str, name: str, on_done: OnRemoved) -> None:
        """A rule less."""
        self._keeper.remove_subscription_rule(subscription, name, on_done)


def check_rule(rule: SubscriptionRuleDescription) -> SubscriptionRuleDescription:
    """The rule, when its name, its lengths and its texts are legal. Raises ServiceError."""
    read_rule(check_subscription_rule(rule))
    return rule
