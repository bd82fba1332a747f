"""A copy of one log as it was at one moment, made from outside while its owner goes on appending and trimming.

The copy is what a start would find if the machine had stopped at that moment, without what nobody was promised: it ends
at the last batch that was there at the look, once a later batch, a mark or a new segment vouches for it. So no send
that is refused afterwards is in it, and every event that had been accepted is. A log that nothing vouches for, because
no service runs or because it is offline, is copied as a start would take it.

Snapshots, and the other small files of the log's owner, are read before the segments are listed and again afterwards:
what they cover is in the copy's segments, and what was trimmed is in them. Files that were superseded, space set aside,
and files that are being written are left out.

After a crash: the copy is there in part. Whoever makes it gives it its final name when all of it is durable.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.env import Files, join_path
from hubweir.errors import HubweirError
from hubweir.messaging_store.disk.batch_scan import PIECE_BYTES
from hubweir.messaging_store.disk.layout import (
    LOGS_FOLDER,
    NEWEST_FOLDER,
    NOTES_PREFIX,
    OFFSETS_SUFFIX,
    SEGMENT_SUFFIX,
    TIMES_SUFFIX,
)
from hubweir.messaging_store.disk.newest_segment import NewestSegment, load_newest, save_newest
from hubweir.messaging_store.disk.read_only_files import read_again
from hubweir.messaging_store.disk.recovery import Recovered, recover
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.disk.snapshot import load_snapshots
from hubweir.messaging_store.disk.whole_file import read_whole

_SEGMENT_SUFFIXES = (SEGMENT_SUFFIX, OFFSETS_SUFFIX, TIMES_SUFFIX)
# Looks at a log whose small files change between two of them; they are written about once a second.
LOOKS = 20
# Sparse indexes are smaller than this part of their segment.
INDEX_SHARE = 64


class LogChanged(HubweirError):
    """The log was deleted, trimmed or repaired since the look: a copy of that moment cannot be made any more."""


class LogCopy:
    """One log, looked at when this is made; copied later. Everything blocks."""

    def __init__(self, files: Files, folder: str, log_id: str) -> None:
        """files: ReadOnlyFiles. Raises LogChanged, OSError, NewerFormat, CorruptStore."""
        self._files = files
        self.folder = folder
        self._log_id = log_id
        self._store_folder = folder.rpartition(f"/{LOGS_FOLDER}/")[0]
        # Before the segments are listed: one that it names and that is not there then is lost.
        self._newest = load_newest(files, self._store_folder, log_id)
        self._small_files, self._found = self._look()
        covered = [snapshot.index for snapshot in load_snapshots(files, folder)]
        self._trimmable_upto = min(covered) - 1 if covered else self._found.end.index

    @property
    def next_index(self) -> int:
        """The index behind the newest record of the copy."""
        return self._found.end.index

    @property
    def size_bytes(self) -> int:
        """Of all segments that the copy will have."""
        return sum(segment.end_position for segment in self._found.segments)

    @property
    def space_bytes(self) -> int:
        """About what the copy takes up: segments, snapshots and notes, and what sparse indexes have at most."""
        small = sum(map(len, self._small_files.values()))
        return self.size_bytes + self.size_bytes // INDEX_SHARE + small

    def notes(self) -> dict[str, bytes]:
        """The files that held its owner's notes at the look, by name."""
        return {name: data for name, data in self._small_files.items() if name.startswith(NOTES_PREFIX)}

    def is_vouched(self) -> bool:
        """Whether everything that was there at the look is vouched for by now; asks the files again until it is.

        Raises LogChanged, OSError, NewerFormat, CorruptStore.
        """
        if self._found.vouched.position >= self._found.end.position:
            return True
        newest = self._found.segments[-1]
        now = self._recovered()
        same = [segment for segment in now.segments if segment.path == newest.path and not segment.is_lost]
        if not same:
            raise LogChanged(f"log {self._log_id} was deleted or trimmed")
        if same[0].end_index is None:  # still the newest
            vouched = now.vouched.position >= self._found.end.position
        elif same[0].end_index >= self._found.end.index:  # a roll: the file was synced before the next was made
            vouched = True
        else:
            raise LogChanged(f"log {self._log_id} was repaired, and its newest records were refused")
        if vouched:
            self._found.vouched = self._found.end
        return vouched

    def copy_to(self, target: Files, on_bytes: Callable[[int], None] = lambda count: None) -> None:
        """Write the copy under the same folder of target, durably; the folder must not be there yet.

        The caller makes the folder's own name durable. Raises LogChanged, OSError.
        """
        self.copy_files(target, self.folder, on_bytes)
        self.remember(target, self._store_folder)

    def copy_files(self, target: Files, folder: str, on_bytes: Callable[[int], None] = lambda count: None) -> None:
        """The part of `copy_to` that fills the log's folder, which may have another name there."""
        target.make_folder(folder)
        for segment in self._found.segments:
            if segment.is_lost:
                continue
            try:
                self._copy_segment(target, folder, segment, on_bytes)
            except FileNotFoundError as error:
                if segment.end_index is None or segment.end_index > self._trimmable_upto:
                    raise LogChanged(f"log {self._log_id} was trimmed while it was copied") from error
        for name, data in self._small_files.items():
            _write(target, join_path(folder, name), data)
        target.sync_folder(folder)

    def remember(self, target: Files, store_folder: str) -> None:
        """The other part: a store of target remembers the log's newest segment, durably, as the log's own store does.

        Raises OSError.
        """
        newest = self._remembered()
        if newest is not None:
            target.make_folder(join_path(store_folder, NEWEST_FOLDER))
            save_newest(target, store_folder, self._log_id, newest)

    def _remembered(self) -> NewestSegment | None:
        """What the copy's store is to remember of the log: its own newest segment, or the one that was lost before."""
        newest, found = self._newest, self._found
        if newest is None or not found.segments:
            return newest
        index_limit, offset_limit = max(newest.index_limit, found.end.index), max(newest.offset_limit, found.end.offset)
        name = found.segments[-1].header.name
        return NewestSegment(name.writer_epoch, name.first_index, index_limit, offset_limit)

    def _look(self) -> tuple[dict[str, bytes], Recovered]:
        if not self._files.exists(self.folder):
            raise LogChanged(f"log {self._log_id} was deleted")
        for _ in range(LOOKS):
            small = self._read_small_files()
            found = self._recovered()
            if self._read_small_files() == small:
                return small, found
        raise LogChanged(f"log {self._log_id} writes snapshots faster than they can be read")

    def _recovered(self) -> Recovered:
        """What a start would make of the log."""
        return read_again(lambda: recover(self._files, self.folder, self._log_id, newest=self._newest))

    def _read_small_files(self) -> dict[str, bytes]:
        names = [name for name in self._files.list(self.folder) if not name.endswith(_SEGMENT_SUFFIXES)]
        read = {name: read_whole(self._files, join_path(self.folder, name)) for name in names}
        return {name: data for name, data in read.items() if data is not None}

    def _copy_segment(self, target: Files, folder: str, segment: Segment, on_bytes: Callable[[int], None]) -> None:
        """Copy a segment up to the end that it had at the look, and the sparse indexes of a finished one."""
        source = self._files.open_to_read(segment.path)
        try:
            written = target.open(join_path(folder, segment.header.name.file_name), create=True)
            try:
                for at in range(0, segment.end_position, PIECE_BYTES):
                    data = source.read(at, min(PIECE_BYTES, segment.end_position - at))
                    written.write(at, [data])
                    on_bytes(len(data))
                written.sync()
            finally:
                written.close()
        finally:
            source.close()
        for name in segment.names()[1:] if segment.end_index is not None else ():
            index = read_whole(self._files, join_path(self.folder, name))
            if index is not None:
                _write(target, join_path(folder, name), index)


def _write(target: Files, path: str, data: bytes) -> None:
    file = target.open(path, create=True)
    try:
        file.write(0, [data])
        file.sync()
    finally:
        file.close()
