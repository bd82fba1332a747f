"""Checks for every door what a queue, a topic or a subscription takes and gives, by its status and by each message.

Which messages it does not take a kernel finds (check_messages); here is why, in words.
"""

from __future__ import annotations

from hubweir.errors import ARGUMENT_ERROR, DECODE_ERROR, NOT_ALLOWED, ServiceError
from hubweir.kernels.contract import CHECK_KEY, CHECK_LONG, CHECK_SESSION
from hubweir.namespace.availability import check_may_receive, check_may_send
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of
from hubweir.queue.sub_queue import SubQueue

ID_LIMIT_CHARACTERS = 128


def check_takes(entity: MessagingDescription) -> None:
    """Raise ServiceError when nothing can be sent to this queue or topic now."""
    check_may_send(entity)


def check_gives(entity: MessagingDescription, sub_queue: SubQueue) -> None:
    """Raise ServiceError when nothing can be received from this part of a queue or a subscription now."""
    check_may_receive(entity)
    forward_to = delivery_of(entity).forward_to
    if forward_to and sub_queue is SubQueue.MAIN:
        raise ServiceError(NOT_ALLOWED, f"{entity.title} forwards its messages: receive from '{forward_to}'.")


def refusal_of(status: int, entity: str) -> ServiceError:
    """Why a queue does not take a delivery, by what check_messages found."""
    if status == CHECK_LONG:
        text = (
            f"A message for '{entity}' has a message id, session id, reply-to session id or partition key of more than "
            f"{ID_LIMIT_CHARACTERS} characters; send a shorter one."
        )
        return ServiceError(ARGUMENT_ERROR, text)
    if status == CHECK_SESSION:
        text = f"'{entity}' requires sessions, and a message for it has no session id: set one."
        return ServiceError(NOT_ALLOWED, text)
    if status == CHECK_KEY:
        text = f"A message for '{entity}' has a partition key that is not its session id; leave one of them out."
        return ServiceError(NOT_ALLOWED, text)
    text = f"A delivery for '{entity}' is no legal AMQP message, or its batch envelope holds one that is not."
    return ServiceError(DECODE_ERROR, text)
