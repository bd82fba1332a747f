"""Correlation filters: all given fields equal the message's. The cheapest filter, as it needs no language.

A field that is not given (None) asks for nothing, so a filter without fields matches every message. Texts compare with
case; names of properties compare without, as in SQL filters. Numbers compare by their values, whatever their types.
("Topic filters and actions")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from hubweir.namespace.resource_path import fold
from hubweir.topic.filtered_message import FilteredMessage
from hubweir.topic.sql_values import Value, compare, value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationFilter:
    """What the properties of a message have to be. properties: by the names of application properties."""

    correlation_id: str | None = None
    message_id: str | None = None
    to: str | None = None
    reply_to: str | None = None
    label: str | None = None
    session_id: str | None = None
    reply_to_session_id: str | None = None
    content_type: str | None = None
    properties: Mapping[str, Value] = field(default_factory=dict)

    def system_fields(self) -> Iterator[tuple[str, str]]:
        """Folded names of system properties, with the texts that they have to be."""
        for name in SYSTEM_FIELDS:
            text = getattr(self, name)
            if text is not None:
                yield name.replace("_", ""), text

    def user_fields(self) -> Iterator[tuple[str, Value]]:
        """Folded names of application properties, with the values that they have to be."""
        for name, value in self.properties.items():
            yield fold(name), value

    def matches(self, message: FilteredMessage) -> bool:
        """Whether all fields are equal. Raises EvaluationFailed when the message cannot be read."""
        return all(message.system_property(name) == text for name, text in self.system_fields()) and all(
            compare("=", value_of(message.user_properties.get(name)), value) for name, value in self.user_fields()
        )


# In the order of the filter's fields on the wire.
SYSTEM_FIELDS: Final = tuple(line.name for line in fields(CorrelationFilter) if line.name != "properties")
