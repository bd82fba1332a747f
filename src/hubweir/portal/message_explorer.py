"""The message explorer of a queue or a subscription: peeked at, dead-lettered with a reason, sent again, purged.

To peek locks and counts nothing. Whatever takes messages away does so with a bounded number of them at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.amqp.messaging.message import Message, decode_message
from hubweir.amqp.messaging.message import encode_message as encode
from hubweir.broker.commands.fragment import DeleteMessages, MessagesDeleted
from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, DecodeError, ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.gateway.queue_admission import check_gives
from hubweir.namespace.entity import Entity, EntityKind
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.form_fields import flag, number, sequence_number
from hubweir.portal.held_room import held_room
from hubweir.portal.message_peek import PEEK_BYTES, PeekedMessage, peek_messages
from hubweir.portal.message_receive import ask, locked_messages, settle
from hubweir.portal.sending import enqueue_again
from hubweir.portal.shown_message import VIEWS, ShownMessage
from hubweir.portal.shown_page import shown_messages
from hubweir.portal.visit import Visit
from hubweir.queue.dead_letter_properties import sent_again
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import SubQueue

PARTS = (
    ("messages", "Messages", SubQueue.MAIN),
    ("dead-letters", "Dead letters", SubQueue.DEAD_LETTERS),
    ("transfer-dead-letters", "Transfer dead letters", SubQueue.TRANSFER_DEAD_LETTERS),
)
_SUB_QUEUES = {name: sub_queue for name, _, sub_queue in PARTS}
PEEK_COUNT = 25
MOVE_LIMIT = 100
DELETE_COUNT, DELETE_ROUNDS = 4_000, 25
REASON_LIMIT = 4_096


@dataclass(frozen=True, slots=True)
class ShownPeek:
    """A message, and as a page shows it."""

    peeked: PeekedMessage
    message: ShownMessage


async def messages(visit: Visit) -> Response:
    """A page of messages from a sequence number on."""
    return await _show(visit, None)


async def dead_letter(visit: Visit) -> Response:
    """Move the oldest active messages to the dead letters, with a reason."""
    entity = holding_entity(visit)
    details = SettleDetails(
        visit.form.get("reason", "")[:REASON_LIMIT] or None, visit.form.get("text", "")[:REASON_LIMIT] or None
    )
    try:
        check_gives(entity.description, SubQueue.MAIN)
        left = moved = _count(visit)
        for place in visit.gateway.directory.fragments(entity).places:
            async with locked_messages(visit, place, SubQueue.MAIN, left) as found:
                if found:
                    await settle(visit, place, found, SettleOutcome.DEAD_LETTER, details)
                left -= len(found)
            if not left:
                break
    except ServiceError as refusal:
        return await _show(visit, refusal)
    return _back(visit, entity.name, "messages", "dead-lettered", moved - left)


async def resubmit(visit: Visit) -> Response:
    """Send the oldest dead letters again, each copy first: a failure between the two leaves the dead letter, too."""
    entity = holding_entity(visit)
    goal_name = entity.description.parent or entity.name
    try:
        check_gives(entity.description, SubQueue.DEAD_LETTERS)
        visit.check(Rights.SEND, goal_name)
        goal = visit.gateway.namespace.get(goal_name, MessagingDescription)
        left = moved = _count(visit)
        for place in visit.gateway.directory.fragments(entity).places:
            async with locked_messages(visit, place, SubQueue.DEAD_LETTERS, left) as found:
                for each in found:
                    again = encode(sent_again(_decoded(each.data), keeps_id=not flag(visit.form, "new_id")))
                    await enqueue_again(visit, goal, again)
                    await settle(visit, place, [each], SettleOutcome.COMPLETE)
                left -= len(found)
            if not left:
                break
    except ServiceError as refusal:
        return await _show(visit, refusal)
    return _back(visit, entity.name, "dead-letters", "resubmitted", moved - left)


async def purge(visit: Visit) -> Response:
    """Delete the messages of a part that are active; locked, deferred and scheduled ones stay."""
    entity, part = holding_entity(visit), visit.form.get("part", "messages")
    try:
        if not flag(visit.form, "sure"):
            raise ServiceError(ARGUMENT_ERROR, "Tick the box to delete these messages: they cannot be had back.")
        sub_queue = sub_queue_of(part)
        check_gives(entity.description, sub_queue)
        gone, before_ms = 0, visit.gateway.env.now_ms() + 1
        for place in visit.gateway.directory.fragments(entity).places:
            for _ in range(DELETE_ROUNDS):
                command = DeleteMessages(place.log_id, sub_queue, DELETE_COUNT, before_ms)
                deleted = await ask(visit, place, command, MessagesDeleted)
                gone += deleted.count
                if not deleted.count:
                    break
    except ServiceError as refusal:
        return await _show(visit, refusal)
    return _back(visit, entity.name, part, "purged", gone)


def holding_entity(visit: Visit) -> Entity[MessagingDescription]:
    """The queue or the subscription that the address names. Raises ServiceError."""
    entity = visit.entity(MessagingDescription)
    if isinstance(entity.description, TopicDescription):
        raise ServiceError(NOT_ALLOWED, f"{entity.description.title} holds no messages: look at its subscriptions.")
    return entity


def sub_queue_of(part: str) -> SubQueue:
    """The sub-queue that a page calls so; ServiceError ARGUMENT_ERROR."""
    if part not in _SUB_QUEUES:
        raise ServiceError(ARGUMENT_ERROR, "A queue has messages, dead letters and transfer dead letters.")
    return _SUB_QUEUES[part]


def _count(visit: Visit) -> int:
    count = number(visit.form, "count", "The number of messages")
    if not 1 <= count <= MOVE_LIMIT:
        raise ServiceError(ARGUMENT_ERROR, f"1 to {MOVE_LIMIT} messages are moved at a time.")
    return count


def _decoded(data: bytes) -> Message:
    try:
        return decode_message(data)
    except DecodeError as error:
        raise ServiceError(ARGUMENT_ERROR, f"A dead letter is no legal AMQP message, and stays: {error}.") from None


def _back(visit: Visit, name: str, part: str, notice: str, count: int) -> Response:
    return visit.go("messages", name, part=part, notice=notice, done=count)


async def _show(visit: Visit, problem: ServiceError | None) -> Response:
    entity = holding_entity(visit)
    asked = visit.form if visit.form else visit.query
    part, view = asked.get("part", "messages"), visit.query.get("view", "auto")
    sub_queue = sub_queue_of(part if problem is None or part in _SUB_QUEUES else "messages")
    if view not in dict(VIEWS):
        view = "auto"
    fragments = visit.gateway.directory.fragments(entity)
    found: list[PeekedMessage] = []
    shown: list[ShownPeek] = []
    try:
        from_number = sequence_number(visit.query, "from") if visit.query.get("from") else 0
    except ServiceError as refusal:
        problem, from_number = problem or refusal, 0
    else:
        async with held_room(visit, PEEK_BYTES):
            found = await peek_messages(visit, fragments, sub_queue, from_number, PEEK_COUNT)
            read = await shown_messages(visit, [peeked.data for peeked in found], view)
            shown = [ShownPeek(peeked, message) for peeked, message in zip(found, read, strict=True)]
    return visit.show_form(
        "messages.html",
        problem,
        entity=entity,
        parts=[(name, label) for name, label, _ in PARTS],
        part=part,
        view=view,
        views=VIEWS,
        from_number=from_number,
        messages=shown,
        next_number=found[-1].sequence_number + 1 if len(found) == PEEK_COUNT else None,
        may_send=visit.may(Rights.SEND, entity.description.parent or entity.name),
        is_subscription=entity.kind is EntityKind.SUBSCRIPTION,
    )
