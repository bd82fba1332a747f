"""The address that a peer's socket has: in words for the log, and whether it is on this machine."""

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


def address_text(address: object) -> str:
    """`127.0.0.1:5672`, `[::1]:5672`, or the path of a Unix socket; address: as in is_local."""
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = str(address[0]), address[1]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return str(address) if address else "a closed or local socket"
