"""Avro bodies of a page, read by a process of its own: a body that asks for too much ends that process and no other.

The process (avro_program.py) gets nothing of ours: no variable of the environment, no open file. It has AvroLimits, and
is killed when the page has no time left. A body that ends it is told apart from the others, which a further process
reads. `read_files` blocks, so it runs in a thread: Lane.PORTAL has one, so there is one such process at a time. The
process ends with its input, so it does not outlive a service that is killed.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hubweir.env import Lane
from hubweir.portal.avro_body import AvroText
from hubweir.portal.avro_program import LENGTH, NO_FASTAVRO, NO_LIMITS
from hubweir.portal.visit import Visit

PROGRAM = Path(__file__).with_name("avro_program.py")
# A character of JSON takes six bytes at most; beside the text stand two short ones.
_BYTES_PER_CHARACTER, _OTHER_BYTES = 6, 16 * 1024


@dataclass(frozen=True, slots=True)
class AvroLimits:
    """What a page may take. memory_bytes: address space of a process. processor_s: of one body, up to a second more.

    page_ms: from when it is asked for until all is read. processes: how many bodies may end theirs.
    """

    memory_bytes: int = 256 * 1024 * 1024
    processor_s: int = 1
    page_ms: int = 5_000
    processes: int = 3


LIMITS = AvroLimits()


async def read_avro(visit: Visit, bodies: Sequence[bytes], characters: int) -> Sequence[AvroText]:
    """Object container files, as a page shows them. characters: of each. Raises ServiceError TIMED_OUT."""
    env, limits = visit.gateway.process.env, LIMITS
    until_ms = env.machine.monotonic_ms() + limits.page_ms

    def read() -> Sequence[AvroText]:
        # Others may have had the thread until now.
        return read_files(bodies, characters, limits, until_ms - env.machine.monotonic_ms())

    return await visit.ask(lambda done: env.offload(Lane.PORTAL, read, lambda result: done(result.value())))


def read_files(
    bodies: Sequence[bytes], characters: int, limits: AvroLimits, time_left_ms: int | None = None
) -> list[AvroText]:
    """As read_avro, and blocks meanwhile. time_left_ms: of the page; None: all of it."""
    time_left_s = (limits.page_ms if time_left_ms is None else time_left_ms) / 1_000
    read: list[AvroText] = []
    if time_left_s > 0:
        with _Killer(time_left_s) as killer:
            for _ in range(limits.processes):
                if len(read) == len(bodies) or killer.is_late:
                    break
                read += _read_some(bodies[len(read) :], characters, limits, killer)
    late = AvroText(problem="the time or the processes of this page are used up: show fewer at a time, or try again")
    return [*read, *[late] * (len(bodies) - len(read))]


class _Killer:
    """Kills the process that a page waits for when the page's time is over."""

    def __init__(self, delay_s: float) -> None:
        self.is_late = False
        self.process: subprocess.Popen[bytes] | None = None
        self._timer = threading.Timer(delay_s, self._kill)
        self._timer.daemon = True

    def __enter__(self) -> _Killer:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _kill(self) -> None:
        self.is_late = True
        if self.process is not None:
            self.process.kill()


def _read_some(bodies: Sequence[bytes], characters: int, limits: AvroLimits, killer: _Killer) -> list[AvroText]:
    """Read with one process as many as it reads; the last one may tell how it ended."""
    read: list[AvroText] = []
    try:
        process = _started(characters, limits)
    except OSError as error:
        return [AvroText(problem=f"no process can be started to read it: {error.strerror}")]
    killer.process = process
    try:
        if killer.is_late:
            process.kill()
        for body in bodies:
            read.append(_asked(process, body, characters))
    except (OSError, EOFError):
        read.append(AvroText(problem=_ending(process.wait(), limits, is_late=killer.is_late)))
    except msgspec.DecodeError:
        read.append(AvroText(problem="the process that reads it answers otherwise than it was written"))
    finally:
        # It does no more, whatever it is at.
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):  # what it was not given stays
                pipe.close()  # type: ignore[union-attr]  # they are pipes, as asked for
    return read


def _started(characters: int, limits: AvroLimits) -> subprocess.Popen[bytes]:
    # Looked for, not imported: fastavro never runs in this process.
    found = importlib.util.find_spec("fastavro")
    folder = os.path.dirname(os.path.dirname(found.origin)) if found is not None and found.origin else ""
    numbers = (limits.memory_bytes, limits.processor_s, characters)
    return subprocess.Popen(
        # -I, -S, -B: nothing is taken from the environment, the user's folders or site-packages, and nothing is kept.
        [sys.executable, "-I", "-S", "-B", str(PROGRAM), folder, *map(str, numbers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
    )


def _asked(process: subprocess.Popen[bytes], body: bytes, characters: int) -> AvroText:
    """Give it a body, wait for the answer. OSError, EOFError: it has ended. DecodeError: it is not itself any more."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None and stdout is not None, "they are pipes, as asked for"
    stdin.write(LENGTH.pack(len(body)) + body)
    stdin.flush()
    head = stdout.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    if length > characters * _BYTES_PER_CHARACTER + _OTHER_BYTES:
        raise msgspec.DecodeError("the answer is longer than any that was asked for")
    return msgspec.json.decode(stdout.read(length), type=AvroText)


def _ending(exit_code: int, limits: AvroLimits, *, is_late: bool) -> str:
    """Why a process ended at a body, in people's words. exit_code: as of subprocess, negative for a signal."""
    if is_late:
        return f"it is not read within the {limits.page_ms / 1_000:g} s of a page"
    match exit_code:
        case code if code == -signal.SIGXCPU:
            return f"it takes more than {limits.processor_s} s of a processor to read"
        case code if code == -signal.SIGSEGV:
            return "it nests deeper than can be read"
        case code if code == NO_LIMITS:
            return "this system cannot limit the memory of a process, so nothing of strangers is read here"
        case code if code == NO_FASTAVRO:
            return "the package fastavro is not installed"
    return f"it ended the process that reads it (exit code {exit_code})"
