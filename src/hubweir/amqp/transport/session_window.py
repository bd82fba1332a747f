"""Counts the transfer frames that may go each way before the receiver speaks again (part 2, section 2.5.6).

Both windows count frames, not deliveries. The incoming one is advice: some clients count deliveries against it, so a
delivery of many frames overruns it, and a client that never reads flows stops for good when it is used up. So we do
not enforce it and refresh it early.
"""

from __future__ import annotations

from hubweir.amqp.transport.serial_number import MODULUS, distance

# Azure's service starts here; the number itself means nothing.
FIRST_OUTGOING_ID = 1


class SessionWindow:
    """The four numbers of a session that every flow frame carries."""

    __slots__ = ("_unannounced", "incoming_window", "next_incoming_id", "next_outgoing_id", "remote_window")

    def __init__(self, incoming_window: int) -> None:
        self.incoming_window = incoming_window
        self.next_incoming_id: int | None = None  # unknown before the peer's begin
        self.next_outgoing_id = FIRST_OUTGOING_ID
        self.remote_window = 0  # frames that the peer takes now
        self._unannounced = 0

    def on_begin(self, next_outgoing_id: int, incoming_window: int) -> None:
        """Take the start of the peer's numbers and its first window."""
        self.next_incoming_id = next_outgoing_id
        self.on_flow(None, incoming_window)

    def on_flow(self, next_incoming_id: int | None, incoming_window: int) -> None:
        """Take the peer's window. next_incoming_id: None when it had not seen our begin, so none of our frames."""
        seen = FIRST_OUTGOING_ID if next_incoming_id is None else next_incoming_id
        # A peer that says it saw frames which we never sent gets no larger window for it.
        in_flight = max(0, distance(self.next_outgoing_id, seen))
        self.remote_window = max(0, incoming_window - in_flight)

    def received(self, frames: int) -> bool:
        """Count transfer frames that came; True when half of the window is used up and a flow is due."""
        if self.next_incoming_id is not None:
            self.next_incoming_id = (self.next_incoming_id + frames) % MODULUS
        self._unannounced += frames
        return self._unannounced * 2 >= self.incoming_window

    def announced(self) -> None:
        """A flow frame went out: the peer knows all we have received."""
        self._unannounced = 0

    def sent(self, frames: int) -> None:
        """Count transfer frames that went out."""
        self.next_outgoing_id = (self.next_outgoing_id + frames) % MODULUS
        self.remote_window = max(0, self.remote_window - frames)
