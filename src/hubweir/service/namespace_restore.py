"""A namespace of a backup comes into a data folder that has others, while no service runs on the folder.

The folder is locked (stopped_folder.py), and nothing may have the namespace's name, its hosts or its logs. Then: what
an interrupted restore left is removed → there must be room for all of it → stores that the folder has not are made →
every log of its entities is copied unseen → their stores take an epoch above those of the logs → the logs are shown →
captured files are copied → the default namespace stays the default one → the catalog, which names the logs, is copied
and shown with one rename (messaging_store/disk/moved_log.py).

After a crash: the namespace is there, or it is not, and the others are as they were. Before the last step logs may be
left that no catalog names, of which a start tells, and stores without logs, which a start serves; the same command
removes the ones, goes on with the others, and restores the namespace. What goes wrong takes back what was done, the
stores that were made among it. Between that rename and what the store then remembers of the catalog (disk/newest) the
namespace is there, and the next start tells `records-lost` of its catalog, which lost nothing: it skips numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from hubweir.env import Env, Files, join_path
from hubweir.errors import HubweirError, ServiceError, StoreLocked
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.layout import LOGS_FOLDER
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.host_names import HostNameTaken, divide
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.resource_path import fold
from hubweir.service.backup import BackedUp
from hubweir.service.copied_logs import CopiedLogs
from hubweir.service.data_folder import CATALOG_FOLDER, STORE_PREFIX, store_folder
from hubweir.service.stopped_folder import StoppedFolder, WaitFor, on_disk


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
            logs = CopiedLogs(self._env.files, self._source, namespace)
            self._check(namespace, others, logs)
            stores = {log.store: int(log.store.removeprefix(STORE_PREFIX)) for log in namespace.logs}
            known = set(folder.known())
            for index in sorted(known.intersection(stores.values())):
                folder.own(index)
            folder.lock_others()
            logs.look()
            lacking = logs.lacks_room(self._disk_of)
            if lacking:
                raise NoNamespaceRestore(f"{lacking}: nothing was changed; make room")
            made: list[str] = []
            ends.callback(self._remove_stores, made)  # once they are closed, and while the folder is still locked
            try:
                for index in sorted(set(stores.values()) - known):
                    if not self._env.files.exists(store_folder(index)):
                        made.append(store_folder(index))
                    folder.own(index)
                logs.copy(on_bytes)
                for store, index in stores.items():
                    self._raise_epoch(folder.stores[index], logs.newest_epochs[store])
                logs.show()
                copy_captured()
                self._keep_default(namespace.description, others)
                logs.copy_catalog(on_bytes)
                self._raise_epoch(catalogs, logs.newest_epochs[CATALOG_FOLDER])
                logs.show_catalog()
            except (HubweirError, OSError) as error:
                if (left := logs.remove()) is not None:
                    raise NoNamespaceRestore(
                        f"{error}. What was copied could not be removed ({left}): the same command again begins with "
                        "that"
                    ) from error
                raise
            except (Exception, KeyboardInterrupt):
                logs.remove()
                raise

    # Steps

    def _check(self, namespace: BackedUp, others: Sequence[CatalogWriter], logs: CopiedLogs) -> None:
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
        if logs.has_catalog():
            raise NoNamespaceRestore(
                f"{self._data} has {new.name} of this backup under another name: restore into another folder"
            )
        try:
            divide({each.name: each.hostnames for each in (*descriptions, new)})
        except HostNameTaken as taken:
            raise NoNamespaceRestore(f"{self._data}: {taken}") from taken

    def _disk_of(self, store: str) -> Files:
        """What knows the space for a store: where its folder is, or is going to be."""
        files = self._env.files
        return self._env_of(store).files if files.exists(store) else files

    def _remove_stores(self, made: Sequence[str]) -> None:
        """Those that have no log: what they were made for did not come. One that stays, the next try goes on with."""
        files = self._env.files
        for store in made:
            with suppress(OSError):
                if not files.list(join_path(store, LOGS_FOLDER)):
                    files.remove_folder(store)

    def _raise_epoch(self, store: MessagingStore, newest: int) -> None:
        self._wait_for(partial(store.raise_epoch, newest)).value()

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
