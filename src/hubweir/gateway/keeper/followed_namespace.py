"""A namespace whose catalog another process keeps: read from a copy, changed by asking the keeper.

What is asked is answered when every process has applied it, this one too, so whoever asked may read the copy. While the
keeper is away the copy is read as it is, and changes are refused as known: nothing was changed. One that was on its way
when the keeper went, or that it did not answer, may hold or not; nobody asks for it a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from hubweir.broker.commands.command import Answer, Command, OnAnswer, Owner
from hubweir.broker.commands.keeper import (
    AskUsage,
    CreateEntity,
    DeleteEntity,
    EntityAsKept,
    PutCatalogRule,
    RemoveCatalogRule,
    RuleAsKept,
    UpdateAuthorizationRules,
    UpdateEntity,
    UpdateTags,
    UpdateUnits,
    UsageTold,
)
from hubweir.broker.commands.process import Refusal
from hubweir.errors import STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.gateway.brokers import error_of
from hubweir.gateway.keeper.keeper import OnDescription, Tags
from hubweir.namespace.catalog_writer import OnNamespace, OnRemoved, OnRules, OnSubscriptionRule
from hubweir.namespace.change_forms import (
    decode_description,
    decode_subscription_rule,
    encode_change,
    encode_description,
    encode_subscription_rule,
)
from hubweir.namespace.changes import EntityChange, RuleChange
from hubweir.namespace.entity import AnyEntity, EntityDescription
from hubweir.namespace.followed_catalog import FollowedCatalog
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.subscription_rule import WantedRule

A = TypeVar("A", bound=Answer)
K = TypeVar("K", bound=EntityDescription)
T = TypeVar("T")

AWAY = "The keeper of the catalog is away: nothing was changed. Try again."
UNKNOWN = (
    "The keeper of the catalog went away before it answered, or does not answer: it is unknown whether the change "
    "holds. Look first, then try again."
)


class KeeperLink(Protocol):
    """The way to the keeper (client.py). owner: this process, as its commands name it."""

    owner: Owner

    @property
    def is_up(self) -> bool:
        """Whether the stream stands."""

    def is_following(self, name: str) -> bool:
        """Whether the copy of a namespace is as new as the keeper has told."""

    def submit(self, command: Command, on_answer: OnAnswer) -> None: ...

    def change(self, command: Command, on_answer: OnAnswer) -> None:
        """As `submit`, for what changes something: answered in bounded time."""


class FollowedNamespace:
    """See the module's text. namespace: the copy. A Keeper (keeper.py) of it, for its gateway."""

    def __init__(self, link: KeeperLink, name: str, catalog: FollowedCatalog) -> None:
        """name: by which the keeper knows it."""
        self.link = link
        self.name = name
        self.catalog = catalog
        # For how long nobody used what an id names, as far as its gateway here saw; None: it saw no use.
        self.unused_ms: Callable[[str], int | None] = lambda _: None

    @property
    def namespace(self) -> Namespace:
        return self.catalog.namespace

    @property
    def is_current(self) -> bool:
        """While the keeper tells of changes. Those of the last moment may be on their way: nobody was answered yet."""
        return self.link.is_following(self.name)

    @property
    def on_removed(self) -> Callable[[AnyEntity], None]:
        """Called with each entity that is gone."""
        return self.catalog.on_removed

    @on_removed.setter
    def on_removed(self, callback: Callable[[AnyEntity], None]) -> None:
        self.catalog.on_removed = callback

    # What may be asked for (keeper.py)

    def start(self, on_done: Callable[[list[ServiceError]], None]) -> None:
        """The keeper has logs opened."""
        on_done([])

    def stop(self) -> None:
        """Nothing is tried here."""

    def create(self, description: K, on_done: OnDescription[K]) -> None:
        command = CreateEntity(self.link.owner, self.name, encode_description(description))
        self._ask(command, EntityAsKept, lambda kept: cast(K, decode_description(kept.description)), on_done)

    def delete(self, name: str, kind: type[K], on_done: OnDescription[K]) -> None:
        command = DeleteEntity(self.link.owner, self.name, name, kind.kind.value)
        self._ask(command, EntityAsKept, lambda kept: cast(K, decode_description(kept.description)), on_done)

    def change(self, name: str, kind: type[K], change: EntityChange[K], on_done: OnDescription[K]) -> None:
        command = UpdateEntity(self.link.owner, self.name, name, kind.kind.value, encode_change(change))
        self._ask(command, EntityAsKept, lambda kept: cast(K, decode_description(kept.description)), on_done)

    def change_rules(self, name: str | None, change: RuleChange, on_done: OnRules) -> None:
        command = UpdateAuthorizationRules(self.link.owner, self.name, name, encode_change(change))
        self._ask(command, Answer, lambda _: self.namespace.rule_level(name), on_done)

    def put_subscription_rule(self, subscription: str, wanted: WantedRule, on_done: OnSubscriptionRule) -> None:
        rule, keeps = encode_subscription_rule(wanted.rule), None if wanted.keeps is None else wanted.keeps.value
        command = PutCatalogRule(self.link.owner, self.name, subscription, rule, keeps)
        self._ask(command, RuleAsKept, lambda kept: decode_subscription_rule(kept.rule), on_done)

    def remove_subscription_rule(self, subscription: str, name: str, on_done: OnRemoved) -> None:
        command = RemoveCatalogRule(self.link.owner, self.name, subscription, name)
        self._ask(command, Answer, lambda _: None, on_done)

    def change_tags(self, location: str | None, tags: Tags | None, on_done: OnNamespace) -> None:
        command = UpdateTags(self.link.owner, self.name, location, tags)
        self._ask(command, Answer, lambda _: self.namespace.description, on_done)

    def change_units(self, held: int | None, maximum: int | None, on_done: OnNamespace) -> None:
        """As NamespaceUnits.change."""
        command = UpdateUnits(self.link.owner, self.name, held, maximum)
        self._ask(command, Answer, lambda _: self.namespace.description, on_done)

    def ask_usage(self, on_done: Callable[[list[tuple[int, ...]] | ServiceError], None]) -> None:
        """What the namespace was used for in each hour, by all processes together."""
        self._ask(AskUsage(self.link.owner, self.name), UsageTold, lambda told: list(told.hours), on_done)

    # Inside

    def _ask(
        self, command: Command, kind: type[A], read: Callable[[A], T], on_done: Callable[[T | ServiceError], None]
    ) -> None:
        """Ask the keeper; on_done with what read makes of its answer. kind: of the answer."""
        if not self.link.is_up:
            on_done(ServiceError(STORE_OFFLINE, AWAY))
            return

        def answered(answer: Answer) -> None:
            if isinstance(answer, Refusal) and not answer.known:  # the stream ended, or the keeper stalls
                on_done(ServiceError(TIMED_OUT, UNKNOWN))
            elif isinstance(answer, Refusal) or not isinstance(answer, kind):
                on_done(error_of(answer))
            else:
                on_done(_read(read, answer))

        self.link.change(command, answered)


def _read(read: Callable[[A], T], answer: A) -> T | ServiceError:
    try:
        return read(answer)
    except ServiceError as refusal:  # what was changed is gone again
        return refusal
