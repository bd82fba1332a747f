"""Whether a peer is on this machine, by the address that its socket has."""

from __future__ import annotations

import ipaddress


def is_local(address: object) -> bool:
    """True for a loopback address and for a Unix socket; address: as `getpeername` gives it, None when it is unknown.

    An IPv4 peer on a socket of IPv6 has its address inside one of IPv6.
    """
    if isinstance(address, str | bytes):
        return True
    if not isinstance(address, tuple) or not address:
        return False
    try:
        found = ipaddress.ip_address(address[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_loopback
