"""Makes whoever fails to sign in wait: the first failures are free, then each doubles the time.

A try counts as a failure when it begins, so that many at once are not free. A success takes back itself alone: else
whoever has a key that may do little could try others for ever, with it in between.

A peer is an IPv4 address or the /64 network of an IPv6 address, whoever a proxy says that it is. Of many peers the
one whose failure is the oldest is forgotten first, so that the table stays small. After a start nobody has failed.
Times are milliseconds of the monotonic clock.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

FREE_FAILURES = 5
FIRST_WAIT_MS, LAST_WAIT_MS = 30_000, 15 * 60_000
PEERS_LIMIT = 1_024
_IPV6_PREFIX = 64


@dataclass(slots=True)
class _Failures:
    """newest_ms: when the newest was; before_ms: the one before it, should that one turn out to be none."""

    count: int
    newest_ms: int
    before_ms: int

    def ends_ms(self) -> int:
        """Until when the peer has to wait."""
        over = self.count - FREE_FAILURES
        wait_ms = min(LAST_WAIT_MS, FIRST_WAIT_MS << min(over, 16)) if over >= 0 else 0
        return self.newest_ms + wait_ms


class Lockout:
    """See the module's text."""

    def __init__(self) -> None:
        self._peers: dict[str, _Failures] = {}  # the oldest failure first

    def __len__(self) -> int:
        return len(self._peers)

    def try_now(self, peer: str, now_ms: int) -> int:
        """How long this peer has to wait before its next try; 0: it tries now, and that counts as a failure until it
        succeeded. Failures count together until none came for LAST_WAIT_MS behind the wait.
        """
        key = _network(peer)
        known = self._peers.get(key)
        if known is not None and known.ends_ms() > now_ms:
            return known.ends_ms() - now_ms
        self._peers.pop(key, None)
        if known is None or now_ms - known.ends_ms() > LAST_WAIT_MS:
            known = _Failures(0, now_ms, now_ms)
        self._peers[key] = _Failures(known.count + 1, now_ms, known.newest_ms)
        if len(self._peers) > PEERS_LIMIT:
            del self._peers[next(iter(self._peers))]
        return 0

    def succeeded(self, peer: str) -> None:
        """Its newest try was no failure; those before it stay what they were."""
        key = _network(peer)
        known = self._peers.get(key)
        if known is None:
            return
        if known.count == 1:
            del self._peers[key]
        else:
            self._peers[key] = _Failures(known.count - 1, known.before_ms, known.before_ms)


def _network(peer: str) -> str:
    """peer: an address as a socket has it."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
    return str(address)
