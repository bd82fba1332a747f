"""A world with queues, for the tests of their nodes: what is made, sent, received, settled and asked there."""

from __future__ import annotations

from array import array
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from hubweir.amqp.messaging.message import DataBody, Message, Properties, ValueBody, decode_message
from hubweir.amqp.messaging.outcome import DeliveryState, TransactionalState
from hubweir.amqp.transport.performatives import Attach, Disposition, Flow, Transfer
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.broker.commands.fragment import AskFragmentInfo, FragmentInfo, MessagesReceived, PeekMessages
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_RECORD
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.iso_duration import WrittenDuration
from hubweir.namespace.queue_description import QueueDescription
from hubweir.queue.sub_queue import SubQueue
from hubweir.testing.frames import written

LOCK_MS = 10_000
PEEK_LOCK, RECEIVE_AND_DELETE = {"rcv_settle_mode": 1}, {"snd_settle_mode": 1}


def queue_world(**delivery: Any) -> World:
    """A world with the queue `orders`, whose locks last LOCK_MS."""
    world = World()
    lock_duration = WrittenDuration(LOCK_MS, "PT10S")
    create_queue(world, "orders", delivery=DeliverySettings(lock_duration=lock_duration, **delivery))
    return world


def create_queue(world: World, name: str, **settings: Any) -> None:
    made = world.wait(lambda done: world.gateway.keeper.create(QueueDescription(name, **settings), done))
    assert isinstance(made, QueueDescription), made


def switch(world: World, name: str, availability: Availability) -> None:
    """Let a queue take or give out messages, or not."""
    changed = world.wait(
        lambda done: world.gateway.keeper.change(
            name, QueueDescription, lambda queue, _: replace(queue, availability=availability), done
        )
    )
    assert isinstance(changed, QueueDescription), changed


def counts(world: World, queue: str = "orders") -> FragmentInfo:
    """What the queue's fragment holds now."""
    entity = world.namespace.find(queue, QueueDescription)
    assert entity is not None
    info = world.ask(AskFragmentInfo(entity.placements[0].log_id))
    assert isinstance(info, FragmentInfo)
    return info


def stored(world: World, queue: str = "orders", *, sub_queue: SubQueue = SubQueue.MAIN) -> list[list[bytes]]:
    """The bodies of the messages in each fragment of a queue, in their order."""
    entity = world.namespace.find(queue, QueueDescription)
    assert entity is not None
    found = []
    for placement in entity.placements:
        peeked = world.ask(PeekMessages(placement.log_id, sub_queue, 0, 1_000, 1 << 20))
        assert isinstance(peeked, MessagesReceived)
        starts = array("q", peeked.rows)[Q_RECORD::MESSAGE_WIDTH]
        found.append([body_at(peeked.run, start) for start in starts])
    return found


def body_at(run: bytes | memoryview, start: int) -> bytes:
    """The body of the record that begins there."""
    end = start + int.from_bytes(run[start : start + 4], "big")
    body = decode_message(bytes(run[start + RECORD_HEADER_SIZE : end])).body
    assert isinstance(body, DataBody)
    return b"".join(bytes(part) for part in body.parts)


def send(peer: Peer, *bodies: bytes, queue: str = "orders", **sections: Any) -> None:
    """Send messages over a link of its own, and see them accepted."""
    link = peer.sender(queue)
    for body in bodies:
        link.send(event(body, **sections), settled=False)
    peer.run()
    assert [outcome for _, _, outcome in peer.outcomes(link)] == ["accepted"] * len(peer.outcomes(link))
    assert sum(last - first + 1 for first, last, _ in peer.outcomes(link)) == len(bodies)
    link.detach()
    peer.run()


def performatives(peer: Peer, begun: int, kind: type) -> list[Any]:
    """What the service sent from this byte on, of one kind."""
    return [each for _, each in written(bytes(peer.came[begun:])) if isinstance(each, kind)]


def answers(peer: Peer, begun: int) -> list[tuple[int, int, Any]]:
    """The dispositions about what the service sent, from this byte on: first id, last id, state."""
    found = [each for each in performatives(peer, begun, Disposition) if not each.role]
    assert all(each.settled for each in found)
    return [(each.first, each.first if each.last is None else each.last, each.state) for each in found]


def settle(peer: Peer, link: ReceiverLink, first: int, last: int, state: DeliveryState) -> list[tuple[int, int, Any]]:
    """Settle deliveries as official clients do: unsettled, and wait for the answer."""
    begun = len(peer.came)
    link.settle(first, last, state, settled=False)
    peer.run()
    return answers(peer, begun)


def ask(
    peer: Peer,
    operation: str,
    body: object,
    *,
    node: str = "orders/$management",
    txn_id: bytes | None = None,
    **properties: object,
) -> Message:
    """One request to a management node, in a transaction or in none, and its answer."""
    request = Message(
        properties=Properties(message_id=UUID(int=9)),
        application_properties={"operation": f"com.microsoft:{operation}", **properties},
        body=ValueBody(body),
    )
    return peer.request(node, request, None if txn_id is None else TransactionalState(txn_id=txn_id))


def code_of(answer: Message) -> int:
    code = (answer.application_properties or {})["statusCode"]
    assert isinstance(code, int)
    return code


def body_of(answer: Message) -> Any:
    assert isinstance(answer.body, ValueBody)
    return answer.body.value


def bodies(peer: Peer, queue: str = "orders") -> list[bytes]:
    """What a queue has, by peeking: nothing is locked."""
    answer = ask(peer, "peek-message", {"from-sequence-number": 0, "message-count": 200}, node=f"{queue}/$management")
    if code_of(answer) == 204:
        return []
    found = []
    for each in body_of(answer)["messages"]:
        body = decode_message(each["message"]).body
        assert isinstance(body, DataBody)
        found.append(b"".join(bytes(part) for part in body.parts))
    return found


def transfers(peer: Peer, begun: int) -> list[Transfer]:
    return performatives(peer, begun, Transfer)


def flows(peer: Peer, begun: int) -> list[Flow]:
    return [each for each in performatives(peer, begun, Flow) if each.handle is not None]


def attaches(peer: Peer, begun: int) -> list[Attach]:
    return performatives(peer, begun, Attach)
