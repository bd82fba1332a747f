"""What a change of one authorization rule becomes: the rules of its level, written anew, or a refusal.

A level is the namespace (hub None) or one event hub. Each method judges against the catalog as it is at that moment and
writes nothing; keys are made by the caller. A rule keeps its place and the name that it was created with, in any case.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from hubweir.errors import ENTITY_EXISTS, ServiceError
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import SetRules
from hubweir.namespace.changes import Changes
from hubweir.namespace.descriptions import AuthorizationRuleDescription, check_rule
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
        return self._changes.set_rule(hub, rule)

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
        hub_id = None if hub is None else self._changes.entry(hub).hub_id
        check_rule(rule)
        return SetRules(hub_id, tuple(rule if known.name == rule.name else known for known in self.rules(hub)))
