"""A process with a namespace on a real log, for the tests of this folder: made, used, killed and started again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from hubweir.errors import ServiceError
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.namespace.descriptions import EventHubDescription
from hubweir.namespace.event_hub_entry import EventHubEntry
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.tiers import DEVELOPMENT, Profile
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")
CATALOG = "c" * 32


class Process:
    """One process with a namespace: made, used, killed and started again by a test."""

    def __init__(self, env: SimulatedEnv, profile: Profile = DEVELOPMENT) -> None:
        self.env = env
        store = MessagingStore.open(env, "catalog")
        self.log = store.create_log(CATALOG)
        self.namespace = Namespace(self.log, env, profile=profile, host="ns.local")

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

    def create(self, name: str, partitions: int = 2, **settings: object) -> EventHubEntry:
        hub = EventHubDescription(name, partitions, **settings)  # type: ignore[arg-type]
        self.ask(lambda done: self.namespace.begin_create_hub(hub, [0], done))
        return self.ask(lambda done: self.namespace.commit_create_hub(name, done))

    def delete(self, name: str) -> None:
        self.ask(lambda done: self.namespace.begin_delete_hub(name, done))
        self.ask(lambda done: self.namespace.commit_delete_hub(name, done))

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
