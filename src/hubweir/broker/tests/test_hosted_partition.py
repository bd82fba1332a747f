from typing import Any

import pytest

from hubweir.broker.capture.captures import Captures
from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.partition import ChangePartition, CreatePartition, EventsAppended
from hubweir.broker.commands.process import CloseOwner, Refusal
from hubweir.broker.commands.producer import AppendNumbered, OpenProducer
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.broker.hosted_partition import HostedPartition
from hubweir.broker.partition_tools import PartitionTools
from hubweir.broker.residents import Residents
from hubweir.broker.tests.numbered_world import transfer
from hubweir.counters import Counters
from hubweir.errors import LogOffline
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.record import Producer
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.answers import made_log
from hubweir.testing.simulated_env import SimulatedEnv

HOUR_MS = 3_600_000


class Host:
    """Partitions of a real store on files in memory, in virtual time."""

    def __init__(self) -> None:
        self.env = SimulatedEnv()
        self.store = MessagingStore.open(self.env, "store-0")
        self.residents = Residents(Counters())
        deadlines = BrokerDeadlines(self.env)
        captures = Captures(self.env, deadlines, self.store.clock, Counters(), self.store.alarms, None)
        self.tools = PartitionTools(self.env, deadlines, self.store.clock, Counters(), lambda push: None, captures)

    def create(self, retention_ms: int, partition_id: str = "0") -> HostedPartition:
        log_id = self.env.new_id()
        command = CreatePartition(log_id, "hub", partition_id, Durability.DURABLE, retention_ms)
        made = HostedPartition(self.tools, command, made_log(self.env, self.store, log_id))
        self.residents.add(made)
        return made

    def append(self, hosted: HostedPartition) -> None:
        hosted.log.append(pack_operations([b"event"]), now_ms=self.env.now_ms(), on_done=lambda outcome: None)
        self.env.run_for(2_000)

    def sweep(self) -> None:
        """Trim what retention lets go."""
        while self.residents.sweep_next(self.env.now_ms()):
            pass
        self.env.run_for(2_000)


def test_events_go_within_an_eighth_of_their_retention_after_its_end() -> None:
    host = Host()
    hosted = host.create(8 * HOUR_MS)
    for _ in range(20):
        host.append(hosted)
        host.env.run_for(HOUR_MS - 2_000)
    host.sweep()
    # 20 hours have passed, one event an hour: those of the last 8 stay, and at most one hour more.
    assert hosted.log.bounds.first_index in (11, 12)


def test_shorter_retention_makes_shorter_segments_from_then_on() -> None:
    host = Host()
    hosted = host.create(240 * HOUR_MS)
    command = ChangePartition(hosted.log.log_id, Durability.DURABLE, 8 * HOUR_MS)
    hosted.handlers[ChangePartition](hosted, command, lambda answer: None)
    for _ in range(20):
        host.append(hosted)
        host.env.run_for(HOUR_MS - 2_000)
    host.sweep()
    assert hosted.log.bounds.first_index in (11, 12)


@pytest.mark.parametrize("part", ["producers", "retention"])
def test_a_fault_in_the_sweep_of_a_partition_stops_that_one_and_the_sweep_goes_on(part: str) -> None:
    host, swept = Host(), set[str]()
    entries = [host.create(HOUR_MS, str(number)) for number in range(3)]
    for entry in (entries[0], entries[2]):
        entry.log.trim = lambda index, name=entry.partition.partition_id: swept.add(name)  # type: ignore
    if part == "producers":
        entries[1].producers.sweep = lambda now_ms: 1 // 0  # type: ignore
    else:
        entries[1].log.trim = lambda index: index // 0  # type: ignore
    while host.residents.sweep_next(host.env.now_ms()):
        pass
    assert swept == {"0", "2"}
    host.env.turn()
    outcomes: list[str] = []
    for entry in entries:
        try:
            entry.log.append(pack_operations([b"event"]), now_ms=0, on_done=lambda outcome: None)
            outcomes.append("taken")
        except LogOffline as refused:
            outcomes.append(str(refused)[-40:])
    assert outcomes[0] == outcomes[2] == "taken" and outcomes[1] != "taken"
    assert len(host.store.alarms.current()) == 1 and "ZeroDivisionError" in str(host.store.alarms.current()[0])
    host.env.run_for(5_000)
    entries[1].log.append(pack_operations([b"event"]), now_ms=0, on_done=lambda outcome: None)  # it came back
    assert host.store.alarms.current() == ()


@pytest.mark.parametrize(("gone", "is_open"), [(Owner(5, 5), False), (Owner(5, -1), False), (Owner(5, 6), True)])
def test_the_end_of_an_owner_closes_its_producers_and_nobody_elses(bench: Any, gone: Owner, is_open: bool) -> None:
    (opened,) = bench.ask(OpenProducer("a", Owner(5, 5), 7, None, None))
    bench.ask(CloseOwner(gone))
    answers = bench.ask(AppendNumbered("a", opened.opening_id, transfer(Producer(7, 0, 1), 1)))
    bench.log.complete()
    assert isinstance(answers[0], EventsAppended if is_open else Refusal)
