"""Files into a Delta table: one commit for a micro-batch, once however often it is tried. By the package deltalake.

A commit carries the query and the batch as Delta's own application transaction. A batch whose number the table has
already seen of this query is left out, so a batch that Spark repeats after a crash adds nothing. Files of attempts that
died are in no commit; deltalake's `vacuum` removes them. Nothing here needs Spark, or a jar.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from hubweir.spark.errors import IllegalOption

PARTITION_BY = ["date", "hour"]
_HOUR_MS = 3_600_000
_TRIES = 5
_NULLABILITY = re.compile(r"(value_contains_null|contains_null|nullable)=(True|False)")


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """A Parquet file below the table. partition: values of PARTITION_BY. stats: Delta's, which let readers skip it."""

    path: str
    size_bytes: int
    partition: Mapping[str, str]
    stats: Mapping[str, Any]


def commit_files(table: Path, schema: pa.Schema, files: Sequence[DeltaFile], *, query: str, batch: int) -> bool:
    """Add files to the table, which is made when it is not there. False when this batch was committed before.

    schema: of the rows with the columns of PARTITION_BY. Conflicts with other writers are tried again.

    IllegalOption when the table is there and has not these columns, or other partition columns: a reader would not find
    the rows.
    """
    conflict = _deltalake().exceptions.CommitFailedError
    for _ in range(_TRIES - 1):
        # What deltalake does not try again: the table was made meanwhile, or another run of the query has committed.
        with suppress(conflict):
            return _commit(table, schema, files, query, batch)
    return _commit(table, schema, files, query, batch)


def _commit(table: Path, schema: pa.Schema, files: Sequence[DeltaFile], query: str, batch: int) -> bool:
    deltalake = _deltalake()
    # Whole columns by Delta's rules: what Arrow says of nullability may differ from task to task.
    fields = [pa.field(field.name, pa.int32() if field.name == "hour" else field.type) for field in schema]
    delta_schema = deltalake.Schema.from_arrow(pa.schema(fields))
    at = deltalake.DeltaTable.create(str(table), delta_schema, mode="ignore", partition_by=PARTITION_BY)
    _check_columns(table, at, delta_schema)
    done = at.transaction_version(query)
    if done is not None and done >= batch:
        return False
    now_ms = int(time.time() * 1000)
    actions = [
        deltalake.transaction.AddAction(
            file.path, file.size_bytes, dict(file.partition), now_ms, True, json.dumps(file.stats)
        )
        for file in files
    ]
    marks = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(query, batch)])
    at.create_write_transaction(actions, "append", delta_schema, PARTITION_BY, commit_properties=marks)
    return True


def _check_columns(table: Path, at: Any, written: Any) -> None:
    """Of a table that was there: what is written has its place in it. Nullability is no matter."""

    def kinds(schema: Any) -> dict[str, str]:
        return {field.name: _NULLABILITY.sub("", str(field.type)) for field in schema.fields}

    there, given = kinds(at.schema()), kinds(written)
    wrong = [f"{name} is {there.get(name, 'not there')}" for name, kind in given.items() if there.get(name) != kind]
    partition_by = list(at.metadata().partition_columns)
    if partition_by != PARTITION_BY:
        wrong.append(f"it is partitioned by {', '.join(partition_by) or 'nothing'}, not by {', '.join(PARTITION_BY)}")
    if wrong:
        raise IllegalOption(
            f"the Delta table {table} is another one than these rows are for: {'; '.join(wrong)}. Write to another "
            "folder, or give the table these columns"
        )


def compact_hours(table: Path, *, now_ms: int, after_ms: int) -> int:
    """Join the small files of hours that ended at least after_ms ago; how many hours had some."""
    deltalake = _deltalake()
    if not deltalake.DeltaTable.is_deltatable(str(table)):
        return 0
    at = deltalake.DeltaTable(str(table))
    added = pa.table(at.get_add_actions(flatten=True)).to_pylist()
    counts = Counter((str(one["partition.date"]), int(one["partition.hour"])) for one in added)
    hours = [place for place, count in counts.items() if count > 1 and _end_ms(*place) + after_ms <= now_ms]
    for date, hour in hours:
        at.optimize.compact(partition_filters=[("date", "=", date), ("hour", "=", str(hour))])
    return len(hours)


def _end_ms(date: str, hour: int) -> int:
    return int(datetime.fromisoformat(date).replace(hour=hour, tzinfo=UTC).timestamp() * 1000) + _HOUR_MS


def _deltalake() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
        import deltalake.transaction
    except ImportError:
        raise IllegalOption("a Delta table needs the package deltalake: pip install 'hubweir[spark]'") from None
    return deltalake
