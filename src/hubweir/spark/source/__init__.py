"""Reading an event hub in Spark, as a batch and as a stream. Floor: apps.

Start with batch_reader.py and stream_reader.py, what Spark calls; read_options.py says what a user may ask. The side
that plans: hub_bounds.py asks the hub what it has, positions.py says where a read starts and ends, offsets.py what is
in one micro-batch, read_tasks.py which task reads which events. In a task: range_reader.py reads one range of one
partition into Arrow record batches and knows nothing of Spark; small_ranges.py reads several as if they were one.
"""
