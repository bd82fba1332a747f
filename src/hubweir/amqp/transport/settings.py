"""The values that one end of a connection advertises, and the limits on everything its peer controls.

Each number has its reason beside it; those that an operator may set stand in hubweir/limits.py. A limit is enforced at
the first byte, frame or link over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hubweir.limits import ConnectionLimits


class Role(Enum):
    """Which end of the connection this is. The server answers; the client asks."""

    SERVER = "server"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Advertised: container_id to incoming_window. Limits: the rest. Sizes in bytes, times in milliseconds.

    hostname: client: what open and the SASL exchange name.
    """

    container_id: str
    hostname: str | None = None
    limits: ConnectionLimits = ConnectionLimits()
    channel_max: int = 4_999  # what Azure's service offers
    handle_max: int = 255  # what Azure's service offers
    incoming_window: int = 5_000  # frames; what Azure's service offers; refreshed at half

    sasl: bool = True
    sasl_may_be_left_out: bool = False  # server: a peer that begins with AMQP is taken, as one that proved nothing
    sasl_mechanism: str = "ANONYMOUS"  # client: which one it chooses
    sasl_response: bytes = b""  # client: the initial response

    header_deadline_ms: int = 10_000
    sasl_deadline_ms: int = 20_000
    linkless_timeout_ms: int = 300_000  # a connection whose last link is gone; as Azure's service has it
    close_deadline_ms: int = 5_000  # how long our close waits for the peer's

    open_frame_limit: int = 8_192  # open comes from a stranger; real ones have under 1 KiB
    buffered_before_auth_bytes: int = 65_536  # unread input while SASL waits; unfinished deliveries before accept
    max_partial_bytes: int = 16_777_216  # unfinished deliveries of all links together; one of the largest message fits
    max_state_bytes: int = 16_777_216  # sessions and links, by the estimates in budget.py
    max_name_bytes: int = 256  # link name, container id; real ones have under 100
    max_unsettled: int = 5_000  # per link; Azure's clients grant at most this many
