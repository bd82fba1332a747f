"""Names of the options of `format("eventhubs")`, of both its ends: one set of options may serve a source and a sink.

Those of the JVM connector that mean nothing here are taken too and ignored, with one warning a process, so a job moves
over unchanged. Those of Kafka's source are refused with the name of ours.
"""

from __future__ import annotations

import logging

from hubweir.spark.errors import IllegalOption
from hubweir.spark.option_texts import OptionTexts

logger = logging.getLogger(__name__)

OF_THE_SOURCE = (
    "connectionString", "eventHub", "caFile", "consumerGroup", "startingPosition", "startingPositions",
    "endingPosition", "endingPositions", "maxEventsPerTrigger", "minEventsPerTrigger", "maxTriggerDelay",
    "minPartitions", "failOnDataLoss", "receiverTimeout", "operationTimeout", "prefetchCount",
    "useExclusiveReceiver", "columns",
)  # fmt: skip
_IGNORED = (
    "maxSilentTime", "threadPoolSize", "slowPartitionAdjustment", "maxAcceptableBatchReceiveTime",
    "throttlingStatusPlugin", "metricPlugin", "partitionPreferredLocationStrategy", "dynamicPartitionDiscovery",
    "useSimulatedClient",
)  # fmt: skip
_ANSWERS = {
    "startingoffsets": "use startingPosition",
    "startingoffsetsbytimestamp": "use startingPosition with a time",
    "startingtimestamp": "use startingPosition with a time",
    "endingoffsets": "use endingPosition",
    "endingtimestamp": "use endingPosition with a time",
    "subscribe": "use eventHub",
    "subscribepattern": "use eventHub: a source reads one event hub",
    "assign": "use eventHub and startingPosition",
    "maxoffsetspertrigger": "use maxEventsPerTrigger",
    "minoffsetspertrigger": "use minEventsPerTrigger",
    "maxrateperpartition": "use maxEventsPerTrigger: it is shared out by what each partition has waiting",
    "maxratesperpartition": "use maxEventsPerTrigger: it is shared out by what each partition has waiting",
    "useaadauth": "use a connection string with a key or a SharedAccessSignature",
    "aadauthcallback": "use a connection string with a key or a SharedAccessSignature",
    "aadauthcallbackparams": "use a connection string with a key or a SharedAccessSignature",
    "credential": (
        "a connection string carries the proof, a key or a SharedAccessSignature; fetch it from where it is kept "
        "before the query starts"
    ),
    "format": "JSON is a view over the events: hubweir.spark.json_view.with_json_value(events, schema)",
    "valueschema": "JSON is a view over the events: hubweir.spark.json_view.with_json_value(events, schema)",
}
# What Spark itself puts among the options of a source.
_SPARKS = {"path", "queryname", "checkpointlocation"}
OF_THE_SINK = ("exactlyOnce", "sortBy", "queryId", "batchId")
_warned: set[str] = set()


def check_names(texts: OptionTexts) -> None:
    """IllegalOption for a name that nothing here knows; one warning for those that are ignored."""
    known = {name.lower() for name in (*OF_THE_SOURCE, *OF_THE_SINK)} | _SPARKS
    ignored = {name.lower(): name for name in _IGNORED}
    for name in texts.texts:
        if name in _ANSWERS or name.startswith("kafka."):
            answer = _ANSWERS.get(name, "this is not Kafka's source: connectionString and eventHub say where to read")
            raise IllegalOption(f"option {name} is not taken here: {answer}")
        if name not in known and name not in ignored:
            raise IllegalOption(f"option {name} is not known: there are {', '.join((*OF_THE_SOURCE, *OF_THE_SINK))}")
    fresh = sorted(ignored[name] for name in texts.texts if name in ignored and name not in _warned)
    if fresh:
        _warned.update(name.lower() for name in fresh)
        logger.warning("ignored, for they mean nothing to this source: %s", ", ".join(fresh))
