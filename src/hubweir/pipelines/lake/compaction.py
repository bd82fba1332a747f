"""The small files of an hour that is over become one.

A reader of plain Parquet sees whatever files a folder holds, and many files cannot be swapped at once. So a new folder
is made beside the hour's, whole, and the two change names in one step (folder_exchange.py): at any moment each event is
there once. Where that cannot be, two renames do, and a reader may miss the hour for a moment. A reader that looked for
files before and opens them behind finds them gone: an error, never a wrong row. After a crash `recover` ends what was
begun:

| there is | then |
|---|---|
| `.hour=07.new`, and the hour | it may not be whole, or is what the hour was: it is removed |
| `.hour=07.new` and `.hour=07.old`, no hour | the new one takes the place |
| the same, and the hour | files were written meanwhile: they go into the new one, which takes the place |
| `.hour=07.old`, and the hour | the old one is removed |

Only files of micro-batches that are over are joined: a batch that is repeated writes its own files again. Whether one
is over its own query alone knows, so each query joins its own files, and those that were joined before. What another
query puts into an hour while its files are joined is taken along. One process joins at a time (table_lock.py).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq

from hubweir.pipelines.durable_file import sync
from hubweir.pipelines.lake.folder_exchange import exchange
from hubweir.pipelines.lake.lake_files import DATE, HOUR, SUFFIX

HOUR_MS = 3_600_000
_FOLDER = re.compile(rf"{DATE}=(\d{{4}}-\d\d-\d\d)/{HOUR}=(\d\d)")
_OF_BATCH = re.compile(r"(.*-)(\d{10})-\d{5}\.parquet")
_JOINED = "joined-"


def file_name(query: str, batch: int, task: int) -> str:
    """The name of what one task wrote of one micro-batch; the same when it runs again."""
    return f"{_front(query)}{batch:010}-{task:05}{SUFFIX}"


def _front(query: str) -> str:
    return f"events-{query[:8]}-"


def remove_left(table: Path, query: str, batch: int, kept: set[str]) -> None:
    """Files of a micro-batch that an earlier attempt left and the last one, with other tasks, did not replace: their
    rows are in other files now. kept: paths below the table of what the last one wrote.
    """
    for file in table.glob(f"{DATE}=*/{HOUR}=??/{_front(query)}{batch:010}-*{SUFFIX}"):
        if file.relative_to(table).as_posix() not in kept:
            file.unlink()


def recover(table: Path) -> None:
    """End, or undo, what a compaction that was killed has left. For who has the table's lock."""
    for old in table.glob(f"{DATE}=*/.{HOUR}=??.old"):
        hour, fresh = old.with_name(old.name[1:].removesuffix(".old")), old.with_suffix(".new")
        if not fresh.exists():
            if hour.exists():
                shutil.rmtree(old)
            else:
                old.rename(hour)
            continue
        if hour.exists():  # begun anew behind the compaction's back: its files come on top
            for file in hour.iterdir():
                file.replace(fresh / file.name)
            hour.rmdir()
        fresh.rename(hour)
        sync(hour.parent)
        shutil.rmtree(old)
    for fresh in table.glob(f"{DATE}=*/.{HOUR}=??.new"):
        shutil.rmtree(fresh)


def compact(table: Path, *, query: str, before_batch: int, now_ms: int, after_ms: int) -> int:
    """Join the files of every hour that ended at least after_ms ago; how many files were joined into others.

    query: whose files are joined. before_batch: those of this micro-batch and later ones stay as they are. For who has
    the table's lock.
    """
    joined = 0
    for folder in closed_hours(table, now_ms - after_ms):
        files = sorted(folder.glob(f"[!.]*{SUFFIX}"))
        over = [file for file in files if _is_over(file, _front(query), before_batch)]
        # As a rule there is one: its columns need no look, in each hour that there ever was.
        wanted = alike(over) if len(over) > 1 else []
        if len(wanted) > 1:
            _join(folder, wanted, [file for file in files if file not in wanted])
            joined += len(wanted)
    return joined


def alike(files: list[Path]) -> list[Path]:
    """Those with the columns of the first: a pipeline whose schema changed meanwhile has others, which stay."""
    return [file for file in files if pq.read_schema(file) == pq.read_schema(files[0])]


def closed_hours(table: Path, ended_ms: int) -> Iterator[Path]:
    """The folders of hours that ended then or before."""
    for folder in sorted(table.glob(f"{DATE}=*/{HOUR}=??")):
        found = _FOLDER.fullmatch(folder.relative_to(table).as_posix())
        if found is not None:
            start = datetime.fromisoformat(found[1]).replace(hour=int(found[2]), tzinfo=UTC)
            if start.timestamp() * 1000 + HOUR_MS <= ended_ms:
                yield folder


def _is_over(file: Path, front: str, before_batch: int) -> bool:
    found = _OF_BATCH.fullmatch(file.name)
    is_own = found is not None and found[1] == front and int(found[2]) < before_batch
    return is_own or file.name.startswith(_JOINED)


def _join(folder: Path, files: list[Path], others: list[Path]) -> None:
    fresh = folder.with_name(f".{folder.name}.new")
    old = folder.with_name(f".{folder.name}.old")
    fresh.mkdir()
    # A name of its own: a reader that knows an earlier joined file must not find more rows behind its name.
    target = fresh / f"{_JOINED}{uuid4().hex}{SUFFIX}"
    with pq.ParquetWriter(target, pq.read_schema(files[0]), compression="zstd") as writer:
        for file in files:
            with pq.ParquetFile(file) as opened:
                for group in range(opened.num_row_groups):
                    writer.write_table(opened.read_row_group(group))
    sync(target)
    for other in others:
        os.link(other, fresh / other.name)
    sync(fresh)
    if exchange(fresh, folder):
        _take_along(fresh, folder, [*files, *others])
        sync(folder.parent)
        shutil.rmtree(fresh)
        return
    folder.rename(old)
    fresh.rename(folder)
    _take_along(old, folder, [*files, *others])
    sync(folder.parent)
    shutil.rmtree(old)


def _take_along(before: Path, folder: Path, known: list[Path]) -> None:
    """Files that came into the hour behind the look at it, by another query, or by a task that ran twice."""
    names = {file.name for file in known}
    late = [file for file in before.glob(f"[!.]*{SUFFIX}") if file.name not in names]
    for file in late:
        file.replace(folder / file.name)
    if late:
        sync(folder)
