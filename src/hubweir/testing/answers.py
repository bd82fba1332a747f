"""Answers of completions in a simulated world: play it until they are there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hubweir.messaging_store.log import Durability, Log, Refused, Run, Snapshot
from hubweir.messaging_store.log_store import NotOpened
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")


def answered(env: SimulatedEnv, start: Callable[[Callable[[T], None]], object]) -> T:
    """What a completion says; as little virtual time passes as that takes."""
    answers: list[T] = []
    start(answers.append)
    while not answers:
        next_ms = env.next_ms()
        assert next_ms is not None, "nothing is left that could answer"
        env.run(next_ms)
    (answer,) = answers
    return answer


def runs_of(env: SimulatedEnv, log: Log, index: int = 0) -> list[Run]:
    """Every visible batch of a log from index on. Raises what the replay is refused with, or the damage it met."""
    runs: list[Run] = []
    outcome = answered(env, partial(log.replay, index, runs.append))
    if isinstance(outcome, Refused):
        raise outcome.error
    if outcome.damage:
        raise outcome.damage[0]
    return runs


def snapshot_of(env: SimulatedEnv, log: Log) -> Snapshot | None:
    """The newest snapshot of a log."""
    found: Snapshot | None | Refused = answered(env, partial(log.load_snapshot, _itself))
    if isinstance(found, Refused):
        raise found.error
    return found


def _itself(snapshot: Snapshot) -> Snapshot:
    return snapshot


def opened_log(
    env: SimulatedEnv, store: MessagingStore, log_id: str, *, durability: Durability | None = None, name: str = ""
) -> SegmentLog:
    """An open log of a store. Raises why it cannot be opened."""
    return _opened(env, partial(store.open_log, log_id, durability=durability, name=name))


def made_log(
    env: SimulatedEnv,
    store: MessagingStore,
    log_id: str,
    *,
    durability: Durability = Durability.DURABLE,
    name: str = "",
) -> SegmentLog:
    """The same; it is made when it is not there."""
    return _opened(env, partial(store.open_log, log_id, durability=durability, name=name, makes=True))


def _opened(env: SimulatedEnv, opening: Callable[[Callable[[SegmentLog | NotOpened], None]], None]) -> SegmentLog:
    log = answered(env, opening)
    if isinstance(log, NotOpened):
        raise log.error
    return log
