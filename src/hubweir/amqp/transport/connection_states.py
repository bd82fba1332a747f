"""The states of a connection and the steps between them (part 2, section 2.4.6). The table is the documentation.

Names are the standard's. PIPE states are those of a client that sends ahead of the server's answers.
"""

from __future__ import annotations

from enum import auto

from hubweir.amqp.transport.faults import IllegalState
from hubweir.amqp.transport.state import State


class ConnectionState(State):
    """Where a connection is."""

    START = auto()
    HEADER_RECEIVED = auto()
    HEADER_SENT = auto()
    HEADER_EXCHANGED = auto()
    OPEN_PIPE = auto()
    OPEN_CLOSE_PIPE = auto()
    OPEN_RECEIVED = auto()
    OPEN_SENT = auto()
    CLOSE_PIPE = auto()
    OPENED = auto()
    CLOSE_RECEIVED = auto()
    CLOSE_SENT = auto()
    DISCARDING = auto()
    END = auto()


class ConnectionStep(State):
    """Steps between the states of a connection. SEND_CLOSE_ERROR: a close with an error; only a close is read then."""

    SEND_HEADER = auto()
    RECEIVE_HEADER = auto()
    SEND_OPEN = auto()
    RECEIVE_OPEN = auto()
    SEND_CLOSE = auto()
    SEND_CLOSE_ERROR = auto()
    RECEIVE_CLOSE = auto()
    LOSE_TRANSPORT = auto()


_STATE, _STEP = ConnectionState, ConnectionStep

NEXT: dict[tuple[ConnectionState, ConnectionStep], ConnectionState] = {
    (_STATE.START, _STEP.SEND_HEADER): _STATE.HEADER_SENT,
    (_STATE.START, _STEP.RECEIVE_HEADER): _STATE.HEADER_RECEIVED,
    (_STATE.HEADER_RECEIVED, _STEP.SEND_HEADER): _STATE.HEADER_EXCHANGED,
    (_STATE.HEADER_SENT, _STEP.RECEIVE_HEADER): _STATE.HEADER_EXCHANGED,
    (_STATE.HEADER_SENT, _STEP.SEND_OPEN): _STATE.OPEN_PIPE,
    (_STATE.HEADER_EXCHANGED, _STEP.SEND_OPEN): _STATE.OPEN_SENT,
    (_STATE.HEADER_EXCHANGED, _STEP.RECEIVE_OPEN): _STATE.OPEN_RECEIVED,
    (_STATE.OPEN_PIPE, _STEP.RECEIVE_HEADER): _STATE.OPEN_SENT,
    (_STATE.OPEN_PIPE, _STEP.SEND_CLOSE): _STATE.OPEN_CLOSE_PIPE,
    (_STATE.OPEN_PIPE, _STEP.SEND_CLOSE_ERROR): _STATE.OPEN_CLOSE_PIPE,
    (_STATE.OPEN_CLOSE_PIPE, _STEP.RECEIVE_HEADER): _STATE.CLOSE_PIPE,
    (_STATE.OPEN_SENT, _STEP.RECEIVE_OPEN): _STATE.OPENED,
    (_STATE.OPEN_SENT, _STEP.SEND_CLOSE): _STATE.CLOSE_PIPE,
    (_STATE.OPEN_SENT, _STEP.SEND_CLOSE_ERROR): _STATE.DISCARDING,
    (_STATE.OPEN_RECEIVED, _STEP.SEND_OPEN): _STATE.OPENED,
    (_STATE.CLOSE_PIPE, _STEP.RECEIVE_OPEN): _STATE.CLOSE_SENT,
    (_STATE.OPENED, _STEP.SEND_CLOSE): _STATE.CLOSE_SENT,
    (_STATE.OPENED, _STEP.SEND_CLOSE_ERROR): _STATE.DISCARDING,
    (_STATE.OPENED, _STEP.RECEIVE_CLOSE): _STATE.CLOSE_RECEIVED,
    (_STATE.CLOSE_RECEIVED, _STEP.SEND_CLOSE): _STATE.END,
    (_STATE.CLOSE_SENT, _STEP.RECEIVE_CLOSE): _STATE.END,
    (_STATE.DISCARDING, _STEP.RECEIVE_CLOSE): _STATE.END,
    # The transport can go in any state; nothing follows.
    **{(state, _STEP.LOSE_TRANSPORT): _STATE.END for state in _STATE},
}

# Whether open, and the frames that need one, may be written; whether what comes in is still read.
OPEN_WRITTEN = frozenset({_STATE.OPEN_PIPE, _STATE.OPEN_SENT, _STATE.OPENED})
CLOSE_WRITTEN = frozenset({_STATE.OPEN_CLOSE_PIPE, _STATE.CLOSE_PIPE, _STATE.CLOSE_SENT, _STATE.DISCARDING, _STATE.END})


def advance(state: ConnectionState, step: ConnectionStep) -> ConnectionState:
    """The state after step; IllegalState when the table has no such step from here."""
    try:
        return NEXT[state, step]
    except KeyError:
        raise IllegalState(f"{step.name} while the connection is {state.name}") from None
