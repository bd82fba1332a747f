"""A send that is refused in a transaction: nothing of that transaction is ever done, and its commit says why."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.outcome import Rejected, TransactionalState
from hubweir.amqp.transactions.requests import Discharge
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.errors import UNAUTHORIZED, ServiceError
from hubweir.gateway.amqp.open_transaction import SENT_LIMIT
from hubweir.gateway.amqp.queue_sender_node import QueueSenderNode
from hubweir.gateway.amqp.tests.controller import Controller, send_in, told
from hubweir.gateway.amqp.tests.queue_world import bodies, queue_world
from hubweir.gateway.amqp.tests.world import Peer, World, event

ROLLED_BACK = "amqp:transaction:rollback"


@pytest.fixture
def world() -> World:
    return queue_world()


def test_the_101st_message_is_refused_and_so_is_the_commit_which_says_why(
    peer: Peer, controller: Controller, sender: SenderLink
) -> None:
    txn_id = controller.declare()
    answers = send_in(peer, txn_id, sender, *(b"%d" % number for number in range(SENT_LIMIT + 1)))
    assert answers == ["accepted"] * 100 + ["amqp:resource-limit-exceeded"]
    state = controller.ask(Discharge(txn_id=txn_id))
    assert told(state) == ROLLED_BACK
    assert isinstance(state, Rejected) and state.error is not None
    assert "Can't send more than 100 messages" in str(state.error.description)
    assert bodies(peer) == []


def test_100_messages_can_be_committed(peer: Peer, controller: Controller, sender: SenderLink) -> None:
    txn_id = controller.declare()
    sent = [b"%d" % number for number in range(SENT_LIMIT)]
    assert send_in(peer, txn_id, sender, *sent) == ["accepted"] * 100
    assert controller.commit(txn_id) == "accepted"
    assert bodies(peer) == sent


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("bad", [b"\x00", b"x" * (2 << 20)], ids=["no message", "too large"])
def test_a_refused_send_spoils_the_transaction_whether_or_not_its_sender_is_told(
    peer: Peer, controller: Controller, sender: SenderLink, bad: bytes, settled: bool
) -> None:
    txn_id = controller.declare()
    send_in(peer, txn_id, sender, b"good")
    sender.send(bad, settled=settled, state=TransactionalState(txn_id=txn_id))
    peer.run()
    assert controller.commit(txn_id) == ROLLED_BACK
    assert bodies(peer) == []


@pytest.mark.parametrize("settled", [False, True])
def test_a_send_whose_claim_is_over_spoils_the_transaction(
    peer: Peer, controller: Controller, sender: SenderLink, monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    """Its link is detached for it; the message is in no commit, and who sent it settled is told by that alone."""

    def lapsed(node: QueueSenderNode) -> bool:
        node.host.detach(node, ServiceError(UNAUTHORIZED, "The token is over."))
        return False

    txn_id = controller.declare()
    send_in(peer, txn_id, sender, b"good")
    monkeypatch.setattr(QueueSenderNode, "is_covered", lapsed)
    sender.send(event(b"late"), settled=settled, state=TransactionalState(txn_id=txn_id))
    peer.run()
    assert controller.commit(txn_id) == ROLLED_BACK
    assert bodies(peer) == []
