"""Limits the memory that one peer's sessions, links and unfinished deliveries may take.

Channels and handles are advertised in thousands, since clients ask for many; this budget ends a peer that uses them to
fill memory. Sizes are estimates, in bytes.
"""

from __future__ import annotations

from typing import Protocol

from hubweir.amqp.transport.faults import ConnectionFault
from hubweir.amqp.transport.settings import EndpointSettings
from hubweir.errors import RESOURCE_LIMIT

# What a session and a link take, roughly measured. A link also keeps its attach as values, a few times its bytes.
SESSION_COST_BYTES = 2_048
LINK_COST_BYTES = 4_096
VALUES_PER_BYTE = 4


class Charged(Protocol):
    """Something that counts: how many bytes it counts for now."""

    state_bytes: int


class PeerBudget:
    """The two sums of one connection."""

    __slots__ = ("_limits", "_partial_bytes", "_state_bytes")

    def __init__(self, limits: EndpointSettings) -> None:
        self._limits = limits
        self._state_bytes = 0
        self._partial_bytes = 0

    def charge_link(self, link: Charged, attach_size: int) -> None:
        """Count a link whose attach has attach_size bytes."""
        self.charge(link, LINK_COST_BYTES + VALUES_PER_BYTE * attach_size)

    def charge(self, thing: Charged, size: int) -> None:
        """Count a session or a link; ConnectionFault over the limit."""
        thing.state_bytes = size
        self._state_bytes += size
        limit = self._limits.max_state_bytes
        if self._state_bytes > limit:
            raise ConnectionFault(RESOURCE_LIMIT, f"sessions and links of this connection need more than {limit} bytes")

    def give_back(self, thing: Charged) -> None:
        """It is forgotten; may be called more than once."""
        self._state_bytes -= thing.state_bytes
        thing.state_bytes = 0

    def hold_partial(self, growth: int, *, largest: int = 0, is_accepted: bool = True) -> int | None:
        """Count bytes of unfinished deliveries, negative when let go. Returns the limit that growth went over, if any.

        largest: bytes of the largest delivery that the link takes on which they came; one of them always fits.
        is_accepted: whether the host took that link; before, the limit is what a stranger may hold.
        """
        self._partial_bytes += growth
        limit = self._limits.buffered_before_auth_bytes
        if is_accepted:
            limit = max(self._limits.max_partial_bytes, largest)
        return limit if growth > 0 and self._partial_bytes > limit else None
