"""What a change of authorization rules becomes: the rules of their level, written anew, or a refusal.

A level is the namespace (hub None) or one event hub. Each method judges against the catalog as it is at that moment and
writes nothing; keys are made by the caller. A rule keeps its place and the name that it was created with, in any case.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from hubweir.errors import ENTITY_EXISTS, RESOURCE_LIMIT, ServiceError
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import SetRules
from hubweir.namespace.changes import Changes
from hubweir.namespace.descriptions import (
    RULES_PER_LEVEL_MAX,
    AuthorizationRuleDescription,
    check_rule,
    check_rules,
)
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret

Rules = tuple[AuthorizationRuleDescription, ...]


class RuleKey(Enum):
    """Which of a rule's two keys. They are worth the same: one is renewed while clients use the other."""

    PRIMARY = "primary"
    SECONDARY = "secondary"


class RuleChanges:
    """See the module's text. changes: judges the level itself, and words what is not found."""

    def __init__(self, catalog: Catalog, changes: Changes) -> None:
        self._catalog = catalog
        self._changes = changes

    def rules(self, hub: str | None) -> Rules:
        """The rules of a level; NOT_FOUND when there is no such hub."""
        return self._catalog.namespace.rules if hub is None else self._changes.entry(hub).description.rules

    def rule(self, hub: str | None, name: str) -> AuthorizationRuleDescription:
        """The rule of that name, in any case; else NOT_FOUND."""
        for rule in self.rules(hub):
            if fold(rule.name) == fold(name):
                return rule
        raise self._changes.not_found("/".join(part for part in (hub, "authorizationrules", name) if part))

    def create(self, hub: str | None, rule: AuthorizationRuleDescription) -> SetRules:
        """One rule more; ENTITY_EXISTS when the level has one of that name, RESOURCE_LIMIT when it is full."""
        if any(fold(known.name) == fold(rule.name) for known in self.rules(hub)):
            where = "The namespace" if hub is None else f"Event hub '{hub}'"
            raise ServiceError(ENTITY_EXISTS, f"{where} has the authorization rule '{rule.name}' already.")
        return self.set(hub, rule)

    def set(self, hub: str | None, rule: AuthorizationRuleDescription) -> SetRules:
        """A rule at the end of its level; one of its name goes. RESOURCE_LIMIT when the level is full."""
        check_rule(rule)
        hub_id = self._hub_id(hub)
        rules = (*(other for other in self.rules(hub) if fold(other.name) != fold(rule.name)), rule)
        if len(rules) > RULES_PER_LEVEL_MAX:
            where = "The namespace" if hub is None else f"Event hub '{self._changes.entry(hub).name}'"
            raise ServiceError(
                RESOURCE_LIMIT,
                f"{where} has {RULES_PER_LEVEL_MAX} authorization rules, which is the limit: remove one.",
            )
        return SetRules(hub_id, rules)

    def set_all(self, hub: str, rules: Rules) -> SetRules:
        """These rules in place of all that the hub has."""
        entry = self._changes.served(hub)
        return SetRules(entry.hub_id, check_rules(entry.name, rules))

    def remove(self, hub: str | None, name: str) -> SetRules:
        """One rule less; NOT_FOUND when it is not there."""
        hub_id, gone = self._hub_id(hub), self.rule(hub, name)
        return SetRules(hub_id, tuple(rule for rule in self.rules(hub) if rule is not gone))

    def change(self, hub: str | None, name: str, rights: Rights) -> SetRules:
        """Other rights; the keys stay."""
        return self._replace(hub, replace(self.rule(hub, name), rights=rights))

    def renew(self, hub: str | None, name: str, key: RuleKey, secret: Secret) -> SetRules:
        """Another key in the place of one; the other key stays good."""
        rule = self.rule(hub, name)
        if key is RuleKey.PRIMARY:
            return self._replace(hub, replace(rule, primary=secret))
        return self._replace(hub, replace(rule, secondary=secret))

    def _replace(self, hub: str | None, rule: AuthorizationRuleDescription) -> SetRules:
        check_rule(rule)
        return SetRules(
            self._hub_id(hub), tuple(rule if known.name == rule.name else known for known in self.rules(hub))
        )

    def _hub_id(self, hub: str | None) -> str | None:
        """Of a level that may be changed: the hub is served, or NOT_FOUND."""
        return None if hub is None else self._changes.served(hub).hub_id
