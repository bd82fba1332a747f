"""Everybody knows the development key: with it a service listens on this machine only, unless it is told otherwise.

Even then it shows its portal, where one key is enough to delete everything, to this machine alone, unless it is told
that, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from hubweir.config.settings import DEVELOPMENT_KEY, BadSetting, DoorSettings, Settings


def check_development_key(settings: Settings, keys: Iterable[str]) -> None:
    """Raise BadSetting when one of keys, the namespaces' own, is the development key and strangers could use it."""
    host = _exposed_host(settings, keys)
    if host is None or settings.allow_development_key or settings.profile == "official-emulator":
        return
    raise BadSetting(
        f"host {host} can be reached from other machines, and everybody knows the development key "
        f"{DEVELOPMENT_KEY}: give a key of your own, or --allow-development-key if that is meant"
    )


def has_portal(settings: DoorSettings, keys: Iterable[str]) -> bool:
    """Whether `/portal` is served. keys: the namespaces' own."""
    return settings.portal == "on" or (settings.portal == "auto" and _exposed_host(settings, keys) is None)


def _exposed_host(settings: DoorSettings, keys: Iterable[str]) -> str | None:
    """The host by which strangers could use the development key; None: there is none."""
    exposed = (host for host in settings.host if not is_loopback(host))
    return next(exposed, None) if DEVELOPMENT_KEY in keys else None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. Of names only localhost is trusted to be so."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
