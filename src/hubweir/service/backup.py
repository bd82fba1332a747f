"""A backup as a restore reads it: which namespace it has, its logs, its captured files. It is only read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hubweir.env import Files, join_path
from hubweir.errors import CorruptStore, HubweirError
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.inspection import Finding, findings, look_at_log, newest_state, operations
from hubweir.messaging_store.disk.layout import LOCK_NAME, LOGS_FOLDER
from hubweir.messaging_store.disk.newest_segment import is_lost, log_ids_in
from hubweir.messaging_store.disk.read_only_files import ReadOnlyFiles, read_again
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import decode_operation
from hubweir.namespace.entity import EntityStatus
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.service.captured_files import captured_paths, copy_captured
from hubweir.service.data_folder import CATALOG_FOLDER, FORMAT_NAME, StoredLog, check_data_format, store_folder

PARTIAL = ".partial"  # behind the name of a copy that is not whole yet
# Findings behind which records are not there; a start makes all else again. A crash tears the end of a log as damage
# does, and a copy that `hubweir store backup` made has no such end.
LOST, TORN = ("damage", "missing"), "torn tail"


class NoBackup(HubweirError):
    """The copy cannot be made there, or not of this folder as it is; or what should be a copy is none."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A namespace in a backup. catalog_id: of the log that its catalog is. logs: all logs of its entities."""

    description: NamespaceDescription
    catalog_id: str
    logs: tuple[StoredLog, ...]


class Backup:
    """See the module's text. Everything blocks and may raise OSError, NewerFormat or CorruptStore."""

    def __init__(self, path: Path) -> None:
        """Raises NoBackup where there is none, or one that did not end."""
        if path.name.endswith(PARTIAL):
            raise NoBackup(f"{path} is a backup that did not end: take one that did")
        if not (path / FORMAT_NAME).exists():
            raise NoBackup(f"{path} is no backup: it has no file {FORMAT_NAME}")
        self.path = path
        self.files: Files = ReadOnlyFiles(SystemFiles(path))

    def find(self, name: str) -> BackedUp:
        """The namespace of that name. NoBackup when it is not there, or not all of it; else as check_data_format.

        A catalog that is damaged is none: nobody knows which entities it had, and no service starts on it.
        """
        check_data_format(self.files, str(self.path))
        catalogs, damages = self._catalogs()
        found = {fold(catalog.namespace.name): (catalog_id, catalog) for catalog_id, catalog in catalogs.items()}
        if fold(name) not in found:
            names = ", ".join(sorted(catalog.namespace.name for catalog in catalogs.values())) or "none"
            damaged = f", and a catalog that is damaged: {_told(damages[0])}. Take another backup" if damages else ""
            raise NoBackup(f"{self.path} has no namespace {name}; it has {names}{damaged}")
        catalog_id, catalog = found[fold(name)]
        logs = []
        for entity in catalog.entities():
            for placement in entity.placements:
                log = StoredLog(store_folder(placement.store_index), placement.log_id)
                if self._has(log.store, log.log_id):
                    logs.append(log)
                elif entity.status is EntityStatus.ACTIVE:
                    raise NoBackup(
                        f"{self.path} has not all of {catalog.namespace.name}: {entity.kind.noun} {entity.name} is "
                        "missing; nothing was changed"
                    )
        return BackedUp(catalog.namespace, catalog_id, tuple(logs))

    def size_bytes(self, namespace: BackedUp) -> int:
        """Of all segments of its logs, as a restore copies them."""
        places = (*namespace.logs, StoredLog(CATALOG_FOLDER, namespace.catalog_id))
        return sum(
            sum(segment.end_position for segment in look_at_log(self.files, log.store, log.log_id).segments)
            for log in places
        )

    def verify(self, namespace: BackedUp, on_bytes: Callable[[int], None]) -> None:
        """Read every batch of the logs of its entities. on_bytes: told how many bytes more were read.

        NoBackup with the first place at which records are damaged, or not there.
        """
        for log in namespace.logs:
            damage = self._damage(log, on_bytes)
            if damage is not None:
                raise NoBackup(
                    f"{self.path} is damaged: {_told(damage)}. Take another backup; or, while no service runs on the "
                    f"folder, `hubweir store restore {self.path} --namespace {namespace.description.name}`, which "
                    "copies it as it is"
                )

    def copy_captured(self, data: Path, namespace: str, before_each: Callable[[], None] = lambda: None) -> None:
        """Copy the captured files of a namespace to another data folder; see captured_files.copy_captured."""
        catalogs, _ = self._catalogs()
        described = ((catalog.namespace, catalog) for catalog in catalogs.values())
        copy_captured(self.path, data, captured_paths(described, namespace), before_each)

    def _catalogs(self) -> tuple[dict[str, Catalog], list[Finding]]:
        """The catalogs of all namespaces that a start would serve, by their logs; and where others are damaged."""
        catalogs: dict[str, Catalog] = {}
        damages = []
        for log_id in log_ids_in(self.files, CATALOG_FOLDER):
            if not self._has(CATALOG_FOLDER, log_id):
                continue
            damage = self._damage(StoredLog(CATALOG_FOLDER, log_id))
            if damage is not None:
                damages.append(damage)
                continue
            catalog = read_catalog(self.files, CATALOG_FOLDER, log_id)
            if catalog.namespace.name and not catalog.namespace.is_deleting:
                catalogs[log_id] = catalog
        return catalogs, damages

    def _damage(self, log: StoredLog, on_bytes: Callable[[int], None] = lambda count: None) -> Finding | None:
        """The first place in a log at which records are not as they were written; a read of all of it."""
        folder = join_path(log.store, LOGS_FOLDER, log.log_id)
        kinds = LOST if self.files.exists(LOCK_NAME) else (*LOST, TORN)  # whether a service ever ran on it

        def read() -> Finding | None:
            try:
                found = look_at_log(self.files, log.store, log.log_id)
            except CorruptStore as error:
                return Finding("damage", folder, 0, str(error))
            wrong = findings(self.files, folder, found, on_bytes)
            return next((each for each in wrong if each.kind in kinds), None)

        return read_again(read)

    def _has(self, store: str, log_id: str) -> bool:
        return self.files.exists(join_path(store, LOGS_FOLDER, log_id)) and not is_lost(self.files, store, log_id)


def _told(damage: Finding) -> str:
    return f"{damage.path} from byte {damage.position}, {damage.text}"


def read_catalog(files: Files, store: str, log_id: str) -> Catalog:
    """A catalog as it stands in the files now; its owner may be writing. files: ReadOnlyFiles."""
    return read_again(partial(_read_catalog, files, store, log_id))


def _read_catalog(files: Files, store: str, log_id: str) -> Catalog:
    found = look_at_log(files, store, log_id)
    saved = newest_state(files, join_path(store, LOGS_FOLDER, log_id))
    start, catalog = (0, Catalog()) if saved is None else (saved[0], Catalog.restore(saved[1]))
    for _, data in operations(files, found, start):
        catalog.apply(decode_operation(data))
    return catalog
