"""Small pools of threads for calls that would stall the loop: one for each lane (hubweir.env.Lane).

A pool has its own queue and threads, so a lane whose calls take long holds up nothing but itself. Threads start when
they are first needed. Completions of all lanes come back on the loop in batches: however many calls end while the loop
is busy, one wake-up carries them; of many, some a turn, so that peers are heard in between. An idle
thread waits on a raw lock of its own, so that handing over a call costs one release.

Bounds: each pool has a fixed number of threads. Its queue has no bound of its own, because each caller has at most one
call under way (one sync round a log, one read a reader) and those are counted where they are admitted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from hubweir.drivers.loop_turn import LoopTurn
from hubweir.env import Lane

T = TypeVar("T")

logger = logging.getLogger(__name__)

# Of writes, and of reads. 8 to 16: 32 logs synced one after another took 79-134 ms a round, on 8 threads 4-7 ms.
THREADS = 12
# Capture makes six files at once (broker/capture/slots.py), and two threads are left for those who begin or end it. The
# others compute, or wait for the same disk that publishers wait for: few are as fast, and take less of both.
OTHER_THREADS = {Lane.RECOVERY: 4, Lane.CAPTURE: 8, Lane.REMOVALS: 2, Lane.PORTAL: 1, Lane.MAINTENANCE: 4}

# The end of a sync tells every send that it carried: 0.1 ms and more.
DONE_AT_ONCE = 32


class CallResult(Struct, Generic[T]):
    """How a call ended; `hubweir.env.Result`."""

    returned: T | None
    raised: BaseException | None
    is_over: bool = False  # it was an error, and raised

    def value(self) -> T:
        """See Result."""
        assert not self.is_over, "an error was raised already, and forgotten"
        raised, self.raised = self.raised, None
        if raised is not None:
            self.is_over = True
            try:
                raise raised
            finally:
                del raised
        return self.returned  # type: ignore[return-value]  # a call that returned None has T = None


class _Job(Struct):
    call: Callable[[], Any]
    on_done: Callable[[CallResult[Any]], None]


class _Worker:
    """One thread, its next job and the lock that it sleeps on."""

    __slots__ = ("job", "thread", "wake")

    def __init__(self) -> None:
        self.job: _Job | None = None
        self.wake = threading.Lock()
        self.wake.acquire()
        self.thread: threading.Thread | None = None


def _result_of(job: _Job) -> CallResult[Any]:
    """Do the call. In a function of its own: an error holds the frames it came through, and no frame may hold it."""
    try:
        return CallResult(job.call(), None)
    except BaseException as error:  # the owner of the call sees it; the thread must live on
        return CallResult(None, error)


class Completions:
    """What ended on threads, on its way to the loop; all pools of a loop share it.

    loop_turn: it ends behind the calls that are completed together.
    """

    def __init__(self, loop_turn: LoopTurn) -> None:
        self._loop_turn = loop_turn
        self._mutex = threading.Lock()
        self._done: deque[tuple[_Job, CallResult[Any]]] = deque()
        self._drain_is_due = False

    def report(self, job: _Job, result: CallResult[Any]) -> None:
        """Called on a thread: complete the call in a later turn of the loop."""
        self._done.append((job, result))
        self._drain_later(self._loop_turn.loop.call_soon_threadsafe)

    def _drain_later(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        with self._mutex:
            if self._drain_is_due:
                return
            self._drain_is_due = True
        try:
            call_soon(self._drain)
        except RuntimeError:
            logger.error("an offloaded call ended after its loop was closed; its completion is lost")

    def _drain(self) -> None:
        with self._mutex:
            self._drain_is_due = False
        self._loop_turn.begin()
        try:
            for _ in range(min(len(self._done), DONE_AT_ONCE)):
                job, result = self._done.popleft()
                try:
                    job.on_done(result)
                except Exception:
                    # The last resort: who may leave something waiting contains its own faults, as steps.py of the
                    # store's segment engine does.
                    logger.exception("a completion failed; its owner is in an unknown state")
        finally:  # also behind what a thread raised that is no Exception: a turn that never ends holds up everybody
            self._loop_turn.end()
            if self._done:
                self._drain_later(self._loop_turn.loop.call_soon)


class OffloadPool:
    """Runs calls on threads of its own, and their completions on the loop."""

    def __init__(self, completions: Completions, *, threads: int = THREADS, name: str = "calls") -> None:
        self._completions = completions
        self._name = name
        self._limit = threads
        self._mutex = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._idle: list[_Worker] = []
        self._workers: list[_Worker] = []
        self._closed = False

    def submit(self, call: Callable[[], T], on_done: Callable[[CallResult[T]], None]) -> None:
        """Run `call` on a thread, then `on_done` on the loop. Called on the loop only; RuntimeError after close."""
        if self._closed:
            raise RuntimeError("the pool of this loop is closed; nothing may be offloaded any more")
        job = _Job(call, on_done)
        with self._mutex:
            if self._idle:
                worker = self._idle.pop()
                worker.job = job
                worker.wake.release()
                return
            if len(self._workers) >= self._limit:
                self._waiting.append(job)
                return
        self._start_worker(job)

    def close(self) -> None:
        """Let the threads finish what they have, then end them. Completions that are due still come on the loop."""
        self._closed = True
        with self._mutex:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.wake.release()
        for worker in self._workers:
            if worker.thread is not None:
                worker.thread.join()

    def _start_worker(self, job: _Job) -> None:
        worker = _Worker()
        worker.job = job
        name = f"hubweir-offload-{self._name}-{len(self._workers)}"
        worker.thread = threading.Thread(target=self._run, args=(worker,), name=name, daemon=True)
        self._workers.append(worker)
        worker.thread.start()

    def _run(self, worker: _Worker) -> None:
        while self._work(worker):
            self._wait(worker)

    def _work(self, worker: _Worker) -> bool:
        """Do the worker's job; False when it has none, because the pool closes.

        Nothing of the job is kept: an idle thread must not hold the log that it worked for last.
        """
        job, worker.job = worker.job, None
        if job is None:
            return False
        self._completions.report(job, _result_of(job))
        return True

    def _wait(self, worker: _Worker) -> None:
        """Give the worker its next job when there is one; it gets none when the pool closes."""
        with self._mutex:
            if self._waiting:
                worker.job = self._waiting.popleft()
                return
            if self._closed:
                return
            self._idle.append(worker)
        worker.wake.acquire()
