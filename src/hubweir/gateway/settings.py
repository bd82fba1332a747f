"""Settings of a gateway: of each link, and of one namespace.

What an operator may set is hubweir/limits.py, what a tier sells is namespace/tiers.py. Beside a number is its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.auth.issuer_keys import IssuerKeys
from hubweir.limits import GatewayLimits
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.resource_path import fold
from hubweir.namespace.tiers import DEVELOPMENT, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """How much goes over a link at a time. Times are milliseconds, sizes are bytes. Tests alone have others."""

    # Credit on links that bring events, and on request links; topped up at half.
    publisher_credit: int = 1_000
    request_credit: int = 100
    # put-token: one client may put one a partition in one go, then a steady few a second. Delayed, never refused.
    put_token_burst: int = 256
    put_token_per_second: int = 10
    # A partition's open run is handed over early at this size, so that one append stays one bounded write.
    run_limit_bytes: int = 4 * 1024 * 1024
    # One read of a reader: what each may ask for, and what one that catches up grows to.
    read_bytes: int = 128 * 1024
    read_limit_bytes: int = 1024 * 1024
    # What all links of a connection may send before it is flushed and other connections have their turn: the first is
    # every connection's minimum, the second is the most that the pool of the process adds to. A peer that reads nothing
    # costs this much memory, or one event's size when that is more. A whole large read in one turn spares most of what
    # turns cost.
    turn_bytes: int = 64 * 1024
    turn_limit_bytes: int = 1024 * 1024
    # An idle reader asks again after this long; its broker wakes it at once when there are events.
    read_wait_ms: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """What the gateway of one namespace is told of it.

    namespace: the name that error texts name as the tracker. host_name: what resource addresses in texts start with.
    hosts: that lead to it; None: host_name alone. profile: its quotas. plain_without_tls: SASL PLAIN shows a key, and
    whoever listens in has it; from another machine it is taken over TLS only, unless this is set. settings_rule: the
    rule that every start takes from the settings; it is not changed any other way. issuer: whose JSON Web Tokens are
    taken besides shared access signatures; None: nobody's. lone_receives: a receive over HTTP from a partitioned entity
    asks one fragment alone.
    """

    namespace: str = "hubweir"
    host_name: str = "localhost"
    hosts: HostNames | None = None
    profile: Profile = DEVELOPMENT
    plain_without_tls: bool = False
    settings_rule: str = ""
    issuer: IssuerKeys | None = None
    lone_receives: bool = False

    @property
    def known_hosts(self) -> HostNames:
        """The hosts that lead to it."""
        return self.hosts or HostNames(frozenset((fold(self.host_name),)))

    def max_message_size_bytes(self, limits: GatewayLimits) -> int:
        """The largest event or batch that is taken: its process sets a limit, and so may its profile."""
        if not self.profile.has_quotas:
            return limits.max_message_size_bytes
        return min(limits.max_message_size_bytes, self.profile.message_size_bytes)
