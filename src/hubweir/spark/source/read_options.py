"""Options of `spark.read.format("eventhubs")` and of its stream. docs/spark.md has them as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_columns import COLUMN_NAMES, chosen_columns
from hubweir.spark.known_options import check_names
from hubweir.spark.option_texts import OptionTexts, target_of
from hubweir.spark.source.positions import Positions, parse_positions

DEFAULT_PREFETCH = 30_000


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What one source reads, and how. It travels to the tasks; its repr shows no secret. Times are seconds."""

    connection_string: str = field(repr=False)
    event_hub: str
    consumer_group: str = DEFAULT_GROUP
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
        consumer_group=texts.text("consumerGroup") or DEFAULT_GROUP,
        starting=_positions(texts, "startingPosition", LATEST if is_stream else EARLIEST, hub),
        ending=_positions(texts, "endingPosition", LATEST, hub),
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


def _positions(texts: OptionTexts, name: str, otherwise: EventPosition, hub: str) -> Positions:
    """Of all partitions of the event hub by `name`, of some by `names`; either takes either form."""
    whole, some = texts.text(name), texts.text(f"{name}s")
    found = Positions(otherwise) if whole is None else parse_positions(name, whole, otherwise, hub=hub)
    if some is None:
        return found
    more = parse_positions(f"{name}s", some, found.default, hub=hub)
    return Positions(more.default, {**found.by_partition, **more.by_partition})
