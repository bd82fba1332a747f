"""What the log is told of a namespace's catalog: a line for each entity that is made, changed or deleted."""

from __future__ import annotations

import dataclasses
import logging

import msgspec

from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.service_log import ENTITY_CHANGED, ENTITY_CREATED, ENTITY_DELETED

logger = logging.getLogger(__name__)

NAMESPACE = "Namespace"
# Rules have keys, and what people wrote for themselves may be anything.
_NAMED_ONLY = {"rules": "authorization rules", "user_metadata": "user metadata"}
_NO_SETTINGS = ("name", "created_at_ms", "changed_at_ms")


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
        self._changed(level.title, _NAMED_ONLY["rules"])

    def subscription_rule(self, subscription: str, rule: str, *, removed: bool = False) -> None:
        """A rule of a subscription, which is named by its path, was made, replaced or removed."""
        self._changed(f"Subscription '{subscription}'", f"rule '{rule}' {'removed' if removed else 'set'}")

    def _changed(self, entity: str, what: str) -> None:
        ENTITY_CHANGED.say(logger, entity=entity, namespace=self._name, what=what)

    @property
    def _name(self) -> str:
        return self._namespace.description.name


def differences(before: object, after: object) -> str:
    """Which settings of two descriptions of one type differ, and how, for people: `retention_ms 3600000 → 7200000`.

    No key is in it. Of settings that are a group, those in it are told.
    """
    told = []
    for name in _names(after):
        old, new = getattr(before, name), getattr(after, name)
        if name in _NO_SETTINGS or old is new:
            continue
        if name in _NAMED_ONLY:
            told.append(_NAMED_ONLY[name])
        elif _names(new) and type(old) is type(new):
            told += filter(None, [differences(old, new)])
        elif old != new:
            told.append(f"{name} {old!r} → {new!r}")
    return ", ".join(told)


def _names(description: object) -> tuple[str, ...]:
    """Of its settings; none when it is a plain value."""
    if isinstance(description, msgspec.Struct):
        return description.__struct_fields__
    if dataclasses.is_dataclass(description) and not isinstance(description, type):
        return tuple(field.name for field in dataclasses.fields(description))
    return ()
