"""Making the formats known to a Spark session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hubweir.spark.errors import IllegalOption

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_OLDEST = (4, 2)
_SOCKETS = "spark.python.unix.domain.socket.enabled"
_REDACTION = "spark.sql.redaction.options.regex"
_SECRETS = "(?i)connectionstring|store[.]"


def register(spark: SparkSession) -> None:
    """Make `eventhubs` and `eventhubs-capture` formats of this session. Again does no harm.

    Also keeps connection strings out of the plans that Spark prints. IllegalOption when this Spark is too old.
    """
    version = tuple(int(part) for part in spark.version.split(".")[:2])
    if version < _OLDEST:
        raise IllegalOption(
            f"this is Spark {spark.version}, and event hubs need 4.2 or newer: pip install pyspark==4.3.0"
        )
    from hubweir.spark.captured.capture_reader import CaptureDataSource
    from hubweir.spark.data_source import EventHubsDataSource

    spark.dataSource.register(EventHubsDataSource)
    spark.dataSource.register(CaptureDataSource)
    redacted = spark.conf.get(_REDACTION, "") or ""
    if _SECRETS not in redacted:
        spark.conf.set(_REDACTION, f"{redacted}|{_SECRETS}" if redacted else _SECRETS)
    if spark.conf.get(_SOCKETS, "false") != "true":
        logger.warning(
            "%s is not true: every Python task takes 40 ms longer; hubweir.spark.session() sets it", _SOCKETS
        )
