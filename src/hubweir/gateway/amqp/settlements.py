"""Translates what a receiver said about its messages into settlements of a fragment, and their answers back.

| receiver's state                    | settlement  | answer, when it is done |
|-------------------------------------|-------------|-------------------------|
| accepted                            | complete    | accepted |
| modified, undeliverable here        | defer       | modified |
| modified otherwise                  | abandon     | modified |
| rejected                            | dead-letter | rejected, without an error: clients take one for a failure |
| released, or no state at all        | release     | released |

A lock that is lost is answered rejected, with its condition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct, field

from hubweir.amqp.messaging.outcome import Accepted, DeliveryState, Modified, Outcome, Rejected, Released
from hubweir.amqp.transport.serial_number import add_serial, distance
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Symbol
from hubweir.errors import NOT_ALLOWED, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.append_queue import DeliveryRange
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome

REASON, DESCRIPTION = "DeadLetterReason", "DeadLetterErrorDescription"
DETAIL_LIMIT_CHARACTERS = 4_096
_RUN = re.compile(rb"(.)\1*", re.DOTALL)  # of one byte


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """A settlement, and the state that the receiver is answered with when it is done.

    Those without details are few, each is one object, and so compares as fast as one.
    """

    outcome: SettleOutcome
    details: SettleDetails | None
    answer: Outcome


_COMPLETE = Spoken(SettleOutcome.COMPLETE, None, Accepted())
_RELEASE = Spoken(SettleOutcome.RELEASE, None, Released())
_MODIFIED = {
    (failed, undeliverable): Spoken(
        SettleOutcome.DEFER if undeliverable else SettleOutcome.ABANDON,
        None,
        Modified(delivery_failed=failed, undeliverable_here=undeliverable),
    )
    for failed in (False, True)
    for undeliverable in (False, True)
}


class Settling(Struct):
    """Deliveries of one link that one command settles. spans: of ids, both ends included; and whether it waits."""

    spoken: Spoken
    spans: list[tuple[int, int, bool]] = field(default_factory=list)

    def ranges_by_code(self, codes: bytes) -> dict[int, list[DeliveryRange]]:
        """The deliveries of which the receiver waits to hear, by the code that their settlement was answered with.

        codes: one for each token. Locks that are lost were mostly taken together: a step for each run of one code.
        """
        found: dict[int, list[DeliveryRange]] = {}
        at = 0
        for first_id, last_id, waits in self.spans:
            end = at + distance(last_id, first_id) + 1
            if waits:
                for run in _RUN.finditer(codes, at, end):
                    begin, behind = run.span()
                    ids = DeliveryRange(add_serial(first_id, begin - at), add_serial(first_id, behind - 1 - at))
                    found.setdefault(codes[begin], []).append(ids)
            at = end
        return found


def spoken_of(state: DeliveryState | None) -> Spoken:
    """The settlement that a receiver's state asks for.

    Raises ServiceError NOT_IMPLEMENTED for a state that is none of these.
    """
    match state:
        case Accepted():
            return _COMPLETE
        case None | Released():
            return _RELEASE
        case Modified():
            return _modified(state)
        case Rejected():
            info = _plain({} if state.error is None else state.error.info or {})
            reason, description = text_of_detail(info.pop(REASON, None)), text_of_detail(info.pop(DESCRIPTION, None))
            if state.error is not None and reason is None and description is None:
                description = text_of_detail(state.error.description or None)
            details = SettleDetails(reason, description, encode_properties(info))
            return Spoken(SettleOutcome.DEAD_LETTER, details, Rejected(error=None))
    raise ServiceError(NOT_IMPLEMENTED, "Deliveries end accepted, modified, rejected or released, and no other way.")


def transacted_of(outcome: Outcome | Described | None) -> Spoken:
    """The settlement that an outcome in a transaction asks for.

    Raises ServiceError NOT_ALLOWED for what is none of a transaction: to release, or to say nothing.
    """
    if outcome is None or isinstance(outcome, Released):
        text = "In a transaction a message is completed, abandoned, deferred or dead-lettered, and not released."
        raise ServiceError(NOT_ALLOWED, text)
    return spoken_of(outcome)


def encode_properties(properties: dict[str, object]) -> bytes:
    """Application properties to set, as SettleDetails holds them."""
    return encode(properties) if properties else b""


def _modified(state: Modified) -> Spoken:
    plain = _MODIFIED[state.delivery_failed, state.undeliverable_here]
    properties = encode_properties(_plain(state.message_annotations or {}))
    return Spoken(plain.outcome, SettleDetails(properties=properties), plain.answer) if properties else plain


def _plain(values: Mapping[Symbol, object]) -> dict[str, object]:
    """Under names that are strings, as those of application properties are."""
    return {str(name): value for name, value in values.items()}


def text_of_detail(value: object) -> str | None:
    """A reason or a description, as long as one may be; None for what is no text."""
    return value[:DETAIL_LIMIT_CHARACTERS] if isinstance(value, str) else None
