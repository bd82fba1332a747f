"""A peer that controls transactions: a control link, and what is done in a transaction over other links."""

from __future__ import annotations

from typing import Any

from hubweir.amqp.messaging.message import encode_message
from hubweir.amqp.messaging.outcome import Accepted, Declared, DeliveryState, Outcome, Rejected, TransactionalState
from hubweir.amqp.messaging.terminus import Coordinator, Source
from hubweir.amqp.transactions.requests import Declare, Discharge, Request, message_of
from hubweir.amqp.transport.events import Settled
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.gateway.amqp.tests.queue_world import settle
from hubweir.gateway.amqp.tests.world import Peer, event


class Controller:
    """One control link of a peer."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.link: SenderLink = peer.session().attach_sender(
            peer.name("control"), source=Source(address="controller"), target=Coordinator()
        )
        peer.run()

    def ask(self, request: Request, *, wait_ms: int = 50) -> DeliveryState | None:
        """The state with which a request was answered; None: it was not."""
        return state_of(self.peer, self.link, encode_message(message_of(request)), wait_ms=wait_ms)

    def declare(self) -> bytes:
        answer = self.ask(Declare())
        assert isinstance(answer, Declared), answer
        return answer.txn_id

    def commit(self, txn_id: bytes, *, wait_ms: int = 50) -> str:
        """As `told`."""
        return told(self.ask(Discharge(txn_id=txn_id, fail=False), wait_ms=wait_ms))

    def roll_back(self, txn_id: bytes) -> str:
        return told(self.ask(Discharge(txn_id=txn_id, fail=True)))


def told(state: Any) -> str:
    """ "accepted", or the condition of a rejection; "" for no answer."""
    if isinstance(state, TransactionalState):
        state = state.outcome
    if isinstance(state, Rejected):
        return str(state.error.condition) if state.error is not None else "rejected"
    return {type(None): "", Accepted: "accepted"}.get(type(state), type(state).__name__)


def state_of(peer: Peer, link: SenderLink, payload: bytes, *, wait_ms: int = 50, **named: Any) -> DeliveryState | None:
    """Send a delivery; with which state it was answered."""
    delivery_id = link.send(payload, settled=False, **named)
    peer.run(wait_ms)
    for each in peer.side.events:
        if isinstance(each, Settled) and each.link is link and each.first_id <= delivery_id <= each.last_id:
            return each.outcome
    return None


def send_in(peer: Peer, txn_id: bytes, link: SenderLink, *bodies: bytes, **sections: Any) -> list[str]:
    """Send messages in a transaction; how each was answered."""
    state = TransactionalState(txn_id=txn_id)
    return [told(state_of(peer, link, event(body, **sections), state=state)) for body in bodies]


def settle_in(peer: Peer, txn_id: bytes, link: ReceiverLink, delivery_id: int, outcome: Outcome) -> Any:
    """Settle a delivery in a transaction, and wait for the answer; its state."""
    [(_, _, state)] = settle(peer, link, delivery_id, delivery_id, TransactionalState(txn_id=txn_id, outcome=outcome))
    return state
