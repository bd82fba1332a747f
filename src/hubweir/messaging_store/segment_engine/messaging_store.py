"""One store: a folder that one process owns, with its logs. (Layout: layout.py)

Opening takes the folder's lock, refuses another format, and makes a new writer epoch durable; every log is then opened
under that epoch, so its first append starts a new segment, and nothing is ever written into a file of before.

A process whose folder another one took over (writer_epochs.py) writes nothing any more: every log of the store is
offline for good, with an alarm and a line in the service's log. Whoever is to own the folder is started again.

Long because what is opened, closed and deleted at a time is judged by the same sets of logs.

After a crash: the lock is free; a log that was being created is there, empty, or not at all; one that was being
deleted may be there still, with fewer segments: delete it again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hubweir.alarms import DAMAGED_FILE, STORE_TAKEN_OVER, Alarms
from hubweir.counters import Counters
from hubweir.env import Env, FolderLock, Lane, Result, join_path
from hubweir.errors import LogFenced, LogOffline, StoreError
from hubweir.messaging_store.disk.format_file import check_format
from hubweir.messaging_store.disk.layout import LOGS_FOLDER, NEWEST_FOLDER, UNFINISHED_SUFFIX, is_log_id
from hubweir.messaging_store.disk.moved_log import remove_unfinished_log, unfinished_logs
from hubweir.messaging_store.disk.newest_segment import forget_newest, log_ids_in, make_log
from hubweir.messaging_store.disk.recovery import remove_unfinished
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.log_store import NotOpened, close_open_log
from hubweir.messaging_store.segment_engine.clock_keeper import ClockKeeper
from hubweir.messaging_store.segment_engine.full_disk import FullDisk
from hubweir.messaging_store.segment_engine.idle_mark import DueMarks
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.open_log import (
    EpochBehind,
    LogOpening,
    Now,
    OpenedLog,
    StoreTools,
    open_log,
)
from hubweir.messaging_store.segment_engine.reserve import Reserve
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.messaging_store.segment_engine.sync_watch import SyncWatch
from hubweir.messaging_store.segment_engine.trimming import remove_log
from hubweir.messaging_store.segment_engine.writer_epochs import WriterEpochs, check_has_next, newest_epoch_in
from hubweir.messaging_store.trusted_clock import TrustedClock


class MessagingStore:
    """Opens, names and closes the logs of one folder; see LogStore. Used on the owner's loop; only `open` blocks.

    epochs: the writer epochs of the folder, for the logs that are opened here. clock: what its logs go by.
    """

    def __init__(
        self, env: Env, folder: str, lock: FolderLock, counters: Counters, settings: LogSettings, alarms: Alarms
    ) -> None:
        self._env = env
        self._folder = folder
        self._lock = lock
        self._counters = counters
        self._settings = settings
        self._logs: dict[str, SegmentLog] = {}
        self._taken_over: LogFenced | None = None  # another process owns the folder: nothing is written any more
        self._cleaned: set[str] = set()  # logs whose unfinished files were removed: once in a process
        self._abouts: dict[str, str] = {}  # what alarms call the logs that were opened
        self._opening: set[str] = set()  # logs that a thread recovers now
        self._closing: set[str] = set()  # logs that are in _logs, and not for long
        self._deleting: set[str] = set()
        self._is_closing = False
        self._on_closed: list[Callable[[], None]] = []
        self.alarms = alarms
        about = f"store {folder}"
        self._reserve = Reserve(env, folder, counters, alarms, about)
        self._disk = FullDisk(env, alarms, about)
        self._marks = DueMarks(env, settings.idle_mark_ms)
        self._syncs = SyncWatch(env, alarms)
        self.clock = TrustedClock(env)
        self._clock_keeper = ClockKeeper(env, folder, alarms, about)
        self.epochs = WriterEpochs(env, folder, self._reserve)

    @property
    def _tools(self) -> StoreTools:
        """What its logs share."""
        return StoreTools(
            self._env, self._folder, self._settings, self._counters, self.alarms, self.epochs, self._reserve,
            self._disk, self.clock, self._marks, self._syncs,
        )  # fmt: skip

    @classmethod
    def open(
        cls,
        env: Env,
        folder: str,
        *,
        counters: Counters | None = None,
        settings: LogSettings | None = None,
        alarms: Alarms | None = None,
        has_retention: bool = True,
    ) -> MessagingStore:
        """Take over a store folder, or make it. Blocking. alarms: of the process; None: the store's own.

        has_retention: its logs lose events by their age, so that it must know how time passes; whoever expires them
        calls keep_clock. Without, it believes the wall clock.
        Raises StoreLocked, NewerFormat or OldFormat (nothing was changed then), CorruptStore, OSError.
        """
        files = env.files
        files.make_folder(folder)
        lock = files.lock_folder(folder)
        counters = Counters() if counters is None else counters
        store = cls(env, folder, lock, counters, settings or LogSettings(), alarms or Alarms(env, counters))
        try:
            check_format(files, folder)
            for name in (LOGS_FOLDER, NEWEST_FOLDER):
                files.make_folder(join_path(folder, name))
                files.sync_folder(join_path(folder, name))  # what is seen there now is relied on
            files.sync_folder(folder)
            parent = folder.rpartition("/")[0]
            files.sync_folder(parent)
            store._tell_of_epochs(store.epochs.open())
            if has_retention:
                store.clock = store._clock_keeper.load(store._reserve)
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

    def _tell_of_epochs(self, found: str | None) -> None:
        if found is not None:
            self.alarms.begin(DAMAGED_FILE, f"store {self._folder}", found)

    # -- logs

    def log_ids(self) -> list[str]:
        """Ids of all logs that are in the store, or were and are lost, sorted."""
        return [log_id for log_id in log_ids_in(self._env.files, self._folder) if log_id not in self._deleting]

    def open_log(
        self,
        log_id: str,
        on_done: Callable[[SegmentLog | NotOpened], None],
        *,
        durability: Durability | None = None,
        name: str = "",
        makes: bool = False,
    ) -> None:
        """See LogStore.open_log. The log is recovered in a thread: see open_log.py."""
        log = self._logs.get(log_id)
        if log is not None and log_id not in self._closing:
            self._env.call_soon(lambda: on_done(log))
            return
        try:
            opening = self._begin_opening(log_id, durability, name, makes=makes)
        except StoreError as error:
            self._env.call_soon(partial(self._not_opened, error, on_done))
            return

        def recovered(result: Result[OpenedLog]) -> None:
            try:
                opened = result.value()
            except EpochBehind as behind:
                self._take_epoch_above(behind.newest, again)
                return
            except Exception as error:
                self._opening.discard(log_id)
                self._not_opened(error, on_done)
            else:
                self._opening.discard(log_id)
                self._opened(opened, on_done)

        def again(result: Result[int]) -> None:
            self._opening.discard(log_id)
            try:
                result.value()
            except Exception as error:
                self._not_opened(error, on_done)
            else:
                self.open_log(log_id, on_done, durability=durability, name=name, makes=makes)

        self._opening.add(log_id)
        self._env.offload(Lane.RECOVERY, lambda: self.recover_log(opening), recovered)

    def _begin_opening(self, log_id: str, durability: Durability | None, name: str, *, makes: bool) -> LogOpening:
        """What recover_log needs from the loop."""
        if not is_log_id(log_id):
            raise StoreError(f"{log_id!r} is no log id: 32 lower-case hexadecimal digits")
        if self._taken_over is not None:
            raise self._taken_over
        if log_id in self._deleting:
            raise StoreError(f"log {log_id} is being deleted; use another id, or wait for the end of it")
        if log_id in self._opening:
            raise StoreError(f"log {log_id} is being opened; wait for the end of it")
        if log_id in self._closing:
            raise LogOffline(f"log {log_id} is being closed; open it again behind that")
        if self._is_closing:
            raise LogOffline(f"log {log_id} is not opened: its store is closed")
        return LogOpening(log_id, durability, name, Now.of(self.clock), self.epochs.current, makes)

    def _opened(self, opened: OpenedLog, on_done: Callable[[SegmentLog | NotOpened], None]) -> None:
        """The log is the store's from now on, and what was found in it is told; unless the store closes."""
        log = opened.log
        self._reserve.watch()
        if self._is_closing:
            opened.discard()
            self._not_opened(LogOffline(f"log {log.log_id} is not opened: its store is closed"), on_done)
            return
        self._logs[log.log_id] = log
        self._abouts[log.log_id] = opened.about
        log.on_fenced = self._fence_all
        opened.begin_alarms()
        on_done(log)

    def _not_opened(self, error: Exception, on_done: Callable[[SegmentLog | NotOpened], None]) -> None:
        try:
            on_done(NotOpened(error))
        finally:
            self._release_if_over()

    def recover_log(self, opening: LogOpening) -> OpenedLog:
        """What open_log does away from the loop. Blocking, in any thread; one for a log at a time.

        Raises what NotOpened tells; EpochBehind when the log is to be opened again under an epoch above.
        """
        log_id, folder = opening.log_id, join_path(self._folder, LOGS_FOLDER, opening.log_id)
        if opening.makes:
            make_log(self._env.files, self._folder, log_id)
        # A log's folder may be newer than the store's start: put back while it runs, or named by no catalog until now.
        newest = newest_epoch_in(self._env.files, folder)
        check_has_next(newest, f"log {log_id}")
        if newest >= opening.writer_epoch:
            raise EpochBehind(newest)
        if log_id not in self._cleaned:
            remove_unfinished(self._env.files, folder)
            self._cleaned.add(log_id)
        return open_log(self._tools, opening)

    def _take_epoch_above(self, newest: int, on_done: Callable[[Result[int]], None]) -> None:
        """Make a writer epoch durable that is above one found in a log, away from the loop."""
        self._tell_of_epochs(self.epochs.take_epoch_above(newest, on_done))

    def raise_epoch(self, newest: int, on_done: Callable[[Result[int]], None]) -> None:
        """See LogStore.raise_epoch. No alarm: logs that are known to come are no sign that EPOCH is old."""
        check_has_next(newest, "a log that is to come")
        self.epochs.take_epoch_above(newest, on_done)

    def close_log(self, log_id: str, on_done: Callable[[], None]) -> None:
        """Close one log, as Log.close; it can be opened again afterwards."""
        close_open_log(log_id, self._logs, self._closing, self._env, on_done)

    def delete_log(self, log_id: str, on_done: Callable[[Result[None]], None]) -> None:
        """Remove a closed log and its files, away from the loop, durably; when it is not there, see that it stays so.

        The result raises OSError; the log is then there in part, and is to be deleted again. StoreError, at once, when
        the log is open, being opened or being deleted. The store keeps its folder until this is over.
        """
        if log_id in self._logs or log_id in self._opening:
            raise StoreError(f"log {log_id} is open; close it before it is deleted")
        if log_id in self._deleting:
            raise StoreError(f"log {log_id} is being deleted; wait for the end of it")
        if not is_log_id(log_id):
            raise StoreError(f"{log_id!r} is no log id: 32 lower-case hexadecimal digits")
        files, parent = self._env.files, join_path(self._folder, LOGS_FOLDER)
        self.alarms.end_all(self._abouts.pop(log_id, ""))

        def remove() -> None:
            self.epochs.check()
            if files.exists(join_path(parent, log_id)):
                remove_log(files, join_path(parent, log_id))
            files.sync_folder(parent)  # also when it is gone: an earlier try may have failed behind the removal
            forget_newest(files, self._folder, log_id)

        self._remove(log_id, remove, on_done)

    def remove_unfinished(self) -> None:
        """See LogStore. It blocks as far as it looks for them."""
        with suppress(OSError):
            for log_id in unfinished_logs(self._env.files, self._folder):
                remove = partial(remove_unfinished_log, self._env.files, self._folder, log_id)
                self._remove(log_id + UNFINISHED_SUFFIX, remove, lambda _: None)

    def _remove(self, name: str, call: Callable[[], None], on_done: Callable[[Result[None]], None]) -> None:
        """Remove something away from the loop; until then its name is in _deleting, and the folder is kept."""

        def removed(result: Result[None]) -> None:
            self._deleting.discard(name)
            try:
                on_done(result)
            finally:
                self._release_if_over()

        self._deleting.add(name)
        self._env.offload(Lane.REMOVALS, call, removed)

    def close(self, on_done: Callable[[], None]) -> None:
        """Close all logs, wait for the end of what is being deleted, then give up the folder."""
        self._is_closing = True
        self._on_closed.append(on_done)
        self._reserve.stop()
        self._disk.stop()
        self._env.call_soon(self._release_if_over)
        for log_id in sorted(self._logs):
            self.close_log(log_id, self._release_if_over)

    def _release_if_over(self) -> None:
        """Give up the folder when the store closes and nothing of it is open, being opened or being deleted."""
        if not self._on_closed or self._logs or self._opening or self._deleting:
            return
        self._lock.release()
        waiting, self._on_closed = self._on_closed, []
        for callback in waiting:
            callback()

    # -- clock

    def keep_clock(self) -> None:
        """See LogStore. It is made durable when that is a while ago."""
        self._clock_keeper.keep(self.clock, is_saved=self._taken_over is None)

    def look_at_syncs(self) -> None:
        """See LogStore."""
        self._syncs.look()

    # -- another owner

    def look_for_owner(self) -> None:
        """See, away from the loop, whether another process took the folder over: logs that are idle do not notice."""

        def seen(result: Result[None]) -> None:
            try:
                result.value()
            except LogFenced as error:
                self._fence_all(error)
            except OSError:
                return  # a round that writes will say what the matter is

        self._env.offload(Lane.MAINTENANCE, self.epochs.check, seen)

    def _fence_all(self, error: LogFenced) -> None:
        """Loudly and once: every log of the folder is offline for good."""
        if self._taken_over is not None:
            return
        self._taken_over = error
        about = f"store {self._folder}"
        self.alarms.begin(STORE_TAKEN_OVER, about, str(error).removeprefix(about + " "))
        self._reserve.stop()
        for log in list(self._logs.values()):
            log.fence(error)
