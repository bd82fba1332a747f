"""A folder that tasks write captured files to: attempts at one file do not meet while it is made.

Spark may run a task anew while the attempt before still runs, as on a machine that was taken for dead. With one
unfinished name for both, the late one would publish what the other has half written. So each attempt has a name of its
own, `.<digest of the file's name>-<id>.tmp`, and removes what earlier ones left: one of them that is still at it fails
when it wants to publish, and is not missed.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from uuid import uuid4

from hubweir.capture.destination import TMP_SUFFIX, LocalArchive, LocalFolder
from hubweir.env import join_path
from hubweir.messaging_store.disk.files import SystemFiles


class LocalAttempts(LocalFolder):
    """See the module's text."""

    def __init__(self, folder: str) -> None:
        super().__init__(SystemFiles(folder), "")

    def begin(self, name: str) -> LocalArchive:
        """See Destination.begin."""
        folder, _, file = name.rpartition("/")
        # The file's own name may be as long as a file system takes.
        front = f".{hashlib.sha256(file.encode()).hexdigest()[:16]}-"
        for left in self._files.list(folder):
            if left.startswith(front):
                with suppress(FileNotFoundError):
                    self._files.remove(join_path(folder, left))
        return LocalArchive(self._files, name, join_path(folder, f"{front}{uuid4().hex}{TMP_SUFFIX}"))
