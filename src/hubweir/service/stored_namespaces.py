"""The catalogs of a data folder at a start: which namespace each belongs to.

The catalogs' store has one log for each namespace, with the name in it:

- config/namespaces_at_start.py decides what is served, by what the start says and by what these catalogs say.
- A namespace that is new gets a new catalog. What a crash left without a name is taken first.
- A catalog that is lost ends the start: a new one in its place would show an empty namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from hubweir.alarms import LOGS_UNNAMED, Alarms
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.env import Env, Result
from hubweir.errors import CatalogLost, LogLost
from hubweir.messaging_store.log import Durability, Log, Refused
from hubweir.messaging_store.log_store import LogStore, NotOpened
from hubweir.namespace.catalog_log import LoadedCatalog, load_catalog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.entity import Placement
from hubweir.namespace.event_hub_description import PARTITIONS_LIMIT
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.tiers import PROFILES
from hubweir.service.completions import answer, done
from hubweir.service.data_folder import StoredLog, store_folder

CATALOG = "the catalog of a namespace"  # its log, in alarms
UNNAMED_ABOUT = "the data folder"


@dataclass(frozen=True, slots=True)
class StoredCatalog:
    """A catalog as it was read. log: in which it lies."""

    log: Log
    loaded: LoadedCatalog


class StoredNamespaces:
    """The catalogs of a data folder, each read once. Made by `read`.

    descriptions: of all namespaces that are to be served. deleting: the catalogs of those that are being
    deleted. unnamed: the ids of logs of partitions that no catalog names. stores: those in
    which catalogs name logs, by index.
    """

    def __init__(self, env: Env, catalogs: LogStore, alarms: Alarms) -> None:
        self._env, self._catalogs, self._alarms = env, catalogs, alarms
        self._named: dict[str, StoredCatalog] = {}
        self._nameless: list[StoredCatalog] = []
        self.descriptions: list[NamespaceDescription] = []
        self.deleting: list[StoredCatalog] = []
        self.unnamed: tuple[str, ...] = ()
        self.stores: frozenset[int] = frozenset()

    @classmethod
    async def read(
        cls, env: Env, catalogs: LogStore, alarms: Alarms, logs: Sequence[StoredLog] = ()
    ) -> StoredNamespaces:
        """Read all of them. logs: all logs of partitions, where they are.

        Raises CatalogLost, and what keeps a log or what is in it from being read.
        """
        stored = cls(env, catalogs, alarms)
        placed: list[Placement] = []
        for log_id in catalogs.log_ids():
            found = await stored._load(log_id)
            catalog = found.loaded.catalog
            placed += (placement for entity in catalog.entities() for placement in entity.placements)
            description = catalog.namespace
            if description.is_deleting:
                stored.deleting.append(found)
            elif description.name:
                stored._named[fold(description.name)] = found
                stored.descriptions.append(description)
            else:
                stored._nameless.append(found)
        homes = {placement.log_id: store_folder(placement.store_index) for placement in placed}
        stored.stores = frozenset(placement.store_index for placement in placed)
        stored.unnamed = tuple(log.log_id for log in logs if log.log_id not in homes)
        if stored.unnamed:
            text = f"no catalog names {len(stored.unnamed)} logs of partitions: {', '.join(stored.unnamed[:3])}"
            alarms.begin(LOGS_UNNAMED, UNNAMED_ABOUT, text)
        for log in logs:
            home = homes.get(log.log_id, log.store)
            if home != log.store:
                text = (
                    f"log {log.log_id} is served from {home}, and {log.store} has files of it, which a move left: stop "
                    f"the service and run `hubweir store move {log.log_id} --to {home}` to remove them"
                )
                alarms.begin(LOGS_UNNAMED, f"store {log.store}", text)
        return stored

    async def open(
        self, served: NamespaceSettings, *, partitions_limit: int = PARTITIONS_LIMIT, capture_account: str = ""
    ) -> CatalogWriter:
        """The namespace on its catalog, which is made when it is new. partitions_limit, capture_account: ChangeContext.

        CatalogLost, and nothing is made, when there are logs that no catalog names: its own may be the lost one.
        After a crash in between: a catalog without a name, which the next start takes.
        """
        stored = self._named.get(fold(served.stored_name))
        if stored is None and self.unnamed:
            raise CatalogLost(_lost_text(served.name, self.unnamed))
        if stored is None:
            stored = self._nameless.pop() if self._nameless else await self._load(self._env.new_id())
            self._named[fold(served.name)] = stored
        return CatalogWriter(
            stored.log,
            self._env,
            stored.loaded,
            profile=PROFILES[served.profile],
            host=served.name,
            partitions_limit=partitions_limit,
            capture_account=capture_account,
        )

    def take_catalog(self, name: str) -> StoredCatalog:
        """Know nothing more of a namespace that is being deleted: its name is free. Returns its catalog."""
        return self._named.pop(fold(name))

    async def give_back_catalog(self, name: str) -> None:
        """A new namespace could not be described: its catalog, which nobody named, is the next new one's.

        Where it turns out to be named after all, the next start serves it.
        """
        found = await self._load(self.take_catalog(name).log.log_id)
        if not found.loaded.catalog.namespace.name:
            self._nameless.append(found)

    async def raise_epoch(self, newest: int) -> None:
        """Have the catalogs' store write above an epoch, of a catalog that comes into it. HubweirError, OSError."""
        taken: Result[int] = await answer(partial(self._catalogs.raise_epoch, newest))
        taken.value()

    async def take_in(self, catalog_id: str, log_ids: Iterable[str]) -> None:
        """Know a catalog that came into the store: `open` gives its namespace. log_ids: the logs that it names."""
        found = await self._load(catalog_id)
        self._named[fold(found.loaded.catalog.namespace.name)] = found
        known = frozenset(log_ids)
        self.unnamed = tuple(each for each in self.unnamed if each not in known)
        if not self.unnamed:
            self._alarms.end(LOGS_UNNAMED, UNNAMED_ABOUT)

    async def remove(self, catalog: StoredCatalog) -> None:
        """Remove a catalog that has no entities any more. OSError: it is there in part, and is to be removed again.

        After a crash: it is there as before, or it is gone.
        """
        log_id = catalog.log.log_id
        await done(partial(self._catalogs.close_log, log_id))
        removed: Result[None] = await answer(partial(self._catalogs.delete_log, log_id))
        removed.value()

    async def _load(self, log_id: str) -> StoredCatalog:
        """Open the log, which is made when it never was, and read what is in it."""
        opening = partial(self._catalogs.open_log, log_id, durability=Durability.DURABLE, name=CATALOG, makes=True)
        log = await answer(opening)
        if isinstance(log, NotOpened):
            if isinstance(log.error, LogLost):
                raise CatalogLost(
                    f"the catalog of a namespace is lost: {log.error}. Nothing was changed; without it nobody knows "
                    "whose its hubs' logs are (`hubweir store list` shows them)"
                ) from log.error
            raise log.error
        loaded = await answer(partial(load_catalog, log))
        if isinstance(loaded, Refused):
            raise loaded.error
        return StoredCatalog(log, loaded)


def _lost_text(name: str, unnamed: Sequence[str]) -> str:
    more = f" and {len(unnamed) - 1} more" if len(unnamed) > 1 else ""
    return (
        f"namespace {name} has no catalog here, and no catalog names the log {unnamed[0]}{more} of partitions: a "
        "catalog is lost. Put the folder `catalog` back from a backup; `hubweir store list` shows what is there. "
        "Whoever gives these events up moves the folders of these logs away"
    )
