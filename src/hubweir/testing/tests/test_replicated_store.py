"""replicated_store.py, what is only its own; and a whole service on it. The rest is the contract of LogStore."""

from __future__ import annotations

from hubweir.client.connection import Connection
from hubweir.client.receiver import Receiver
from hubweir.client.sender import Sender
from hubweir.errors import LogFenced
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.log_store import NotOpened
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.replicated_log import ReplicatedLog
from hubweir.testing.replicated_store import ReplicatedStores
from hubweir.testing.running_namespace import running_namespace
from hubweir.testing.simulated_env import SimulatedEnv

ID = "ab" * 16


def test_stores_of_one_name_share_their_logs_and_those_of_another_name_do_not() -> None:
    env, stores = SimulatedEnv(1), ReplicatedStores()
    answers: list[ReplicatedLog | NotOpened] = []
    stores.open(env, "one").open_log(ID, answers.append, makes=True)
    env.run_for(10)
    assert stores.open(env, "one").log_ids() == [ID] and stores.open(env, "other").log_ids() == []


def test_a_log_that_another_owner_takes_while_it_is_opened_is_not_opened_and_can_be_later() -> None:
    env, stores = SimulatedEnv(1), ReplicatedStores()
    store, answers, taken = stores.open(env, "one"), list[ReplicatedLog | NotOpened](), list[object]()
    store.open_log(ID, answers.append, makes=True)
    ReplicatedLog(env, store._shared.logs[ID], ID, Durability.DURABLE, taken.append, delay_ms=1)
    env.run_for(50)
    (refused,) = answers
    assert taken == [None] and isinstance(refused, NotOpened) and isinstance(refused.error, LogFenced)
    assert len(store._shared.logs[ID].followers) == 1, "whoever did not get the log reads on"
    store.open_log(ID, answers.append)
    env.run_for(50)
    assert isinstance(answers[1], ReplicatedLog)


def test_a_service_runs_on_replicated_logs_and_the_next_one_finds_all_that_was_accepted() -> None:
    stores = ReplicatedStores()
    bodies = [b"%d" % number for number in range(100)]
    with running_namespace(open_store=stores.open) as namespace:
        namespace.create_event_hub("orders", partition_count=2)

        async def publish() -> None:
            connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
            await (await Sender.open(connection, "orders/Partitions/1")).send(bodies)
            await connection.close()

        namespace.run(publish())
    with running_namespace(open_store=stores.open) as namespace:

        async def read() -> list[bytes]:
            connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
            receiver = await Receiver.open(connection, "orders/ConsumerGroups/$Default/Partitions/1")
            seen: list[bytes] = []
            while len(seen) < len(bodies):
                run = await receiver.receive(max_wait_s=10)
                assert run is not None
                seen += [bytes(body) for body in run.bodies()]
            await connection.close()
            return seen

        assert namespace.run(read()) == bodies
