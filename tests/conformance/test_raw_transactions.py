"""Transactions frame by frame: what is done between declare and discharge shows at the commit, or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hubweir.amqp.messaging.message import DataBody, encode_message
from hubweir.amqp.messaging.outcome import Accepted, Declared, Rejected, TransactionalState
from hubweir.amqp.messaging.terminus import Coordinator, Source
from hubweir.amqp.transactions.requests import Declare, Discharge, Request, message_of
from hubweir.amqp.transport.performatives import Attach, Detach, Flow, Transfer
from hubweir.amqp.types.values import Symbol
from hubweir.gateway.amqp import transactions
from hubweir.namespace.entity import Availability
from hubweir.testing.frames import frame
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import NothingCame, RawClient
from tests.conformance.test_raw_queues import DELETE, LOCK, delivery, message, refusal, send, settle

Make = Callable[..., str]
pytestmark = pytest.mark.conformance
GUID = "0123456789abcdef0123456789abcdef"
UNKNOWN = "amqp:transaction:unknown-id"
VIA = Symbol("com.microsoft:transfer-destination-address")
TRANSACTION_S = 120


@pytest.fixture
def client(doors: Doors) -> Iterator[RawClient]:
    with doors.raw() as client:
        yield client.trusted()


def control(client: RawClient, name: str = GUID) -> int:
    """A link to the coordinator, as official clients attach it; its handle."""
    handle = client.attach("", sends=True, name=name, source=Source(address=name), target=Coordinator())
    answer = client.expect(Attach)
    assert isinstance(answer.target, Coordinator) and answer.source.address == name
    client.expect(Flow, where=lambda flow: flow.handle == answer.handle)
    return handle


def ask(client: RawClient, handle: int, request: Request) -> Any:
    """The state with which the coordinator answers."""
    answer = client.publish(handle, encode_message(message_of(request)))
    assert answer.settled
    return answer.state


def declare(client: RawClient, handle: int) -> bytes:
    state = ask(client, handle, Declare())
    assert isinstance(state, Declared)
    assert 0 < len(state.txn_id) <= 32
    return state.txn_id


def bodies(client: RawClient, queue: str) -> list[bytes]:
    """Receive and delete what is there."""
    receiver = client.receiver(queue, credit=200, **DELETE)
    found: list[bytes] = []
    try:
        while True:
            [came] = client.messages(1, seconds=0.5)
            assert isinstance(came.body, DataBody)
            found.append(bytes(came.body.parts[0]))
    except NothingCame:
        pass
    client.write(frame(Detach(handle=receiver, closed=True)))
    client.expect(Detach)
    return found


@pytest.mark.sb(113)
def test_a_transaction_is_declared_and_discharged(client: RawClient) -> None:
    handle = control(client)
    first, second = declare(client, handle), declare(client, handle)
    assert first != second
    assert ask(client, handle, Discharge(txn_id=first)) == Accepted()
    assert ask(client, handle, Discharge(txn_id=second, fail=True)) == Accepted()


@pytest.mark.sb(114)
@pytest.mark.parametrize("fail", [False, True])
def test_a_send_and_a_completion_show_at_the_commit_or_not_at_all(
    client: RawClient, make_queue: Make, fail: bool
) -> None:
    queue = make_queue()
    send(client, queue, message(b"request"))
    receiver = client.receiver(queue, credit=1, **LOCK)
    came = delivery(client)
    handle = control(client)
    txn_id = declare(client, handle)
    done = settle(client, came, TransactionalState(txn_id=txn_id, outcome=Accepted()))
    assert done == TransactionalState(txn_id=txn_id, outcome=Accepted())
    sender = client.sender(queue)
    sent = client.publish(sender, message(b"answer"), state=TransactionalState(txn_id=txn_id)).state
    assert sent == TransactionalState(txn_id=txn_id, outcome=Accepted())
    client.grant(receiver, 1, delivery_count=1)
    assert client.none_of(Transfer)
    assert ask(client, handle, Discharge(txn_id=txn_id, fail=fail)) == Accepted()
    if fail:
        assert client.none_of(Transfer)  # nothing was sent, and the lock goes on
    else:
        assert delivery(client).payload.endswith(b"answer")


@pytest.mark.sb(115)
def test_the_101st_message_and_the_commit_behind_it_are_refused(client: RawClient, make_queue: Make) -> None:
    queue = make_queue()
    handle, sender = control(client), client.sender(queue)
    state = TransactionalState(txn_id=declare(client, handle))
    for number in range(100):
        assert client.publish(sender, message(b"%d" % number), state=state).state.outcome == Accepted()
    refused = client.publish(sender, message(b"100"), state=state).state
    assert refusal(refused) == "amqp:resource-limit-exceeded"
    assert "Can't send more than 100 messages in a single transaction" in refused.error.description
    rejected = ask(client, handle, Discharge(txn_id=state.txn_id))
    assert refusal(rejected) == "amqp:transaction:rollback"
    assert "Can't send more than 100 messages in a single transaction" in rejected.error.description
    assert bodies(client, queue) == []


@pytest.mark.one_process("it gives the gateway a shorter span")
@pytest.mark.sb(115)
@pytest.mark.timeout(TRANSACTION_S + 60)
def test_two_minutes_behind_its_first_operation_a_transaction_is_rolled_back(
    client: RawClient, make_queue: Make, measure: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --all after the two minutes, else after the shorter span that the gateway is given."""
    assert transactions.TRANSACTION_MS == TRANSACTION_S * 1_000
    span_s = TRANSACTION_S if measure(2) == 2 else 2
    monkeypatch.setattr(transactions, "TRANSACTION_MS", span_s * 1_000)
    queue = make_queue()
    handle, sender = control(client), client.sender(queue)
    state = TransactionalState(txn_id=declare(client, handle))
    client.publish(sender, message(b"a"), state=state)
    time.sleep(span_s + 1)  # of the service's own clock
    assert refusal(client.publish(sender, message(b"b"), state=state).state) == "amqp:transaction:timeout"
    assert refusal(ask(client, handle, Discharge(txn_id=state.txn_id))) == "amqp:transaction:timeout"
    assert bodies(client, queue) == []


