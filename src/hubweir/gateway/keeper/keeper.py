"""The keeper of a namespace's catalog as a gateway asks it, in this process or in another one: an interface.

Changes of descriptions and of authorization rules that may have to travel are given as `partial` of a function of
namespace/change_forms.py. Every on_done is called once, on the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from hubweir.errors import ServiceError
from hubweir.namespace.catalog_writer import OnNamespace, OnRemoved, OnRules, OnSubscriptionRule
from hubweir.namespace.changes import EntityChange, RuleChange
from hubweir.namespace.entity import AnyEntity, EntityDescription
from hubweir.namespace.subscription_rule import WantedRule

K = TypeVar("K", bound=EntityDescription)
Tags = tuple[tuple[str, str], ...]
OnDescription = Callable[[K | ServiceError], None]


class Keeper(Protocol):
    """on_removed: called with each entity that is gone, so that what is held of its logs goes too."""

    on_removed: Callable[[AnyEntity], None]

    @property
    def is_current(self) -> bool:
        """Whether the catalog, as it is read here, has every change that was answered."""

    def start(self, on_done: Callable[[list[ServiceError]], None]) -> None:
        """Have everything opened that the catalog names, where that is this process's to do; on_done with what could
        not be."""

    def stop(self) -> None:
        """Try nothing again: the next start carries on."""

    def create(self, description: K, on_done: OnDescription[K]) -> None:
        """Make an entity; on_done when it is served and durable, or with why not and what is left of it.

        ENTITY_EXISTS comes when whatever is being done with the entity of that name has ended.
        """

    def delete(self, name: str, kind: type[K], on_done: OnDescription[K]) -> None:
        """Remove an entity and what it holds. From the intent on it is not served any more, and goes whatever fails."""

    def change(self, name: str, kind: type[K], change: EntityChange[K], on_done: OnDescription[K]) -> None:
        """Change an entity first in the catalog, then at its brokers, as far as the change concerns them."""

    def change_rules(self, name: str | None, change: RuleChange, on_done: OnRules) -> None:
        """Change the authorization rules of an entity, or with None of the namespace. It bites at once."""

    def change_tags(self, location: str | None, tags: Tags | None, on_done: OnNamespace) -> None:
        """Give the namespace a location where it has none, or other tags in the place of all that it has.

        None leaves them, and a location that is there stays.
        """

    def put_subscription_rule(self, subscription: str, wanted: WantedRule, on_done: OnSubscriptionRule) -> None:
        """Make a rule of a subscription, by its path, or replace one; on_done when its topic goes by it, too."""

    def remove_subscription_rule(self, subscription: str, name: str, on_done: OnRemoved) -> None:
        """Remove a rule of a subscription; on_done when its topic knows it no more, too."""
