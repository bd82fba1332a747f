"""Everybody knows the development key: with it a service listens on this machine only, unless it is told otherwise."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from hubweir.config.settings import DEVELOPMENT_KEY, BadSetting, Settings


def check_development_key(settings: Settings, keys: Iterable[str]) -> None:
    """Raise BadSetting when one of keys, the namespaces' own, is the development key and strangers could use it."""
    if DEVELOPMENT_KEY not in keys:
        return
    if settings.allow_development_key or settings.profile == "official-emulator":
        return
    for host in settings.host:
        if not is_loopback(host):
            raise BadSetting(
                f"host {host} can be reached from other machines, and everybody knows the development key "
                f"{DEVELOPMENT_KEY}: give a key of your own, or --allow-development-key if that is meant"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. Of names only localhost is trusted to be so."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
