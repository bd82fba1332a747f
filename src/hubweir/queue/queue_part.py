"""The parts of a queue, a subscription or a topic that an address names, behind the entity's name.

| behind the name                  | sub-queue             | who attaches |
|----------------------------------|-----------------------|--------------|
| nothing, of a queue              | MAIN                  | sender, receiver |
| nothing, of a topic              | MAIN                  | sender |
| nothing, of a subscription       | MAIN                  | receiver |
| `$DeadLetterQueue`               | DEAD_LETTERS          | receiver |
| `$Transfer/$DeadLetterQueue`     | TRANSFER_DEAD_LETTERS | receiver |
| any of these, then `$management` | the same              | both: its management node |

Keywords come in any case. A topic has no sub-queues.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.namespace.address import MANAGEMENT
from hubweir.namespace.entity import EntityDescription, EntityKind
from hubweir.namespace.resource_path import fold
from hubweir.queue.sub_queue import SubQueue

DEAD_LETTERS, TRANSFER = "$DeadLetterQueue", "$Transfer"


@dataclass(frozen=True, slots=True)
class QueuePart:
    """A sub-queue, or its management node."""

    sub_queue: SubQueue
    is_management: bool = False


def parse_queue_part(entity: EntityDescription, part: tuple[str, ...]) -> QueuePart | None:
    """The part of an entity that these segments of an address name; None when it has none such.

    entity: of any kind; None is the answer for those that hold no messages.
    """
    if entity.kind not in _HOLDS_MESSAGES:
        return None
    words = tuple(fold(segment) for segment in part)
    is_management = words[-1:] == (MANAGEMENT,)
    sub_queue = _SUB_QUEUES.get(words[:-1] if is_management else words)
    if sub_queue is None or (sub_queue is not SubQueue.MAIN and entity.kind is EntityKind.TOPIC):
        return None
    return QueuePart(sub_queue, is_management)


_HOLDS_MESSAGES = (EntityKind.QUEUE, EntityKind.TOPIC, EntityKind.SUBSCRIPTION)
_SUB_QUEUES = {
    (): SubQueue.MAIN,
    (fold(DEAD_LETTERS),): SubQueue.DEAD_LETTERS,
    (fold(TRANSFER), fold(DEAD_LETTERS)): SubQueue.TRANSFER_DEAD_LETTERS,
}
