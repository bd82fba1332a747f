"""A data folder seen from outside: its stores, their logs, and whose each log is, by the catalogs that lie in it.

Nothing is locked and nothing is written, so a server may run on the folder meanwhile; what is told is what stood in
the files at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from hubweir.config.settings import Settings
from hubweir.env import join_path
from hubweir.errors import HubweirError
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.inspection import look_at_log
from hubweir.messaging_store.disk.layout import FORMAT_NAME, FORMAT_TEXT, LOGS_FOLDER
from hubweir.messaging_store.disk.newest_segment import is_lost, log_ids_in
from hubweir.messaging_store.disk.read_only_files import ReadOnlyFiles, read_again
from hubweir.messaging_store.disk.recovery import Recovered
from hubweir.messaging_store.disk.whole_file import read_whole
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.entity import EntityStatus, of_kind
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.service.backup import read_catalog
from hubweir.service.data_folder import CATALOG_FOLDER, STORE_PREFIX, check_data_format, store_folder

takes_data = click.option(
    "--data",
    type=click.Path(path_type=Path),
    envvar="HUBWEIR_DATA",
    default=Settings.__dataclass_fields__["data"].default,
    show_default=True,
    help="The data folder of a service; a server may be running on it.",
)

LEFT_OVER = "left of a move"

_STATES = {EntityStatus.CREATING: "being made", EntityStatus.ACTIVE: "", EntityStatus.DELETING: "being deleted"}


class NoSuchLog(HubweirError):
    """The folder holds no stores, or none of its logs is the one that was named."""


class Unreadable(HubweirError):
    """The system does not let a file be read."""


@dataclass(frozen=True, slots=True)
class OwnedLog:
    """One log. entity: whose it is, such as `hub orders, partition 3`; `unknown` when no catalog names it.

    state: empty when it is in use; `being made`, `being deleted`, `missing`; `left of a move` where the catalog names
    another store for it. hub, partition_id: None for a catalog; of
    a queue or a topic its name, and the fragment's number. is_captured: the catalog says that capture is on.
    """

    store: str
    log_id: str
    entity: str
    state: str = ""
    namespace: str | None = None
    hub: str | None = None
    partition_id: str | None = None
    is_captured: bool = False

    @property
    def folder(self) -> str:
        return join_path(self.store, LOGS_FOLDER, self.log_id)

    @property
    def paths(self) -> tuple[str, ...]:
        """What a person may call it, in lower case: with and without its namespace."""
        if self.hub is not None:
            own = f"{self.hub}/{self.partition_id}"
            return fold(own), fold(f"{self.namespace}/{own}")
        return (CATALOG_FOLDER, fold(f"{CATALOG_FOLDER}/{self.namespace}")) if self.namespace is not None else ()


class DataFolder:
    """See the module's text. Everything blocks and may raise OSError, NewerFormat, OldFormat or CorruptStore."""

    def __init__(self, path: Path) -> None:
        """Raises NoSuchLog when there is no data folder at path, which is not made, and as check_data_format does."""
        if not path.is_dir():
            raise NoSuchLog(f"there is no data folder {path}")
        self.path = path
        self.files = ReadOnlyFiles(SystemFiles(path))
        check_data_format(self.files, str(path))
        self.stores = [name for name in self.files.list("") if self._is_store(name)]
        if not self.stores:
            raise NoSuchLog(f"{path} holds no stores: it is no data folder of hubweir serve")

    def logs(self) -> list[OwnedLog]:
        """All logs, in the order of stores and entities, then those that nobody names."""
        known: dict[tuple[str, str], OwnedLog] = {}
        ids = {(store, log_id) for store in self.stores for log_id in self._log_ids(store)}
        there = {(store, log_id) for store, log_id in ids if not is_lost(self.files, store, log_id)}
        for store, log_id in sorted(ids):
            if store.startswith(CATALOG_FOLDER):
                for log in self._owned_by(store, log_id):
                    known[log.store, log.log_id] = log
        missing = {
            place: OwnedLog(
                log.store, log.log_id, log.entity, log.state or "missing", log.namespace, log.hub, log.partition_id
            )
            for place, log in known.items()
            if place not in there
        }
        known |= missing
        owners = {log.log_id: log.entity for log in known.values()}
        others = [
            OwnedLog(store, log_id, owners.get(log_id, "unknown"), LEFT_OVER if log_id in owners else "")
            for store, log_id in sorted(ids - known.keys())
        ]
        return [*known.values(), *others]

    def catalogs(self) -> Iterator[tuple[NamespaceDescription, Catalog]]:
        """Every catalog that is there and names its namespace."""
        for store in self.stores:
            if store.startswith(CATALOG_FOLDER):
                for log_id in self._log_ids(store):
                    if not is_lost(self.files, store, log_id):
                        catalog = read_catalog(self.files, store, log_id)
                        if catalog.namespace.name:
                            yield catalog.namespace, catalog

    def namespaces(self) -> list[NamespaceDescription]:
        """Those that a start would serve."""
        return [description for description, _ in self.catalogs() if not description.is_deleting]

    def find(self, name: str) -> OwnedLog:
        """The log of that id (or its first digits), of HUB/PARTITION, or `catalog`. NoSuchLog for none, or several.

        Where there are several namespaces: NAMESPACE/HUB/PARTITION, catalog/NAMESPACE.
        """
        logs, folded = [log for log in self.logs() if log.state != LEFT_OVER], fold(name)
        found = [log for log in logs if log.log_id == name]
        found = found or [log for log in logs if folded in log.paths]
        found = found or [log for log in logs if len(name) >= 4 and log.log_id.startswith(name)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise NoSuchLog(f"{self.path} holds no log {name}: name HUB/PARTITION, catalog, or an id of `store list`")
        ids = ", ".join(log.log_id for log in found)
        raise NoSuchLog(f"several logs of {self.path} are {name}: name one of the ids {ids}")

    def recovered(self, log: OwnedLog) -> Recovered:
        """What a start would make of the log as it is now."""
        return read_again(lambda: look_at_log(self.files, log.store, log.log_id))

    def size_bytes(self, log: OwnedLog) -> int:
        """Of all files of the log, with what is set aside."""
        return sum(self._size(join_path(log.folder, name)) for name in self.files.list(log.folder))

    def _size(self, path: str) -> int:
        try:
            file = self.files.open_to_read(path)
        except FileNotFoundError:
            return 0
        try:
            return file.size()
        finally:
            file.close()

    def _is_store(self, name: str) -> bool:
        if not name.startswith((CATALOG_FOLDER, STORE_PREFIX)):
            return False
        text = read_whole(self.files, join_path(name, FORMAT_NAME))
        return text is not None and text.startswith(FORMAT_TEXT.encode())

    def _log_ids(self, store: str) -> list[str]:
        return log_ids_in(self.files, store)

    def _owned_by(self, store: str, log_id: str) -> Iterator[OwnedLog]:
        """The catalog's own log, then those of all partitions that it names."""
        if is_lost(self.files, store, log_id):
            yield OwnedLog(store, log_id, "a catalog", "missing")
            return
        catalog = read_catalog(self.files, store, log_id)
        namespace = catalog.namespace.name
        of = f" of {namespace}" if len(self._log_ids(store)) > 1 else ""
        yield OwnedLog(store, log_id, f"catalog of {namespace}" if namespace else "catalog", namespace=namespace)
        for entity in catalog.entities():
            hub = of_kind(entity, EventHubDescription)
            capture = None if hub is None else hub.description.capture
            noun, part = (entity.kind.noun, "fragment") if hub is None else ("hub", "partition")
            for number, placement in enumerate(entity.placements):
                yield OwnedLog(
                    store_folder(placement.store_index),
                    placement.log_id,
                    f"{noun} {entity.name}, {part} {number}{of}",
                    _STATES[entity.status],
                    namespace,
                    entity.name,
                    str(number),
                    capture is not None and capture.enabled,
                )
