"""python-qpid-proton on queues: an AMQP 1.0 library that knows nothing of Service Bus, over SASL PLAIN."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.conftest import Doors

proton = pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")
from proton import Message  # noqa: E402  # only where the library is
from proton.utils import BlockingConnection, LinkDetached  # noqa: E402

WAIT_S = 10.0
pytestmark = [pytest.mark.conformance, pytest.mark.client("python-qpid-proton, plain")]


def connect(doors: Doors) -> Any:
    return BlockingConnection(
        f"amqp://{doors.host}:{doors.port}",
        timeout=WAIT_S,
        user="RootManageSharedAccessKey",
        password="SAS_KEY_VALUE",
        allowed_mechs="PLAIN",
        sasl_enabled=True,
        allow_insecure_mechs=True,
    )


@pytest.mark.sb(2, 50, 57)
@pytest.mark.feature("settle")
def test_messages_are_sent_received_accepted_and_released(doors: Doors, queue: str) -> None:
    connection = connect(doors)
    sender = connection.create_sender(queue)
    for number in range(3):
        sender.send(Message(body=f"{number}", id=f"id {number}", subject="s", properties={"n": number}))
    receiver = connection.create_receiver(queue)  # it asks for one message in each receive, and for no other
    first = receiver.receive(timeout=WAIT_S)
    assert (first.body, first.id, first.subject, first.properties) == ("0", "id 0", "s", {"n": 0})
    assert first.delivery_count == 0
    receiver.release(delivered=False)
    assert receiver.receive(timeout=WAIT_S).body == "0"
    for number in range(1, 3):
        receiver.accept()
        assert receiver.receive(timeout=WAIT_S).body == f"{number}"
    receiver.accept()
    connection.close()


@pytest.mark.sb(53)
@pytest.mark.feature("dead letters")
def test_a_rejected_message_is_a_dead_letter(doors: Doors, queue: str) -> None:
    connection = connect(doors)
    connection.create_sender(queue).send(Message(body="bad"))
    receiver = connection.create_receiver(queue, credit=1)
    receiver.receive(timeout=WAIT_S)
    receiver.reject()
    dead = connection.create_receiver(f"{queue}/$DeadLetterQueue", credit=1)
    assert dead.receive(timeout=WAIT_S).body == "bad"
    connection.close()


@pytest.mark.sb(23)
@pytest.mark.feature("errors")
def test_a_missing_queue_is_not_found(doors: Doors) -> None:
    connection = connect(doors)
    with pytest.raises(LinkDetached, match="amqp:not-found"):
        connection.create_receiver("nowhere")
    connection.close()
