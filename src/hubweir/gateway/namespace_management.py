"""Makes and deletes whole namespaces while a service runs: what a door asks of the process that keeps their catalogs.

Whoever may manage the default namespace may ask for it: its root key is the one that the service was started with, so
whoever has it runs the service. What namespaces there are, a process sees in its gateways.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from hubweir.namespace.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNamespace:
    """A namespace that somebody wants. hostnames: besides those that its name makes.

    profile: of its quotas; "": that of the default namespace. key: primary key of its root rule; empty: one is drawn.
    """

    name: str
    hostnames: tuple[str, ...] = ()
    profile: str = ""
    key: Secret = field(default_factory=lambda: Secret(""), repr=False)
    throughput_units: int = 0
    maximum_throughput_units: int = 0


@dataclass(frozen=True, slots=True)
class RestoreState:
    """How far a restore is. copied_bytes, size_bytes: of its logs. problem: why it failed, and what is left of it."""

    copied_bytes: int
    size_bytes: int
    is_over: bool
    problem: str


class NamespaceManagement(Protocol):
    """Of one process. ServiceError says why something is refused, and what is left of it."""

    async def create(self, wanted: NewNamespace) -> None:
        """Make a namespace. When it comes back, every process serves it, and a crash does not take it away."""

    async def delete(self, name: str) -> None:
        """Delete a namespace with all that it holds. When it comes back, no process serves it and its logs are gone.

        The default one is refused with NOT_ALLOWED. STORE_OFFLINE: it is not served any more, and goes by itself, also
        over a crash, when the disk can.
        """

    async def restore(self, name: str, source: str) -> None:
        """Begin to restore a namespace of a backup, with all that it holds: it goes on by itself, and is served behind
        its end. One at a time; SERVER_BUSY. A crash before the end leaves nothing that is served.

        source: the folder of the backup, on the machine of the process that keeps the catalogs.
        """

    async def restore_state(self, name: str) -> RestoreState:
        """How far the newest restore of that namespace is; NOT_FOUND: none began since the service did."""
