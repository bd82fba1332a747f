"""The ways to settle locked messages: the outcome, what the receiver says besides, and how each token is answered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hubweir.errors import MESSAGE_LOCK_LOST, ServiceError
from hubweir.errors import SESSION_LOCK_LOST as SESSION_LOST
from hubweir.queue.sub_queue import SubQueue

# One byte a token: the answers of a settlement, in the order of its tokens.
SETTLED, LOCK_LOST, SESSION_LOCK_LOST = range(3)
TOKEN_BYTES = 16
MESSAGE_LOST_TEXT = (
    "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue, "
    "or was received by a different receiver instance."
)
SESSION_LOST_TEXT = "The session lock was lost. Request a new session receiver."


class SettleOutcome(IntEnum):
    """What becomes of locked messages.

    COMPLETE: they are gone. ABANDON: they are active again, delivered once more than before, or dead letters when that
    was the last time; a deferred one stays deferred until then. DEFER: they are received by their sequence numbers
    alone. DEAD_LETTER: they lie in the dead letters; in the dead letters it is as ABANDON. RELEASE: they are active
    again as if they had not been delivered.
    """

    COMPLETE = 0
    ABANDON = 1
    DEFER = 2
    DEAD_LETTER = 3
    RELEASE = 4


@dataclass(frozen=True, slots=True)
class SettleDetails:
    """What a settlement says besides its outcome, for all of its tokens.

    properties: an encoded AMQP map of application properties to set, or b"" (ABANDON, DEFER and DEAD_LETTER). reason,
    description: of DEAD_LETTER, set as the properties DeadLetterReason and DeadLetterErrorDescription.
    """

    reason: str | None = None
    description: str | None = None
    properties: bytes = b""


def lost_error(code: int, sub_queue: SubQueue = SubQueue.MAIN) -> ServiceError:
    """Why a settlement was answered with this code and is not done. sub_queue: of which it was; dead letters are in no
    session, also where the entity requires them."""
    if code == SESSION_LOCK_LOST and sub_queue is SubQueue.MAIN:
        return ServiceError(SESSION_LOST, SESSION_LOST_TEXT)
    return ServiceError(MESSAGE_LOCK_LOST, MESSAGE_LOST_TEXT)
