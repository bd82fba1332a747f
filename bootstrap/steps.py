"""Long steps with a line that says what goes on and for how long."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

REPEAT_S = 10.0  # into a file or a CI log: one line this often, so nobody takes a slow download for a hang
REDRAW_S = 0.5
TAIL_LINES = 30


class StepFailed(Exception):
    """A step ended badly; the text carries the last lines that it printed."""


def say(text: str) -> None:
    """Print one line for the person who called ./run. On stderr, so that stdout stays the verb's own."""
    print(f"hubweir: {text}", file=sys.stderr, flush=True)


def step(title: str, command: Sequence[str | Path], *, log: Path, environ: Mapping[str, str], cwd: Path) -> None:
    """Run command to its end, its output in log; show title and the time gone by. StepFailed when it fails."""
    started = time.monotonic()
    redraws = sys.stderr.isatty()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [os.fspath(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environ),
                cwd=cwd,
            )
        except OSError as error:
            raise StepFailed(f"{title}: {error}") from error
        if not redraws:
            say(f"{title} ...")
        try:
            while True:
                try:
                    status = process.wait(timeout=REDRAW_S if redraws else REPEAT_S)
                    break
                except subprocess.TimeoutExpired:
                    gone = time.monotonic() - started
                    if redraws:
                        print(f"\rhubweir: {title} ... {gone:.0f} s", end="", file=sys.stderr, flush=True)
                    else:
                        say(f"{title} ... {gone:.0f} s")
        except BaseException:
            process.kill()
            process.wait()
            raise
    verdict = "done" if status == 0 else f"failed with status {status}"
    print("\r" if redraws else "", end="", file=sys.stderr)
    say(f"{title}: {verdict}, {time.monotonic() - started:.1f} s")
    if status != 0:
        lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        raise StepFailed("\n".join([f"{title} failed (whole output: {log})", *(f"  | {line}" for line in lines)]))
