"""The writer epochs of one store: numbers that only grow, each durable in the file EPOCH before anything bears it.

Every open takes one, and so does every log whose sync failed (failed_sync.py). A batch and a segment bear the epoch
that they were written under, so what a former writer left behind is told apart from what supersedes it. A process that
finds a newer epoch than it ever took was taken over, and must not write any more.

After a crash: EPOCH holds the newest epoch that was used, or a newer one that nothing bears. When the file is damaged,
the newest epoch in a segment's name counts: it was durable before that name was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hubweir.env import Env, Result
from hubweir.errors import LogFenced
from hubweir.messaging_store.layout import EPOCH_NAME, LOGS_FOLDER, is_log_id, join, parse_segment_name
from hubweir.messaging_store.reserve import Reserve
from hubweir.messaging_store.whole_file import read_sealed, seal, write_whole


class WriterEpochs:
    """See EpochSource. current: of this open, or of its newest failed sync; 0 before `open`."""

    def __init__(self, env: Env, folder: str, reserve: Reserve) -> None:
        self._env = env
        self._folder = folder
        self._path = join(folder, EPOCH_NAME)
        self._reserve = reserve
        self.current = 0
        self._highest = 0  # the newest one that this process may have written
        self._waiters: deque[Callable[[Result[int]], None]] = deque()

    def open(self) -> str | None:
        """Take the next epoch for this process, durably; return an alarm when the file was damaged. Blocking.

        Raises OSError; the store is not to be opened then.
        """
        body = read_sealed(self._env.files, self._path)
        alarm = None
        if body is not None:
            newest = int.from_bytes(body, "big")
        else:
            newest = self._newest_in_names()
            if self._env.files.exists(self._path):
                alarm = f"{self._path} is damaged; the newest epoch in a segment's name counts"
        self.current = self._reserve.use_for(lambda: self._write(newest + 1))
        return alarm

    def check(self) -> None:
        """Raise LogFenced when another process took this store over. Blocking; runs in worker threads."""
        body = read_sealed(self._env.files, self._path)
        if body is not None and int.from_bytes(body, "big") > self._highest:
            raise LogFenced(f"store {self._folder} has a newer writer; epoch {self.current} is over")

    def take_epoch(self, on_done: Callable[[Result[int]], None]) -> None:
        """Make the next epoch durable, away from the loop, one at a time. A log whose sync failed goes on under it.

        The result raises LogFenced, or OSError: that epoch is used up then, and may be on the disk or not.
        """
        self._waiters.append(on_done)
        if len(self._waiters) == 1:
            self._take_next()

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

        self._env.offload(write, done)

    def _write(self, epoch: int) -> int:
        """Make an epoch durable. Blocking; raises OSError."""
        self._highest = max(self._highest, epoch)
        write_whole(self._env.files, self._folder, EPOCH_NAME, seal(epoch.to_bytes(4, "big")))
        return epoch

    def _newest_in_names(self) -> int:
        files, logs = self._env.files, join(self._folder, LOGS_FOLDER)
        names = [name for log_id in files.list(logs) if is_log_id(log_id) for name in files.list(join(logs, log_id))]
        return max((parsed.writer_epoch for parsed in map(parse_segment_name, names) if parsed is not None), default=0)
