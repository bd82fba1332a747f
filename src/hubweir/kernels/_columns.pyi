"""Types of the compiled kernels of columns: those of their twins, which stand once."""

from hubweir.kernels.pure_event_batches import event_batches as event_batches
from hubweir.kernels.pure_event_batches import rows_digest as rows_digest
from hubweir.kernels.pure_event_columns import event_columns as event_columns
from hubweir.kernels.pure_partitions import rows_by_partition as rows_by_partition
from hubweir.kernels.pure_stored_columns import stored_columns as stored_columns
