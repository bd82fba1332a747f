"""The logs of a backed-up namespace come into a data folder: the steps of both ways to restore one.

    look, check the room, copy the logs unseen → each store writes above `newest_epochs` → show the logs
    → copy the catalog, which names them → show it: from then on the namespace is there

A folder that is stopped has these steps taken by namespace_restore.py, a service that runs by running_restores.py. What
each step leaves after a crash: messaging_store/disk/moved_log.py. `remove` takes all of it back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from hubweir.env import Files, join_path
from hubweir.limits import MIB
from hubweir.messaging_store.disk.layout import LOGS_FOLDER
from hubweir.messaging_store.disk.moved_log import MovedLog, has_log_files, remove_log_files
from hubweir.messaging_store.segment_engine.writer_epochs import newest_epoch_in
from hubweir.service.backup import BackedUp
from hubweir.service.data_folder import CATALOG_FOLDER, StoredLog
from hubweir.service.stopped_folder import SPARE_BYTES


class CopiedLogs:
    """See the module's text. Everything blocks and raises OSError; looking and copying raise what MovedLog raises.

    newest_epochs: of the logs of each store, by its folder, once `look` was there.
    """

    def __init__(self, files: Files, source: Files, namespace: BackedUp) -> None:
        """files: of the data folder. source: of the backup, which is only read."""
        self._files = files
        self._source = source
        self._logs = namespace.logs
        self._catalog = StoredLog(CATALOG_FOLDER, namespace.catalog_id)
        self._copies: dict[StoredLog, MovedLog] = {}
        self.newest_epochs: dict[str, int] = {}

    def has_catalog(self) -> bool:
        """Whether the folder has the namespace's catalog: then it is there, under whatever name, and its logs, too."""
        return self._files.exists(join_path(CATALOG_FOLDER, LOGS_FOLDER, self._catalog.log_id))

    def look(self) -> None:
        """Remove what an interrupted restore left, and look at every log of the backup. Not where `has_catalog`."""
        newest: defaultdict[str, int] = defaultdict(int)
        for log in self._places:
            if has_log_files(self._files, log.store, log.log_id):
                remove_log_files(self._files, log.store, log.log_id)
            self._copies[log] = MovedLog(self._files, log.log_id, log.store, log.store, source_files=self._source)
            folder = join_path(log.store, LOGS_FOLDER, log.log_id)
            newest[log.store] = max(newest[log.store], newest_epoch_in(self._source, folder))
        self.newest_epochs = dict(newest)

    def lacks_room(self, files_of: Callable[[str], Files]) -> str:
        """Which disk has too little space left for its stores together, and how little; empty when none has.

        files_of: for a store's folder, as far as its space goes.
        """
        needed: defaultdict[str, int] = defaultdict(lambda: SPARE_BYTES)
        for log, copy in self._copies.items():
            needed[log.store] += copy.space_bytes
        disks: defaultdict[int, list[str]] = defaultdict(list)
        for store in needed:
            disks[files_of(store).file_system()].append(store)
        for stores in disks.values():
            size_bytes, free = sum(needed[store] for store in stores), files_of(stores[0]).free_bytes()
            if size_bytes > free:
                where = f"the disk of {', '.join(stores)}"
                return f"{where} has {free / MIB:.0f} MiB free, and the namespace needs {size_bytes / MIB:.0f} there"
        return ""

    def copy(self, on_bytes: Callable[[int], None]) -> None:
        """Copy all but the catalog. on_bytes: told how many bytes more were copied."""
        for log in self._logs:
            self._copies[log].copy(on_bytes)

    def show(self) -> None:
        """Give what was copied its names. StoreError when it is not what the backup has."""
        for log in self._logs:
            self._copies[log].show()

    def copy_catalog(self, on_bytes: Callable[[int], None]) -> None:
        """As `copy`."""
        self._copies[self._catalog].copy(on_bytes)

    def show_catalog(self) -> None:
        """As `show`; then the namespace is there."""
        self._copies[self._catalog].show()

    def remove(self) -> OSError | None:
        """Take back all that was copied, the catalog first; why something is left, for the next restore to remove.

        A catalog that stays where it is shown names its logs, so they stay, too.
        """
        problem = None
        for log in reversed(self._places):
            try:
                remove_log_files(self._files, log.store, log.log_id)
            except OSError as error:
                problem = problem or error
                if log == self._catalog and self._files.exists(join_path(log.store, LOGS_FOLDER, log.log_id)):
                    break
        return problem

    @property
    def _places(self) -> tuple[StoredLog, ...]:
        return (*self._logs, self._catalog)
