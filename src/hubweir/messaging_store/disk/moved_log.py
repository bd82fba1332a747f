"""A log goes from one messaging store to another: the steps on the disk. A catalog says which of the two is served.

    1. `copy`: the whole log, durable, in the other store's folder `<log id>.new`, which nobody takes for a log
    2. `show`: one rename gives that folder the log's name, and the store remembers the newest segment (rule R10a)
    3. whoever takes these steps has the catalog say that the log lies in the other store
    4. `remove_log_files`: one rename takes the log's name from the folder in the first store, then its files go

Both stores must be the caller's own, and the log open in neither.

After a crash: before 3 the log is whole in the first store, from 2 on in the other one, too. The store that the catalog
does not name has nothing, a folder `<log id>.new`, or a whole log that is nobody's. `has_log_files` finds all of these,
and `remove_log_files` ends them. A folder `<log id>.new` is also removed by the next process that owns the store, while
another one may be about to show that very folder. So `remove_unfinished_log` takes the name from it first: one of two
renames comes first, and the other one fails. A crash leaves `<log id>.removed` then, which goes at the next start. Both
processes may also remove that folder at the same time: what the other one was faster with is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hubweir.env import Files, join_path
from hubweir.errors import StoreError
from hubweir.messaging_store.disk.layout import LOGS_FOLDER, NEWEST_FOLDER, REMOVED_SUFFIX, UNFINISHED_SUFFIX, is_log_id
from hubweir.messaging_store.disk.log_copy import LogCopy
from hubweir.messaging_store.disk.newest_segment import forget_newest
from hubweir.messaging_store.disk.read_only_files import ReadOnlyFiles

_NO_LOG = (UNFINISHED_SUFFIX, REMOVED_SUFFIX)  # how folders end that nobody takes for a log


class MovedLog:
    """A log that lies whole in one store, on its way to another. Everything blocks and raises OSError."""

    def __init__(
        self, files: Files, log_id: str, source: str, target: str, *, source_files: Files | None = None
    ) -> None:
        """source, target: the folders of the stores. Nothing of the log is in the target. source_files: of a source
        that is below another root.

        Raises what LogCopy raises.
        """
        self._files = files
        self._log_id = log_id
        self._target = target
        self._copy = self._look(source, source_files or files)

    @property
    def space_bytes(self) -> int:
        """About what the log takes up in the other store."""
        return self._copy.space_bytes

    def copy(self, on_bytes: Callable[[int], None]) -> None:
        """Step 1. on_bytes: told how many bytes more were copied."""
        self._copy.copy_files(self._files, _unfinished(self._target, self._log_id), on_bytes)

    def show(self) -> None:
        """Step 2. StoreError when a start would not find in the copy what it finds in the first store."""
        parent = join_path(self._target, LOGS_FOLDER)
        self._files.rename(_unfinished(self._target, self._log_id), join_path(parent, self._log_id))
        self._files.sync_folder(parent)
        self._copy.remember(self._files, self._target)
        shown = self._look(self._target, self._files)
        if (shown.next_index, shown.size_bytes, shown.notes()) != (
            self._copy.next_index,
            self._copy.size_bytes,
            self._copy.notes(),
        ):
            raise StoreError(f"the copy of log {self._log_id} in {self._target} is not what was copied")

    def _look(self, store_folder: str, files: Files) -> LogCopy:
        folder = join_path(store_folder, LOGS_FOLDER, self._log_id)
        return LogCopy(ReadOnlyFiles(files), folder, self._log_id)


def has_log_files(files: Files, store_folder: str, log_id: str) -> bool:
    """Whether a store has anything of a log, finished or not. Blocking."""
    folder = join_path(store_folder, LOGS_FOLDER, log_id)
    remembered = join_path(store_folder, NEWEST_FOLDER, log_id)
    return any(map(files.exists, (folder, _unfinished(store_folder, log_id), remembered)))


def remove_log_files(files: Files, store_folder: str, log_id: str) -> None:
    """Step 4: remove all that a store has of a log, durably. Blocking; raises OSError, and is to be called again."""
    parent = join_path(store_folder, LOGS_FOLDER)
    folder, unfinished = join_path(parent, log_id), _unfinished(store_folder, log_id)
    _remove_folder(files, unfinished)
    if files.exists(folder):
        files.rename(folder, unfinished)
    files.sync_folder(parent)
    forget_newest(files, store_folder, log_id)
    if files.exists(unfinished):
        _remove_folder(files, unfinished)
        files.sync_folder(parent)


def unfinished_logs(files: Files, store_folder: str) -> list[str]:
    """The ids of logs that a store has a folder of which is no log yet, or no log any more, sorted. Blocking."""
    names = files.list(join_path(store_folder, LOGS_FOLDER))
    stems = {name.removesuffix(end) for name in names for end in _NO_LOG if name.endswith(end)}
    return sorted(filter(is_log_id, stems))


def remove_unfinished_log(files: Files, store_folder: str, log_id: str) -> None:
    """Remove the folders that `unfinished_logs` found, unless one is shown meanwhile. Blocking; raises OSError."""
    unfinished = _unfinished(store_folder, log_id)
    removed = join_path(store_folder, LOGS_FOLDER, log_id + REMOVED_SUFFIX)
    _remove_folder(files, removed)
    if files.exists(unfinished):
        files.rename(unfinished, removed)
        _remove_folder(files, removed)


def _remove_folder(files: Files, folder: str) -> None:
    """Remove a folder, if it is there. Another process may be removing it, too, and each file goes but once."""
    while files.exists(folder):
        with suppress(FileNotFoundError):
            files.remove_folder(folder)


def _unfinished(store_folder: str, log_id: str) -> str:
    return join_path(store_folder, LOGS_FOLDER, log_id + UNFINISHED_SUFFIX)
