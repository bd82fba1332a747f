"""Settings of a service that lower floors keep too: name, unit, default, range, meaning. Each stands here alone.

A class is what one floor is given. The settings of a service (config/settings.py) are all of them and more, so they are
handed down as they are, and nothing is copied. The safety limits are always on; each default has its reason beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KIB, MIB, GIB = 1024, 1024 * 1024, 1024 * 1024 * 1024
# Of a connection, an idle link and the like: a day, so that a typing error does not become a year.
TIME_LIMIT_MS = 86_400_000
# Throughput units of one namespace, as the service's pages sell them: singly up to so many, then in blocks of so many,
# up to a limit; and what a flag lifts that to.
SINGLE_UNITS = 20
UNITS_BLOCK = 20
UNITS_LIMIT = 100
RAISED_UNITS_LIMIT = 1_000


def are_sold(units: int) -> bool:
    """Whether that many units can be had: singly up to SINGLE_UNITS, then in blocks."""
    return 1 <= units <= SINGLE_UNITS or (units > SINGLE_UNITS and units % UNITS_BLOCK == 0)


def units_sold(units_limit: int = UNITS_LIMIT) -> str:
    """Which numbers of units a namespace may hold, for people."""
    if units_limit <= SINGLE_UNITS:
        return f"1 to {units_limit}"
    most = units_limit - units_limit % UNITS_BLOCK
    blocks = f", then {UNITS_BLOCK} more at a time up to {most}" if most > SINGLE_UNITS else ""
    return f"1 to {SINGLE_UNITS}{blocks}"


def setting(
    default: Any, meaning: str, *, least: int | None = None, most: int | None = None, secret: bool = False
) -> Any:
    """One line of a table. least and most bound numbers, each number of a list as well, in the settings of a service.

    They are for operators: a test may make a class of limits with less.
    """
    return field(
        default=default,
        repr=not secret,
        metadata={"meaning": meaning, "least": least, "most": most, "secret": secret},
    )


@dataclass(frozen=True, kw_only=True)
class UnitsLimits:
    """What throughput units may be."""

    max_throughput_units: int = setting(
        UNITS_LIMIT,
        f"the most throughput units that a namespace may hold: 1 to {SINGLE_UNITS}, then blocks of {UNITS_BLOCK}",
        least=1,
        most=RAISED_UNITS_LIMIT,
    )
    partition_cap: bool = setting(True, "while throughput units are on, a partition carries at most one of them")


@dataclass(frozen=True, kw_only=True)
class StoreLimits:
    """How a broker stores. The engine of a log takes its defaults from here."""

    log_segment_bytes: int = setting(
        256 * MIB, "a partition starts a new segment file at this size", least=MIB, most=4 * GIB
    )
    log_tail_bytes: int = setting(
        4 * MIB, "newest bytes of a partition that live readers are served from memory", least=64 * KIB, most=GIB
    )
    log_queue_bytes: int = setting(
        64 * MIB,
        "bytes of a partition that may wait for the disk; above it sends are refused",
        least=8 * MIB,
        most=4 * GIB,
    )
    retention_sweep_ms: int = setting(
        10_000, "time between two looks for segments past retention", least=100, most=3_600_000
    )


@dataclass(frozen=True, kw_only=True)
class CaptureLimits:
    """What retention keeps for capture. Its quota takes its defaults from here."""

    capture_backlog_bytes: int = setting(
        8 * GIB,
        "bytes of a partition that retention keeps for capture beyond their time; what is over it may go uncaptured",
        least=GIB,
        most=1024 * GIB,
    )
    capture_backlog_ms: int = setting(
        7 * TIME_LIMIT_MS, "time that retention keeps events longer for capture", least=0, most=365 * TIME_LIMIT_MS
    )


@dataclass(frozen=True, kw_only=True)
class PortLimits:
    """What a peer may do before it speaks AMQP."""

    first_bytes_ms: int = setting(
        10_000, "from accept to the first bytes, TLS handshake included", least=100, most=TIME_LIMIT_MS
    )
    undecided_connections: int = setting(
        2_048, "connections that said nothing yet; one more drops the oldest", least=16, most=65_536
    )
    http_head_ms: int = setting(
        10_000, "an HTTP request's head must be complete in this time", least=100, most=TIME_LIMIT_MS
    )


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """What one end of an AMQP connection keeps, whichever its role."""

    # What Azure's service offers.
    idle_timeout_ms: int = setting(
        240_000, "advertised in open; a peer is dropped after twice as long", least=1_000, most=TIME_LIMIT_MS
    )
    # A connection that proved nothing holds a socket for free. Azure's service ends connections without a link, and
    # those that proved nothing, after a minute too.
    unauthorized_connection_ms: int = setting(
        60_000, "a connection without an authorised link ends after this", least=1_000, most=TIME_LIMIT_MS
    )
    # 64 KiB holds a good batch; larger frames make other links of the connection wait longer.
    max_frame_size_bytes: int = setting(64 * KIB, "largest AMQP frame that is taken", least=4 * KIB, most=MIB)


@dataclass(frozen=True, kw_only=True)
class GatewayLimits(ConnectionLimits, UnitsLimits):
    """What the peers of one gateway process may do, and what its namespaces may hold."""

    # Clients attach again when they next send. Links of $cbs, of $management and of their answers are not detached:
    # clients attach them once for a connection's life.
    idle_link_ms: int = setting(
        600_000, "a link for events that carried nothing for this long is detached", least=1_000, most=TIME_LIMIT_MS
    )
    # One delivery, its batch envelope included. (Event Hubs quotas, standard tier)
    max_message_size_bytes: int = setting(MIB, "largest event or batch that is taken", least=KIB, most=8 * MIB)
    # Bytes that were taken from sockets and not answered yet. A socket is read again when half of them is answered.
    connection_budget_bytes: int = setting(
        16 * MIB, "bytes of a connection that wait to be stored; above it its socket is not read", least=MIB, most=GIB
    )
    process_budget_bytes: int = setting(
        256 * MIB, "the same for all connections together", least=16 * MIB, most=64 * GIB
    )
