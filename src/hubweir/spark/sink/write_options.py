"""Options of `df.write.format("eventhubs")` and of its stream. docs/spark_write.md has them as a table.

Names of the source are taken too and mean nothing here, so one set of options may serve a job's both ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hubweir.spark.errors import IllegalOption
from hubweir.spark.known_options import check_names
from hubweir.spark.option_texts import OptionTexts, target_of


class ExactlyOnce(StrEnum):
    """Whether events are numbered, so that those of a repeated batch are not stored again."""

    AUTO = "auto"  # where the service can; a warning where it cannot
    REQUIRE = "require"  # or an error
    OFF = "off"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where one sink writes, and how. It travels to the tasks; its repr shows no secret.

    sort_by: columns that put the rows of a task in order. query_id, batch_id: what a batch write inside foreachBatch is
    known by when it is repeated; both or none.
    """

    connection_string: str = field(repr=False)
    event_hub: str
    exactly_once: ExactlyOnce = ExactlyOnce.AUTO
    sort_by: tuple[str, ...] = ()
    query_id: str | None = None
    batch_id: int | None = None
    operation_timeout_s: float = 300.0
    ca_file: str | None = None


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a writer. IllegalOption, in one line, for the first that is not right."""
    texts = OptionTexts(given)
    check_names(texts)
    connection_string, hub = target_of(texts)
    query_id, batch_id = texts.text("queryId"), texts.count("batchId", None, least=0)
    if (query_id is None) != (batch_id is None):
        raise IllegalOption(
            "queryId and batchId belong together: a name that no other write has, and foreachBatch's id"
        )
    sort_by = tuple(one.strip() for one in (texts.text("sortBy") or "").split(",") if one.strip())
    return WriteOptions(
        connection_string=connection_string,
        event_hub=hub,
        exactly_once=_exactly_once(texts.text("exactlyOnce") or ExactlyOnce.AUTO),
        sort_by=sort_by,
        query_id=query_id,
        batch_id=batch_id,
        operation_timeout_s=texts.seconds("operationTimeout", 300.0),
        ca_file=texts.text("caFile"),
    )


def _exactly_once(text: str) -> ExactlyOnce:
    try:
        return ExactlyOnce(text.strip().lower())
    except ValueError:
        raise IllegalOption(f"exactlyOnce is auto, require or off, not '{text[:64]}'") from None
