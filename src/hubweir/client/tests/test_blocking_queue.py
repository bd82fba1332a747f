import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.testing.running_namespace import RunningNamespace

NewQueue = Callable[..., str]
WAIT_S = 30.0


def client_of(namespace: RunningNamespace) -> BlockingQueueClient:
    return BlockingQueueClient.from_connection_string(namespace.connection_string())


def test_a_queue_without_a_loop(namespace: RunningNamespace, new_queue: NewQueue) -> None:
    queue = new_queue()
    with client_of(namespace) as client:
        sender, receiver = client.sender(queue), client.receiver(queue)
        sender.send(b"one", QueueMessage(b"two"))
        run = receiver.receive(1, max_wait_s=WAIT_S)
        assert [message.body for message in run] == [b"one"]
        receiver.complete(run)
        (two,) = receiver.receive(5, max_wait_s=WAIT_S)
        receiver.defer(two)
        (deferred,) = receiver.receive_deferred(two.sequence_number)
        receiver.begin_complete(deferred).result(WAIT_S)
        number = sender.schedule([b"never"], int(time.time() * 1000) + 3_600_000)[0]
        assert receiver.peek(5).sequence_numbers() == [number]
        sender.cancel(number)
        assert sender.send_all([b"a", b"b"]) == 2
        assert receiver.delete(10) == 2
        receiver.close()
        sender.close()
    client.close()


def test_several_threads_share_a_sender_and_have_a_receiver_each(
    namespace: RunningNamespace, new_queue: NewQueue
) -> None:
    queue = new_queue()
    with client_of(namespace) as client, ThreadPoolExecutor(4) as pool:
        sender = client.sender(queue)

        def send(number: int) -> None:
            sender.submit(b"%d" % number).result(WAIT_S)

        list(pool.map(send, range(40)))

        def receive(_: int) -> list[bytes]:
            receiver, bodies = client.receiver(queue), []
            for _ in range(10):
                run = receiver.receive(1, max_wait_s=WAIT_S)
                bodies += run.bodies()
                receiver.complete(run)
            return bodies

        found = [body for bodies in pool.map(receive, range(4)) for body in bodies]
        assert sorted(found, key=int) == [b"%d" % number for number in range(40)]


def test_a_session_without_a_loop(namespace: RunningNamespace, new_queue: NewQueue) -> None:
    queue = new_queue(requires_session=True)
    with client_of(namespace) as client:
        client.sender(queue).send(QueueMessage(b"x", session_id="s"))
        assert client.sessions(queue) == ["s"]
        session = client.accept_session(queue, max_wait_s=WAIT_S)
        assert session.session_id == "s"
        assert session.lost is None
        session.set_state(b"1")
        assert session.state() == b"1"
        assert session.renew_session() == session.locked_until_ms
        session.complete(session.receive(max_wait_s=WAIT_S))
        session.close()
