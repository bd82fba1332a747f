"""python-qpid-proton in transactions: the library's own control link, transactional states and discharges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import Doors
from tests.conformance.test_proton import WAIT_S, connect
from tests.conformance.test_proton import tls as tls  # a fixture

proton = pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")
from proton import Delivery, Message  # noqa: E402  # only where the library is
from proton.handlers import TransactionHandler  # noqa: E402
from proton.reactor import SenderOption  # noqa: E402

from tests.conformance.test_proton_queues import answer, is_quiet, receiver, send, take  # noqa: E402

Make = Callable[..., str]
pytestmark = [pytest.mark.conformance, pytest.mark.feature("transactions")]
TRANSACTIONAL_STATE = 0x34


@pytest.fixture
def connection(doors: Doors, tls: bool) -> Any:
    connection = connect(doors, tls)
    yield connection
    connection.close()


class SenderProperties(SenderOption):  # type: ignore[misc]
    """The properties of a link."""

    def __init__(self, properties: dict[Any, str]) -> None:
        self.properties = properties

    def apply(self, sender: Any) -> None:
        sender.properties = self.properties


class Told(TransactionHandler):  # type: ignore[misc]  # the library has no types
    """What the library told of transactions: a word for each, with the condition where the service refused."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def on_transaction_declared(self, event: Any) -> None:
        self.words.append("declared")

    def on_transaction_committed(self, event: Any) -> None:
        self.words.append("committed")

    def on_transaction_aborted(self, event: Any) -> None:
        self.words.append("aborted")

    def on_transaction_commit_failed(self, event: Any) -> None:
        self.words.append(event.delivery.remote.condition.name)


class Transacting:
    """A transaction of a connection, declared by the library."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.told = connection, Told()
        self.inner = connection.container.declare_transaction(connection.conn, self.told)
        self._next("declared")

    def send(self, queue: str, body: str, *, options: Any = None) -> Any:
        """Send a message in it; how the service answered. options: of the link."""
        sender = self.connection.create_sender(queue, options=options)
        delivery = self.inner.send(sender.link, Message(body=body))
        self.connection.wait(lambda: delivery.settled, timeout=WAIT_S, msg="the answer to a send")
        return self._state_of(delivery)

    def accept(self, delivery: Delivery) -> Any:
        """Accept a message in it; how the service answered."""
        self.inner.accept(delivery)
        self.connection.wait(lambda: delivery.settled, timeout=WAIT_S, msg="the answer to an outcome")
        return self._state_of(delivery)

    def commit(self, word: str = "committed") -> None:
        self.inner.commit()
        self._next(word)

    def abort(self) -> None:
        self.inner.abort()
        self._next("aborted")

    def _next(self, word: str) -> None:
        before = len(self.told.words)
        self.connection.wait(lambda: len(self.told.words) > before, timeout=WAIT_S, msg=f"to be {word}")
        assert self.told.words[before:] == [word]

    def _state_of(self, delivery: Delivery) -> Any:
        """The outcome in the transactional state that answered; of another state its number."""
        if int(delivery.remote_state) != TRANSACTIONAL_STATE:
            return int(delivery.remote_state)
        txn_id, outcome = delivery.remote.data
        assert txn_id == self.inner.id
        return int(outcome.descriptor)


@pytest.mark.sb(113, 114)
def test_a_send_and_an_acceptance_are_committed(connection: Any, queue: str) -> None:
    send(connection, queue, Message(body="request"))
    [(_, request)] = take(receiver(connection, queue, 1), 1)
    transaction = Transacting(connection)
    assert transaction.send(queue, "answer") == Delivery.ACCEPTED
    assert transaction.accept(request) == Delivery.ACCEPTED
    waiting = receiver(connection, queue, 2)
    assert is_quiet(waiting)
    transaction.commit()
    [(got, delivery)] = take(waiting, 1)
    assert got.body == "answer"
    assert answer(connection, delivery, Delivery.ACCEPTED) == Delivery.ACCEPTED
    assert is_quiet(waiting)


@pytest.mark.sb(113, 114)
def test_a_send_and_an_acceptance_are_rolled_back(connection: Any, make_queue: Make) -> None:
    queue = make_queue(lock_duration_ms=5_000)
    send(connection, queue, Message(body="request"))
    [(_, request)] = take(receiver(connection, queue, 1), 1)
    transaction = Transacting(connection)
    assert transaction.send(queue, "answer") == Delivery.ACCEPTED
    assert transaction.accept(request) == Delivery.ACCEPTED
    transaction.abort()
    waiting = receiver(connection, queue, 2)
    assert is_quiet(waiting)  # the lock goes on, though the library releases what it had accepted
    [(got, delivery)] = take(waiting, 1)
    assert (got.body, got.delivery_count) == ("request", 1)
    second = Transacting(connection)
    assert second.accept(delivery) == Delivery.ACCEPTED
    second.commit()
    assert is_quiet(waiting)


@pytest.mark.sb(116)
def test_an_id_that_is_over_is_unknown(connection: Any, queue: str) -> None:
    transaction = Transacting(connection)
    transaction.commit()
    assert transaction.send(queue, "late") == Delivery.REJECTED
    transaction.commit("amqp:transaction:unknown-id")
    assert is_quiet(receiver(connection, queue, 1))


@pytest.mark.sb(117)
def test_what_goes_by_way_of_a_queue_arrives_with_the_commit(connection: Any, make_queue: Make) -> None:
    between, destination = make_queue(), make_queue()
    send(connection, between, Message(body="request"))
    [(_, request)] = take(receiver(connection, between, 1), 1)
    transaction = Transacting(connection)
    way = {proton.symbol("com.microsoft:transfer-destination-address"): destination}
    assert transaction.send(between, "answer", options=SenderProperties(way)) == Delivery.ACCEPTED
    assert transaction.accept(request) == Delivery.ACCEPTED
    waiting = receiver(connection, destination, 1)
    assert is_quiet(waiting)
    transaction.commit()
    [(got, delivery)] = take(waiting, 1)
    assert got.body == "answer"
    assert answer(connection, delivery, Delivery.ACCEPTED) == Delivery.ACCEPTED
    assert is_quiet(receiver(connection, between, 1))
