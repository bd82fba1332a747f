"""How much garbage collections have to look at for sends that are under way, and for those that were."""

from __future__ import annotations

import pytest

from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import AppendEvents, CreatePartition, EventsAppended
from hubweir.counters import Counters
from hubweir.env import Lane
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.garbage import come_and_stay
from hubweir.testing.simulated_env import SimulatedEnv


@pytest.mark.own_interpreter
def test_a_send_is_few_objects_for_collections_to_look_at() -> None:
    """With a slow disk very many are under way at once, one or two at each partition."""
    env, partitions = SimulatedEnv(4), 50
    broker = Broker(env, MessagingStore.open(env, "store-0"), Counters())
    ids, answers = [f"{number:032x}" for number in range(partitions)], [0]

    def answered(answer: Answer) -> None:
        answers[0] += isinstance(answer, EventsAppended)

    def send() -> None:
        for log_id in ids:
            broker.submit(AppendEvents(log_id, pack_operations([b"event"])), answered)
        env.run_for(50)

    def idle_calls() -> None:
        for _ in ids:
            env.offload(Lane.WRITES, list, answered)
        env.run_for(50)

    for log_id in ids:
        broker.submit(CreatePartition(log_id, "hub", "0", Durability.DURABLE, 3_600_000), answered)
    env.run_for(1_000)
    send()
    env.stall(Lane.WRITES)
    of_the_simulation = come_and_stay(idle_calls)
    under_way = come_and_stay(send)
    per_send = (under_way.total() - of_the_simulation.total()) / partitions
    assert answers == [partitions] and 10 < per_send < 18, (per_send, under_way)

    def go_on() -> None:
        env.go_on(Lane.WRITES)
        env.run_for(100)
        send()

    # The end of the log and what its tail holds of each of both sends. Not one list for each.
    left = come_and_stay(go_on)
    assert answers == [3 * partitions] and left.total() / partitions < 8 and left["list"] < partitions, left
