"""What one peer may make this process hold: its sessions and links, and the deliveries it has begun.

Channels and handles are advertised in thousands, since clients ask for many; this budget ends a peer that uses them to
fill memory. Sizes are estimates, in bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hubweir.amqp.transport.faults import ConnectionFault, LinkFault
from hubweir.amqp.transport.link_states import LinkState
from hubweir.amqp.transport.settings import EndpointSettings
from hubweir.errors import RESOURCE_LIMIT

if TYPE_CHECKING:  # a connection owns its budget: the import would go round
    from hubweir.amqp.transport.link import Link

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

    def charge_link(self, link: Link, attach_size: int) -> None:
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

    def hold_partial(self, link: Link, growth: int) -> None:
        """Count bytes of unfinished deliveries, negative when let go; LinkFault over the limit.

        Before the host accepts the link, the limit is what a stranger may hold.
        """
        self._partial_bytes += growth
        unaccepted = link.state is LinkState.ATTACH_RECEIVED
        limit = self._limits.buffered_before_auth_bytes if unaccepted else self._limits.max_partial_bytes
        if growth > 0 and self._partial_bytes > limit:
            raise LinkFault(link, RESOURCE_LIMIT, f"unfinished deliveries of more than {limit} bytes on one connection")
