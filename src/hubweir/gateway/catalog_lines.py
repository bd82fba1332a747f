"""Lines of the log about a namespace's catalog: one for each entity that is made, changed or deleted."""

from __future__ import annotations

import logging

from hubweir.gateway.setting_differences import differences
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.service_log import ENTITY_CHANGED, ENTITY_CREATED, ENTITY_DELETED

logger = logging.getLogger(__name__)

NAMESPACE = "Namespace"


class CatalogLines:
    """See the module's text."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    def created(self, description: EntityDescription) -> None:
        ENTITY_CREATED.say(logger, entity=description.title, namespace=self._name)

    def deleted(self, description: EntityDescription) -> None:
        ENTITY_DELETED.say(logger, entity=description.title, namespace=self._name)

    def changed(self, before: EntityDescription, after: EntityDescription) -> None:
        self._changed(after.title, differences(before, after) or "set again")

    def described(self, before: NamespaceDescription, after: NamespaceDescription) -> None:
        """Nothing is said when both are the same."""
        if what := differences(before, after):
            self._changed(NAMESPACE, what)

    def rules_changed(self, level: RuleLevel) -> None:
        self._changed(level.title, "authorization rules")

    def subscription_rule(self, subscription: str, rule: str, *, removed: bool = False) -> None:
        """A rule of a subscription, which is named by its path, was made, replaced or removed."""
        self._changed(f"Subscription '{subscription}'", f"rule '{rule}' {'removed' if removed else 'set'}")

    def _changed(self, entity: str, what: str) -> None:
        ENTITY_CHANGED.say(logger, entity=entity, namespace=self._name, what=what)

    @property
    def _name(self) -> str:
        return self._namespace.description.name
