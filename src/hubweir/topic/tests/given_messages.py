"""Messages and rules as tests of this folder give them: in short words, with no bytes to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from hubweir.amqp.messaging.message import DataBody, Header, Message, Properties, encode_message
from hubweir.topic.filtered_message import NO_BROKER_VALUES, BrokerValues, EncodedMessage
from hubweir.topic.rule import Rule, SqlFilter
from hubweir.topic.rule_action import SqlAction, parse_action
from hubweir.topic.sql_evaluate import Evaluation
from hubweir.topic.sql_parser import parse_filter
from hubweir.topic.sql_values import Value, value_of

FRESH_ID = UUID(int=0x1234)


def new_id() -> UUID:
    """What newid() makes in these tests."""
    return FRESH_ID


def message(
    application_properties: Mapping[str, object] | None = None,
    *,
    ttl: int | None = None,
    annotations: dict[Any, object] | None = None,
    broker: BrokerValues | None = None,
    **properties: Any,
) -> EncodedMessage:
    """A message with a body. properties: of the section properties, by the names of Properties."""
    encoded = encode_message(
        Message(
            header=None if ttl is None else Header(ttl=ttl),
            message_annotations=annotations,
            properties=Properties(**properties) if properties else None,
            application_properties=None if application_properties is None else dict(application_properties),
            body=DataBody((b"body",)),
        )
    )
    return EncodedMessage(encoded, replace(broker or NO_BROKER_VALUES, time_to_live_ms=ttl))


def values(parameters: Mapping[str, object]) -> dict[str, Value]:
    """Parameters that a test gives as AMQP values."""
    return {name: value_of(amqp) for name, amqp in parameters.items()}


def sql_filter(text: str, **parameters: object) -> SqlFilter:
    return SqlFilter(parse_filter(text, values(parameters)))


def action(text: str, **parameters: object) -> SqlAction:
    return parse_action(text, values(parameters))


def truth(text: str, seen: EncodedMessage, **parameters: object) -> bool | None:
    """What the tree of a filter says of a message."""
    return Evaluation(seen, new_id).truth(sql_filter(text, **parameters).predicate)


def rule(name: str, text: str, does: str | None = None) -> Rule:
    """A rule with a SQL filter, and an action perhaps."""
    return Rule(name, sql_filter(text), None if does is None else action(does))
