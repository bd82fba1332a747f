"""Every condition hubweir can answer with, as one table, and the exceptions made from it.

A condition is what a client sees: an AMQP error symbol on a link or in a rejected outcome, a status code in a
`$management` or `$cbs` response, an HTTP status at the HTTPS door. The table says which of these belong together and
whether trying again helps. Sources: AMQP 1.0 part 2 section 2.8.15 and part 3 section 3.4 (the `amqp:` names); "AMQP
errors in Azure Service Bus" and the client libraries' retry tables (the `com.microsoft:` names).

Raise `ServiceError(CONDITION, text)` with a text for the person who reads it: what happened, to which entity, what
the limit is, what to do. Errors of one process's own making (a corrupt file, a kernel refusing bytes) have classes of
their own below, because callers tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """One row of the table: how a condition shows at each door, and whether a retry can succeed.

    management: status-code of a request/response node. http: status at the HTTPS door. retriable: the same request
    may succeed later without a change. meaning: one line for docs/errors.md.
    """

    symbol: str
    management: int
    http: int
    retriable: bool
    meaning: str


NOT_FOUND = Condition("amqp:not-found", 404, 404, False, "there is no entity at this address")
UNAUTHORIZED = Condition("amqp:unauthorized-access", 401, 401, False, "no valid token grants this right here")
NOT_ALLOWED = Condition("amqp:not-allowed", 400, 400, False, "the request contradicts how this entity works")
NOT_IMPLEMENTED = Condition("amqp:not-implemented", 501, 501, False, "this operation does not exist here")
INVALID_FIELD = Condition("amqp:invalid-field", 400, 400, False, "a field holds what it must not hold")
DECODE_ERROR = Condition("amqp:decode-error", 400, 400, False, "the bytes are not legal AMQP")
INTERNAL_ERROR = Condition("amqp:internal-error", 500, 500, True, "a fault of the service, not of the request")
ILLEGAL_STATE = Condition("amqp:illegal-state", 400, 400, False, "the protocol does not allow this step now")
PRECONDITION_FAILED = Condition("amqp:precondition-failed", 412, 412, False, "what the request presumed is not so")
RESOURCE_LIMIT = Condition("amqp:resource-limit-exceeded", 403, 403, False, "a quota or a safety limit is reached")
FRAME_SIZE_TOO_SMALL = Condition("amqp:frame-size-too-small", 400, 400, False, "a frame must carry this, and cannot")
CONNECTION_FORCED = Condition("amqp:connection:forced", 503, 503, True, "the service ends this connection: reconnect")
FRAMING_ERROR = Condition("amqp:connection:framing-error", 400, 400, False, "the bytes are not legal AMQP frames")
HANDLE_IN_USE = Condition("amqp:session:handle-in-use", 400, 400, False, "this handle already names a link")
UNATTACHED_HANDLE = Condition("amqp:session:unattached-handle", 400, 400, False, "this handle names no link")
DETACH_FORCED = Condition("amqp:link:detach-forced", 503, 503, True, "the service ends this link: attach again")
MESSAGE_TOO_LARGE = Condition("amqp:link:message-size-exceeded", 403, 413, False, "the message is over the limit")
LINK_STOLEN = Condition("amqp:link:stolen", 410, 410, False, "another receiver took this partition over")
EVENTS_LOST = Condition(
    "amqp:resource-deleted", 410, 410, False, "stored events are damaged: attach again to read on behind them"
)
AUTH_FAILED = Condition("com.microsoft:auth-failed", 401, 401, False, "the token is expired, unsigned or out of scope")
SERVER_BUSY = Condition("com.microsoft:server-busy", 503, 503, True, "over a rate limit: wait, then try again")
TIMED_OUT = Condition("com.microsoft:timeout", 408, 504, True, "no answer in time; the outcome is unknown")
ARGUMENT_ERROR = Condition("com.microsoft:argument-error", 400, 400, False, "an argument is not acceptable")
ARGUMENT_OUT_OF_RANGE = Condition("com.microsoft:argument-out-of-range", 400, 400, False, "an argument is out of range")
ENTITY_DISABLED = Condition("com.microsoft:entity-disabled", 400, 403, False, "the entity is switched off")
ENTITY_EXISTS = Condition("com.microsoft:entity-already-exists", 409, 409, False, "the name is taken")
ENTITY_MOVED = Condition("com.microsoft:entity-moved", 410, 503, True, "another store owns this entity now")
PRODUCER_EPOCH_STOLEN = Condition(
    "com.microsoft:producer-epoch-stolen", 409, 409, False, "another link took this producer over"
)
OUT_OF_ORDER_SEQUENCE = Condition(
    "com.microsoft:out-of-order-sequence", 409, 409, False, "the numbers of an idempotent producer have a gap"
)
MESSAGE_NOT_FOUND = Condition(
    "com.microsoft:message-not-found", 404, 404, False, "no such message is here, or any more"
)
MESSAGE_LOCK_LOST = Condition(
    "com.microsoft:message-lock-lost", 410, 404, False, "the lock ended, or the message was settled before"
)
SESSION_LOCK_LOST = Condition("com.microsoft:session-lock-lost", 410, 404, False, "the lock of the session ended")
SESSION_CANNOT_BE_LOCKED = Condition(
    "com.microsoft:session-cannot-be-locked", 410, 409, False, "another receiver holds this session"
)
TRANSACTION_UNKNOWN = Condition(
    "amqp:transaction:unknown-id", 400, 400, False, "no open transaction of this connection has this id"
)
TRANSACTION_ROLLED_BACK = Condition(
    "amqp:transaction:rollback", 400, 400, False, "the transaction was rolled back: nothing of it was done"
)
TRANSACTION_TIMED_OUT = Condition(
    "amqp:transaction:timeout", 408, 504, False, "the transaction took too long and was rolled back"
)
STORE_OFFLINE = Condition("com.microsoft:store-offline", 503, 503, True, "the messaging store cannot write now")

CONDITIONS: tuple[Condition, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Condition))
CONDITION_OF_SYMBOL = {condition.symbol: condition for condition in CONDITIONS}

# The header of an HTTP answer that has the symbol, for several conditions have one status.
CONDITION_HEADER = "hubweir-condition"


class HubweirError(Exception):
    """The root of everything hubweir raises on purpose."""


class ServiceError(HubweirError):
    """A request that is refused: a condition of the table and a text for the person who reads it."""

    def __init__(self, condition: Condition, text: str) -> None:
        super().__init__(text)
        self.condition = condition
        self.text = text

    def __repr__(self) -> str:
        return f"ServiceError({self.condition.symbol}, {self.text!r})"


class DecodeError(HubweirError):
    """Bytes of a peer that are not legal AMQP. The one who knows the scope turns it into a condition."""


class EncodeError(HubweirError):
    """A value of our own that AMQP cannot carry: a mistake of the caller."""


class KernelRefusal(HubweirError):
    """A kernel was handed buffers that break its contract: a mistake of the caller, never of a peer."""


class StoreError(HubweirError):
    """Something about a messaging store's files. Subclasses say what."""


