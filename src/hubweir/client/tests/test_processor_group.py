"""Many processors over one store in virtual time: crashes, comers and goers, and what must hold all the while.

A simulated processor does what event_processor.py does, in steps: it reads the leases, claims (after another
processor may have come between), reads on with what it got, and marks every CHECKPOINT_EVERY events. A reader that
attaches displaces the one before. The laws are checked after every step; each planted defect has to break one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

import pytest

from hubweir.client.checkpoint_store import Record
from hubweir.client.load_balancer import LoadBalancer, Ownership, OwnershipClaim, Strategy
from hubweir.client.memory_checkpoint_store import BlockingMemoryCheckpointStore
from hubweir.client.partition_context import GroupName

LEASE_S, INTERVAL_S = 60.0, 10.0
CHECKPOINT_EVERY = 20
NAME = GroupName("namespace", "hub", "group")


class LawBroken(Exception):
    """What must hold did not; says what."""


@dataclass
class Processor:
    balancer: LoadBalancer
    next_at_s: float
    alive: bool = True
    etags: dict[str, str] = field(default_factory=dict)
    # partition: the next event to handle
    at: dict[str, int] = field(default_factory=dict)
    claims: tuple[OwnershipClaim, ...] | None = None
    read: list[Record] = field(default_factory=list)
    read_at_s: float = 0.0


class Group:
    """One simulation. defect: what a planted processor does wrong, or nothing."""

    def __init__(self, seed: int, *, strategy: Strategy, defect: str = "") -> None:
        self.random = Random(seed)
        self.now_s = 1_000.0
        self.strategy = strategy
        self.defect = defect
        self.store = BlockingMemoryCheckpointStore(lambda: self.now_s)
        self.partitions = [str(number) for number in range(self.random.randint(1, 16))]
        self.written = dict.fromkeys(self.partitions, 0)
        self.handled: dict[str, int] = dict.fromkeys(self.partitions, 0)  # every event below was handled
        self.repeated = dict.fromkeys(self.partitions, 0)
        self.takeovers = dict.fromkeys(self.partitions, 0)
        self.reader: dict[str, Processor | None] = dict.fromkeys(self.partitions)
        self.processors: list[Processor] = []
        self.began: dict[str, float] = dict.fromkeys(self.partitions, self.now_s)  # without a living owner since

    def come(self) -> None:
        balancer = LoadBalancer(
            f"p{len(self.processors)}",
            lease_s=LEASE_S,
            interval_s=INTERVAL_S,
            strategy=self.strategy,
            random=Random(self.random.random()),
        )
        self.processors.append(Processor(balancer, self.now_s + self.random.random()))

    @property
    def living(self) -> list[Processor]:
        return [processor for processor in self.processors if processor.alive]

    def planted(self, processor: Processor) -> bool:
        return bool(self.defect) and processor.balancer.owner_id == "p1"

    def crash(self) -> None:
        self.end_one()

    def end_one(self) -> Processor | None:
        """The planted one stays, so that it can do its harm."""
        mortal = [processor for processor in self.living if not self.planted(processor)]
        if not mortal or len(self.living) == 1:
            return None
        ended = self.random.choice(mortal)
        ended.alive = False
        # One that died while another's leases had not run out yet makes those wait for its own.
        self.began = dict.fromkeys(self.partitions, self.now_s)
        return ended

    def leave(self) -> None:
        gone = self.end_one()
        if gone is not None:
            for partition in list(gone.at):
                if self.reader[partition] is gone:
                    self.mark(gone, partition)
            held = [
                NAME.record(partition, owner_id="", etag=etag)
                for partition, etag in gone.etags.items()
                if partition in gone.at
            ]
            self.store.claim_ownership(held)

    def run(self, until_s: float, events_a_second: int = 3) -> None:
        while self.now_s < until_s:
            self.now_s += 0.5
            for partition in self.partitions:
                self.written[partition] += self.random.randint(0, events_a_second)
            self.random.shuffle(self.processors)
            for processor in self.living:
                if processor.claims is not None:
                    self.claim(processor)
                elif processor.next_at_s <= self.now_s:
                    self.look(processor)
                self.handle(processor)
            self.check_coverage()

    def look(self, processor: Processor) -> None:
        records = self.store.list_ownership("namespace", "hub", "group")
        leases = [Ownership.of(record) for record in records]
        processor.read_at_s, processor.read = self.now_s, records
        if self.defect == "ignores leases" and self.planted(processor):
            leases = [Ownership(each.partition_id, "", each.modified_at_s, each.etag) for each in leases]
        decision = processor.balancer.decide(leases, self.partitions, self.now_s)
        processor.next_at_s = decision.next_at_s
        processor.claims = decision.claims

    def claim(self, processor: Processor) -> None:
        """What the store gives is what it has."""
        claims, processor.claims = processor.claims or (), None
        owner_id = processor.balancer.owner_id
        wanted = [NAME.record(each.partition_id, owner_id=owner_id, etag=each.etag) for each in claims]
        got = self.store.claim_ownership(wanted)
        self.check_takeovers(processor, got)
        held = {record["partition_id"]: record["etag"] for record in got}
        if self.defect == "keeps what it lost" and self.planted(processor):
            held = {**processor.etags, **held}
        processor.etags = held
        for partition in list(processor.at):
            if partition not in held:
                del processor.at[partition]
                if self.reader[partition] is processor:
                    self.reader[partition] = None
        for partition in held:
            if partition not in processor.at or self.reader[partition] is not processor:
                self.attach(processor, partition)

    def attach(self, processor: Processor, partition: str) -> None:
        self.reader[partition] = processor
        self.takeovers[partition] += 1
        marks = {each["partition_id"]: each for each in self.store.list_checkpoints("namespace", "hub", "group")}
        processor.at[partition] = marks[partition]["sequence_number"] + 1 if partition in marks else 0

    def handle(self, processor: Processor) -> None:
        for partition, at in list(processor.at.items()):
            if self.reader[partition] is not processor:
                continue  # displaced: events come no more
            end = min(self.written[partition], at + CHECKPOINT_EVERY // 2)
            if self.defect == "marks before it handles" and end > at and self.planted(processor):
                self.store.update_checkpoint(NAME.record(partition, offset="", sequence_number=end - 1))
                if self.random.random() < 0.2:
                    processor.alive = False  # dies between the two
                    return
            if at > self.handled[partition]:
                raise LawBroken(f"events {self.handled[partition]} to {at - 1} of {partition} were skipped")
            self.repeated[partition] += max(0, min(end, self.handled[partition]) - at)
            self.handled[partition] = max(self.handled[partition], end)
            processor.at[partition] = end
            if end // CHECKPOINT_EVERY > at // CHECKPOINT_EVERY:
                self.mark(processor, partition)

    def mark(self, processor: Processor, partition: str) -> None:
        if processor.at[partition]:
            self.store.update_checkpoint(NAME.record(partition, offset="", sequence_number=processor.at[partition] - 1))

    def check_takeovers(self, processor: Processor, got: Iterable[Record]) -> None:
        """By what it had read: a lease is taken that is over, or whose owner has more than the taker."""
        owner_id = processor.balancer.owner_id
        live = {
            record["partition_id"]: record["owner_id"]
            for record in processor.read
            if record["owner_id"] and record["last_modified_time"] + LEASE_S > processor.read_at_s
        }
        counts = {owner: list(live.values()).count(owner) for owner in live.values()}
        for record in got:
            former = live.get(record["partition_id"], owner_id)
            if former == owner_id:
                counts[owner_id] = counts.get(owner_id, 0) + (record["partition_id"] not in live)
            elif counts[former] <= counts.get(owner_id, 0):
                raise LawBroken(f"{owner_id} took {record['partition_id']} from {former}, which had no more than it")
            else:
                counts[former] -= 1
                counts[owner_id] = counts.get(owner_id, 0) + 1

    def check_coverage(self) -> None:
        """No partition is without a living reader for longer than a lease, two rounds and one round for each share."""
        limit_s = LEASE_S + 2.3 * INTERVAL_S
        if self.strategy is Strategy.BALANCED:
            limit_s += len(self.partitions) * 1.1 * INTERVAL_S  # one a round
        for partition in self.partitions:
            reader = self.reader[partition]
            if reader is not None and reader.alive:
                self.began[partition] = self.now_s
            elif self.now_s - self.began[partition] > limit_s:
                raise LawBroken(f"{partition} had no reader for {self.now_s - self.began[partition]:.0f} s")

    def check_end(self, moves_before: int) -> None:
        """After a quiet time: even shares, no more moves, everything handled, repeats within the bound."""
        counts = [sum(self.reader[each] is processor for each in self.partitions) for processor in self.living]
        if sum(counts) != len(self.partitions) or max(counts) - min(counts) > 1:
            raise LawBroken(f"{len(self.partitions)} partitions are shared as {counts}")
        if sum(self.takeovers.values()) != moves_before:
            raise LawBroken("partitions move though nothing happens")
        for partition in self.partitions:
            if self.handled[partition] + CHECKPOINT_EVERY < self.written[partition]:
                raise LawBroken(f"{partition} is behind: {self.handled[partition]} of {self.written[partition]}")
            # The first reader repeats nothing.
            most = CHECKPOINT_EVERY * max(0, self.takeovers[partition] - 1)
            if self.repeated[partition] > most:
                raise LawBroken(f"{self.repeated[partition]} events of {partition} came again, {most} may")


def simulate(seed: int, *, defect: str = "") -> Group:
    strategy = Strategy.GREEDY if seed % 2 else Strategy.BALANCED
    group = Group(seed, strategy=strategy, defect=defect)
    for _ in range(group.random.randint(2, 5)):
        group.come()
    for _ in range(6):
        group.run(group.now_s + group.random.uniform(5, 120))
        group.random.choice([group.come, group.crash, group.crash, group.leave])()
    quiet_s = LEASE_S + 3 * INTERVAL_S + len(group.partitions) * 1.2 * INTERVAL_S
    group.run(group.now_s + quiet_s)
    moves = sum(group.takeovers.values())
    group.run(group.now_s + 5 * INTERVAL_S)
    group.check_end(moves)
    return group


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_any_history_keeps_the_laws(first: int) -> None:
    moved = 0
    for seed in range(first, first + 10):
        group = simulate(seed)
        moved += sum(group.takeovers.values()) - len(group.partitions)
    assert moved > 10  # the histories are not empty ones


@pytest.mark.parametrize(
    # Losing nothing, a processor cannot keep it: that one does no harm in every second history.
    ("defect", "at_least"),
    [("ignores leases", 15), ("keeps what it lost", 5), ("marks before it handles", 15)],
)
def test_planted_defect_breaks_a_law(defect: str, at_least: int) -> None:
    found = 0
    for seed in range(20):
        try:
            simulate(seed, defect=defect)
        except LawBroken:
            found += 1
    assert found >= at_least, f"{defect}: found in {found} of 20 histories"
