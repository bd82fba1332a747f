"""Paces one link: sends small pieces, each reserved at the namespace's units and sent when it is due.

How many bytes the next events have is known once they are written, so a piece is reserved by the mean size of the
run in hand and settled to what went out. While units are off nothing is reserved and everything is counted.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.env import Timer
from hubweir.gateway.keeper.lent_units import LentUnits
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.throughput_unit.admission import Paced

PIECE_BYTES = 64 * 1024


class EgressPacer:
    """Of one link. now_ms: the monotonic clock. call_later: of the Env. go_on: called when the piece is due."""

    def __init__(
        self,
        units: NamespaceUnits | LentUnits,
        now_ms: Callable[[], int],
        call_later: Callable[[int, Callable[[], None]], Timer],
        go_on: Callable[[], None],
    ) -> None:
        self._units = units
        self._now_ms = now_ms
        self._call_later = call_later
        self._go_on = go_on
        self._paced: Paced | None = None
        self._size_bytes = 0
        self._events = 0
        self._timer: Timer | None = None

    def allowed(self, credit: int, events: int, size_bytes: int) -> int:
        """How many events may be sent now, at most credit; 0: none before go_on is called.

        events, size_bytes: about what is left of the run in hand.
        """
        admission = self._units.admission
        if self._timer is not None:
            return 0
        if self._paced is None:
            if admission.units is None:
                return credit
            mean = max(1, size_bytes // max(1, events))
            self._events = max(1, min(credit, max(1, events), PIECE_BYTES // mean))
            self._size_bytes = self._events * mean
            self._paced = admission.reserve_egress(self._size_bytes, self._events, self._now_ms())
            self._units.inflated()
            if self._paced.delay_ms:
                self._units.read_waits()
                self._timer = self._call_later(self._paced.delay_ms, self._due)
                return 0
        return min(credit, self._events)

    def sent(self, events: int, size_bytes: int) -> None:
        """This went out of what was allowed; bytes as they are on the wire."""
        admission, paced = self._units.admission, self._paced
        if paced is None:
            if events:
                admission.reserve_egress(size_bytes, events, self._now_ms())
            return
        self._paced = None
        # More bytes than were reserved are a negative rest, which is taken.
        admission.give_back_unsent(paced, self._size_bytes - size_bytes, self._events - events, self._now_ms())

    def close(self) -> None:
        """The link is over: nothing more of it is sent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._paced is not None:
            self.sent(0, 0)
        self._go_on = _nobody  # it would hold the link

    def _due(self) -> None:
        self._timer = None
        self._go_on()


def _nobody() -> None:
    """The link is over."""
