"""Namespaces of backups come into the data folder of a service that runs, in the process that keeps the catalogs.

    1. the namespace is looked for in the backup, and judged: whoever asks hears a refusal at once
    2. every batch of its logs is verified, what an interrupted restore left is removed, and all logs are copied unseen,
       then captured files, in a thread
    3. no other namespace is made meanwhile: it is judged again, and every store takes an epoch above those of its logs
    4. the logs are shown, the catalog is copied and shown with one rename
    5. the namespace is served as one that was just made (served_namespaces.py)

After a crash: before the end of step 4 the namespace is not there. Logs that were shown may be left, which no catalog
names and of which a start tells; the same restore again removes them. From then on it is there, and every start serves
it. What goes wrong before takes back what was done. (Steps on the disk: copied_logs.py)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from hubweir.broker.commands.process import Done, RaiseEpoch, Refusal
from hubweir.drivers.tasks import Tasks
from hubweir.env import Files
from hubweir.errors import (
    ARGUMENT_ERROR,
    ENTITY_EXISTS,
    NOT_FOUND,
    SERVER_BUSY,
    STORE_OFFLINE,
    HubweirError,
    ServiceError,
)
from hubweir.gateway.brokers import Brokers, error_of
from hubweir.gateway.namespace_management import RestoreState
from hubweir.gateway.status import ask_in_time
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.namespace.resource_path import fold
from hubweir.service.backup import BackedUp, Backup, NoBackup
from hubweir.service.copied_logs import CopiedLogs
from hubweir.service.data_folder import CATALOG_FOLDER, STORE_PREFIX

# Of so many namespaces the end of the newest restore is known. Whoever waits for one asks several times a second.
ENDED_LIMIT = 64
# What Linux takes for a path; errors tell all of one.
PATH_LIMIT = 4_096
# A broker takes an epoch in milliseconds; one that stalls is killed for it before this is over.
EPOCH_S = 30.0
# A stop waits so long for what is being shown; what is only being copied ends at once.
STOP_S = 5.0


class Stopping(HubweirError):
    """The service stops in the middle."""


class TakesIn(Protocol):
    """Who serves the namespaces of a service (served_namespaces.py)."""

    def check_goes_on(self, what: str) -> None:
        """ServiceError behind the stop, with what to ask for when the service runs again."""

    def judge(self, namespace: BackedUp) -> None:
        """ServiceError where it cannot be served beside what is served now."""

    async def take_in(self, namespace: BackedUp, show: Callable[[], Awaitable[None]]) -> None:
        """Judge it again, then `show` it in the stores, then serve it."""


@dataclass(slots=True)
class _Restore:
    """One that was begun. is_shown: the catalog is there, and names the logs."""

    backup: Backup
    namespace: BackedUp
    logs: CopiedLogs
    size_bytes: int
    copied_bytes: int = 0
    is_shown: bool = False
    problem: str = ""

    @property
    def name(self) -> str:
        return self.namespace.description.name

    def state(self, *, is_over: bool) -> RestoreState:
        return RestoreState(self.copied_bytes, self.size_bytes, is_over, self.problem)


class RunningRestores:
    """See the module's text. One at a time; all on the service's loop."""

    def __init__(
        self, data: str, brokers: Brokers, raise_catalog_epoch: Callable[[int], Awaitable[None]], served: TakesIn
    ) -> None:
        """data: the data folder. raise_catalog_epoch: has the catalogs' store write above an epoch."""
        self._data = data
        self._files: Files = SystemFiles(data)
        self._brokers = brokers
        self._raise_catalog_epoch = raise_catalog_epoch
        self._served = served
        self._running: _Restore | None = None
        self._ended: dict[str, RestoreState] = {}  # by the folded name, the newest last
        self._is_stopping = False
        self._over = asyncio.Event()
        self._over.set()
        self._tasks = Tasks("restores of namespaces")

    async def stop(self) -> None:
        """End what is being copied, and take it back; what is being shown is waited for."""
        self._is_stopping = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), STOP_S)
        await self._tasks.stop()

    async def begin(self, name: str, source: str) -> None:
        """Step 1, and have the others follow. ServiceError: nothing was changed."""
        if not self._over.is_set():
            raise ServiceError(SERVER_BUSY, "A namespace is being restored; restore another when that is over.")
        self._over.clear()
        try:
            restore = await self._judged(name, source)
            self._served.check_goes_on("restore the namespace")
        except BaseException:
            self._over.set()
            raise
        self._running = restore
        self._tasks.start(self._run(restore), name=restore.name)

    def state(self, name: str) -> RestoreState:
        """How far the newest restore of that name is; NOT_FOUND."""
        running = self._running
        if running is not None and fold(running.name) == fold(name):
            return running.state(is_over=False)
        if fold(name) not in self._ended:
            text = f"No restore of a namespace '{name[:64]}' was begun, or {ENDED_LIMIT} of others were since."
            raise ServiceError(NOT_FOUND, text)
        return self._ended[fold(name)]

    # Steps

    async def _judged(self, name: str, source: str) -> _Restore:
        """Step 1. ARGUMENT_ERROR for what is no backup, one of another format, and one whose catalog is damaged."""
        try:
            restore = await asyncio.to_thread(self._find, name, source)
        except (HubweirError, OSError) as error:
            raise ServiceError(ARGUMENT_ERROR, f"{error}.") from None
        self._served.judge(restore.namespace)
        if await asyncio.to_thread(restore.logs.has_catalog):
            text = f"The data folder has '{restore.name}' of this backup, under another name, in the middle of its"
            raise ServiceError(ENTITY_EXISTS, f"{text} deletion, or for the next start. Delete it, then restore.")
        return restore

    def _find(self, name: str, source: str) -> _Restore:
        path = Path(source)
        if not path.is_absolute() or len(source) > PATH_LIMIT:
            raise NoBackup(f"'{source[:200]}' is no whole path of a folder on the machine of the service")
        backup = Backup(path)
        namespace = backup.find(name)
        logs = CopiedLogs(self._files, backup.files, namespace)
        return _Restore(backup, namespace, logs, backup.size_bytes(namespace))

    async def _run(self, restore: _Restore) -> None:
        try:
            await asyncio.to_thread(self._copy, restore)
            await self._served.take_in(restore.namespace, partial(self._show, restore))
        except (HubweirError, OSError) as error:
            text = error.text if isinstance(error, ServiceError) else f"{error}."
            restore.problem = await self._failed(restore, text)
        except BaseException:
            restore.problem = "The service stopped, or failed: see its log."
            raise
        finally:
            self._end(restore)

    def _end(self, restore: _Restore) -> None:
        """It is over, and whoever began it may ask for its end behind others."""
        self._running = None
        self._ended.pop(fold(restore.name), None)
        self._ended[fold(restore.name)] = restore.state(is_over=True)
        if len(self._ended) > ENDED_LIMIT:
            del self._ended[next(iter(self._ended))]
        self._over.set()

    async def _failed(self, restore: _Restore, text: str) -> str:
        """What people are told; what was done is taken back, unless the catalog names it."""
        if restore.is_shown:
            return f"{text} The namespace is in the data folder: the next start of the service serves it."
        left = await asyncio.to_thread(restore.logs.remove)
        if left is not None:
            return f"{text} What was copied could not be removed ({left}): the same restore again begins with that."
        return f"{text} Nothing of the namespace is there."

    def _copy(self, restore: _Restore) -> None:
        """Step 2."""
        restore.backup.verify(restore.namespace, lambda count: self._go_on())
        restore.logs.look()
        lacking = restore.logs.lacks_room(lambda store: SystemFiles(self._data, space_of=store))
        if lacking:
            raise ServiceError(STORE_OFFLINE, f"{lacking}: make room.")
        restore.logs.copy(partial(self._copied, restore))
        restore.backup.copy_captured(Path(self._data), restore.name, self._go_on)

    def _copied(self, restore: _Restore, count: int) -> None:
        self._go_on()
        restore.copied_bytes += count

    def _go_on(self) -> None:
        if self._is_stopping:
            raise Stopping("The service stops")

    async def _show(self, restore: _Restore) -> None:
        """Steps 3 and 4."""
        for store, newest in restore.logs.newest_epochs.items():
            if store == CATALOG_FOLDER:
                await self._raise_catalog_epoch(newest)
            else:
                await self._raise_epoch(int(store.removeprefix(STORE_PREFIX)), newest)
        await asyncio.to_thread(self._show_all, restore)

    async def _raise_epoch(self, store_index: int, newest: int) -> None:
        said = await ask_in_time(self._brokers.of_store(store_index), RaiseEpoch(newest), within_s=EPOCH_S)
        if isinstance(said, Done):
            return
        if isinstance(said, Refusal):
            raise error_of(said)
        raise ServiceError(STORE_OFFLINE, f"The broker of store {store_index} did not answer within {EPOCH_S:g} s.")

    def _show_all(self, restore: _Restore) -> None:
        restore.logs.show()
        restore.logs.copy_catalog(partial(self._copied, restore))
        restore.logs.show_catalog()
        restore.is_shown = True
