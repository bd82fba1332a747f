"""One store: a folder that one process owns, with its logs. (Layout: layout.py)

Opening takes the folder's lock, refuses a newer format, and makes a new writer epoch durable; every log is then opened
under that epoch, so its first append starts a new segment, and nothing is ever written into a file of before.

After a crash: the lock is free; a log that was being created is there, empty, or not at all; one that was being
deleted may be there still, with fewer segments: delete it again.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.counters import Counters
from hubweir.env import Env, FolderLock, Result
from hubweir.errors import CorruptStore, NewerFormat, StoreError
from hubweir.messaging_store.layout import (
    FORMAT_NAME,
    FORMAT_TEXT,
    FORMAT_VERSION,
    LOGS_FOLDER,
    is_log_id,
    join,
)
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.log_state import LogSettings
from hubweir.messaging_store.open_log import open_log
from hubweir.messaging_store.reserve import Reserve
from hubweir.messaging_store.segment_log import SegmentLog
from hubweir.messaging_store.whole_file import read_whole, write_whole
from hubweir.messaging_store.writer_epochs import WriterEpochs


class MessagingStore:
    """Opens, names and closes the logs of one folder. Used on the owner's loop; open and create block.

    epochs: the writer epochs of the folder, for the logs that are opened here.
    """

    def __init__(self, env: Env, folder: str, lock: FolderLock, counters: Counters, settings: LogSettings) -> None:
        self._env = env
        self._folder = folder
        self._lock = lock
        self._counters = counters
        self._settings = settings
        self._logs: dict[str, SegmentLog] = {}
        self._deleting: set[str] = set()
        self._on_closed: list[Callable[[], None]] = []
        self._alarms: list[str] = []
        self._reserve = Reserve(env, folder, counters)
        self.epochs = WriterEpochs(env, folder, self._reserve)

    @classmethod
    def open(
        cls, env: Env, folder: str, *, counters: Counters | None = None, settings: LogSettings | None = None
    ) -> MessagingStore:
        """Take over a store folder, or make it. Blocking.

        Raises StoreLocked, NewerFormat (nothing was changed then), CorruptStore, OSError.
        """
        files = env.files
        files.make_folder(folder)
        lock = files.lock_folder(folder)
        store = cls(env, folder, lock, counters or Counters(), settings or LogSettings())
        try:
            store._check_format()
            files.make_folder(join(folder, LOGS_FOLDER))
            files.sync_folder(folder)
            parent = folder.rpartition("/")[0]
            files.sync_folder(parent)
            alarm = store.epochs.open()
            store._alarms += [] if alarm is None else [alarm]
            store._reserve.make()
            store._reserve.watch()
        except BaseException:
            lock.release()
            raise
        return store

    @property
    def writer_epoch(self) -> int:
        """The epoch of this open, or of its newest failed sync."""
        return self.epochs.current

    @property
    def alarms(self) -> list[str]:
        """What the operator must know about the store and the logs that are open."""
        reserve = self._reserve.alarm()
        own = self._alarms if reserve is None else [*self._alarms, reserve]
        return own + [alarm for log in self._logs.values() for alarm in log.alarms]

    # -- logs

    def log_folder(self, log_id: str) -> str:
        """The folder of a log, for what its owner keeps beside it: names that this folder's layout knows."""
        return join(self._folder, LOGS_FOLDER, log_id)

    def log_ids(self) -> list[str]:
        """Ids of all logs in the store, sorted."""
        names = self._env.files.list(join(self._folder, LOGS_FOLDER))
        return [name for name in names if is_log_id(name) and name not in self._deleting]

    def create_log(self, log_id: str, *, durability: Durability = Durability.DURABLE) -> SegmentLog:
        """Make a log durable, or find it there (idempotent), and open it. Blocking."""
        if not is_log_id(log_id):
            raise StoreError(f"{log_id!r} is no log id: 32 lower-case hexadecimal digits")
        if log_id in self._deleting:
            raise StoreError(f"log {log_id} is being deleted; use another id, or wait for the end of it")
        files, parent = self._env.files, join(self._folder, LOGS_FOLDER)
        files.make_folder(join(parent, log_id))
        files.sync_folder(parent)
        return self.open_log(log_id, durability=durability)

    def open_log(self, log_id: str, *, durability: Durability | None = None) -> SegmentLog:
        """The open log, or recover and open it. Blocking. durability None: as its newest segment says.

        Raises StoreError when there is no such log, CorruptStore, NewerFormat, OSError.
        """
        if log_id in self._logs:
            return self._logs[log_id]
        if log_id not in self.log_ids():
            raise StoreError(f"there is no log {log_id} in {self._folder}")
        log = open_log(
            self._env,
            join(self._folder, LOGS_FOLDER, log_id),
            log_id,
            writer_epoch=self.epochs.current,
            epochs=self.epochs,
            check_epoch=self.epochs.check,
            reserve=self._reserve,
            durability=durability,
            counters=self._counters,
            settings=self._settings,
        )
        self._reserve.watch()
        self._logs[log_id] = log
        return log

    def close_log(self, log_id: str, on_done: Callable[[], None]) -> None:
        """Close one log, as Log.close; it can be opened again afterwards."""
        log = self._logs.get(log_id)
        if log is None:
            self._env.call_soon(on_done)
            return

        def closed() -> None:
            if self._logs.get(log_id) is log:
                del self._logs[log_id]
            on_done()

        log.close(closed)

    def delete_log(self, log_id: str, on_done: Callable[[Result[None]], None]) -> None:
        """Remove a closed log and its files, away from the loop; does nothing but call back when it is not there.

        The result raises OSError; the log is then there in part, and is to be deleted again. StoreError, at once, when
        the log is open or being deleted. The store keeps its folder until this is over.
        """
        if log_id in self._logs:
            raise StoreError(f"log {log_id} is open; close it before it is deleted")
        if log_id in self._deleting:
            raise StoreError(f"log {log_id} is being deleted; wait for the end of it")
        if not is_log_id(log_id):
            raise StoreError(f"{log_id!r} is no log id: 32 lower-case hexadecimal digits")
        files, parent = self._env.files, join(self._folder, LOGS_FOLDER)
        self._deleting.add(log_id)

        def remove() -> None:
            if files.exists(join(parent, log_id)):
                files.remove_folder(join(parent, log_id))
                files.sync_folder(parent)

        def removed(result: Result[None]) -> None:
            self._deleting.discard(log_id)
            try:
                on_done(result)
            finally:
                self._release_if_over()

        self._env.offload(remove, removed)

    def close(self, on_done: Callable[[], None]) -> None:
        """Close all logs, wait for the end of what is being deleted, then give up the folder."""
        self._on_closed.append(on_done)
        self._reserve.stop()
        self._env.call_soon(self._release_if_over)
        for log_id in sorted(self._logs):
            self.close_log(log_id, self._release_if_over)

    def _release_if_over(self) -> None:
        """Give up the folder when the store closes and nothing of it is open or being deleted."""
        if not self._on_closed or self._logs or self._deleting:
            return
        self._lock.release()
        waiting, self._on_closed = self._on_closed, []
        for callback in waiting:
            callback()

    # -- format

    def _check_format(self) -> None:
        files = self._env.files
        data = read_whole(files, join(self._folder, FORMAT_NAME))
        if data is None:
            write_whole(files, self._folder, FORMAT_NAME, f"{FORMAT_TEXT}{FORMAT_VERSION}\n".encode())
            return
        text = data.decode("ascii", "replace")
        number = text.removeprefix(FORMAT_TEXT).strip()
        if not text.startswith(FORMAT_TEXT) or not (number.isascii() and number.isdigit()):
            raise CorruptStore(f"{self._folder}/{FORMAT_NAME} is damaged; it should say {FORMAT_TEXT}{FORMAT_VERSION}")
        if int(number) > FORMAT_VERSION:
            raise NewerFormat(
                f"{self._folder} has store format {number}; this version reads up to {FORMAT_VERSION}. "
                "Nothing was changed: use the version that wrote it"
            )
