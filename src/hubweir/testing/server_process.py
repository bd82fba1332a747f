"""A server in a process of its own, to be killed: `hubweir serve` as its users run it, waited for with limits.

With `--brokers N` it is a supervisor and so many broker processes; a kill ends all of them, but for `kill_supervisor`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE
from hubweir.errors import HubweirError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.testing.broker_processes import children_of, end_brokers
from hubweir.testing.held_ports import HeldPorts

READY_LINE = "hubweir is ready"
# On an idle machine a second is enough for either; one that is busy with other tests needs half a minute.
START_S = 90.0
STOP_S = 60.0
OUTPUT_LINES = 200
OUTPUT_S = 0.5


class ServerFailed(HubweirError):
    """The server did not start or stop as it should; its last output is in the text."""


class ServerProcess:
    """One server on one data folder and the same ports over all its lives. A context manager that kills at the end."""

    def __init__(
        self,
        data: Path | str,
        *,
        host: str = "127.0.0.1",
        ports: Sequence[int] = (),
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = ("-m", "hubweir"),
        is_tied: bool = False,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        """arguments: further ones of `hubweir serve`. environment: on top of ours. program: what Python runs.

        is_tied: its standard input is a pipe that is open as long as this process lives (tied_server.py). on_line: is
        called with each line that it prints, on a thread of its own; `output` has the last ones alone.
        """
        self.host = host
        self._data = data
        self._held = None if ports else HeldPorts(1, host)
        self.ports = list(ports) if self._held is None else self._held.numbers
        given = [("--data", str(data)), ("--host", host), ("--port", ",".join(map(str, self.ports)))]
        self._command = [sys.executable, *program, "serve"]
        self._command += [part for pair in given for part in pair] + list(arguments)
        self._environment = {**os.environ, **(environment or {}), "PYTHONUNBUFFERED": "1"}
        self._input = subprocess.PIPE if is_tied else None
        self._process: subprocess.Popen[str] | None = None
        self._on_line = on_line
        self._lines: list[str] = []
        self._ready = threading.Event()
        self._ended = threading.Event()

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill9()

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def pid(self) -> int | None:
        """Of the server that runs; None when none does."""
        return self._process.pid if self._process is not None else None

    @property
    def is_running(self) -> bool:
        """False once the process has ended, by itself or not."""
        return self._process is not None and self._process.poll() is None

    @property
    def output(self) -> str:
        """The last lines that all its lives printed."""
        return "".join(self._lines)

    def connection_string(self, *, plain: bool = True) -> str:
        """For a client: without TLS by the emulators' flag, or over TLS."""
        return ConnectionString(
            host=self.host, port=self.port, key_name=ROOT_RULE, key=Secret(DEVELOPMENT_KEY), emulator=plain
        ).format()

    def start(self, *, seconds: float = START_S) -> float:
        """Start it and wait until it is ready; how many seconds that took. ServerFailed, and it is killed, if not."""
        began = time.monotonic()
        self.begin()
        if not self.becomes_ready(seconds=seconds):
            self.kill9()
            raise ServerFailed(f"the server ended before it was ready; it said:\n{self.output}")
        return time.monotonic() - began

    def becomes_ready(self, *, seconds: float = START_S) -> bool:
        """Wait after `begin`: False when it ended by itself before. ServerFailed, and it is killed, after so long."""
        limit = time.monotonic() + seconds
        while not self._ready.wait(0.01):
            if self._ended.is_set():
                return self._ready.is_set()
            if time.monotonic() > limit:
                self.kill9()
                raise ServerFailed(f"the server was not ready within {seconds:.0f} s; it said:\n{self.output}")
        return True

    def begin(self) -> None:
        """Start it and do not wait: for who wants to kill it on its way."""
        if self._process is not None:
            raise ServerFailed("this server runs already")
        self._ready.clear()
        self._ended.clear()
        process = self._process = subprocess.Popen(
            self._command,
            stdin=self._input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        threading.Thread(target=self._wait_for, args=(process, reader), daemon=True).start()

    def kill9(self) -> None:
        """End it at once, without a word (SIGKILL), and wait until all its processes are gone.

        Its broker processes are ended also where their supervisor is gone. Does nothing when none runs.
        """
        brokers: set[int] = set()
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)  # it starts no further one
            brokers = children_of(self._process.pid)
        self.kill_supervisor()
        end_brokers(self._data, brokers)

    def kill_supervisor(self) -> None:
        """As kill9, of the process alone that was started: broker processes that it has serve on."""
        if self._process is not None:
            self._process.kill()
            self._wait(self._process)

    def stop(self, *, seconds: float = STOP_S) -> int:
        """Ask it to end (SIGTERM) and wait; its exit code. ServerFailed, and it is killed, when it does not end."""
        process = self._process
        if process is None:
            raise ServerFailed("this server does not run")
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise ServerFailed(f"the server did not end within {seconds:.0f} s; it said:\n{self.output}") from None
        self._wait(process)
        return process.returncode

    def restart(self) -> float:
        """kill9, then start; how many seconds the start took."""
        self.kill9()
        return self.start()

    def _wait(self, process: subprocess.Popen[str]) -> None:
        process.wait(STOP_S)
        self._ended.wait(STOP_S)
        if process.stdin is not None:
            process.stdin.close()
        self._process = None

    def _read(self, process: subprocess.Popen[str]) -> None:
        """On a thread: take what it prints until it ends."""
        if process.stdout is not None:
            with process.stdout as stream:
                for line in stream:
                    self._lines = [*self._lines[-OUTPUT_LINES:], line]
                    if self._on_line is not None:
                        self._on_line(line)
                    if READY_LINE in line:
                        self._ready.set()

    def _wait_for(self, process: subprocess.Popen[str], reader: threading.Thread) -> None:
        """On a thread: say that it ended when it is gone, and all that it printed was read.

        Broker processes that it leaves have its output open.
        """
        process.wait()
        reader.join(OUTPUT_S)
        self._ended.set()
