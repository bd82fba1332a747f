"""Answers that the service does not give, said by a way in front of it (altered_answers.py): what clients make of them.

Conditions with which a send may be rejected, of which the service says few on a send; an error about a dead letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.messaging.terminus import Target
from hubweir.amqp.transport.performatives import Attach, Disposition, Performative
from hubweir.amqp.types.values import Symbol
from hubweir.testing.frames import frame


@dataclass(frozen=True, slots=True)
class Spoken:
    """A condition; the class that the Python client raises, the code that the JavaScript client gives. code "": its
    makers say nothing of it."""

    condition: str
    python: str
    code: str = ""


CONDITIONS = (
    Spoken("amqp:not-found", "MessagingEntityNotFoundError", "MessagingEntityNotFound"),
    Spoken("com.microsoft:message-not-found", "MessageNotFoundError", "MessageNotFound"),
    Spoken("com.microsoft:message-lock-lost", "MessageLockLostError", "MessageLockLost"),
    Spoken("com.microsoft:session-lock-lost", "SessionLockLostError", "SessionLockLost"),
    Spoken("com.microsoft:session-cannot-be-locked", "SessionCannotBeLockedError", "SessionCannotBeLocked"),
    Spoken("com.microsoft:timeout", "OperationTimeoutError", "ServiceTimeout"),
    Spoken("com.microsoft:server-busy", "ServiceBusServerBusyError", "ServiceBusy"),
    Spoken("com.microsoft:operation-cancelled", "ServiceBusError", "GeneralError"),
    Spoken("com.microsoft:entity-disabled", "MessagingEntityDisabledError", "MessagingEntityDisabled"),
    Spoken("com.microsoft:entity-already-exists", "MessagingEntityAlreadyExistsError", "MessagingEntityAlreadyExists"),
    Spoken("com.microsoft:argument-error", "ServiceBusError", "GeneralError"),
    Spoken("com.microsoft:argument-out-of-range", "ServiceBusError", "GeneralError"),
    Spoken("com.microsoft:auth-failed", "ServiceBusAuthorizationError", "UnauthorizedAccess"),
    Spoken("amqp:unauthorized-access", "ServiceBusAuthorizationError", "UnauthorizedAccess"),
    Spoken("amqp:not-allowed", "ServiceBusError", "GeneralError"),
    Spoken("amqp:not-implemented", "ServiceBusError", "GeneralError"),
    Spoken("amqp:resource-limit-exceeded", "ServiceBusQuotaExceededError", "QuotaExceeded"),
    Spoken("amqp:link:message-size-exceeded", "MessageSizeExceededError", "MessageSizeExceeded"),
    Spoken("amqp:link:detach-forced", "ServiceBusConnectionError", "GeneralError"),
    Spoken("amqp:link:stolen", "ServiceBusError", "GeneralError"),
    Spoken("amqp:link:transfer-limit-exceeded", "ServiceBusError", "GeneralError"),
    Spoken("amqp:connection:forced", "ServiceBusError"),  # as the end of a connection it is another class
    Spoken("amqp:internal-error", "ServiceBusError", "GeneralError"),
    Spoken("amqp:decode-error", "ServiceBusError"),
    Spoken("amqp:invalid-field", "ServiceBusError"),
    Spoken("amqp:illegal-state", "ServiceBusError"),
    Spoken("amqp:precondition-failed", "ServiceBusError"),
    Spoken("amqp:resource-deleted", "ServiceBusError"),
    Spoken("com.example:anything-else", "ServiceBusError", "GeneralError"),
)
# The JavaScript client knows a missing entity by these words alone, whatever the condition is.
TEXTS = {"amqp:not-found": "The messaging entity 'sb://localhost/orders' could not be found."}


class Rejecting:
    """Alters answers: what each link that sends to a queue sends first is rejected, link by link with the next one."""

    def __init__(self, queue: str, conditions: Sequence[str]) -> None:
        self._queue = queue
        self._next = iter(conditions)
        self._armed = ""

    def __call__(self, performative: Performative, came: bytes) -> bytes:
        if isinstance(performative, Attach) and performative.role and isinstance(performative.target, Target):
            # The clients name the queue alone, or behind a scheme and a host.
            if (performative.target.address or "").rpartition("/")[2] == self._queue:
                self._armed = next(self._next)
        elif self._armed and isinstance(performative, Disposition) and performative.role:
            assert performative.state == Accepted()
            text = TEXTS.get(self._armed, "As the test says.")
            error, self._armed = AmqpError(condition=Symbol(self._armed), description=text), ""
            told = Disposition(
                role=True, first=performative.first, last=performative.last, settled=True, state=Rejected(error=error)
            )
            return frame(told, channel=int.from_bytes(came[6:8], "big"))
        return came


def dead_letter_with_an_error(performative: Performative, came: bytes) -> bytes:
    """The answer to a dead-letter, which is rejected without an error, gets the one that the client said."""
    if not isinstance(performative, Disposition) or performative.state != Rejected(error=None):
        return came
    error = AmqpError(condition=Symbol("com.microsoft:dead-letter"), description="said by the client")
    told = Disposition(
        role=performative.role, first=performative.first, last=performative.last, settled=True,
        state=Rejected(error=error),
    )  # fmt: skip
    return frame(told, channel=int.from_bytes(came[6:8], "big"))
