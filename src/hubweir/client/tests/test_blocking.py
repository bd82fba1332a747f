from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.receiver import ReceiverOptions
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind
from hubweir.testing.running_namespace import RunningNamespace

NewHub = Callable[..., str]


def client_of(namespace: RunningNamespace, hub: str) -> BlockingEventHubClient:
    return BlockingEventHubClient.from_connection_string(namespace.connection_string(), hub)


def test_send_receive_and_describe_without_a_loop(namespace: RunningNamespace, new_hub: NewHub) -> None:
    with client_of(namespace, new_hub(partition_count=2)) as client:
        assert client.describe().partition_ids == ("0", "1")
        sender = client.sender(partition_id="1")
        assert sender.send([b"a", b"b"]) == 1
        batch = sender.batch()
        assert batch.try_add(b"c")
        sender.send_batch(batch)
        sender.close()
        assert client.partition("1").last_sequence_number == 2
        receiver = client.receiver("1")
        receiver.open()
        bodies: list[bytes] = []
        while len(bodies) < 3:
            bodies += map(bytes, (receiver.receive(max_wait_s=5) or pytest.fail("no event")).bodies())
        assert bodies == [b"a", b"b", b"c"]
        assert receiver.position == EventPosition(PositionKind.SEQUENCE_NUMBER, 2)
        assert receiver.receive(max_wait_s=0.01) is None
        receiver.close()


def test_transfers_that_are_encoded_already_have_a_future_each(namespace: RunningNamespace, new_hub: NewHub) -> None:
    with client_of(namespace, new_hub()) as client:
        sender = client.sender(partition_id="0")
        limit = sender.max_message_size()
        outcomes = []
        for body in (b"a", b"b"):
            batch = sender.batch()
            assert batch.try_add(body)
            outcomes.append(sender.submit_payload(batch.payload()))
        assert [outcome.result(10) for outcome in outcomes] == [None, None]
        assert client.partition("0").last_sequence_number == 1
        with pytest.raises(ServiceError, match=f"over the {limit}"):
            sender.submit_payload(bytes(limit + 1)).result(10)


def test_all_partitions_are_asked_at_once(namespace: RunningNamespace, new_hub: NewHub) -> None:
    with client_of(namespace, new_hub(partition_count=3)) as client:
        client.sender(partition_id="1").send([b"a", b"b"])
        states = client.partitions(("2", "1", "0"))
        assert [state.partition_id for state in states] == ["2", "1", "0"]
        assert [state.last_sequence_number for state in states] == [-1, 1, -1]
        runs = client.receiver("1", ReceiverOptions(limit=1)).receive_runs(1, max_wait_s=5)
        assert [list(run.sequence_numbers()) for run in runs] == [[0]]
        assert len(runs[0].deliveries) and runs[0].data
        with pytest.raises(ServiceError, match="7"):
            client.partitions(("0", "7"))


def test_receivers_attach_and_get_events_together(namespace: RunningNamespace, new_hub: NewHub) -> None:
    with client_of(namespace, new_hub(partition_count=2)) as client:
        receivers = [client.receiver(key) for key in ("0", "1", "1")]
        begun = [
            receiver.begin_runs(wanted, max_wait_s=5) for receiver, wanted in zip(receivers, (2, 2, 9), strict=True)
        ]
        for key in ("1", "0"):
            client.sender(partition_id=key).send([b"a", b"b"])
        assert begun[2].cancel()  # one that is given up while it waits
        receivers[2].begin_close()
        assert [[list(run.sequence_numbers()) for run in each.result(10)] for each in begun[:2]] == [[[0, 1]]] * 2
        assert receivers[1].receive(max_wait_s=0.01) is None
        for receiver in receivers:
            receiver.close()


def test_errors_are_those_of_the_coroutines(namespace: RunningNamespace) -> None:
    with client_of(namespace, "no-such-hub") as client:
        for call in (client.describe, client.receiver("0").open, lambda: client.sender().send([b"x"])):
            with pytest.raises(ServiceError) as refused:
                call()
            assert refused.value.condition is NOT_FOUND


def test_threads_share_one_client(namespace: RunningNamespace, new_hub: NewHub) -> None:
    with client_of(namespace, new_hub()) as client, ThreadPoolExecutor(8) as pool:
        sender = client.sender()
        assert sum(pool.map(lambda _: sender.send([b"x"]), range(40))) == 40
        assert client.partition("0").last_sequence_number == 39


def test_closed_client_refuses(namespace: RunningNamespace) -> None:
    client = client_of(namespace, "orders")
    client.close()
    client.close()
    with pytest.raises(ServiceError, match="is closed"):
        client.describe()
