"""The rules of one subscription, as a catalog holds them: found by name, listed in order, counted by sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hubweir.namespace.names import DEFAULT_RULE
from hubweir.namespace.resource_path import fold
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription


class SubscriptionRules:
    """See the module's text. Only the catalog changes it. Iterates in the order in which the rules were made."""

    def __init__(self, rules: Iterable[SubscriptionRuleDescription] = ()) -> None:
        self._rules: dict[str, SubscriptionRuleDescription] = {}  # by name in lower case
        self.correlation_count = 0
        for rule in rules:
            self.put(rule)

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[SubscriptionRuleDescription]:
        return iter(self._rules.values())

    @property
    def sql_count(self) -> int:
        """How many filters count as SQL: all but those of correlation."""
        return len(self._rules) - self.correlation_count

    def find(self, name: str) -> SubscriptionRuleDescription | None:
        """The rule of that name in any case."""
        return self._rules.get(fold(name))

    def listed(self) -> Iterator[SubscriptionRuleDescription]:
        """In the order of lists: `$Default` first, then as they were made."""
        first = self.find(DEFAULT_RULE)
        if first is not None:
            yield first
        yield from (rule for rule in self if rule is not first)

    def put(self, rule: SubscriptionRuleDescription) -> None:
        """One rule more, or another in the place of the one of its name."""
        known = self.find(rule.name)
        self._rules[fold(rule.name)] = rule
        self.correlation_count += rule.is_correlation - (known is not None and known.is_correlation)

    def remove(self, name: str) -> bool:
        """One rule less; False when there is none of that name."""
        gone = self._rules.pop(fold(name), None)
        if gone is not None:
            self.correlation_count -= gone.is_correlation
        return gone is not None
