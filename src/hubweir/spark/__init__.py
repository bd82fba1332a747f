"""Event hubs in Spark: `format("eventhubs")` and `format("eventhubs-capture")`. Floor: apps.

Start with data_source.py, what PySpark calls: readers come from source/, writers from sink/. captured/ reads captured
files; event_format.py is what all formats of events share. Which columns events have is event_columns.py, how kernels'
buffers become Arrow is record_batches.py. What a user may ask: known_options.py has the names, option_texts.py reads
the values.

Tasks of a process share clients (hub_connection.py); a service that is away is waited for as patience.py says.
worker_process.py prepares Spark's Python workers. errors.py are the errors, json_view.py is a view for users.
sessions/ starts a Spark session and registers the formats. The pages are docs/spark.md, docs/spark_write.md and
docs/spark_limits.md.

This front page carries the two names that users need, `register` and `session`; PySpark is loaded when one is called.
"""

from hubweir.spark.sessions.local_session import session
from hubweir.spark.sessions.registration import register

__all__ = ["register", "session"]
