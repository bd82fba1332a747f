"""The namespaces of a service as its processes tell them to each other: JSON, by the same version of the code.

Only what a gateway is made with is told: the rest is in the catalogs, which every process follows, keys too.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.errors import HubweirError


def encode_namespaces(namespaces: Iterable[NamespaceSettings]) -> bytes:
    """The default one comes first."""
    return msgspec.json.encode([told(each) for each in namespaces])


def told(namespace: NamespaceSettings) -> NamespaceSettings:
    """What of a namespace makes another gateway of it, when it is another."""
    return NamespaceSettings(
        name=namespace.name,
        is_default=namespace.is_default,
        is_made_running=namespace.is_made_running,
        hostnames=namespace.hostnames,
        profile=namespace.profile,
        key="",
    )


def decode_namespaces(data: bytes | memoryview) -> tuple[NamespaceSettings, ...]:
    """HubweirError when they are none: another version said it."""
    try:
        return msgspec.json.decode(data, type=tuple[NamespaceSettings, ...])
    except msgspec.MsgspecError as error:
        raise HubweirError(f"the namespaces that the keeper told cannot be read: {error}") from None
