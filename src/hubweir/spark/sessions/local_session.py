"""A Spark session with the settings that event hubs want: quick small batches, quiet logs, no folders left behind.

What is set, and why, is the table in docs/spark_limits.md. Static settings count for the first session of a process
only: Spark gives every later call the same one, so this is for who has none yet; others call register on theirs.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hubweir.spark.sessions.java import find_java
from hubweir.spark.sessions.registration import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCALHOST = "127.0.0.1"
_QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
# As the root, or Spark tells two lines about a level of its own choice.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
# A query that is stopped in mid-batch prints stack traces by these, and nothing is wrong.
logger.v2.name = org.apache.spark.sql.execution.datasources.v2
logger.v2.level = off
logger.utils.name = org.apache.spark.util.Utils
logger.utils.level = off
logger.files.name = org.apache.spark.sql.execution.datasources.FileFormatWriter
logger.files.level = off
logger.streaming.name = org.apache.spark.sql.execution.streaming
logger.streaming.level = fatal
"""


def session(
    *, master: str = "local[*]", app_name: str = "hubweir", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with both formats registered. settings: Spark's own, on top of ours.

    IllegalOption when there is no Java. Starting takes 5 to 10 s.
    """
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is None:
        folder = Path(tempfile.mkdtemp(prefix="hubweir-spark-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ.update(environment(master, folder))
        chosen = {**default_settings(master, folder), **(settings or {})}
    else:
        chosen = dict(settings or {})
    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def default_settings(master: str, folder: Path) -> dict[str, str]:
    """Spark's settings for this master; folder: for what Spark writes, and gone at the end of the process."""
    log4j = folder / "log4j2.properties"
    log4j.write_text(_QUIET)
    chosen = {
        "spark.python.unix.domain.socket.enabled": str(os.name != "nt").lower(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # A batch that is repeated behind a shuffle has as many tasks as the first time: what sinks know it by.
        "spark.sql.adaptive.streaming.stateless.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "spark.driver.memory": "2g",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    if cores := local_cores(master):
        chosen |= {
            "spark.sql.shuffle.partitions": str(cores),
            "spark.driver.host": _LOCALHOST,
            "spark.driver.bindAddress": _LOCALHOST,
            # One driver a checkpoint, on one machine: half the time of a small batch was this one's care.
            "spark.sql.streaming.checkpointFileManagerClass": (
                "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
            ),
        }
    return chosen


def environment(master: str, folder: Path) -> dict[str, str]:
    """Variables for the JVM and the Python workers, which inherit them."""
    chosen = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, **find_java(folder)}
    if local_cores(master):
        source = str(Path(__file__).parents[3])
        others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != source]
        chosen |= {"SPARK_LOCAL_IP": _LOCALHOST, "PYTHONPATH": os.pathsep.join([source, *others])}
    return chosen


def local_cores(master: str) -> int:
    """How many cores a local master has; 0 for a cluster."""
    if not master.startswith("local"):
        return 0
    inside = master.removeprefix("local").strip("[]").split(",")[0].strip()
    return int(inside) if inside.isdigit() else (os.cpu_count() or 1) if inside == "*" else 1
