"""An official JavaScript client in its own process, living through faults (faults.mjs of tests/conformance/foreign).

It says what it sent and what came; this says whether it goes on, and that all that it sent came.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from dataclasses import replace

from tests.conformance.foreign.toolchain import Program, prepare

EVENTS = Program(
    name="javascript",
    tools=("node", "npm"),
    pins=("package.json", "package-lock.json"),
    sources=("living.mjs", "faults.mjs"),
    fetch=("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
    run=("node", "faults.mjs"),
)
MESSAGES = replace(EVENTS, name="javascript-queues", sources=("../javascript/living.mjs", "faults.mjs"))
GO_ON_S = 90.0  # it may try a send for 60 s


class OfficialProgram:
    """A context manager: it runs inside. counts: of sends and errors. NotRun: this machine has no node."""

    def __init__(self, program: Program, target: str, entity: str, *, timeout_s: int) -> None:
        """timeout_s: so long it waits for an answer, and a read of events for some; 60 is the clients' default."""
        self.name = program.name
        self._command = program
        given = {"HUBWEIR_PLAIN": target, "HUBWEIR_ENTITY": entity, "HUBWEIR_TIMEOUT_S": str(timeout_s)}
        self._environment = program.environ(given)
        self._process: subprocess.Popen[str] | None = None
        self._went_on = {"sent": 0.0, "came": 0.0}
        self._said: dict[str, list[str]] = {"sent": [], "came": [], "error": [], "stopped": []}

    @property
    def counts(self) -> dict[str, int]:
        return {what: len(said) for what, said in self._said.items()}

    def __enter__(self) -> OfficialProgram:
        prepare(self._command, lambda line: None)
        self._process = subprocess.Popen(
            self._command.run, cwd=self._command.folder, env=self._environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    def all_went_on(self) -> None:
        """Wait until it sent and received again. AssertionError: it hangs."""
        began = time.monotonic()
        while min(self._went_on.values()) <= began:
            self._expect_in_time(began, "go on")

    def stop(self) -> None:
        """End its sends, wait until all that it sent came, and end it. AssertionError: it hangs."""
        process = self._process
        assert process is not None and process.stdin is not None
        process.stdin.write("stop\n")
        process.stdin.flush()
        began = time.monotonic()
        while not self._said["stopped"] or not set(self._said["sent"]) <= set(self._said["came"]):
            self._expect_in_time(began, "get all")
        process.stdin.close()
        assert process.wait(GO_ON_S) == 0
        assert self._said["sent"]

    def _expect_in_time(self, began: float, what: str) -> None:
        assert self._process is not None and self._process.poll() is None, f"{self.name} ended; {self._said['error']}"
        missing = len(set(self._said["sent"]) - set(self._said["came"]))
        said = f"{self.counts}, {missing} missing, errors: {self._said['error'][-5:]}"
        assert time.monotonic() - began < GO_ON_S, f"{self.name} did not {what} for {GO_ON_S:.0f} s: {said}"
        time.sleep(0.05)

    def _read(self) -> None:
        """On a thread: take what it says until it ends."""
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            for what, said in json.loads(line).items():
                self._said[what].append(str(said))
                if what in self._went_on:
                    self._went_on[what] = time.monotonic()