class StoreLocked(StoreError):
    """Another process owns this data folder or store."""


class NewerFormat(StoreError):
    """A file was written by another version, which this one cannot read; it is left untouched."""


class OldFormat(StoreError):
    """Files are of an earlier format, which this version does not read any more; they are left untouched."""


class CorruptStore(StoreError):
    """Bytes that were durable are damaged. Never raised for a torn tail.

    first_index, resume_index: of the damaged records, and where sound ones go on; None where no range can be told.
    """

    def __init__(self, text: str, *, first_index: int | None = None, resume_index: int | None = None) -> None:
        super().__init__(text)
        self.first_index = first_index
        self.resume_index = resume_index


class LogLost(StoreError):
    """The files of a log that is known to have been made are not there; none is made in its place unasked."""


class CatalogLost(StoreError):
    """The catalog of a namespace is not there, though logs of its hubs are. A start ends with it, nothing changed."""


class LogFenced(StoreError):
    """A newer writer epoch owns this log; the caller must stop writing."""


class LogOffline(StoreError):
    """This log cannot take appends now (disk full or a failed sync); reads of sound ranges go on."""


class DiskFull(LogOffline):
    """No space for the append; nothing was written. Appends resume when space returns."""


class OutOfFiles(LogOffline):
    """No file can be opened: a limit of the process or of the system; nothing was written. Heals by itself."""
