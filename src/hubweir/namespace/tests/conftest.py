"""A process with a namespace on a real log, for the tests of this folder: made, used, killed and started again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest
from msgspec.structs import replace

from hubweir.errors import ServiceError
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.catalog_log import LoadedCatalog, load_catalog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.changes import EntityChange
from hubweir.namespace.entity import Entity, EntityDescription
from hubweir.namespace.event_hub_changes import set_settings
from hubweir.namespace.event_hub_description import EventHubDescription, EventHubEntity
from hubweir.namespace.subscription_rule import KeptPart, SubscriptionRuleDescription, WantedRule
from hubweir.namespace.tiers import DEVELOPMENT, Profile
from hubweir.testing.answers import answered, made_log
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")
K = TypeVar("K", bound=EntityDescription)
CATALOG = "c" * 32


class Process:
    """One process with a namespace: made, used, killed and started again by a test."""

    def __init__(self, env: SimulatedEnv, profile: Profile = DEVELOPMENT) -> None:
        self.env = env
        store = MessagingStore.open(env, "catalog")
        self.log = made_log(env, store, CATALOG)
        loaded = answered(env, partial(load_catalog, self.log))
        assert isinstance(loaded, LoadedCatalog), loaded
        self.writer = CatalogWriter(self.log, env, loaded, profile=profile, host="ns.local")
        self.namespace = self.writer.namespace
        self.started_ms = env.now_ms()

    def ask(self, change: Callable[[Callable[[T | ServiceError], None]], None]) -> T:
        """Ask for a change, play until it is answered, and return the value or raise the refusal."""
        answers: list[T | ServiceError] = []
        change(answers.append)
        assert not answers, "a change was answered inside the call"
        self.env.run_for(5_000)
        (answer,) = answers
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    def create(self, name: str, partitions: int = 2, **settings: object) -> EventHubEntity:
        intent = self.begin(name, partitions, **settings)
        return self.ask(lambda done: self.writer.commit_create(intent, done))

    def begin(self, name: str, partitions: int = 2, **settings: object) -> EventHubEntity:
        """Only the intent of a creation."""
        hub = EventHubDescription(name, partitions, **settings)  # type: ignore[arg-type]
        return self.ask(lambda done: self.writer.begin_create(hub, [0], done))

    def make(self, description: K) -> Entity[K]:
        """Create an entity of any kind."""
        intent = self.ask(lambda done: self.writer.begin_create(description, [0], done))
        return self.ask(lambda done: self.writer.commit_create(intent, done))

    def remove(self, name: str, kind: type[EntityDescription]) -> None:
        """Delete an entity of any kind."""
        intent = self.ask(lambda done: self.writer.begin_delete(name, kind, done))
        self.ask(lambda done: self.writer.commit_delete(intent, done))

    def put_rule(
        self, subscription: str, rule: SubscriptionRuleDescription, *, keeps: KeptPart | None = None
    ) -> SubscriptionRuleDescription:
        return self.ask(lambda done: self.writer.put_rule(subscription, WantedRule(rule, keeps), done))

    def remove_rule(self, subscription: str, name: str) -> None:
        self.ask(lambda done: self.writer.remove_rule(subscription, name, done))

    def change(self, hub: str, change: Callable[..., EventHubDescription], **values: object) -> EventHubEntity:
        """Change a hub by one of event_hub_changes.py."""
        its: EntityChange[EventHubDescription] = partial(change, **values)
        return self.ask(lambda done: self.writer.change(hub, EventHubDescription, its, done))

    def set(self, name: str, **settings: object) -> EventHubEntity:
        """Change settings of a hub; what is not named stays as it is."""

        def change(hub: EventHubDescription, context: ChangeContext) -> EventHubDescription:
            return set_settings(hub, context, replace(hub, **settings))

        return self.change(name, change)

    def begin_delete(self, name: str) -> EventHubEntity:
        """Only the intent of a deletion."""
        return self.ask(lambda done: self.writer.begin_delete(name, EventHubDescription, done))

    def delete(self, name: str) -> EventHubEntity:
        intent = self.begin_delete(name)
        return self.ask(lambda done: self.writer.commit_delete(intent, done))

    def hubs(self) -> tuple[EventHubEntity, ...]:
        """Those that are served."""
        return self.namespace.entities(EventHubDescription)

    def hub(self, name: str) -> EventHubEntity | None:
        return self.namespace.find(name, EventHubDescription)

    def restarted(self, *, power_cut: bool = True) -> Process:
        self.env.crash(power_cut=power_cut)
        return Process(self.env.restart())


@pytest.fixture
def start() -> type[Process]:
    """Start a process: start(env, profile=…)."""
    return Process


@pytest.fixture
def process() -> Process:
    return Process(SimulatedEnv(7))
