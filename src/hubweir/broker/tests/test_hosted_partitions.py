import pytest

from hubweir.broker.commands.partition import ChangePartition, CreatePartition
from hubweir.broker.hosted_partitions import HostedPartition, HostedPartitions
from hubweir.errors import ENTITY_MOVED, LogOffline, ServiceError
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.simulated_env import SimulatedEnv

HOUR_MS = 3_600_000


def hosted(
    store: MessagingStore, partitions: HostedPartitions, log_id: str, partition_id: str, retention_ms: int
) -> HostedPartition:
    """A partition on a new log, hosted."""
    command = CreatePartition(log_id, "hub", partition_id, Durability.DURABLE, retention_ms)
    made = partitions.make_ready(command, store.create_log(log_id))
    partitions.add(made)
    return made


class Host:
    """Partitions of a real store on files in memory, in virtual time."""

    def __init__(self) -> None:
        self.env = SimulatedEnv()
        self.store = MessagingStore.open(self.env, "store-0")
        self.partitions = HostedPartitions(self.store, lambda hosted, now_ms: None)
        self.log_id = self.env.new_id()

    def create(self, retention_ms: int) -> None:
        hosted(self.store, self.partitions, self.log_id, "0", retention_ms)

    def append(self) -> None:
        log = self.partitions.get(self.log_id).log
        log.append(pack_operations([b"event"]), now_ms=self.env.now_ms(), on_done=lambda outcome: None)
        self.env.run_for(2_000)

    def sweep(self) -> int:
        """Trim what retention lets go; the oldest index that is left."""
        while self.partitions.expire_next(self.env.now_ms()):
            pass
        self.env.run_for(2_000)
        return self.partitions.get(self.log_id).log.bounds.first_index


def test_events_go_within_an_eighth_of_their_retention_after_its_end() -> None:
    host = Host()
    host.create(8 * HOUR_MS)
    for _ in range(20):
        host.append()
        host.env.run_for(HOUR_MS - 2_000)
    # 20 hours have passed, one event an hour: those of the last 8 stay, and at most one hour more.
    assert host.sweep() in (11, 12)


def test_shorter_retention_makes_shorter_segments_from_then_on() -> None:
    host = Host()
    host.create(240 * HOUR_MS)
    host.partitions.change(ChangePartition(host.log_id, Durability.DURABLE, 8 * HOUR_MS))
    for _ in range(20):
        host.append()
        host.env.run_for(HOUR_MS - 2_000)
    assert host.sweep() in (11, 12)


def test_partition_that_is_not_here_has_moved() -> None:
    with pytest.raises(ServiceError) as refused:
        Host().partitions.get("0" * 32)
    assert refused.value.condition is ENTITY_MOVED


@pytest.mark.parametrize("part", ["sweep", "expire"])
def test_a_fault_in_the_sweep_of_a_partition_stops_that_one_and_the_sweep_goes_on(part: str) -> None:
    env, swept = SimulatedEnv(), []

    def visit(hosted: HostedPartition, now_ms: int) -> None:
        if part == "sweep" and hosted.partition.partition_id == "1":
            raise ZeroDivisionError("planted")
        swept.append(hosted.partition.partition_id)

    store = MessagingStore.open(env, "store-0")
    partitions = HostedPartitions(store, visit)
    entries = []
    for number in range(3):
        entries.append(hosted(store, partitions, env.new_id(), str(number), HOUR_MS))
    if part == "expire":
        entries[1].log.trim = lambda index: index // 0  # type: ignore[method-assign]
    while partitions.expire_next(env.now_ms()):
        pass
    assert {"0", "2"} <= set(swept)
    env.turn()
    outcomes: list[str] = []
    for entry in entries:
        try:
            entry.log.append(pack_operations([b"event"]), now_ms=0, on_done=lambda outcome: None)
            outcomes.append("taken")
        except LogOffline as refused:
            outcomes.append(str(refused)[-40:])
    assert outcomes[0] == outcomes[2] == "taken" and outcomes[1] != "taken"
    assert len(store.alarms.current()) == 1 and "ZeroDivisionError" in str(store.alarms.current()[0])
    env.run_for(5_000)
    entries[1].log.append(pack_operations([b"event"]), now_ms=0, on_done=lambda outcome: None)  # it came back
    assert store.alarms.current() == ()
