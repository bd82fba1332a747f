"""BrokerProperties: what a request says of a message beside its body and its user properties, as one JSON object.

| name                                  | in the message |
|---------------------------------------|----------------|
| MessageId, CorrelationId, Label       | message-id, correlation-id, subject |
| To, ReplyTo                           | to, reply-to |
| SessionId, ReplyToSessionId           | group-id, reply-to-group-id |
| PartitionKey, ViaPartitionKey         | annotations of theirs |
| ScheduledEnqueueTimeUtc               | annotation, from an RFC 1123 date |
| TimeToLive, TimeToLiveTimeSpan        | ttl of the header; from seconds, from a span such as `0:00:10` |

Names come in any case. Every other member means nothing, so what was received can be sent again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hubweir.amqp.messaging.annotations import PARTITION_KEY, SCHEDULED_ENQUEUE_TIME, VIA_PARTITION_KEY
from hubweir.amqp.messaging.message import DataBody, Header, Message, Properties, encode_message
from hubweir.amqp.types.values import Symbol, Timestamp, ULong
from hubweir.gateway.http.body_json import body_json, refused
from hubweir.gateway.http.event_message import content_type_of
from hubweir.gateway.http.property_headers import date_ms
from hubweir.namespace.iso_duration import UNLIMITED_MS, BadDuration, parse_duration
from hubweir.namespace.resource_path import fold

# From the largest span of .NET on, which senders write where there is no end.
UNLIMITED_S = UNLIMITED_MS / 1_000
TTL_LIMIT_MS = 2**32 - 1

_IN_PROPERTIES = {
    "messageid": "message_id",
    "correlationid": "correlation_id",
    "label": "subject",
    "to": "to",
    "replyto": "reply_to",
    "sessionid": "group_id",
    "replytosessionid": "reply_to_group_id",
}
_IN_ANNOTATIONS = {"partitionkey": PARTITION_KEY, "viapartitionkey": VIA_PARTITION_KEY}


@dataclass(frozen=True, slots=True)
class BrokerProperties:
    """As a message has them. properties: fields of the section of that name."""

    ttl_ms: int | None
    annotations: Mapping[Symbol | ULong, object]
    properties: Mapping[str, str]

    def message(self, body: bytes, user_properties: dict[str, object], content_type: str | None = None) -> bytes:
        """The bytes of the message that has them."""
        media = content_type_of(content_type)
        fields: dict[str, object] = {**self.properties, **({} if media is None else {"content_type": media})}
        return encode_message(
            Message(
                header=None if self.ttl_ms is None else Header(ttl=self.ttl_ms),
                message_annotations=dict(self.annotations) or None,
                properties=Properties(**fields) if fields else None,  # type: ignore[arg-type]  # each is a string
                application_properties=user_properties or None,
                body=DataBody((body,)),
            )
        )


def header_properties(header: bytes | None) -> BrokerProperties:
    """Those of a header of a request; without one, none. Raises ServiceError ARGUMENT_ERROR."""
    what = "BrokerProperties"
    return broker_properties(None if header is None else body_json(header, what), what)


def broker_properties(value: object, what: str) -> BrokerProperties:
    """What a JSON value says. Raises ServiceError ARGUMENT_ERROR. what: names it in texts."""
    if value is not None and not isinstance(value, dict):
        raise refused(what, "it must be one JSON object")
    given = value or {}
    members = {fold(name): (name, member) for name, member in given.items()}
    if len(members) < len(given):
        raise refused(what, "it has one name twice")
    known = {name: said for name, said in members.items() if said[1] is not None}
    annotations: dict[Symbol | ULong, object] = {
        key: _text(what, *known[name]) for name, key in _IN_ANNOTATIONS.items() if name in known
    }
    if "scheduledenqueuetimeutc" in known:
        annotations[SCHEDULED_ENQUEUE_TIME] = _time(what, *known["scheduledenqueuetimeutc"])
    ttl_ms = None
    if "timetolive" in known:
        ttl_ms = _ttl_ms(what, known["timetolive"][1])
    elif "timetolivetimespan" in known:
        ttl_ms = _ttl_ms(what, _span_s(what, *known["timetolivetimespan"]))
    properties = {field: _text(what, *known[name]) for name, field in _IN_PROPERTIES.items() if name in known}
    return BrokerProperties(ttl_ms, annotations, properties)


def _text(what: str, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise refused(what, f"{name} must be a string")
    return value


def _time(what: str, name: str, value: object) -> Timestamp:
    time_ms = date_ms(_text(what, name, value))
    if time_ms is None:
        raise refused(what, f"{name} must be a date such as 'Mon, 23 Nov 2026 02:00:00 GMT'")
    return Timestamp(time_ms)


def _span_s(what: str, name: str, value: object) -> float:
    try:
        return parse_duration(_text(what, name, value)) / 1_000
    except BadDuration as error:
        raise refused(what, f"{name}: {error}") from None


def _ttl_ms(what: str, seconds: object) -> int | None:
    """The ttl of a message that lives so long; None: without an end."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise refused(what, "the time to live must be a number of seconds above 0")
    if seconds >= UNLIMITED_S:
        return None
    return min(max(1, round(seconds * 1_000)), TTL_LIMIT_MS)
