"""The rows of one task in an order of their own, whatever order they came in: for rows behind a shuffle.

Spark refuses to sort a stream, and the order in which a task gets the blocks of a shuffle is not the same in a repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from hubweir.spark.sink.sink_columns import SinkColumns

ROWS_A_BATCH = 10_000


def sorted_rows(
    batches: Iterable[pa.RecordBatch], columns: SinkColumns, sort_by: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """All rows, held in memory until the last came. Equal ones in sort_by are put in order by target and body, so only
    rows that differ in their properties alone may change places. IllegalOption for a column that is not there.
    """
    places = [columns.place(name) for name in sort_by]
    further = (columns.partition_id, columns.partition, columns.partition_key, columns.publisher, columns.body)
    places += [place for place in further if place is not None and place not in places]
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    # By place, not by name: a DataFrame may have two columns of one name among those that nobody asks for.
    names = [str(place) for place in range(held[0].num_columns)]
    table = pa.Table.from_batches([batch.rename_columns(names) for batch in held])
    held.clear()
    yield from table.sort_by([(str(place), "ascending") for place in places]).to_batches(max_chunksize=ROWS_A_BATCH)
