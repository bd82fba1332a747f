"""Toolchains of other languages, and what their programs need: fetched once, kept in .hubweir/foreign/, used offline.

A cache belongs to the files that pin its content: when a lock file changes, the folder is made anew. What was compiled
belongs to the sources as well, and to the compiler. What this machine cannot provide (no node, no network) is NotRun,
which becomes a skipped test that says so; what should have worked, such as compiling our own program, fails.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[2] / ".hubweir" / "foreign"
FETCH_S = 600  # a registry over a slow line
BUILD_S = 300  # Go compiles its standard library the first time
TAIL = 2000  # characters of a tool's output that its error repeats
INSTALLED, BUILT = "installed", "built"
# For minutes, Java's quick compiler does: what it makes is slower, and making it takes a third less processor time.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class NotRun(Exception):
    """This machine cannot run the client; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Program:
    """A client's test program. Commands run in the cache folder, which holds a copy of the sources.

    tools: programs that must be on the PATH. pins: files that decide what fetch brings. sources, and pins, lie in the
    folder of the program's name.
    fetch: takes things from the language's registry. build: compiles what was fetched and our sources.
    soak: runs the same client for many minutes (tests/conformance/soak/task.py).
    uses: the entities that it wants to find, "hubs" or "queues", topics among them.
    """

    name: str
    tools: tuple[str, ...]
    pins: tuple[str, ...]
    sources: tuple[str, ...]
    fetch: tuple[str, ...]
    run: tuple[str, ...]
    build: tuple[str, ...] = ()
    soak: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    uses: str = "hubs"

    @property
    def folder(self) -> Path:
        return CACHE / self.name

    def environ(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The process environment, with the program's own entries; {folder} in them is the cache folder."""
        own = {name: value.format(folder=self.folder) for name, value in self.environment.items()}
        return {**os.environ, **own, **(extra or {})}


def prepare(program: Program, tell: Callable[[str], None]) -> None:
    """Make program.run possible. tell: where lines of progress go. Raises NotRun, or RuntimeError if a build fails."""
    for tool in program.tools:
        if shutil.which(tool) is None:
            raise NotRun(f"{tool} is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{program.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers may want the same program
        _prepare(program, tell)


def _prepare(program: Program, tell: Callable[[str], None]) -> None:
    wanted = _fingerprint(program, program.pins, repr(program.fetch))
    stamp = program.folder / INSTALLED
    if not _says(stamp, wanted):
        tell(f"{program.name}: fetching what {', '.join(program.pins)} name(s), up to {FETCH_S} s")
        shutil.rmtree(program.folder, ignore_errors=True)
        _copy(program, program.pins)
        _copy(program, program.sources)
        try:
            _call(program, program.fetch, FETCH_S)
        except RuntimeError as error:
            raise NotRun(f"its packages cannot be had: {error}") from error
        stamp.write_text(wanted)
    _copy(program, program.sources)
    if program.build:
        _build(program, tell)


def _build(program: Program, tell: Callable[[str], None]) -> None:
    """Compile, unless the same compiler has compiled the same files in this folder."""
    made_by = (program.build, sorted(program.environment.items()), _identity(program.build[0]))
    wanted = _fingerprint(program, (*program.pins, *program.sources), repr(made_by))
    stamp = program.folder / BUILT
    if not _says(stamp, wanted):
        tell(f"{program.name}: compiling")
        stamp.unlink(missing_ok=True)  # a build that fails may leave files of its own beside older ones
        _call(program, program.build, BUILD_S)
        stamp.write_text(wanted)


def _says(stamp: Path, wanted: str) -> bool:
    return stamp.exists() and stamp.read_text() == wanted


def _identity(tool: str) -> tuple[str, int]:
    """What differs when another compiler is installed: where it really lies, and since when."""
    path = Path(shutil.which(tool) or tool).resolve()
    return str(path), path.stat().st_mtime_ns


def _fingerprint(program: Program, files: Sequence[str], how: str) -> str:
    """Of files in the folder of the program's name, and of how something is made of them."""
    digest = hashlib.sha256(how.encode())
    for name in files:
        digest.update(f"\n{name}\n".encode())  # what moves from one file to the next differs, too
        digest.update((HERE / program.name / name).read_bytes())
    return digest.hexdigest()


def _copy(program: Program, names: Sequence[str]) -> None:
    program.folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        source, copy = HERE / program.name / name, program.folder / Path(name).name
        # A run that goes on must not find a file half written.
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copy(source, copy)


def _call(program: Program, command: Sequence[str], seconds: int) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=program.folder,
            env=program.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{' '.join(command)} took longer than {seconds} s") from None
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-TAIL:].strip()}")
