"""The writer epochs of one store: numbers that only grow, each durable in the file EPOCH before anything bears it.

Every open takes one, and so does every log whose sync failed (failed_sync.py). A batch and a segment bear the epoch
that they were written under, so what a former writer left behind is told apart from what supersedes it. A process that
finds a newer epoch than it ever took was taken over, and must not write any more.

EPOCH may be older than the segments all the same: a backup's, a copy of a folder that a server was writing, or a log's
folder that was put back. So every start looks at the names of all segments, and every log that is opened later at those
of its own: what is written from then on bears an epoch above them all. A number in a name was durable in EPOCH before
the name was, so a file that is behind is told by an alarm.

EPOCH is a sealed file (whole_file.py): the epoch, 4 bytes, then 8 bytes that name the process that took it.

A folder's lock may be lost (its file is removed, or the network disk lets go), and a second process takes the store
over while the first one writes. Then nothing that the first one answers may be missing from what the second one finds.
So the first one looks at EPOCH behind each sync and before the answers that wait for it (`check`), and the second one
makes EPOCH its own before it reads a segment. Say the check finds EPOCH as the first one wrote it. Then the rename that
replaces it came later than the check, the check later than the sync, and the second one's reading later than the
rename: it finds what was synced, and takes it over. Say the check finds another owner. Then nobody knows whether he has
found what was synced: it ends *unknown*, and the first process writes nothing more, nor cuts anything off, for good. In
relaxed mode the answer comes before the sync and its check: what the first process accepts between the take-over and
the end of its next sync, 50 ms or 1 MiB, may be superseded. On a network disk this holds as far as opening a file by
its name shows a rename of another machine.

After a crash: EPOCH holds the newest epoch that was used, or a newer one that nothing bears.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hubweir.env import Env, Files, Lane, Result, join_path
from hubweir.errors import CorruptStore, LogFenced
from hubweir.messaging_store.disk.layout import EPOCH_NAME, LOGS_FOLDER, is_log_id, parse_segment_name
from hubweir.messaging_store.disk.whole_file import read_sealed, seal, unseal, write_whole
from hubweir.messaging_store.segment_engine.reserve import Reserve

_EPOCH_SIZE = 4  # bytes of an epoch, wherever it stands
NEWEST_POSSIBLE = 2 ** (8 * _EPOCH_SIZE) - 1


class WriterEpochs:
    """See EpochSource. current: of this open, or of its newest failed sync; 0 before `open`."""

    def __init__(self, env: Env, folder: str, reserve: Reserve) -> None:
        self._env = env
        self._folder = folder
        self._path = join_path(folder, EPOCH_NAME)
        self._reserve = reserve
        self.current = 0
        self._highest = 0  # the newest one that this process may have written
        self._owner = env.random_bytes(8)
        self._written: bytes | None = None  # EPOCH as this process wrote it last
        self._waiters: deque[Callable[[Result[int]], None]] = deque()

    def open(self) -> str | None:
        """Take the next epoch for this process, durably; an alarm when the file was damaged or behind. Blocking.

        Raises OSError, CorruptStore; the store is not to be opened then.
        """
        body = read_sealed(self._env.files, self._path)
        known = 0 if body is None else _epoch_of(body)
        named = self._newest_in_names()
        alarm = None
        if body is None and self._env.files.exists(self._path):
            alarm = f"{self._path} is damaged; the newest epoch in a segment's name counts"
        elif known < named:
            says = "is not there" if body is None else f"says {known}"
            alarm = (
                f"{self._path} {says}, and a segment has epoch {named}: the file is older than the logs; writing goes "
                f"on with epoch {named + 1}"
            )
        self.current = self._take_above(max(known, named))
        return alarm

    def check(self) -> None:
        """Raise LogFenced when another process took this store over. Blocking; runs in worker threads, once a round.

        A file that is gone or damaged is no sign of an owner. Raises OSError when it cannot be read: then nobody knows.
        """
        data = self._env.files.read_small(self._path)
        if data is None or data == self._written:
            return
        body = unseal(data)
        if body is not None and body[_EPOCH_SIZE:] != self._owner:
            raise LogFenced(
                f"store {self._folder} has a newer writer: another process took it over with epoch {_epoch_of(body)}, "
                f"and epoch {self.current} of this process is over. Stop one of the two"
            )

    def take_epoch(self, on_done: Callable[[Result[int]], None]) -> None:
        """Make the next epoch durable, away from the loop, one at a time. A log whose sync failed goes on under it.

        The result raises LogFenced, or OSError: that epoch is used up then, and may be on the disk or not.
        """
        self._waiters.append(on_done)
        if len(self._waiters) == 1:
            self._take_next()

    def take_epoch_above(self, newest: int, on_done: Callable[[Result[int]], None]) -> str | None:
        """take_epoch, and the epoch is above one that was found in a log; an alarm when that was above `current`.

        newest: below NEWEST_POSSIBLE.
        """
        # A log that was closed and is opened again has this process's own epoch.
        text = None if newest <= self.current else self._newer_log(newest)
        self._highest = max(self._highest, newest)
        self.take_epoch(on_done)
        return text

    def _newer_log(self, newest: int) -> str:
        return (
            f"a log that was opened has a segment of epoch {newest}, and {self._path} said {self.current}: the log is "
            "newer than the store, or comes from another one; writing goes on above it"
        )

    def _take_next(self) -> None:
        epoch = self._highest + 1
        self._highest = epoch

        def write() -> int:
            self.check()
            return self._reserve.use_for(lambda: self._write(epoch))

        def done(result: Result[int]) -> None:
            waiter = self._waiters.popleft()
            self.current = max(self.current, epoch)
            try:
                waiter(result)
            finally:
                self._reserve.watch()
                if self._waiters:
                    self._take_next()

        self._env.offload(Lane.RECOVERY, write, done)

    def _take_above(self, newest: int) -> int:
        """Make the epoch behind newest durable. Blocking; raises OSError, CorruptStore."""
        check_has_next(newest, f"store {self._folder}")
        return self._reserve.use_for(lambda: self._write(newest + 1))

    def _write(self, epoch: int) -> int:
        """Make an epoch durable. Blocking; raises OSError."""
        self._highest = max(self._highest, epoch)
        data = seal(epoch.to_bytes(_EPOCH_SIZE, "big") + self._owner)
        write_whole(self._env.files, self._folder, EPOCH_NAME, data)
        self._written = data
        return epoch

    def _newest_in_names(self) -> int:
        """The newest epoch in the name of any segment of any log, 0 for none: a listing of every log's folder."""
        files, logs = self._env.files, join_path(self._folder, LOGS_FOLDER)
        ids = [log_id for log_id in files.list(logs) if is_log_id(log_id)]
        return max((newest_epoch_in(files, join_path(logs, log_id)) for log_id in ids), default=0)


def check_has_next(newest: int, of: str) -> None:
    """CorruptStore when no epoch comes behind the newest one. of: of what it is, for the text."""
    if newest >= NEWEST_POSSIBLE:
        raise CorruptStore(f"{of}: a segment is named with epoch {newest}, and none comes behind it")


def _epoch_of(body: bytes) -> int:
    return int.from_bytes(body[:_EPOCH_SIZE], "big")


def newest_epoch_in(files: Files, folder: str) -> int:
    """The newest epoch in the name of a segment of one log, 0 for none. Blocking."""
    names = map(parse_segment_name, files.list(folder))
    return max((name.writer_epoch for name in names if name is not None), default=0)
