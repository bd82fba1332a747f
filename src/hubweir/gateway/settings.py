"""Settings of a gateway: limits and times, with a reason beside each number.

These are safety limits, always on. Quotas of a tier are no business of this page.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.namespace.host_names import HostNames


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Values of one gateway. Times are milliseconds, sizes are bytes. Frames, times and budgets are a process's own.

    namespace: the name that error texts name as the tracker. host_name: what resource addresses in texts start with.
    container_id: ours, in open.
    """

    namespace: str = "hubweir"
    host_name: str = "localhost"
    container_id: str = "hubweir"
    max_frame_size_bytes: int = 65_536
    # What a client may send in one delivery, its batch envelope included. (Event Hubs quotas, standard tier)
    max_message_size_bytes: int = 1_048_576
    # Advertised; a peer is dropped after twice as long. The same as the service.
    idle_timeout_ms: int = 240_000
    # A connection that proved nothing holds a socket for free: the service ends it after a minute too.
    unauthorized_connection_ms: int = 60_000
    # A connection whose last link is gone may attach another meanwhile. The same as the service.
    linkless_connection_ms: int = 300_000
    # A link for events that carried nothing for this long is detached; clients attach again when they next send. Links
    # of $cbs, of $management and of their answers are not: clients attach them once for a connection's life.
    idle_link_ms: int = 600_000
    # Credit on links that bring events, and on request links; topped up at half.
    publisher_credit: int = 1_000
    request_credit: int = 100
    # put-token: one client may put one a partition in one go, then a steady few a second. Delayed, never refused.
    put_token_burst: int = 256
    put_token_per_second: int = 10
    # Bytes that were taken from sockets and not answered yet. Above it a socket is read no more until half is answered.
    connection_budget_bytes: int = 16 * 1024 * 1024
    process_budget_bytes: int = 256 * 1024 * 1024
    # A partition's open run is handed over early at this size, so that one append stays one bounded write.
    run_limit_bytes: int = 4 * 1024 * 1024
    # One read of a reader: what each may ask for, and what one that catches up grows to.
    read_bytes: int = 128 * 1024
    read_most_bytes: int = 1024 * 1024
    # What all links of a connection may send before it is flushed and other connections have their turn: the first is
    # every connection's minimum, the second is the most that the pool of the process adds to. A peer that reads nothing
    # costs this much memory, or one event's size when that is more. A whole large read in one turn spares most of what
    # turns cost.
    turn_bytes: int = 64 * 1024
    turn_most_bytes: int = 1024 * 1024
    # An idle reader asks again after this long; its broker wakes it at once when there are events.
    read_wait_ms: int = 60_000
    # While throughput units are on, a partition carries at most what one unit carries.
    partition_cap: bool = True
    # How many units a namespace may hold, as in the standard tier. (Event Hubs quotas)
    max_throughput_units: int = 40
    # More connections than this are closed after open; None: as many as the system lets it.
    connections_max: int | None = None
    # SASL PLAIN shows a key, and whoever listens in has it: from another machine it is taken over TLS only.
    plain_without_tls: bool = False
    # Requests for runtime information that a namespace answers in a second; None: as many as come. (Event Hubs quotas)
    management_reads_per_second: int | None = None
    # The hosts of the namespace; None: every host, as the official emulator has it.
    hosts: HostNames | None = None
    # The rule of the namespace that every start takes from the settings; it is not changed any other way.
    settings_rule: str = ""
    # The storage account that captured files may go to; empty: none, only to the local folder.
    # Whose JSON Web Tokens are taken besides shared access signatures; None: nobody's.
    issuer: IssuerKeys | None = None
