"""Changes of authorization rules: each makes the rules of one level anew, or says why not.

A level is the namespace or one entity. Nothing is written here, and keys are made by the caller. A rule keeps its place
and the name that it was created with, in any case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from hubweir.errors import ENTITY_EXISTS, NOT_FOUND, RESOURCE_LIMIT, ServiceError
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.error_text import entity_not_found, entity_uri
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import (
    RULES_PER_LEVEL_LIMIT,
    AuthorizationRuleDescription,
    Rules,
    check_rule,
)
from hubweir.namespace.secret import Secret


class RuleKey(Enum):
    """Which of a rule's two keys. They are worth the same: one is renewed while clients use the other."""

    PRIMARY = "primary"
    SECONDARY = "secondary"


@dataclass(frozen=True, slots=True)
class RuleLevel:
    """The rules of the namespace, or of one entity, as they are now. host: how texts name the namespace."""

    of: NamespaceDescription | EntityDescription
    host: str

    @property
    def rules(self) -> Rules:
        return self.of.rules

    @property
    def title(self) -> str:
        """How texts name the level."""
        return "The namespace" if isinstance(self.of, NamespaceDescription) else self.of.title

    def rule(self, name: str) -> AuthorizationRuleDescription:
        """The rule of that name, in any case; else NOT_FOUND."""
        for rule in self.rules:
            if fold(rule.name) == fold(name):
                return rule
        entity = () if isinstance(self.of, NamespaceDescription) else (self.of.name,)
        path = "/".join((*entity, "authorizationrules", name))
        raise ServiceError(NOT_FOUND, entity_not_found(entity_uri(self.host, path)))

    def create(self, rule: AuthorizationRuleDescription) -> Rules:
        """One rule more; ENTITY_EXISTS when the level has one of that name, RESOURCE_LIMIT when it is full."""
        if any(fold(known.name) == fold(rule.name) for known in self.rules):
            raise ServiceError(ENTITY_EXISTS, f"{self.title} has the authorization rule '{rule.name}' already.")
        return self.set(rule)

    def set(self, rule: AuthorizationRuleDescription) -> Rules:
        """A rule at the end of its level; one of its name goes. RESOURCE_LIMIT when the level is full."""
        check_rule(rule)
        rules = (*(other for other in self.rules if fold(other.name) != fold(rule.name)), rule)
        if len(rules) > RULES_PER_LEVEL_LIMIT:
            raise ServiceError(
                RESOURCE_LIMIT,
                f"{self.title} has {RULES_PER_LEVEL_LIMIT} authorization rules, which is the limit: remove one.",
            )
        return rules

    def remove(self, name: str) -> Rules:
        """One rule less; NOT_FOUND when it is not there."""
        gone = self.rule(name)
        return tuple(rule for rule in self.rules if rule is not gone)

    def change(self, name: str, rights: Rights) -> Rules:
        """Other rights; the keys stay."""
        return self._replace(replace(self.rule(name), rights=rights))

    def renew(self, name: str, key: RuleKey, secret: Secret) -> Rules:
        """Another key in the place of one; the other key stays good."""
        rule = self.rule(name)
        if key is RuleKey.PRIMARY:
            return self._replace(replace(rule, primary=secret))
        return self._replace(replace(rule, secondary=secret))

    def _replace(self, rule: AuthorizationRuleDescription) -> Rules:
        check_rule(rule)
        return tuple(rule if known.name == rule.name else known for known in self.rules)
