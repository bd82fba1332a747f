"""Writing rows into an event hub from Spark, exactly once where the hub can. Floor: apps.

Start with writer.py, what Spark calls, and task_writer.py, one task's rows, which knows nothing of Spark;
write_options.py says what a user may ask. Rows come in by sink_columns.py, in an order of their own by sorted_rows.py.
Where each goes is row_targets.py, what it may have row_limits.py; encoded_batches.py makes batches for the wire.

numbered_target.py stores a partition's rows once, under the names of producer_ids.py; resending_target.py stores at
least once. Both wait as write_patience.py says, and unsettled.py bounds what is on its way.
"""
