"""The official Python client of queues, blocking: message sessions, their locks and their state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage
from azure.servicebus.exceptions import (
    OperationTimeoutError,
    ServiceBusError,
    SessionCannotBeLockedError,
    SessionLockLostError,
)

from tests.conformance.conftest import Doors
from tests.conformance.ordinary_pace import OrdinaryPace
from tests.conformance.servicebus_python import (
    LOCK_MS,
    WAIT_S,
    connected,
    is_empty,
    now,
    receive,
    receive_one,
    sender_to,
    texts,
)

PLAIN, TLS = "azure-servicebus, blocking, plain", "azure-servicebus, blocking, TLS"
pytestmark = [pytest.mark.conformance, pytest.mark.client(PLAIN), pytest.mark.feature("sessions")]
BOTH = pytest.mark.parametrize(
    "tls",
    [pytest.param(False, id="plain"), pytest.param(True, id="tls", marks=pytest.mark.client(TLS))],
)
Make = Callable[..., str]


def of(session_id: str, *bodies: str) -> list[ServiceBusMessage]:
    return [ServiceBusMessage(body, session_id=session_id) for body in bodies]


@pytest.fixture
def queue(make_queue: Make) -> str:
    return make_queue(requires_session=True)


@pytest.mark.both_ways
@BOTH
@pytest.mark.sb(22, 74, 79, 80, 86)
def test_a_named_session_is_received_in_order(doors: Doors, queue: str, tls: bool) -> None:
    with connected(doors, tls=tls) as client:
        with client.get_queue_receiver(queue, session_id="empty") as receiver:
            assert receiver.session.session_id == "empty"
            assert is_empty(receiver)
        with sender_to(client, queue) as sender:
            for body in "123":
                sender.send_messages(of("a", f"a{body}"))
                sender.send_messages(of("b", f"b{body}"))
            sender.send_messages(ServiceBusMessage("a4", session_id="a", partition_key="a"))
        with client.get_queue_receiver(queue, session_id="a") as receiver:
            until = receiver.session.locked_until_utc
            assert timedelta(seconds=50) < until - now() <= timedelta(seconds=60)
            first = receive_one(receiver)
            assert (str(first), first.session_id, first.locked_until_utc) == ("a1", "a", None)
            assert first.partition_key is None
            receiver.abandon_message(first)
            got = receive(receiver, 4)
            assert texts(got) == ["a1", "a2", "a3", "a4"]
            assert [message.delivery_count for message in got] == [1, 0, 0, 0]
            assert got[3].partition_key == "a"
            for message in got:
                receiver.complete_message(message)
            assert is_empty(receiver)


@pytest.mark.both_ways
@pytest.mark.sb(75, 78)
def test_the_next_free_session_goes_to_who_asks(doors: Doors, queue: str) -> None:
    with connected(doors) as client:
        with sender_to(client, queue) as sender:
            sender.send_messages([*of("first", "1"), *of("second", "2")])
        with (
            client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5) as one,
            client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5) as two,
        ):
            assert (one.session.session_id, two.session.session_id) == ("first", "second")
            assert (str(receive_one(one)), str(receive_one(two))) == ("1", "2")
            with (
                pytest.raises(SessionCannotBeLockedError),
                client.get_queue_receiver(queue, session_id="first") as third,
            ):
                third.receive_messages(max_wait_time=1)


@pytest.mark.both_ways
@pytest.mark.sb(77)
def test_who_waits_for_a_session_in_vain_hears_so_at_the_time_that_it_asked_for(
    doors: Doors, queue: str, make_queue: Make
) -> None:
    """Three seconds, of the minute that it would wait by itself. This client asks for up to 50 ms less."""
    with connected(doors) as client, ordinary_holds(doors, make_queue) as pace:
        begin = time.monotonic()
        with (
            pytest.raises(OperationTimeoutError),
            client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=3) as receiver,
        ):
            receiver.receive_messages(max_wait_time=1)
        took_s = time.monotonic() - begin
    assert 2.7 < took_s < 3.3 + 2 * pace.slowest_s


@pytest.mark.sb(75, 93)
def test_who_waits_gets_the_session_whose_message_comes(doors: Doors, queue: str, make_queue: Make) -> None:
    with connected(doors) as client, sender_to(client, queue) as sender, ordinary_holds(doors, make_queue) as pace:
        due = now().replace(microsecond=0) + timedelta(seconds=3)
        sender.schedule_messages(of("late", "x")[0], due)
        with client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=WAIT_S) as receiver:
            assert receiver.session.session_id == "late"
            assert due - timedelta(milliseconds=50) <= now()
            message = receive_one(receiver)
            late_s = (now() - due).total_seconds()
            assert (str(message), message.enqueued_time_utc.replace(microsecond=0)) == ("x", due)
    assert late_s < 1 + 2 * pace.slowest_s


@contextmanager
def ordinary_holds(doors: Doors, make_queue: Make) -> Iterator[OrdinaryPace]:
    """How long it takes to open and close a receiver that need not wait, of a queue of its own."""
    queue = make_queue(requires_session=True)
    with connected(doors) as client:

        def hold() -> None:
            with client.get_queue_receiver(queue, session_id="another"):
                pass

        with OrdinaryPace(hold) as pace:
            yield pace


@pytest.mark.sb(81, 82)
def test_a_session_lock_that_ends_is_lost_and_a_renewed_one_is_not(doors: Doors, make_queue: Make) -> None:
    queue = make_queue(requires_session=True, lock_duration_ms=LOCK_MS)
    with connected(doors) as client:
        with sender_to(client, queue) as sender:
            sender.send_messages([*of("lost", "1", "2"), *of("kept", "3")])
        with (
            client.get_queue_receiver(queue, session_id="lost") as losing,
            client.get_queue_receiver(queue, session_id="kept") as keeping,
        ):
            old, kept = receive_one(losing), receive_one(keeping)
            ends = losing.session.locked_until_utc + timedelta(seconds=1)
            while now() < ends:
                until = keeping.session.locked_until_utc
                assert keeping.session.renew_lock() > until
                time.sleep(0.5)
            with client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=WAIT_S) as next_one:
                assert next_one.session.session_id == "lost"
                got = receive(next_one, 2)
                assert [(str(message), message.delivery_count) for message in got] == [("1", 1), ("2", 0)]
                with pytest.raises(SessionLockLostError):
                    losing.complete_message(old)
                with pytest.raises(SessionLockLostError):
                    losing.session.renew_lock()
                for message in got:
                    next_one.complete_message(message)
            keeping.complete_message(kept)


@pytest.mark.both_ways
@pytest.mark.sb(83)
@pytest.mark.feature("session state")
def test_the_state_of_a_session_is_kept_and_cleared(doors: Doors, queue: str) -> None:
    with connected(doors) as client:
        with client.get_queue_receiver(queue, session_id="s") as receiver:
            assert receiver.session.get_state() is None
            receiver.session.set_state("état")
            assert receiver.session.get_state() == "état".encode()
        with client.get_queue_receiver(queue, session_id="s") as receiver:
            assert receiver.session.get_state() == "état".encode()
            receiver.session.set_state(b"\0" * 1000)
            assert receiver.session.get_state() == b"\0" * 1000
            receiver.session.set_state(None)
            assert receiver.session.get_state() is None


@pytest.mark.sb(84, 85)
def test_sessions_are_listed(doors: Doors, queue: str) -> None:
    with connected(doors) as client:
        assert list(client.list_queue_sessions(queue)) == []
        ids = [f"{number:03}" for number in range(121)]
        with sender_to(client, queue) as sender:
            for session_id in ids[:-1]:
                sender.send_messages(of(session_id, "x"))
        before = now()
        time.sleep(0.01)
        with client.get_queue_receiver(queue, session_id=ids[-1]) as receiver:
            receiver.session.set_state("only a state")
        assert sorted(client.list_queue_sessions(queue)) == ids
        assert list(client.list_queue_sessions(queue, state_updated_after=before)) == ids[-1:]
        assert list(client.list_queue_sessions(queue, state_updated_after=now() + timedelta(hours=1))) == []


@pytest.mark.sb(52, 80, 95)
@pytest.mark.feature("deferred")
def test_deferred_messages_of_a_session_are_received_by_number(doors: Doors, queue: str) -> None:
    with connected(doors) as client:
        with sender_to(client, queue) as sender:
            sender.send_messages([*of("s", "1", "2"), *of("other", "3")])
        with client.get_queue_receiver(queue, session_id="s") as receiver:
            deferred = receive_one(receiver)
            receiver.defer_message(deferred)
            assert str(receive_one(receiver)) == "2"
            assert texts(receiver.peek_messages(5, sequence_number=1)) == ["1", "2"]
            [message] = receiver.receive_deferred_messages(deferred.sequence_number)
            assert (str(message), message.session_id) == ("1", "s")
            receiver.complete_message(message)


@pytest.mark.sb(70)
@pytest.mark.feature("dead letters")
def test_dead_letters_of_sessions_are_received_without_one(doors: Doors, queue: str) -> None:
    with connected(doors) as client:
        with sender_to(client, queue) as sender:
            sender.send_messages(of("s", "1"))
        with client.get_queue_receiver(queue, session_id="s") as receiver:
            receiver.dead_letter_message(receive_one(receiver), reason="bad")
        with client.get_queue_receiver(queue, sub_queue="deadletter") as dead:
            message = receive_one(dead)
            assert (message.session_id, message.dead_letter_reason) == ("s", "bad")
            dead.complete_message(message)


@pytest.mark.sb(169)
@pytest.mark.feature("errors")
def test_a_session_id_that_is_no_text_is_refused(doors: Doors, queue: str) -> None:
    with (
        connected(doors) as client,
        pytest.raises(ServiceBusError),
        client.get_queue_receiver(queue, session_id=1) as receiver,  # type: ignore[arg-type]  # what is tried
    ):
        receiver.receive_messages(max_wait_time=1)
