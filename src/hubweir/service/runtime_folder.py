"""The folder of the sockets by which the processes of one service talk. One data folder leads to one such folder.

    keeper.sock         the supervisor: what changes the catalog, and who follows it
    broker-N.sock       the broker of the messaging store store-N
    process-I.sock      broker process I itself: whether it lives, when it listens and when it ends
    clients-I.sock      connections of clients that other processes accepted, on their way to broker process I

It is short, since paths of sockets end at 108 bytes, and open to its user alone (rule R26). A supervisor that follows
another on the same data folder finds the broker processes of that one here.
After a crash: paths are left on which nobody answers; whoever listens next takes them over.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hubweir.drivers.unix_socket import listener_pid
from hubweir.errors import HubweirError

_FIXED_PLACE = Path("/tmp")
_NAME_DIGITS = 16
_PROCESS = re.compile(r"process-([0-9]{1,3})\.sock")


class RuntimeFolderUnusable(HubweirError):
    """The folder belongs to somebody else, or others may look into it."""


@dataclass(frozen=True, slots=True)
class RuntimeFolder:
    """Where sockets are. Made by `of`."""

    path: Path

    @classmethod
    def of(cls, data: str) -> RuntimeFolder:
        """The folder of a data folder, made when it is not there. RuntimeFolderUnusable when it is not ours alone."""
        path = _path_of(data)
        for each in (path.parent, path):
            each.mkdir(mode=0o700, exist_ok=True)
            if not _is_ours(each):
                raise RuntimeFolderUnusable(
                    f"{each} is to hold the sockets of this service, and it is not a folder of this user alone: "
                    "remove it, then start again"
                )
        return cls(path)

    @classmethod
    def left(cls, data: str) -> RuntimeFolder | None:
        """The folder of a data folder that several processes served before; None: none did, or it is not ours."""
        path = _path_of(data)
        return cls(path) if path.is_dir() and _is_ours(path.parent) and _is_ours(path) else None

    @property
    def keeper(self) -> Path:
        """The supervisor's socket."""
        return self.path / "keeper.sock"

    def broker(self, store_index: int) -> Path:
        """The socket of the broker of one messaging store."""
        return self.path / f"broker-{store_index}.sock"

    def process(self, index: int) -> Path:
        """The socket of a broker process itself."""
        return self.path / f"process-{index}.sock"

    def clients(self, index: int) -> Path:
        """The socket on which a broker process takes clients' connections from the others."""
        return self.path / f"clients-{index}.sock"

    def leave(self) -> None:
        """Remove the folder, with the paths of killed processes: the service ended.

        After a start that failed, processes of an earlier supervisor may serve on: their paths stay, by which the next
        one finds them.
        """
        with suppress(OSError):
            for path in self.path.iterdir():
                if listener_pid(path) is None:
                    path.unlink()
            self.path.rmdir()

    def processes(self) -> list[int]:
        """The indexes of broker processes that listened here, whether they live or not."""
        found = (_PROCESS.fullmatch(each.name) for each in self.path.iterdir())
        return sorted(int(each[1]) for each in found if each is not None)


def _path_of(data: str) -> Path:
    # Not what TMPDIR says: the next supervisor may have another one, and has to find the same sockets.
    base = _FIXED_PLACE if _FIXED_PLACE.is_dir() else Path(tempfile.gettempdir())
    digest = hashlib.sha256(os.path.realpath(data).encode()).hexdigest()
    return base / f"hubweir-{os.getuid()}" / digest[:_NAME_DIGITS]


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    is_private = not stat.S_IMODE(found.st_mode) & 0o077
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and is_private
