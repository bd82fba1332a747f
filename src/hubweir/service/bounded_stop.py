"""The stop of a process has an end, whatever a disk does: what hangs is left, and the exit code and the log say so.

A sync on a disk that hangs ends when the disk answers, or never, and everything that closes a store waits for it: its
broker, the threads that are joined, what the interpreter waits for at its end. So a thread of its own looks at the
clock, and ends the process as a kill would. That loses nothing that was accepted in the durable mode: it is on disk,
and of what still waits for that sync nobody was told so. The system frees the locks; the next start finds what it finds
after a kill. A process that the system cannot end, because the disk holds it, keeps its locks until it can. A start
that fails stops what it had started (whole_start.py), and that stop has the same end.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from hubweir.service.completions import done
from hubweir.service_log import START_FAILED, STOP_LEFT

logger = logging.getLogger(__name__)

# Longer than a disk under full load takes to write what is pending; peers that do not answer our close take up to 4 s
# of it. With stop_grace_ms, and the time for processes to be killed in, it is less than the 30 s that deploy/ gives.
DISK_WAIT_S = 15.0
# Of a process that left a disk; no other end of a service has it.
EXIT_LEFT = 3
# The log may lie on the disk that hangs.
TELL_S = 1.0


class StopWaits:
    """What a stop waits for now, by name."""

    def __init__(self) -> None:
        self._names: list[str] = []

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        """While it is waited for."""
        self._names.append(name)
        try:
            yield
        finally:
            self._names.remove(name)

    async def until_done(self, name: str, stop: Callable[[Callable[[], None]], None]) -> None:
        """Stop what says through a completion that it has stopped."""
        with self.on(name):
            await done(stop)

    @property
    def names(self) -> Sequence[str]:
        """The longest waited for first; none where nothing has a name."""
        return tuple(self._names)


class StoppingProcess:
    """What stops. stop_waits: what for, now.

    clients_s: what its clients may take of the stop, processes_s: what processes of its own may, to be killed in.
    """

    def __init__(self, *, clients_s: float = 0.0, processes_s: float = 0.0) -> None:
        self.stop_waits = StopWaits()
        self.clients_s = clients_s
        self.processes_s = processes_s

    @property
    def stop_limit_s(self) -> float:
        """How long its stop may take before the process ends without what it still waits for."""
        return self.clients_s + DISK_WAIT_S + self.processes_s

    @property
    def exit_code(self) -> int:
        """Of the process, once it has stopped."""
        return 0

    def leave(self) -> None:
        """End what nobody else would, before the process ends without what hangs. In another thread than its loop."""


class StopLimit:
    """A context manager around the life of a process, its loop's end included; `starts` first, `begin` when it stops.

    has_begun: it did.
    """

    def __init__(self, end_process: Callable[[int], object] = os._exit) -> None:
        self._end_process = end_process
        self._is_over = threading.Event()
        self._stopping: StoppingProcess | None = None
        self._leave: Callable[[], None] = lambda: None

    def __enter__(self) -> StopLimit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()

    def starts(self, stopping: StoppingProcess) -> None:
        """From now on it may have what nobody else would end."""
        self._leave = stopping.leave

    def begin(self, stopping: StoppingProcess, *, failed: BaseException | None = None) -> None:
        """From now on it has its stop_limit_s. failed: what ended its start; who waits for the stop would say so."""
        self._stopping, self._leave = stopping, stopping.leave
        threading.Thread(target=self._watch, args=(stopping, failed), name="hubweir-stop", daemon=True).start()

    def wait_for_loop(self, is_heard: threading.Event) -> None:
        """On a thread: the process is to stop in its start. It ends here where its loop does not hear so in time."""
        if is_heard.wait(DISK_WAIT_S) or self._is_over.is_set():
            return
        self._end(DISK_WAIT_S, "a disk, in the start", None)

    @property
    def has_begun(self) -> bool:
        return self._stopping is not None

    @property
    def exit_code(self) -> int:
        """Of the process, once that has stopped for which this began."""
        return 0 if self._stopping is None else self._stopping.exit_code

    def _watch(self, stopping: StoppingProcess, failed: BaseException | None) -> None:
        limit_s = stopping.stop_limit_s
        if self._is_over.wait(limit_s):
            return
        what = ", ".join(stopping.stop_waits.names) or "threads that have not ended"
        self._end(limit_s, what, failed)

    def _end(self, seconds: float, what: str, failed: BaseException | None) -> None:
        """End the process without what it waits for, and say so."""
        tell = threading.Thread(target=_tell, args=(seconds, what, failed), name="hubweir-stop-log", daemon=True)
        try:
            tell.start()
            tell.join(TELL_S)
            self._leave()
        finally:
            self._end_process(EXIT_LEFT)


def _tell(seconds: float, what: str, failed: BaseException | None) -> None:
    if failed is not None:
        START_FAILED.say(logger, why=str(failed))
    STOP_LEFT.say(logger, seconds=seconds, what=what)
