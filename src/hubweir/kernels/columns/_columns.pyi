"""Types of the compiled kernels of columns: those of their twins, which stand once."""

from hubweir.kernels.columns.event_batches import event_batches as event_batches
from hubweir.kernels.columns.event_batches import rows_digest as rows_digest
from hubweir.kernels.columns.event_columns import event_columns as event_columns
from hubweir.kernels.columns.partitions import rows_by_partition as rows_by_partition
from hubweir.kernels.columns.stored_columns import stored_columns as stored_columns
