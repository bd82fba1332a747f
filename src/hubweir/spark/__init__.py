"""Event hubs in Spark: `format("eventhubs")` and `format("eventhubs-capture")`. Floor: apps.

Start with data_source.py, what PySpark calls; options.py says what a user may ask. Where a read starts and ends is
positions.py, what is in one micro-batch offsets.py, which task reads which events range_tasks.py; range_reader.py reads
one range of one partition into Arrow record batches and knows nothing of Spark. stream_reader.py and batch_reader.py
put these together, capture_reader.py reads captured files.

The sink is writer.py, what Spark calls, and task_writer.py, one task's rows, which knows nothing of Spark. Where each
row goes is row_targets.py, what it may have row_limits.py; numbered_target.py stores a partition's rows once,
resending_target.py at least once. The pages are docs/spark.md, docs/spark_write.md and docs/spark_limits.md.

This front page carries the two names that users need, `register` and `session`; PySpark is loaded when one is called.
"""

from hubweir.spark.local_session import session
from hubweir.spark.registration import register

__all__ = ["register", "session"]
