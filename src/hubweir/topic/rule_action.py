"""SQL actions: what a rule changes in its copy of a message. ("Subscription Rule SQL Action Syntax")

    action    = statement { [ separator ] statement }       separator = any number of ; and ,
    statement = SET property = sum | REMOVE property

Statements run in order, and each sees what those before it did; other rules see the message as it came. SET of a new
application property takes the type of its value; one that the message has keeps its type where the value can be
converted (property_types.py). A value that is unknown sets null. Of the system properties some may be set, and
ScheduledEnqueueTimeUtc may be named, but stays as it is: a copy is active at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hubweir.namespace.resource_path import fold
from hubweir.topic.filtered_message import FilteredMessage
from hubweir.topic.property_types import converted, encoded_size, system_text, time_to_live
from hubweir.topic.sql_evaluate import Evaluation, NewUuid
from hubweir.topic.sql_lexer import TokenKind
from hubweir.topic.sql_parser import KEYWORDS, Parser
from hubweir.topic.sql_syntax import (
    PropertyNode,
    RemoveProperty,
    SetProperty,
    Statement,
    SystemProperty,
    UserProperty,
)
from hubweir.topic.sql_values import EvaluationFailed, TimeSpan, Value, amqp_of

SET_LIMIT: Final = 32
# Of one application property, and of all of a message. (Service Bus quotas)
PROPERTY_LIMIT_BYTES: Final = 32 * 1024
PROPERTIES_LIMIT_BYTES: Final = 64 * 1024

# The head of a map, where there was a shorter one or none.
_MAP_BYTES: Final = 9

_KEYWORDS: Final = KEYWORDS | {"SET", "REMOVE"}
# By folded name, as people write them.
_SETTABLE: Final = {
    fold(name): name
    for name in (
        "Label", "Subject", "To", "ReplyTo", "CorrelationId", "ContentType", "SessionId", "ReplyToSessionId",
        "MessageId", "PartitionKey", "TimeToLive",
    )
}  # fmt: skip
_SAME_AS: Final = {"subject": "label"}
_IGNORED: Final = "scheduledenqueuetimeutc"


@dataclass(frozen=True, slots=True)
class SqlAction:
    """An action that was read, with its parameters put in."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class MessageChanges:
    """What an action made of a message: its application properties, and the system properties that it set, by folded
    name: a text, a time to live, or None for one that is gone."""

    application_properties: Mapping[str, object]
    system_properties: Mapping[str, str | TimeSpan | None]


def parse_action(text: str, parameters: Mapping[str, Value]) -> SqlAction:
    """The action that a text is. Raises SqlError as parse_filter, and for a property that may not be set."""
    parser = Parser(text, parameters, _KEYWORDS)
    statements: list[Statement] = []
    set_count = 0
    while True:
        while parser.take_sign(";", ","):
            pass
        if parser.token.kind is TokenKind.END and statements:
            return SqlAction(tuple(statements))
        start = parser.token
        if parser.take_keyword("SET"):
            set_count += 1
            if set_count > SET_LIMIT:
                parser.refuse(f"an action has at most {SET_LIMIT} SETs; use several rules", start)
            target = _target(parser)
            parser.need_sign("=")
            statements.append(SetProperty(target, parser.parse_expression()))
        elif parser.take_keyword("REMOVE"):
            statements.append(RemoveProperty(_target(parser)))
        else:
            parser.refuse("SET or REMOVE is needed here")


def _target(parser: Parser) -> PropertyNode:
    start = parser.token
    target = parser.parse_property()
    if isinstance(target, SystemProperty) and target.name not in _SETTABLE and target.name != _IGNORED:
        may = ", ".join(_SETTABLE.values())
        parser.refuse(f"sys.{target.spelling} cannot be set or removed; of the system properties {may} can", start)
    return target


def run_action(action: SqlAction, message: FilteredMessage, new_id: NewUuid) -> MessageChanges:
    """What the action makes of a message. The message stays as it is.

    Raises EvaluationFailed as the evaluation of a filter, for a system property that cannot hold its value, and for
    application properties that grew over their limits.
    """
    copy = _Copy(message)
    run = Evaluation(copy, new_id)
    for statement in action.statements:
        target = statement.target
        if isinstance(statement, RemoveProperty):
            copy.remove(target)
        elif isinstance(target, UserProperty):
            source, value = statement.value, run.value(statement.value)
            # A property that is copied as it is keeps what the language does not know of it.
            amqp = copy.user_properties.get(source.name) if isinstance(source, UserProperty) else amqp_of(value)
            copy.set_user_property(target, value, amqp)
        elif target.name != _IGNORED:
            copy.set_system_property(target.name, run.value(statement.value))
    return copy.changes()


class _Copy:
    """A message with what the statements so far changed: they see it as filters see a message."""

    def __init__(self, message: FilteredMessage) -> None:
        self._message = message
        self._system: dict[str, str | TimeSpan | None] = {}
        self.application_properties = dict(message.application_properties)
        self.user_properties = dict(message.user_properties)
        # At most so many bytes: two thousand rules do not each encode all that a message has.
        self.properties_size = message.properties_size + _MAP_BYTES

    def system_property(self, name: str) -> Value:
        """What a statement set, else what the message has."""
        name = _SAME_AS.get(name, name)
        return self._system[name] if name in self._system else self._message.system_property(name)

    def set_user_property(self, target: UserProperty, value: Value, amqp: object) -> None:
        """amqp: the value as it is put where the property has no type to keep."""
        in_its_type = converted(value, self.user_properties.get(target.name))
        amqp = amqp if in_its_type is None else in_its_type
        size = encoded_size(amqp)
        if size > PROPERTY_LIMIT_BYTES:
            raise EvaluationFailed(f"a property that the action sets has more than {PROPERTY_LIMIT_BYTES} bytes")
        spelling = next(self._spellings(target), target.spelling)
        self.properties_size += encoded_size(spelling) + size
        self.application_properties[spelling] = self.user_properties[target.name] = amqp

    def set_system_property(self, name: str, value: Value) -> None:
        name = _SAME_AS.get(name, name)
        self._system[name] = time_to_live(value) if name == "timetolive" else system_text(name, value)

    def remove(self, target: PropertyNode) -> None:
        """Take a property away; of application properties all that differ in case alone."""
        if isinstance(target, SystemProperty):
            if target.name != _IGNORED:
                self.set_system_property(target.name, None)
            return
        for spelling in tuple(self._spellings(target)):
            del self.application_properties[spelling]
        self.user_properties.pop(target.name, None)

    def _spellings(self, target: UserProperty) -> Iterator[str]:
        """How the names of this property are written that the message has, in their order."""
        if target.name in self.user_properties:
            yield from (each for each in self.application_properties if fold(each) == target.name)

    def changes(self) -> MessageChanges:
        if (
            self.properties_size > PROPERTIES_LIMIT_BYTES
            and encoded_size(self.application_properties) > PROPERTIES_LIMIT_BYTES
        ):
            raise EvaluationFailed(f"the application properties have more than {PROPERTIES_LIMIT_BYTES} bytes")
        return MessageChanges(self.application_properties, self._system)
