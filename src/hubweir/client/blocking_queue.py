"""Queues for code without an event loop: the same objects, each call waits for its result.

    with BlockingQueueClient.from_connection_string(text) as client:
        client.sender("orders").send(b"one")
        receiver = client.receiver("orders")
        for message in receiver.receive(10, max_wait_s=5):
            print(message.sequence_number, message.body)
            receiver.complete(message)

One client has one loop on one thread. Its objects may be used from any number of threads; `receive` of one receiver by
one at a time. What the calls take, mean and raise is told where the coroutines are: queue_client.py and what it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hubweir.client.connection import DEFAULT_TIMEOUT_S
from hubweir.client.loop_calls import BlockingClient, BlockingFace, beginning, waiting
from hubweir.client.loop_thread import LoopThread
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_receiver import PLAIN, QueueReceiver, QueueReceiverOptions
from hubweir.client.queue_sender import QueueSender
from hubweir.client.queue_transaction import QueueTransaction
from hubweir.client.retry import RetryPolicy
from hubweir.client.session_receiver import SessionReceiver
from hubweir.errors import ServiceError


class BlockingQueueSender(BlockingFace[QueueSender]):
    """A QueueSender whose calls wait. submit: `send` without waiting; several may be on their way."""

    send = waiting(QueueSender.send)
    submit = beginning(QueueSender.send)
    send_all = waiting(QueueSender.send_all)
    schedule = waiting(QueueSender.schedule)
    cancel = waiting(QueueSender.cancel)
    close = waiting(QueueSender.close)


class BlockingQueueReceiver(BlockingFace[QueueReceiver]):
    """A QueueReceiver whose calls wait. begin_complete: a `complete` that nobody has to wait for at once."""

    receive = waiting(QueueReceiver.receive)
    complete = waiting(QueueReceiver.complete)
    begin_complete = beginning(QueueReceiver.complete)
    abandon = waiting(QueueReceiver.abandon)
    defer = waiting(QueueReceiver.defer)
    dead_letter = waiting(QueueReceiver.dead_letter)
    release = waiting(QueueReceiver.release)
    renew = waiting(QueueReceiver.renew)
    receive_deferred = waiting(QueueReceiver.receive_deferred)
    peek = waiting(QueueReceiver.peek)
    delete = waiting(QueueReceiver.delete)
    close = waiting(QueueReceiver.close)


class BlockingSessionReceiver(BlockingQueueReceiver):
    """A SessionReceiver whose calls wait."""

    def __init__(self, thread: LoopThread, inner: SessionReceiver) -> None:
        super().__init__(thread, inner)
        self._session = inner

    @property
    def session_id(self) -> str:
        return self._session.session_id

    @property
    def locked_until_ms(self) -> int:
        """As told by the attach, or by the last renew_session."""
        return self._session.locked_until_ms

    @property
    def lost(self) -> ServiceError | None:
        """Why its link has ended, and the lock with it; None: as far as is known it holds."""
        return self._session.lost

    def renew_session(self) -> int:
        """Lock the session anew; when the lock ends now (ms since 1970)."""
        return self.thread.run(self._session.renew_session())

    def state(self) -> bytes | None:
        """What was last set as the session's state; None: nothing."""
        return self.thread.run(self._session.state())

    def set_state(self, state: bytes | None) -> None:
        """Keep these bytes with the session; None: no more."""
        self.thread.run(self._session.set_state(state))


class BlockingQueueClient(BlockingClient[QueueClient]):
    """A QueueClient whose calls wait."""

    sessions = waiting(QueueClient.sessions)

    def __init__(self, client: QueueClient) -> None:
        """client: not used anywhere else, from now on."""
        super().__init__(client, client.target.host)

    @classmethod
    def from_connection_string(
        cls,
        text: str,
        *,
        ca_file: Path | str | None = None,
        retry: RetryPolicy | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> BlockingQueueClient:
        """See QueueClient.from_connection_string."""
        return cls(QueueClient.from_connection_string(text, ca_file=ca_file, retry=retry, timeout_s=timeout_s))

    def sender(self, queue: str | None = None, *, resend_unknown: bool = True) -> BlockingQueueSender:
        """Sends to a queue or a topic."""
        return BlockingQueueSender(self.thread, self.inner.sender(queue, resend_unknown=resend_unknown))

    def receiver(self, queue: str | None = None, options: QueueReceiverOptions = PLAIN) -> BlockingQueueReceiver:
        """Receives from a queue or a sub-queue."""
        return BlockingQueueReceiver(self.thread, self.inner.receiver(queue, options))

    @contextmanager
    def transaction(self) -> Iterator[QueueTransaction]:
        """See QueueClient.transaction: `with client.transaction() as transaction`."""
        made = self.inner.transaction()
        transaction = self.thread.run(made.__aenter__())
        try:
            yield transaction
        except BaseException as error:
            self.thread.run(made.__aexit__(type(error), error, error.__traceback__))
            raise
        self.thread.run(made.__aexit__(None, None, None))

    def accept_session(
        self,
        queue: str | None = None,
        session_id: str | None = None,
        options: QueueReceiverOptions = PLAIN,
        *,
        max_wait_s: float = 60.0,
    ) -> BlockingSessionReceiver:
        """Lock a session; see QueueClient.accept_session."""
        made = self.thread.run(self.inner.accept_session(queue, session_id, options, max_wait_s=max_wait_s))
        return BlockingSessionReceiver(self.thread, made)
