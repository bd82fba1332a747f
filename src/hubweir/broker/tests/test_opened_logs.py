"""openings.py: what becomes of a log that was opened until its partition is hosted, or is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.broker.commands.partition import AskPartitionInfo, DeletePartition, OpenPartition, PartitionInfo
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.tests.conftest import HandLog
from hubweir.errors import LogOffline
from hubweir.messaging_store.log import Durability, Refused
from hubweir.namespace.capture_description import CaptureDescription

HOUR_MS = 3_600_000


class SlowLog(HandLog):
    """Its producers are read when a test says so."""

    def __init__(self) -> None:
        super().__init__("b", Durability.DURABLE)
        self.loads: list[Callable[[Any], None]] = []

    def load_snapshot(self, read: Callable[[Any], Any], on_done: Callable[[Any], None]) -> None:
        self.loads.append(on_done)


OPEN_B = OpenPartition("b", "orders", "1", Durability.DURABLE, HOUR_MS)


def test_a_partition_whose_producers_cannot_be_read_is_closed_again_and_opened_by_the_next_try(bench: Any) -> None:
    log = bench.store.logs["b"] = HandLog("b", Durability.DURABLE)
    log.saved = Refused(LogOffline("the disk is away"))
    [refused] = bench.ask(OPEN_B)
    assert isinstance(refused, Refusal) and "the disk is away" in refused.text and bench.store.closings == ["b"]
    log.saved = None
    assert bench.ask(OPEN_B) == [Done()]
    assert isinstance(bench.ask(AskPartitionInfo("b"))[0], PartitionInfo)


def test_a_partition_that_cannot_be_made_of_its_log_is_closed_again(bench: Any) -> None:
    capture = CaptureDescription(True, 60, 20 << 20)
    command = OpenPartition("b", "orders", "1", Durability.DURABLE, HOUR_MS, capture=capture)
    [refused] = bench.ask(command)
    assert isinstance(refused, Refusal) and "captures nothing" in refused.text and bench.store.closings == ["b"]


@pytest.mark.parametrize("how", ["deleted", "stopped"])
def test_what_is_deleted_or_stopped_while_its_producers_are_read_is_closed_and_not_hosted(bench: Any, how: str) -> None:
    log = bench.store.logs["b"] = SlowLog()
    opened = bench.ask(OPEN_B)
    ended: list[Any] = []
    if how == "deleted":
        ended = bench.ask(DeletePartition("b"))
    else:
        bench.broker.stop(lambda: ended.append(Done()))
    bench.env.turn()
    assert (opened, ended) == ([], []), "its producers are being read"
    log.loads.pop()(None)
    bench.env.turn()
    assert len(opened) == 1 and isinstance(opened[0], Refusal) and ended == [Done()]
    assert bench.store.closings[0] == "b" and (how == "stopped" or "b" not in bench.store.logs)


def test_of_a_partition_that_is_deleted_while_its_log_is_opened_nothing_is_read(bench: Any) -> None:
    log, opening = SlowLog(), list[Callable[[Any], None]]()
    bench.store.open_log = lambda log_id, on_done, **how: opening.append(on_done)
    answers = bench.ask(OPEN_B)
    deleted = bench.ask(DeletePartition("b"))
    assert answers == deleted == []
    opening.pop()(log)
    bench.env.turn()
    assert log.loads == [] and isinstance(answers[0], Refusal) and deleted == [Done()]
