"""The catalogs of a data folder at a start: which namespace each belongs to.

The catalogs' store has one log for each namespace, with the name in it:

- config/namespaces_at_start.py decides what is served, by what the start says and by what these catalogs say.
- A namespace that is new gets a new catalog. What a crash left without a name is taken first.
- A catalog that is lost ends the start: a new one in its place would show an empty namespace.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.alarms import LOGS_UNNAMED
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.env import Env
from hubweir.errors import CatalogLost, LogLost
from hubweir.messaging_store.log import Log
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_log import CatalogLog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.event_hub_description import PARTITIONS_LIMIT
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.tiers import PROFILES

CATALOG = "the catalog of a namespace"  # its log, in alarms


class StoredNamespaces:
    """The catalogs of a data folder, each read once, here. Blocks while logs are read.

    unnamed: the ids of logs of partitions that no catalog names.
    """

    def __init__(self, env: Env, catalogs: MessagingStore, logs: Sequence[str] = ()) -> None:
        """logs: ids of all logs of partitions. Raises CatalogLost, and as create_log and CatalogLog do."""
        self._env, self._catalogs = env, catalogs
        self._named: dict[str, Log] = {}
        self._nameless: list[Log] = []
        self.descriptions: list[NamespaceDescription] = []
        ours: set[str] = set()
        for log_id in catalogs.log_ids():
            log, catalog = self._catalog(log_id)
            ours.update(placement.log_id for entity in catalog.entities() for placement in entity.placements)
            description = catalog.namespace
            if description.name:
                self._named[fold(description.name)] = log
                self.descriptions.append(description)
            else:
                self._nameless.append(log)
        self.unnamed = tuple(log_id for log_id in logs if log_id not in ours)
        if self.unnamed:
            text = f"no catalog names {len(self.unnamed)} logs of partitions: {', '.join(self.unnamed[:3])}"
            catalogs.alarms.begin(LOGS_UNNAMED, "the data folder", text)

    def _catalog(self, log_id: str) -> tuple[Log, Catalog]:
        try:
            log = self._catalogs.create_log(log_id, name=CATALOG)
        except LogLost as error:
            raise CatalogLost(
                f"the catalog of a namespace is lost: {error}. Nothing was changed; without it nobody knows whose its "
                "hubs' logs are (`hubweir store list` shows them)"
            ) from error
        return log, CatalogLog(log, self._env).catalog

    def open(
        self, served: NamespaceSettings, *, partitions_limit: int = PARTITIONS_LIMIT, capture_account: str = ""
    ) -> CatalogWriter:
        """The namespace on its catalog, which is made when it is new. partitions_limit, capture_account: ChangeContext.

        CatalogLost, and nothing is made, when there are logs that no catalog names: its own may be the lost one.
        After a crash in between: a catalog without a name, which the next start takes.
        """
        log = self._named.get(fold(served.stored_name))
        if log is None and self.unnamed:
            raise CatalogLost(_lost_text(served.name, self.unnamed))
        if log is None:
            log = self._nameless.pop() if self._nameless else None
        log = log or self._catalogs.create_log(self._env.new_id(), name=CATALOG)
        return CatalogWriter(
            log,
            self._env,
            profile=PROFILES[served.profile],
            host=served.name,
            partitions_limit=partitions_limit,
            capture_account=capture_account,
        )


def _lost_text(name: str, unnamed: Sequence[str]) -> str:
    more = f" and {len(unnamed) - 1} more" if len(unnamed) > 1 else ""
    return (
        f"namespace {name} has no catalog here, and no catalog names the log {unnamed[0]}{more} of partitions: a "
        "catalog is lost. Put the folder `catalog` back from a backup; `hubweir store list` shows what is there. "
        "Whoever gives these events up moves the folders of these logs away"
    )
