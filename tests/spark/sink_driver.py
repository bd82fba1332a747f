"""A Spark driver of its own, to be killed while it writes: one event hub into another, slowly, in known batches.

sink_driver.py CONNECTION_STRING SOURCE TARGET FOLDER EXACTLY_ONCE ROWS_A_BATCH [other-rows|when-told]: runs to the end
of what the source holds. Record batches of 500 rows come with pauses, so that a task writes for a second or so.
other-rows: bodies differ in every run. when-told: makes FOLDER/ready when its session stands, and begins when FOLDER/go
is there.
"""

import sys
import time
from pathlib import Path

from hubweir.spark import session

connection_string, source, target, folder, exactly_once, rows_a_batch = sys.argv[1:7]
settings = {"spark.ui.enabled": "false", "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
spark = session(master="local[2]", settings=settings)
if sys.argv[7:] == ["when-told"]:
    Path(folder, "ready").touch()
    while not Path(folder, "go").exists():
        time.sleep(0.05)


def slowly(batches):  # type: ignore[no-untyped-def]
    for batch in batches:
        time.sleep(0.05)
        yield batch


reader = spark.readStream.format("eventhubs").options(connectionString=connection_string, eventHub=source)
reader = reader.options(startingPosition="earliest", maxEventsPerTrigger=rows_a_batch, minPartitions="2")
events = reader.load()
if sys.argv[7:] == ["other-rows"]:
    events = events.selectExpr("concat(string(body), uuid()) AS body", "partition")
else:
    events = events.select("body", "partition", "properties")
writer = events.mapInArrow(slowly, events.schema).writeStream.format("eventhubs")
writer = writer.options(connectionString=connection_string, eventHub=target, exactlyOnce=exactly_once)
query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
