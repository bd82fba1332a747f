"""A receiver's wish for a session, as the filter of its attach says it, and the attach that grants one.

The filter's value is a string, or null for the next free session; one client wraps it in a described value, and wants
it back so. Its lock's end is told in ticks of 100 ns since year 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Described, Long, Symbol
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.amqp.node import attach_properties

SESSION_FILTER = Symbol("com.microsoft:session-filter")
LOCKED_UNTIL = Symbol("com.microsoft:locked-until-utc")
TIMEOUT = Symbol("com.microsoft:timeout")
WAIT_MS = 60_000
WAIT_LIMIT_MS = 2**32 - 1
ID_LIMIT_CHARACTERS = 128
TICKS_A_MS = 10_000
YEAR_1_MS = -62_135_596_800_000


@dataclass(frozen=True, slots=True)
class SessionWish:
    """session_id: None for the next free one. wait_ms: how long it may take to come.

    source: of the attach. descriptor: of the filter's value, None where it had none.
    """

    session_id: str | None
    wait_ms: int
    source: Source
    descriptor: object


def session_wish(link: SenderLink) -> SessionWish | None:
    """What session the attach wants; None: it wants none. Raises ServiceError ARGUMENT_ERROR."""
    source = link.source or Source()
    if not source.filter or SESSION_FILTER not in source.filter:
        return None
    value: object = source.filter[SESSION_FILTER]
    descriptor: object = None
    if isinstance(value, Described):
        descriptor = value.descriptor
        value = value.value
    if value is not None and (not isinstance(value, str) or len(value) > ID_LIMIT_CHARACTERS):
        text = f"A session id is a string of at most {ID_LIMIT_CHARACTERS} characters, and this one is not."
        raise ServiceError(ARGUMENT_ERROR, text)
    asked = attach_properties(link).get(TIMEOUT)
    # Commands hold plain values: no uint, no symbol. The field of the clients is a uint.
    wait_ms = WAIT_MS
    if isinstance(asked, int) and not isinstance(asked, bool) and asked >= 0:
        wait_ms = min(int(asked), WAIT_LIMIT_MS)
    return SessionWish(None if value is None else str(value), wait_ms, source, descriptor)


def grant_session(wish: SessionWish, session_id: str, locked_until_ms: int) -> tuple[Source, dict[Symbol, object]]:
    """The source and the properties of the attach that grants this session."""
    value: object = session_id if wish.descriptor is None else Described(wish.descriptor, session_id)
    source = replace(wish.source, filter={**(wish.source.filter or {}), SESSION_FILTER: value})
    return source, {LOCKED_UNTIL: Long((locked_until_ms - YEAR_1_MS) * TICKS_A_MS)}
