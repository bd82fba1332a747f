"""How a run's way into its log ends: one answer, counted, and a charge that is given back once at most."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import AppendEvents, EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AlreadyAppended
from hubweir.broker.pending_store import PendingStore
from hubweir.counters import Counters
from hubweir.errors import SERVER_BUSY, DiskFull
from hubweir.messaging_store.log import Appended, Refused
from hubweir.testing.simulated_env import SimulatedEnv
from hubweir.throughput_unit.partition_cap import PartitionCap

ALL_EVENTS = 1_000  # of a cap that nobody has used


def pending(env: SimulatedEnv, cap: PartitionCap | None, answers: list[Answer]) -> PendingStore:
    tools = SimpleNamespace(env=env, counters=Counters())
    return PendingStore(tools, AppendEvents("a", bytearray(b"run"), ALL_EVENTS, 10), cap, answers.append)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "answer", "is_given_back", "counted"),
    [
        (Appended(3, 8, 30, 80, 5), EventsAppended(3, 8), False, {"events_appended": 5, "bytes_appended": 3}),
        (None, AlreadyAppended(), True, {"duplicates_accepted": 1}),
        (Refused(DiskFull("full")), Refusal(SERVER_BUSY, "full"), True, {"appends_refused": 1}),
        (Refused(DiskFull("full"), known=False), Refusal(SERVER_BUSY, "full", False), False, {"appends_refused": 1}),
    ],
)
def test_each_end_is_answered_counted_and_keeps_or_gives_back_the_charge(
    outcome: Appended | Refused | None, answer: Answer, is_given_back: bool, counted: dict[str, int]
) -> None:
    env, answers = SimulatedEnv(), list[Answer]()
    cap = PartitionCap(now_ms=env.monotonic_ms())
    assert cap.admit(10, ALL_EVENTS, env.monotonic_ms()) is None
    store = pending(env, cap, answers)
    store.ended(outcome)
    assert answers == [answer]
    assert store.tools.counters.snapshot() == {f"broker.{name}": count for name, count in counted.items()}
    assert (cap.admit(10, ALL_EVENTS, env.monotonic_ms()) is None) == is_given_back


def test_a_charge_is_given_back_once() -> None:
    env = SimulatedEnv()
    cap = PartitionCap(now_ms=env.monotonic_ms())
    assert cap.admit(10, ALL_EVENTS, env.monotonic_ms()) is None
    store = pending(env, cap, [])
    store.give_back()
    assert cap.admit(10, ALL_EVENTS, env.monotonic_ms()) is None, "the charge of another send"
    store.give_back()
    assert cap.admit(10, 1, env.monotonic_ms()) is not None, "the other's charge stands"


def test_without_a_cap_nothing_is_given_back() -> None:
    answers: list[Answer] = []
    pending(SimulatedEnv(), None, answers).ended(Refused(DiskFull("full")))
    assert answers == [Refusal(SERVER_BUSY, "full")]
