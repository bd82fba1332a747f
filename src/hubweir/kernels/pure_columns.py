"""The kernels of columns in plain Python, under one name; columns_contract.py says what they promise.

One page per idea: values as text (pure_text.py), stored events as Avro records (pure_capture.py) and back
(pure_read_capture.py), delivered events as columns (pure_event_columns.py, pure_column_buffers.py), stored events as
columns (pure_stored_columns.py), rows as batches (pure_event_batches.py, pure_arrow.py), rows by partition
(pure_partitions.py).
"""

from __future__ import annotations

from hubweir.kernels.pure_capture import capture_block
from hubweir.kernels.pure_event_batches import event_batches, rows_digest
from hubweir.kernels.pure_event_columns import event_columns
from hubweir.kernels.pure_partitions import rows_by_partition
from hubweir.kernels.pure_read_capture import read_capture_block
from hubweir.kernels.pure_stored_columns import stored_columns

__all__ = [
    "capture_block",
    "event_batches",
    "event_columns",
    "read_capture_block",
    "rows_by_partition",
    "rows_digest",
    "stored_columns",
]
