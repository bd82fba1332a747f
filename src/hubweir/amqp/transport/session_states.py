"""The states of a session and the steps between them (part 2, section 2.5.5). The table is the documentation."""

from __future__ import annotations

from enum import auto

from hubweir.amqp.transport.faults import IllegalState
from hubweir.amqp.transport.state import State


class SessionState(State):
    """Where a session is. END_PIPE: begin and end are sent, no begin has come. DISCARDING: we ended it for an error."""

    UNMAPPED = auto()
    BEGIN_SENT = auto()
    BEGIN_RECEIVED = auto()
    MAPPED = auto()
    END_PIPE = auto()
    END_SENT = auto()
    END_RECEIVED = auto()
    DISCARDING = auto()
    ENDED = auto()


class SessionStep(State):
    """Steps between the states of a session."""

    SEND_BEGIN = auto()
    RECEIVE_BEGIN = auto()
    SEND_END = auto()
    SEND_END_ERROR = auto()
    RECEIVE_END = auto()


_STATE, _STEP = SessionState, SessionStep

NEXT: dict[tuple[SessionState, SessionStep], SessionState] = {
    (_STATE.UNMAPPED, _STEP.SEND_BEGIN): _STATE.BEGIN_SENT,
    (_STATE.UNMAPPED, _STEP.RECEIVE_BEGIN): _STATE.BEGIN_RECEIVED,
    (_STATE.BEGIN_SENT, _STEP.RECEIVE_BEGIN): _STATE.MAPPED,
    (_STATE.BEGIN_SENT, _STEP.SEND_END): _STATE.END_PIPE,
    (_STATE.BEGIN_SENT, _STEP.SEND_END_ERROR): _STATE.END_PIPE,
    (_STATE.BEGIN_RECEIVED, _STEP.SEND_BEGIN): _STATE.MAPPED,
    (_STATE.END_PIPE, _STEP.RECEIVE_BEGIN): _STATE.END_SENT,
    (_STATE.MAPPED, _STEP.SEND_END): _STATE.END_SENT,
    (_STATE.MAPPED, _STEP.SEND_END_ERROR): _STATE.DISCARDING,
    (_STATE.MAPPED, _STEP.RECEIVE_END): _STATE.END_RECEIVED,
    (_STATE.END_RECEIVED, _STEP.SEND_END): _STATE.ENDED,
    (_STATE.END_SENT, _STEP.RECEIVE_END): _STATE.ENDED,
    (_STATE.DISCARDING, _STEP.RECEIVE_END): _STATE.ENDED,
}

# After our end the peer may still write what it had under way; none of it counts.
END_WRITTEN = frozenset({_STATE.END_PIPE, _STATE.END_SENT, _STATE.DISCARDING, _STATE.ENDED})
CAN_END = frozenset({_STATE.BEGIN_SENT, _STATE.MAPPED})


def advance(state: SessionState, step: SessionStep) -> SessionState:
    """The state after step; IllegalState when the table has no such step from here."""
    try:
        return NEXT[state, step]
    except KeyError:
        raise IllegalState(f"{step.name} while the session is {state.name}") from None
