"""The states of a link endpoint and the steps between them (part 2, section 2.6). The table is the documentation.

A link that is refused passes through ATTACHED: the answer is an attach with null termini, then a detach.
"""

from __future__ import annotations

from enum import auto

from hubweir.amqp.transport.faults import IllegalState
from hubweir.amqp.transport.state import State


class LinkState(State):
    """Where a link is. DETACH_PIPE: attach and detach are sent, no attach has come."""

    DETACHED = auto()
    ATTACH_SENT = auto()
    ATTACH_RECEIVED = auto()
    ATTACHED = auto()
    DETACH_PIPE = auto()
    DETACH_SENT = auto()
    DETACH_RECEIVED = auto()
    CLOSED = auto()


class LinkStep(State):
    """Steps between the states of a link endpoint."""

    SEND_ATTACH = auto()
    RECEIVE_ATTACH = auto()
    SEND_DETACH = auto()
    RECEIVE_DETACH = auto()


_STATE, _STEP = LinkState, LinkStep

NEXT: dict[tuple[LinkState, LinkStep], LinkState] = {
    (_STATE.DETACHED, _STEP.SEND_ATTACH): _STATE.ATTACH_SENT,
    (_STATE.DETACHED, _STEP.RECEIVE_ATTACH): _STATE.ATTACH_RECEIVED,
    (_STATE.ATTACH_SENT, _STEP.RECEIVE_ATTACH): _STATE.ATTACHED,
    (_STATE.ATTACH_SENT, _STEP.SEND_DETACH): _STATE.DETACH_PIPE,
    (_STATE.ATTACH_RECEIVED, _STEP.SEND_ATTACH): _STATE.ATTACHED,
    (_STATE.ATTACHED, _STEP.SEND_DETACH): _STATE.DETACH_SENT,
    (_STATE.ATTACHED, _STEP.RECEIVE_DETACH): _STATE.DETACH_RECEIVED,
    (_STATE.DETACH_PIPE, _STEP.RECEIVE_ATTACH): _STATE.DETACH_SENT,
    (_STATE.DETACH_SENT, _STEP.RECEIVE_DETACH): _STATE.CLOSED,
    (_STATE.DETACH_RECEIVED, _STEP.SEND_DETACH): _STATE.CLOSED,
}

# After our detach the peer may still write what it had under way; none of it counts.
DETACH_WRITTEN = frozenset({_STATE.DETACH_PIPE, _STATE.DETACH_SENT, _STATE.CLOSED})


def advance(state: LinkState, step: LinkStep) -> LinkState:
    """The state after step; IllegalState when the table has no such step from here."""
    try:
        return NEXT[state, step]
    except KeyError:
        raise IllegalState(f"{step.name} while the link is {state.name}") from None
