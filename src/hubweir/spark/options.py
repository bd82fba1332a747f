"""Options of `format("eventhubs")`: names, defaults, one-line errors. docs/spark.md has them as a table.

Every name is taken with and without the prefix `eventhubs.`, in any case. Those of the JVM connector that mean nothing
here are taken too and ignored, with one warning a process, so a job moves over unchanged. Those of Kafka's source are
refused with the name of ours.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hubweir.errors import ServiceError
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition
from hubweir.namespace.connection_string import ConnectionString
from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_columns import COLUMN_NAMES, chosen_columns
from hubweir.spark.positions import Positions, parse_positions

logger = logging.getLogger(__name__)

PREFIX = "eventhubs."
DEFAULT_PREFETCH = 30_000
_OURS = (
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
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_warned: set[str] = set()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What one source reads, and how. It travels to the tasks; its repr shows no secret. Times are seconds."""

    connection_string: str = field(repr=False)
    event_hub: str
    consumer_group: str = "$Default"
    starting: Positions = Positions(EARLIEST)
    ending: Positions = Positions(LATEST)
    max_events_per_trigger: int | None = None
    min_events_per_trigger: int = 0
    max_trigger_delay_s: float = 900.0
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    receiver_timeout_s: float = 60.0
    operation_timeout_s: float = 300.0
    prefetch_count: int = DEFAULT_PREFETCH
    use_exclusive_receiver: bool = False
    columns: tuple[str, ...] = COLUMN_NAMES
    ca_file: str | None = None


