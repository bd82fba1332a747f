"""The workers of the demo's second act: processes of worker.py, what they tell, and one that is killed."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from worker import SESSION_COUNT, Told

_LISTEN_S = 0.5
# The worker that is to be killed is killed when all its places hold an aircraft, or so long after the first does.
PATIENCE_S = 3.0


@dataclass(slots=True)
class Done:
    """What a crew did. received: flights over all deliveries; held: what the killed worker had not completed."""

    received: int = 0
    again: int = 0
    completed: int = 0
    held: list[Told] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


class Crew:
    """A worker for each subscription, and one more for the first, which stops with locks held and is killed."""

    def __init__(self, connection_string: str, topic: str, subscriptions: list[str], queue_name: str) -> None:
        self._command = [sys.executable, str(Path(__file__).with_name("worker.py")), topic]
        self._queue_name = queue_name
        self._environment = {**os.environ, "HUBWEIR_CONNECTION_STRING": connection_string}
        self._lines: queue.Queue[str] = queue.Queue()
        self._doomed = self._start(subscriptions[0], "--hold")
        self._kill_at = float("inf")
        self._workers = [self._start(subscription) for subscription in subscriptions]

    def work(self, count: int, *, seconds: float, progress: Callable[[int], None]) -> Done:
        """Wait until so many flights are completed, all workers have ended, or the time is over; end who is left."""
        done = Done()
        limit = time.monotonic() + seconds
        try:
            while done.completed < count and time.monotonic() < limit:
                if len(done.held) == SESSION_COUNT or time.monotonic() > self._kill_at:
                    self._doomed.kill()
                try:
                    self._note(self._lines.get(timeout=_LISTEN_S), done)
                    progress(done.completed)
                except queue.Empty:
                    if all(worker.poll() is not None for worker in self._workers):
                        break
        finally:
            for worker in (self._doomed, *self._workers):
                worker.kill()
                worker.wait()
        return done

    def _note(self, line: str, done: Done) -> None:
        try:
            told = msgspec.json.decode(line, type=Told)
        except msgspec.DecodeError:
            done.said.append(line)
            return
        done.received += told.received
        done.again += told.again
        done.completed += told.completed
        if not told.completed:
            done.held.append(told)
            self._kill_at = min(self._kill_at, time.monotonic() + PATIENCE_S)

    def _start(self, subscription: str, *options: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self._command, subscription, self._queue_name, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is the demo's: it ends the workers
        )
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """On a thread: take what a worker prints until it ends."""
        assert process.stdout is not None, "stdout is a pipe"
        with process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip())
