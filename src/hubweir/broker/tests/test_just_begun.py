"""broker.py: what a broker says of logs before whoever made it had all of its store opened."""

from __future__ import annotations

from hubweir.broker.broker import BEGINS_MS
from hubweir.broker.commands.partition import AskPartitionInfo, DeletePartition
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.tests.test_openings import Host


def test_of_a_broker_that_has_just_begun_nothing_has_moved_while_logs_are_to_be_opened() -> None:
    """Its process was killed, and those of others ask it before its supervisor had its logs opened."""
    host = Host(2)
    first, second = host.ids

    def told(log_id: str) -> str:
        [refusal] = host.ask(AskPartitionInfo(log_id), wait_ms=0)
        assert isinstance(refusal, Refusal)
        return refusal.condition.symbol

    assert {told(first), told("f" * 32)} == {"com.microsoft:store-offline"}
    assert host.open(first) == [Done()]
    assert told(second) == "com.microsoft:store-offline"
    assert host.open(second) == [Done()]
    assert told("f" * 32) == "com.microsoft:entity-moved"


def test_logs_that_nobody_has_opened_are_elsewhere_in_the_end() -> None:
    host = Host()
    host.env.run_for(BEGINS_MS)
    [refusal] = host.ask(AskPartitionInfo(host.ids[0]), wait_ms=0)
    assert isinstance(refusal, Refusal) and refusal.condition.symbol == "com.microsoft:entity-moved"
    host = Host()
    assert host.ask(DeletePartition(host.ids[0])) == [Done()]
    [refusal] = host.ask(AskPartitionInfo(host.ids[0]), wait_ms=0)
    assert isinstance(refusal, Refusal) and refusal.condition.symbol == "com.microsoft:entity-moved"
