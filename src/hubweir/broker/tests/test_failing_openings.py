"""openings.py on a store that fails, or ends, as a test says: what clients hear, and what is left open."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import AskPartitionInfo, OpenPartition
from hubweir.broker.commands.process import Refusal
from hubweir.broker.openings import OPENINGS_AT_ONCE
from hubweir.errors import (
    ENTITY_MOVED,
    INTERNAL_ERROR,
    SERVER_BUSY,
    STORE_OFFLINE,
    Condition,
    CorruptStore,
    LogFenced,
    LogLost,
    LogOffline,
    NewerFormat,
)
from hubweir.messaging_store.log import Durability

HOUR_MS = 3_600_000


def test_a_stop_forgets_what_failed(bench: Any) -> None:
    def fails(log_id: str, *, durability: Durability) -> Any:
        raise OSError(5, "planted")

    bench.store.create_log = fails
    bench.ask(OpenPartition("b", "orders", "1", Durability.DURABLE, HOUR_MS))
    assert bench.armed > 1
    bench.broker.stop(lambda: None)
    assert bench.armed == 0


@pytest.mark.parametrize("end", ["stopped", "deleted"])
def test_a_log_that_was_read_for_nobody_is_closed_and_nothing_lives_on_it(bench: Any, end: str) -> None:
    create, made, ended = bench.store.create_log, list[object](), list[bool]()

    def ends_meanwhile(log_id: str, *, durability: Durability) -> Any:
        if end == "stopped":
            bench.broker.stop(lambda: ended.append(True))
        else:
            bench.broker._openings.end("b", lambda: ended.append(True))
        assert not ended, "its files are being used"
        return create(log_id, durability=durability)

    bench.store.create_log = ends_meanwhile
    bench.broker._openings._make_resident = lambda *given: made.append(given)
    (refused,) = bench.ask(OpenPartition("b", "orders", "1", Durability.DURABLE, HOUR_MS))
    assert bench.store.closings == ["b"] and ended == [True] and made == []
    assert isinstance(refused, Refusal) and ("stops" if end == "stopped" else "deleted") in refused.text


@pytest.mark.parametrize(
    ("error", "condition"),
    [
        (LogFenced("planted"), ENTITY_MOVED),
        (LogLost("planted"), STORE_OFFLINE),
        (CorruptStore("planted"), INTERNAL_ERROR),
        (NewerFormat("planted"), INTERNAL_ERROR),
        (LogOffline("planted"), SERVER_BUSY),
        (OSError(5, "planted"), SERVER_BUSY),
    ],
    ids=lambda given: type(given).__name__,
)
def test_clients_hear_whether_to_wait_for_a_partition_that_is_not_open(
    bench: Any, error: Exception, condition: Condition
) -> None:
    def fails(log_id: str, *, durability: Durability) -> Any:
        raise error

    bench.store.create_log = fails
    bench.ask(OpenPartition("b", "orders", "1", Durability.DURABLE, HOUR_MS))
    (refused,) = bench.ask(AskPartitionInfo("b"))
    assert isinstance(refused, Refusal) and refused.condition is condition
    assert "partition 1 of orders is not open" in refused.text and "planted" in refused.text


def test_who_asks_again_has_it_tried_at_once_as_it_is_wanted_now_and_once(bench: Any) -> None:
    tried: list[tuple[int, Durability]] = []

    def fails(log_id: str, *, durability: Durability) -> Any:
        tried.append((bench.env.elapsed_ms, durability))
        raise OSError(5, "planted")

    def played(ms: int) -> None:
        for _ in range(ms // 100):
            bench.env.pass_time(100)
            bench.env.turn()
            bench.env.turn()

    bench.store.create_log = fails
    bench.ask(OpenPartition("b", "orders", "1", Durability.DURABLE, HOUR_MS))
    played(500)
    bench.ask(OpenPartition("b", "orders", "1", Durability.RELAXED, HOUR_MS))
    played(10_000)
    assert [at_ms - at_ms % 500 for at_ms, _ in tried] == [0, 500, 2_500, 6_500]
    assert [durability for _, durability in tried] == [Durability.DURABLE] + [Durability.RELAXED] * 3


def test_as_many_as_fail_let_the_next_ones_be_tried(bench: Any) -> None:
    def fails(log_id: str, *, durability: Durability) -> Any:
        raise OSError(5, "planted")

    bench.store.create_log = fails
    answers: list[Answer] = []
    for number in range(3 * OPENINGS_AT_ONCE):
        bench.broker.submit(OpenPartition(f"b{number}", "orders", "1", Durability.DURABLE, HOUR_MS), answers.append)
    for _ in range(8):
        bench.env.turn()
    assert len(answers) == 3 * OPENINGS_AT_ONCE and all(isinstance(answer, Refusal) for answer in answers)
