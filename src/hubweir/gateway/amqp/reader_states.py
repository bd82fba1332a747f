"""The states of a reader's link and the steps between them. The table is the documentation.

While a link waits for an answer of its broker or for an event of the engine, it reads nothing and sends nothing; what
it waits for makes it go on. A run may be held in any of these states but the first, or none (held_run.py).
"""

from __future__ import annotations

from enum import auto

from hubweir.amqp.transport.state import State


class ReaderState(State):
    """OPENING: for the broker to open the reader. READY: for nothing; credit, window, transport and turn say how far it
    goes. READING: for a run. CANCELLED: the same, and the broker was told to answer at once, since the receiver drains.
    ASKING: to be told how far the partition reaches. UNSETTLED: for dispositions, as many deliveries are unsettled as
    may be; credit makes it try again too.
    """

    OPENING = auto()
    READY = auto()
    READING = auto()
    CANCELLED = auto()
    ASKING = auto()
    UNSETTLED = auto()
    OVER = auto()


class ReaderStep(State):
    """Steps between the states of a reader's link. STOP: nothing went out, for want of dispositions."""

    OPENED = auto()
    READ = auto()
    CANCEL = auto()
    ASK = auto()
    ANSWERED = auto()
    STOP = auto()
    GO_ON = auto()
    END = auto()


_STATE, _STEP = ReaderState, ReaderStep

NEXT: dict[tuple[ReaderState, ReaderStep], ReaderState] = {
    (_STATE.OPENING, _STEP.OPENED): _STATE.READY,
    (_STATE.READY, _STEP.READ): _STATE.READING,
    (_STATE.READY, _STEP.ASK): _STATE.ASKING,
    (_STATE.READY, _STEP.STOP): _STATE.UNSETTLED,
    (_STATE.READING, _STEP.CANCEL): _STATE.CANCELLED,
    (_STATE.READING, _STEP.ANSWERED): _STATE.READY,
    (_STATE.CANCELLED, _STEP.ANSWERED): _STATE.READY,
    (_STATE.ASKING, _STEP.ANSWERED): _STATE.READY,
    (_STATE.UNSETTLED, _STEP.GO_ON): _STATE.READY,
    # The link can end in any state; nothing follows.
    **{(state, _STEP.END): _STATE.OVER for state in _STATE},
}