@pytest.mark.sb(116)
def test_the_end_of_the_connection_or_of_the_control_link_rolls_back(doors: Doors, make_queue: Make) -> None:
    queue = make_queue()
    with doors.raw() as first:
        first.trusted()
        txn_id = declare(first, control(first))
        first.publish(first.sender(queue), message(b"lost"), state=TransactionalState(txn_id=txn_id))
    with doors.raw() as second:
        second.trusted()
        handle = control(second)
        state = TransactionalState(txn_id=declare(second, handle))
        sender = second.sender(queue)
        second.publish(sender, message(b"lost, too"), state=state)
        second.write(frame(Detach(handle=handle, closed=True)))
        second.expect(Detach)
        assert refusal(second.publish(sender, message(b"late"), state=state).state) == UNKNOWN
        assert bodies(second, queue) == []


@pytest.mark.sb(116)
def test_an_unknown_id_is_told(client: RawClient, make_queue: Make, doors: Doors) -> None:
    queue = make_queue()
    send(client, queue, message(b"a"))
    handle, sender = control(client), client.sender(queue)
    client.receiver(queue, credit=1, **LOCK)
    came = delivery(client)
    with doors.raw() as other:
        other.trusted()
        theirs = declare(other, control(other))
        for txn_id in (b"never", theirs):
            state = TransactionalState(txn_id=txn_id)
            assert refusal(client.publish(sender, message(b"x"), state=state).state) == UNKNOWN
            assert refusal(ask(client, handle, Discharge(txn_id=txn_id))) == UNKNOWN
    assert refusal(settle(client, came, TransactionalState(txn_id=b"never", outcome=Accepted()))) == UNKNOWN
    assert isinstance(ask(client, handle, Discharge(txn_id=b"never", fail=True)), Rejected)


@pytest.mark.sb(114)
@pytest.mark.parametrize("fail", [False, True])
def test_what_is_received_from_one_queue_is_sent_to_two_others_at_the_commit_or_not_at_all(
    client: RawClient, make_queue: Make, fail: bool
) -> None:
    requests, answers, notices = make_queue(), make_queue(), make_queue()
    send(client, requests, message(b"request"))
    client.receiver(requests, credit=1, **LOCK)
    came = delivery(client)
    handle = control(client)
    state = TransactionalState(txn_id=declare(client, handle))
    settle(client, came, TransactionalState(txn_id=state.txn_id, outcome=Accepted()))
    for queue, body in ((answers, b"answer"), (notices, b"notice")):
        assert client.publish(client.sender(queue), message(body), state=state).state.outcome == Accepted()
    assert bodies(client, answers) == bodies(client, notices) == []
    assert ask(client, handle, Discharge(txn_id=state.txn_id, fail=fail)) == Accepted()
    assert (bodies(client, answers), bodies(client, notices)) == (([], []) if fail else ([b"answer"], [b"notice"]))
    assert bodies(client, requests) == []  # completed, or locked still


@pytest.mark.sb(117)
@pytest.mark.parametrize("is_on", [True, False])
def test_what_is_sent_by_way_of_a_queue_arrives_with_the_commit_or_is_left_there(
    doors: Doors, client: RawClient, make_queue: Make, is_on: bool
) -> None:
    between, destination = make_queue(), make_queue()
    send(client, between, message(b"request"))
    client.receiver(between, credit=1, **LOCK)
    came = delivery(client)
    handle = control(client)
    state = TransactionalState(txn_id=declare(client, handle))
    settle(client, came, TransactionalState(txn_id=state.txn_id, outcome=Accepted()))
    sender = client.sender(between, properties={VIA: destination})
    assert client.publish(sender, message(b"answer"), state=state).state.outcome == Accepted()
    assert bodies(client, destination) == []
    if not is_on:
        doors.namespace.change_queue(destination, availability=Availability.SEND_DISABLED)
    assert ask(client, handle, Discharge(txn_id=state.txn_id)) == Accepted()
    left = f"{between}/$Transfer/$DeadLetterQueue"
    found = {"at the destination": bodies(client, destination), "left": bodies(client, left)}
    expected = (
        {"at the destination": [b"answer"], "left": []} if is_on else {"at the destination": [], "left": [b"answer"]}
    )
    assert found == expected
    assert bodies(client, between) == []


@pytest.mark.sb(117)
def test_no_link_goes_by_way_of_a_queue_to_one_that_is_not_there(client: RawClient, queue: str) -> None:
    error = client.refused(queue, sends=True, properties={VIA: "nowhere"})
    assert str(error.condition) == "amqp:not-found"
