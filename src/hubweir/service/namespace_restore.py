"""A namespace of a backup comes into a data folder that has others, while no service runs on the folder.

The folder is locked (stopped_folder.py), and nothing may have the namespace's name, its hosts or its logs. Then: what
an interrupted restore left is removed → every log of its entities is copied unseen → their stores take an epoch above
those of the logs → the logs are shown → captured files are copied → the default namespace stays the default one → the
catalog, which names the logs, is copied and shown with one rename (messaging_store/disk/moved_log.py).

After a crash: the namespace is there, or it is not, and the others are as they were. Before the last step logs may be
left that no catalog names, of which a start tells; the same command removes them, and restores the namespace. What goes
wrong takes back what was done. Between that rename and what the store then remembers of the catalog (disk/newest) the
namespace is there, and the next start tells `records-lost` of its catalog, which lost nothing: it skips numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from hubweir.env import Env, Files, join_path
from hubweir.errors import HubweirError, ServiceError, StoreLocked
from hubweir.limits import MIB
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.layout import LOGS_FOLDER
from hubweir.messaging_store.disk.moved_log import MovedLog, has_log_files, remove_log_files
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.writer_epochs import newest_epoch_in
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.host_names import HostNameTaken, divide
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.service.backup import BackedUp
from hubweir.service.data_folder import CATALOG_FOLDER, STORE_PREFIX, StoredLog
from hubweir.service.stopped_folder import SPARE_BYTES, StoppedFolder, WaitFor, on_disk


class NoNamespaceRestore(HubweirError):
    """The namespace cannot come into the folder like that; the text says what is in the way."""


def restore_namespace(
    source: str, data: str, namespace: BackedUp, on_bytes: Callable[[int], None], copy_captured: Callable[[], None]
) -> None:
    """Have a namespace of the backup `source` in a data folder. Blocking.

    on_bytes: told how many bytes more were copied. copy_captured: called when logs are there, before the catalog is.
    Raises NoNamespaceRestore, ServiceError, StoreError and OSError: nothing of it is there then, but captured files.
    """
    with on_disk(data) as (env, env_of, wait_for):
        NamespaceRestore(env, env_of, wait_for, data, SystemFiles(source)).restore(namespace, on_bytes, copy_captured)


class NamespaceRestore:
    """See the module's text. It blocks the loop, on which nothing else runs."""

    def __init__(self, env: Env, env_of: Callable[[str], Env], wait_for: WaitFor, data: str, source: Files) -> None:
        """env_of, wait_for: see StoppedFolder. data: for texts. source: files of the backup, which are only read."""
        self._env = env
        self._env_of = env_of
        self._wait_for = wait_for
        self._data = data
        self._source = source

    def restore(self, namespace: BackedUp, on_bytes: Callable[[int], None], copy_captured: Callable[[], None]) -> None:
        """See restore_namespace."""
        with ExitStack() as ends:
            folder = StoppedFolder(self._env, self._env_of, self._wait_for, ends, self._in_use)
            catalogs, found = folder.catalogs()
            others = list(found)
            self._check(namespace, others)
            stores = {log.store: int(log.store.removeprefix(STORE_PREFIX)) for log in namespace.logs}
            for index in sorted(set(stores.values())):
                folder.own(index)
            folder.lock_others()
            places = (*namespace.logs, StoredLog(CATALOG_FOLDER, namespace.catalog_id))
            for log in places:
                if has_log_files(self._env.files, log.store, log.log_id):
                    remove_log_files(self._env.files, log.store, log.log_id)
            copies = {log: self._copy_of(log) for log in places}
            self._check_room(folder, stores, copies)
            try:
                for log in namespace.logs:
                    copies[log].copy(on_bytes)
                for store, index in stores.items():
                    self._take_epoch(folder.stores[index], [log for log in namespace.logs if log.store == store])
                for log in namespace.logs:
                    copies[log].show()
                copy_captured()
                self._keep_default(namespace.description, others)
                catalog = copies[places[-1]]
                catalog.copy(on_bytes)
                self._take_epoch(catalogs, places[-1:])
                catalog.show()
            except (Exception, KeyboardInterrupt):
                for log in reversed(places):
                    with suppress(OSError):  # else the next try does it
                        remove_log_files(self._env.files, log.store, log.log_id)
                raise

    # Steps

    def _check(self, namespace: BackedUp, others: Sequence[CatalogWriter]) -> None:
        """NoNamespaceRestore where the folder has something of it."""
        new = namespace.description
        descriptions = [each.namespace.description for each in others]
        for writer, known in zip(others, descriptions, strict=True):
            if fold(known.name) == fold(new.name):
                raise NoNamespaceRestore(
                    f"{self._data} has a namespace {known.name} already: delete it, or restore into another folder"
                )
            if any(writer.namespace.owner_of(log.log_id) is not None for log in namespace.logs):
                raise NoNamespaceRestore(
                    f"{self._data} serves what {new.name} was copied of as {known.name}: restore into another folder"
                )
        try:
            divide({each.name: each.hostnames for each in (*descriptions, new)})
        except HostNameTaken as taken:
            raise NoNamespaceRestore(f"{self._data}: {taken}") from taken

    def _copy_of(self, log: StoredLog) -> MovedLog:
        return MovedLog(self._env.files, log.log_id, log.store, log.store, source_files=self._source)

    def _check_room(self, folder: StoppedFolder, stores: dict[str, int], copies: dict[StoredLog, MovedLog]) -> None:
        """NoNamespaceRestore where a store has too little space left."""
        needed: defaultdict[str, int] = defaultdict(lambda: SPARE_BYTES)
        for log, copy in copies.items():
            needed[log.store] += copy.space_bytes
        for store, size_bytes in needed.items():
            env = self._env if store == CATALOG_FOLDER else folder.envs[stores[store]]
            free = env.files.free_bytes()
            if size_bytes > free:
                raise NoNamespaceRestore(
                    f"{store} has {free / MIB:.0f} MiB free, and the namespace needs {size_bytes / MIB:.0f} there: "
                    "nothing was changed; make room"
                )

    def _take_epoch(self, store: MessagingStore, logs: Sequence[StoredLog]) -> None:
        """Have a store write above the epochs of logs that come into it."""
        newest = max(newest_epoch_in(self._source, join_path(log.store, LOGS_FOLDER, log.log_id)) for log in logs)
        self._wait_for(partial(store.epochs.take_epoch_above, newest)).value()

    def _keep_default(self, new: NamespaceDescription, others: Sequence[CatalogWriter]) -> None:
        """The namespace that the folder had as its default one stays that."""
        default = max(others, key=lambda each: each.namespace.description.default_rank, default=None)
        if default is None or default.namespace.description.default_rank > new.default_rank:
            return
        rank = new.default_rank + 1
        said = self._wait_for(partial(default.describe, lambda known: replace(known, default_rank=rank)))
        if isinstance(said, ServiceError):
            raise said

    def _in_use(self, error: StoreLocked) -> HubweirError:
        return NoNamespaceRestore(
            f"a service runs on {self._data} ({error}). This command restores a namespace only while none "
            "does: stop it, restore, and start it again, or have it do that itself: `hubweir namespace restore NAME "
            "--from BACKUP`; nothing was changed"
        )
