"""One log of a data folder moves from one messaging store to another, while no service runs on the folder.

The folder, its catalogs and all stores are locked, and both stores take a new epoch (stopped_folder.py), so that no
process goes on with an old placement, nor accepts what the copy would not have. Then: what an interrupted move left is
removed → the copy is made unseen → the other store takes an epoch above those of the log → the copy is shown → the
catalog names the other store → the first store's files are removed (messaging_store/disk/moved_log.py).

After a crash: the catalog names one of the two stores, and the log is whole there. The same command finishes the move,
or makes it anew from the beginning. What goes wrong before the catalog says so takes the move back.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

from hubweir.env import Env, join_path
from hubweir.errors import TIMED_OUT, HubweirError, ServiceError, StoreLocked
from hubweir.limits import MIB
from hubweir.messaging_store.disk.layout import LOGS_FOLDER
from hubweir.messaging_store.disk.moved_log import MovedLog, has_log_files, remove_log_files
from hubweir.messaging_store.disk.newest_segment import is_lost
from hubweir.messaging_store.segment_engine.writer_epochs import newest_epoch_in
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.service.data_folder import store_folder
from hubweir.service.stopped_folder import SPARE_BYTES, StoppedFolder, WaitFor, on_disk


class NoMove(HubweirError):
    """The log cannot be moved like that; the text says what there is, and what to do."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A move that is done. is_finished: an earlier one had come as far as the catalog; only files were left over."""

    source: str
    target: str
    is_finished: bool


def move(data: str, log_id: str, target: int, on_bytes: Callable[[int], None]) -> Moved:
    """Move a log to the store of that index. Blocking. on_bytes: told how many bytes more were copied.

    Raises NoMove, ServiceError, StoreError and OSError: the log is where it was then, unless the text says otherwise.
    """
    with on_disk(data) as (env, env_of, wait_for):
        return LogMove(env, env_of, wait_for, data).move(log_id, target, on_bytes)


class LogMove:
    """See the module's text. It blocks the loop, on which nothing else runs."""

    def __init__(self, env: Env, env_of: Callable[[str], Env], wait_for: WaitFor, data: str) -> None:
        """env_of: an Env for a store's folder, whose free space is that of the store's disk. data: for texts."""
        self._env = env
        self._env_of = env_of
        self._wait_for = wait_for
        self._data = data

    def move(self, log_id: str, target: int, on_bytes: Callable[[int], None]) -> Moved:
        """Move a log to the store of that index; see `move`."""
        files = self._env.files
        with ExitStack() as ends:
            folder = StoppedFolder(
                self._env, self._env_of, self._wait_for, ends, lambda error: NoMove(_in_use(self._data, error))
            )
            writer = self._catalog_with(folder, log_id)
            entity = writer.namespace.owner_of(log_id)
            placement = None if entity is None else entity.placement(log_id)
            assert entity is not None and placement is not None, "the catalog was chosen by this log"
            source = placement.store_index
            known = folder.known()
            if target not in known:
                raise NoMove(_unknown_store(self._data, target, known))
            title = f"log {log_id} of {entity.kind.noun} '{entity.name}'"
            if source not in known or is_lost(files, store_folder(source), log_id):
                raise NoMove(
                    f"{title} is not there: the catalog says {store_folder(source)}. Nothing was changed; put it back "
                    "from a backup first"
                )
            left = [index for index in known if index != source and has_log_files(files, store_folder(index), log_id)]
            if source == target and not left:
                raise NoMove(f"{title} lies in {store_folder(target)} already")
            if source != target:
                writer.check_move(log_id, target)
            for index in sorted({source, target, *left}):
                folder.own(index)
            folder.lock_others()
            for index in left:
                remove_log_files(files, store_folder(index), log_id)
            if source == target:
                return Moved(store_folder(left[0]), store_folder(target), is_finished=True)
            self._move(folder, writer, log_id, source, target, on_bytes)
            return Moved(store_folder(source), store_folder(target), is_finished=False)

    def _move(
        self,
        folder: StoppedFolder,
        writer: CatalogWriter,
        log_id: str,
        source: int,
        target: int,
        on_bytes: Callable[[int], None],
    ) -> None:
        env, files = self._env, self._env.files
        first, second = store_folder(source), store_folder(target)
        moved = MovedLog(files, log_id, first, second)
        needed, free = moved.space_bytes + SPARE_BYTES, folder.envs[target].files.free_bytes()
        if needed > free:
            raise NoMove(
                f"{second} has {free / MIB:.0f} MiB free, and the log needs {needed / MIB:.0f} there: nothing was "
                "changed; make room, or name another store"
            )
        try:
            moved.copy(on_bytes)
            env.fault("move.copied")
            newest = newest_epoch_in(files, join_path(first, LOGS_FOLDER, log_id))
            (self._wait_for(partial(folder.stores[target].epochs.take_epoch_above, newest))).value()
            moved.show()
            env.fault("move.shown")
        except (Exception, KeyboardInterrupt):
            self._take_back(second, log_id)
            raise
        result = self._wait_for(partial(writer.move_log, log_id, target))
        if isinstance(result, ServiceError):
            if result.condition is TIMED_OUT:
                raise NoMove(f"{result.text} The log is whole in {first} and in {second}: run the same command again")
            self._take_back(second, log_id)
            raise result
        env.fault("move.committed")
        try:
            remove_log_files(files, first, log_id)
        except OSError as error:
            raise NoMove(
                f"the log lies in {second} now, and its files in {first} cannot be removed: {error}. Run the same "
                "command again"
            ) from error

    def _take_back(self, folder: str, log_id: str) -> None:
        with suppress(OSError):  # else the next try does it
            remove_log_files(self._env.files, folder, log_id)

    def _catalog_with(self, folder: StoppedFolder, log_id: str) -> CatalogWriter:
        """The catalog that names a log. Raises NoMove when none does, and what keeps a catalog from being read."""
        _, writers = folder.catalogs()
        for writer in writers:
            if writer.namespace.owner_of(log_id) is not None:
                return writer
        raise NoMove(f"no catalog of {self._data} names log {log_id}: nobody knows where it is to be served")


def _unknown_store(data: str, target: int, known: list[int]) -> str:
    there = ", ".join(map(store_folder, known))
    return (
        f"{data} has no {store_folder(target)}; it has {there}. A start with --stores {target + 1} makes the stores "
        "that are new"
    )


def _in_use(data: str, error: StoreLocked) -> str:
    return (
        f"a service runs on {data} ({error}). A log moves only while none does: stop it, move the log, and start it "
        "again; nothing was changed"
    )