class OptionTexts:
    """The options as they were given, by their names without prefix and case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """IllegalOption for a name given twice."""
        self.texts: dict[str, str] = {}
        for name, text in given.items():
            folded = name.lower().removeprefix(PREFIX)
            if self.texts.get(folded, text) != text:
                raise IllegalOption(f"option {name} is given twice, with and without '{PREFIX}': take one away")
            self.texts[folded] = text

    def text(self, name: str) -> str | None:
        """The value of an option; None when it is not given or empty."""
        return self.texts.get(name.lower()) or None

    def count(self, name: str, otherwise: int | None, *, least: int = 1) -> int | None:
        """A whole number, or otherwise when it is not given. IllegalOption for anything else, and below least."""
        text = self.text(name)
        if text is None:
            return otherwise
        if not re.fullmatch("[0-9]{1,18}", text.strip()) or int(text) < least:
            raise IllegalOption(f"{name} is a whole number of at least {least}, not '{text[:64]}'")
        return int(text)

    def flag(self, name: str, otherwise: bool) -> bool:
        """true or false, in any case. IllegalOption for anything else."""
        text = (self.text(name) or str(otherwise)).strip().lower()
        if text not in ("true", "false"):
            raise IllegalOption(f"{name} is true or false, not '{text[:64]}'")
        return text == "true"

    def seconds(self, name: str, otherwise: float) -> float:
        """A duration: `60s`, `500 ms`, `2 minutes`, or ISO 8601 as the JVM connector has it: `PT1M30S`."""
        text = self.text(name)
        return otherwise if text is None else parse_seconds(name, text)

    def positions(self, name: str, otherwise: EventPosition, hub: str) -> Positions:
        """Of all partitions of the event hub by `name`, of some by `names`; either takes either form."""
        whole, some = self.text(name), self.text(f"{name}s")
        found = Positions(otherwise) if whole is None else parse_positions(name, whole, otherwise, hub=hub)
        if some is None:
            return found
        more = parse_positions(f"{name}s", some, found.default, hub=hub)
        return Positions(more.default, {**found.by_partition, **more.by_partition})


def parse_options(given: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
    """The options of a reader. IllegalOption, in one line, for the first that is not right."""
    texts = OptionTexts(given)
    check_names(texts)
    connection_string, hub = target_of(texts)
    if is_stream and (texts.text("endingPosition") or texts.text("endingPositions")):
        raise IllegalOption("endingPosition is for batch reads: a stream has no end; use the trigger availableNow")
    columns = texts.text("columns")
    return ReadOptions(
        connection_string=connection_string,
        event_hub=hub,
        consumer_group=texts.text("consumerGroup") or "$Default",
        starting=texts.positions("startingPosition", LATEST if is_stream else EARLIEST, hub),
        ending=texts.positions("endingPosition", LATEST, hub),
        max_events_per_trigger=texts.count("maxEventsPerTrigger", None),
        min_events_per_trigger=texts.count("minEventsPerTrigger", 0, least=0) or 0,
        max_trigger_delay_s=texts.seconds("maxTriggerDelay", 900.0),
        min_partitions=texts.count("minPartitions", None),
        fail_on_data_loss=texts.flag("failOnDataLoss", True),
        receiver_timeout_s=texts.seconds("receiverTimeout", 60.0),
        operation_timeout_s=texts.seconds("operationTimeout", 300.0),
        prefetch_count=texts.count("prefetchCount", DEFAULT_PREFETCH) or DEFAULT_PREFETCH,
        use_exclusive_receiver=texts.flag("useExclusiveReceiver", False),
        columns=COLUMN_NAMES if columns is None else chosen_columns(columns),
        ca_file=texts.text("caFile"),
    )


def check_names(texts: OptionTexts) -> None:
    """IllegalOption for a name that nothing here knows; one warning for those that are ignored."""
    known = {name.lower() for name in (*_OURS, *OF_THE_SINK)} | _SPARKS
    ignored = {name.lower(): name for name in _IGNORED}
    for name in texts.texts:
        if name in _ANSWERS or name.startswith("kafka."):
            answer = _ANSWERS.get(name, "this is not Kafka's source: connectionString and eventHub say where to read")
            raise IllegalOption(f"option {name} is not taken here: {answer}")
        if name not in known and name not in ignored:
            raise IllegalOption(f"option {name} is not known: there are {', '.join((*_OURS, *OF_THE_SINK))}")
    fresh = sorted(ignored[name] for name in texts.texts if name in ignored and name not in _warned)
    if fresh:
        _warned.update(name.lower() for name in fresh)
        logger.warning("ignored, for they mean nothing to this source: %s", ", ".join(fresh))


def target_of(texts: OptionTexts) -> tuple[str, str]:
    """The connection string and the event hub that it, or the option eventHub, names.

    IllegalOption: one of them is missing, is none, or the two name different hubs. No error shows the string.
    """
    text = texts.text("connectionString")
    if text is None:
        raise IllegalOption("connectionString is missing: .option('connectionString', 'Endpoint=sb://…')")
    try:
        target = ConnectionString.parse(text)
    except ServiceError as error:
        raise IllegalOption(
            f"connectionString: {error.text} It is taken in plain text; one that EventHubsUtils.encrypt made is not"
        ) from None
    hub = texts.text("eventHub") or target.entity_path
    if hub is None:
        raise IllegalOption("no event hub is named: give eventHub, or a connection string with EntityPath")
    if target.entity_path is not None and hub.lower() != target.entity_path.lower():
        raise IllegalOption(f"eventHub is '{hub}' and the connection string is for '{target.entity_path}'")
    return text, hub


def parse_seconds(name: str, text: str) -> float:
    """See OptionTexts.seconds. IllegalOption also for a bare number: nobody knows its unit."""
    plain = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*", text.lower())
    if plain:
        unit = re.sub(r"^(h)(ou)?rs?$|^(m)inutes?$|^(s)ec(ond)?s?$", lambda m: m[1] or m[3] or m[4], plain[2])
        if unit in _UNITS_S:
            return float(plain[1]) * _UNITS_S[unit]
    iso = re.fullmatch(r"PT(?:([0-9.]+)H)?(?:([0-9.]+)M)?(?:([0-9.]+)S)?", text.strip().upper())
    if iso and any(iso.groups()):
        try:
            return sum(
                float(number or 0) * unit for number, unit in zip(iso.groups(), (3600.0, 60.0, 1.0), strict=True)
            )
        except ValueError:
            pass
    raise IllegalOption(f"{name} is a duration such as 60s, 500ms, 5m or PT60S, not '{text[:64]}'")
