"""Env: everything a broker takes from the outside world, in one object that is passed in.

Below the servers floor nobody reads a clock, draws a random number, starts a thread or opens a file. They are given
an Env. `SystemEnv` (drivers/system_env.py) is the real one; `hubweir.testing.simulated_env` has virtual time, a seeded
order, files that tear and lose, and the same interface. So the code that runs in production is the code that runs in
the simulation.

Times are integer milliseconds: `now_ms` since 1970 on the wall clock, `monotonic_ms` and `boottime_ms` on clocks that
never run back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Buffer = bytes | bytearray | memoryview


class Result(Protocol[T_co]):
    """How an offloaded call ended."""

    def value(self) -> T_co:
        """What the call returned; raises what it raised, and forgets it: ask once.

        An error knows the frames that it came through, and they know this result. If it knew the error in turn, only a
        garbage collection would free them, with all that they hold.
        """


class Lane(Enum):
    """Which threads an offloaded call runs on. It waits for calls of its own lane, never for those of another.

    So nothing holds up a sync but other syncs: no reader of a slow disk, no upload, no deletion of a thousand files.
    """

    __hash__ = object.__hash__  # Enum hashes the name, in Python code; each round of a log looks its lane up

    WRITES = "writes"  # what sends wait for: writes and syncs of logs
    READS = "reads"  # what readers wait for: cold reads and searches
    RECOVERY = "recovery"  # opening a log, and making it anew after a failed sync: reads a segment, so it takes long
    CAPTURE = "capture"  # captured files and their marks; may wait for a storage account
    REMOVALS = "removals"  # files that retention and deletions take away
    PORTAL = "portal"  # what people wait for: loading the portal, bodies in Avro
    MAINTENANCE = "maintenance"  # what nobody waits for but its owner: snapshots, indexes, closing a log


class Timer(Protocol):
    """A callback that has not run yet."""

    def cancel(self) -> None:
        """Make sure that the callback does not run. Calling it twice, or too late, does nothing."""


class Clock(Protocol):
    """Time, passed in. Durations come from the monotonic clock, stamps from the wall clock (rule R20)."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970-01-01 UTC. May jump either way."""

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that never runs back. Its zero means nothing. Timers go by it.

        It may stand still while the machine sleeps: what waits for a peer or a lock then waits as long as before.
        """

    def boottime_ms(self) -> int:
        """Milliseconds of a clock that never runs back and, where the system has one, goes on while the machine sleeps.

        Its zero means nothing.
        """


class SyncFailed(OSError):
    """A sync (of a file or a folder) failed: final. A failed write, unlike it, stored nothing for certain."""


class File(Protocol):
    """An open file. Positions and sizes are bytes. Errors are OSError as the system raised them.

    Nothing is durable before `sync` returned (and `Files.sync_folder`, when the file is new or renamed).
    """

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; shorter only at the end of the file."""

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """Write all buffers back to back from `position` on; short writes and EINTR are looped over."""

    def write_and_sync(self, position: int, buffers: Sequence[Buffer]) -> None:
        """`write`, then `sync`, in one call that runs without the interpreter lock where that exists."""

    def sync(self) -> None:
        """fdatasync. SyncFailed is final: the unsynced bytes must be taken as lost (rule R9)."""

    def reserve(self, size: int) -> None:
        """Make the file at least `size` bytes long with space really set aside; OSError ENOSPC or EDQUOT if not."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""

    def size(self) -> int: ...

    def close(self) -> None: ...


class FolderLock(Protocol):
    """An exclusive lock of a folder, held until `release` or the end of the process."""

    def release(self) -> None: ...


class Files(Protocol):
    """A folder tree. Paths are relative to its root, with `/` between parts, and made of ids that we generated."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; `create` makes the file, and fails when it is there already."""

    def open_to_read(self, path: str) -> File: ...

    def read_small(self, path: str) -> bytes | None:
        """The first 4 KiB of a file, read through its name at every call; None when it is absent."""

    def list(self, folder: str) -> list[str]:
        """Names in a folder, sorted; empty when the folder is absent."""

    def exists(self, path: str) -> bool: ...

    def make_folder(self, path: str) -> None:
        """Make the folder and its parents; does nothing when it is there. Durable after sync_folder of the parent."""

    def rename(self, old: str, new: str) -> None:
        """Replace `new` by `old` at once. Durable after sync_folder. A folder takes a name that is not there."""

    def remove(self, path: str) -> None: ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder and the files in it."""

    def sync_folder(self, path: str) -> None:
        """Make the names in this folder durable. Raises SyncFailed."""

    def lock_folder(self, path: str) -> FolderLock:
        """Take `path`/LOCK exclusively, or raise StoreLocked. Released by the system when the process ends."""

    def free_bytes(self) -> int:
        """Space left on the file system of the root, or of the folder that these files are for."""

    def file_system(self) -> int:
        """Which file system that is: where two folders have the same, what one takes the other has no more."""


def join_path(*parts: str) -> str:
    """A path of the Files interface; empty parts (the root) are left out."""
    return "/".join(part for part in parts if part)


@dataclass(slots=True)
class Ahead:
    """How far a test has set the clock of a service ahead of the machine's. tokens_ms: that of its tokens."""

    clock_ms: int = 0
    tokens_ms: int = 0


class MachineTime(Protocol):
    """Time as it passes for peers, whatever a test has set the clock of the service to: what waits for somebody outside
    the service, and what was signed there, goes by it.
    """

    def now_ms(self) -> int:
        """As Clock.now_ms."""

    def monotonic_ms(self) -> int:
        """As Clock.monotonic_ms."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """As Env.call_later."""


class Env(Clock, Protocol):
    """What a broker takes from outside. One object per process, or per simulated process."""

    @property
    def files(self) -> Files: ...

    @property
    def ahead(self) -> Ahead:
        """Of these clocks; the same object each time."""

    @property
    def machine(self) -> MachineTime: ...

    def monotonic_s(self) -> float:
        """Seconds of a clock that never runs back, as fine as the machine has it: for durations that are only told."""

    def random_bytes(self, count: int) -> bytes:
        """Bytes fit for secrets."""

    def new_id(self) -> str:
        """A fresh id: 32 lower-case hexadecimal digits, fit for a file name."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run the callback on the owner's loop, after the code that runs now."""

    def at_turn_end(self, callback: Callable[[], None]) -> None:
        """Run the callback on the owner's loop behind all that comes in this turn: for what one look does for many."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Run the callback on the owner's loop when `delay_ms` have passed on the monotonic clock."""

    def offload(self, lane: Lane, call: Callable[[], T], on_done: Callable[[Result[T]], None]) -> None:
        """Run `call` away from the loop (a thread of that lane), then `on_done` on the loop. Never cancelled."""

    def fault(self, point: str) -> None:
        """A named fault point (rule R28): does nothing, or raises what a test planted there."""
