"""The start of a broker process, as its supervisor tells it over standard input: one JSON document.

Keys of namespaces are in it, so it is neither an argument nor a file (both can be read by others).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import msgspec

from hubweir import __version__
from hubweir.broker.commands.testcontrol import StandingOrders
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.settings import Settings
from hubweir.errors import HubweirError


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStart:
    """See the module's text.

    index: 0 … settings.brokers - 1. process_id: of this life of it, and of no other. supervisor: the system's number of
    the process that starts it. stores: how many messaging stores there are, of all processes. addresses: hosts and
    ports to listen on, none of them 0. named: the stores in which catalogs name logs, so that none of them is made
    anew. orders: of tests that stand: it goes by them from its first moment, since a store that saw time pass is not to
    see it run back.
    """

    settings: Settings
    namespaces: tuple[NamespaceSettings, ...]
    index: int
    process_id: int
    supervisor: int
    stores: int
    addresses: tuple[tuple[str, int], ...]
    named: tuple[int, ...]
    orders: StandingOrders

    @property
    def digest(self) -> str:
        """The same for all processes of one start, and of a later start with the same settings.

        Keys are left out: they are in the catalog, which every process follows. So are namespaces that were made while
        the service ran: a process follows those that there are.
        """
        named = (each for each in self.namespaces if not each.is_made_running)
        served = [(each.name, each.hostnames, each.profile, each.is_default) for each in named]
        settings = replace(self.settings, key="-")
        said = msgspec.json.encode([__version__, settings, served, self.stores])
        return hashlib.sha256(said).hexdigest()

    @property
    def own_stores(self) -> range:
        """The indexes of the messaging stores that this process has brokers of."""
        return own_stores(self.index, processes=self.settings.brokers, stores=self.stores)

    def encode(self) -> bytes:
        """The document. What a Config.json wants is left out: the supervisor makes it."""
        return msgspec.json.encode(
            replace(self, namespaces=tuple(replace(each, entities=None) for each in self.namespaces))
        )

    @classmethod
    def decode(cls, document: bytes) -> ProcessStart:
        """HubweirError when it is no such document. It is ours, of the same version."""
        try:
            return msgspec.json.decode(document, type=cls)
        except msgspec.MsgspecError as error:
            raise HubweirError(f"a broker process is started by `hubweir serve --brokers N` alone: {error}") from None


def own_stores(index: int, *, processes: int, stores: int) -> range:
    """The stores of one process: store i is served by process i mod N."""
    return range(index, stores, processes)
