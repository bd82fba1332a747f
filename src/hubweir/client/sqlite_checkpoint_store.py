"""A checkpoint store in one SQLite file, shared by all processors of one machine.

| table       | key (all lower case)                  | value                                                  |
|-------------|---------------------------------------|--------------------------------------------------------|
| ownership   | namespace, hub, group_name, partition | owner_id, etag, last_modified_time (seconds since 1970) |
| checkpoint  | namespace, hub, group_name, partition | offset, sequence_number                                |

After a crash: the file is in WAL mode with full syncs, so what a call returned from is there, also after a power cut;
a call that was cut off has happened whole or not at all. The file must lie on a local disk: WAL needs shared memory
between the processes. A store object is not to be used on both sides of a fork.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any

from hubweir.client.checkpoint_store import Record, ThreadedCheckpointStore
from hubweir.errors import NewerFormat

# How long one process waits for another's write, each of which takes one sync.
BUSY_S = 15.0
FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS ownership (
    namespace TEXT NOT NULL, hub TEXT NOT NULL, group_name TEXT NOT NULL, partition TEXT NOT NULL,
    owner_id TEXT NOT NULL, etag TEXT NOT NULL, last_modified_time REAL NOT NULL,
    PRIMARY KEY (namespace, hub, group_name, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint (
    namespace TEXT NOT NULL, hub TEXT NOT NULL, group_name TEXT NOT NULL, partition TEXT NOT NULL,
    offset TEXT, sequence_number INTEGER,
    PRIMARY KEY (namespace, hub, group_name, partition)) WITHOUT ROWID;
"""
_KEY = ("fully_qualified_namespace", "eventhub_name", "consumer_group", "partition_id")


class BlockingSqliteCheckpointStore:
    """The store as plain calls, from any thread. Fits the official blocking client, too.

    Every call may raise sqlite3.OperationalError: the disk is full, or another process held the file over BUSY_S.
    """

    def __init__(self, path: Path | str, *, now_s: Callable[[], float] = time.time) -> None:
        """path: the file, made when it is not there; its folder must be. NewerFormat when a newer version wrote it."""
        self._now_s = now_s
        self._mutex = Lock()
        self._file = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(Path(path))
        except BaseException:
            self._file.close()
            raise

    def list_ownership(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> list[Record]:
        """The ownership records of a group."""
        return self._list(
            "SELECT partition AS partition_id, owner_id, etag, last_modified_time FROM ownership",
            (fully_qualified_namespace, eventhub_name, consumer_group),
        )

    def claim_ownership(self, ownership_list: Iterable[Record], **kwargs: Any) -> list[Record]:
        """Write those whose etag is the stored one, each by itself; return them."""
        return [written for record in ownership_list if (written := self._claim(record)) is not None]

    def update_checkpoint(self, checkpoint: Record, **kwargs: Any) -> None:
        """Write one checkpoint; it is on the disk when this returns."""
        offset, sequence_number = checkpoint.get("offset"), checkpoint.get("sequence_number")
        values = (None if offset is None else str(offset), sequence_number)
        self._write("INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?, ?, ?, ?)", (*_key(checkpoint), *values))

    def list_checkpoints(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> list[Record]:
        """The checkpoints of a group."""
        return self._list(
            "SELECT partition AS partition_id, offset, sequence_number FROM checkpoint",
            (fully_qualified_namespace, eventhub_name, consumer_group),
        )

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        with self._mutex:
            self._file.close()

    def __enter__(self) -> BlockingSqliteCheckpointStore:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _prepare(self, path: Path) -> None:
        # The mode stays in the file; full syncs are this connection's.
        self._set_wal_mode()
        self._file.execute("PRAGMA synchronous = FULL")
        (found,) = self._file.execute("PRAGMA user_version").fetchone()
        if found > FORMAT:
            raise NewerFormat(f"{path} has format {found}, and this version reads {FORMAT}: it was left untouched")
        if found < FORMAT:
            self._file.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")

    def _set_wal_mode(self) -> None:
        """SQLite does not wait for others here, as it does everywhere else: so we do, when several open a new file."""
        end_s = time.monotonic() + BUSY_S
        while True:
            try:
                self._file.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end_s:
                    raise
                time.sleep(0.01)
            else:
                return

    def _claim(self, record: Record) -> Record | None:
        """One statement, so one transaction: it writes when the etag is right, and not otherwise."""
        etag, now_s = uuid.uuid4().hex, self._now_s()
        held = record.get("etag")
        if held is None:
            changed = self._write(
                "INSERT OR IGNORE INTO ownership VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*_key(record), record["owner_id"], etag, now_s),
            )
        else:
            changed = self._write(
                "UPDATE ownership SET owner_id = ?, etag = ?, last_modified_time = ?"
                " WHERE namespace = ? AND hub = ? AND group_name = ? AND partition = ? AND etag = ?",
                (record["owner_id"], etag, now_s, *_key(record), held),
            )
        return {**record, "etag": etag, "last_modified_time": now_s} if changed else None

    def _write(self, statement: str, values: tuple[object, ...]) -> int:
        with self._mutex, closing(self._file.execute(statement, values)) as done:
            return done.rowcount

    def _list(self, select: str, group: tuple[str, str, str]) -> list[Record]:
        where = " WHERE namespace = ? AND hub = ? AND group_name = ? ORDER BY partition"
        folded = tuple(name.lower() for name in group)
        with self._mutex, closing(self._file.execute(select + where, folded)) as found:
            names = [column[0] for column in found.description]
            asked = dict(zip(_KEY, group, strict=False))
            return [{**asked, **dict(zip(names, row, strict=True))} for row in found]


class SqliteCheckpointStore(ThreadedCheckpointStore):
    """The same as coroutines, on a thread of its own: for EventProcessor and the official `aio` client."""

    def __init__(self, path: Path | str, *, now_s: Callable[[], float] = time.time) -> None:
        super().__init__(BlockingSqliteCheckpointStore(path, now_s=now_s))


def _key(record: Record) -> tuple[str, ...]:
    return tuple(str(record[name]).lower() for name in _KEY)
