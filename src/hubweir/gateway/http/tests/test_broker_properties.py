"""What BrokerProperties say becomes what an AMQP sender would have said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hubweir.amqp.messaging.message import DataBody, Header, Message, Properties, decode_message
from hubweir.amqp.types.values import Symbol, Timestamp
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.broker_properties import TTL_LIMIT_MS, header_properties


def sent(body: bytes = b"x", user: dict[str, object] | None = None, media: str | None = None, **said: Any) -> Message:
    """The message of a request with these BrokerProperties."""
    return decode_message(header_properties(json.dumps(said).encode()).message(body, user or {}, media))


def test_every_property_has_its_place() -> None:
    message = sent(
        b"\x00body",
        {"n": 1},
        "text/plain",
        MessageId="m", CorrelationId="c", SessionId="s", Label="l", ReplyTo="r", ReplyToSessionId="rs", To="t",
        TimeToLive=1.5, ScheduledEnqueueTimeUtc="Mon, 23 Nov 2026 02:00:00 GMT", PartitionKey="s", ViaPartitionKey="v",
    )  # fmt: skip
    assert message.header == Header(ttl=1_500)
    assert message.message_annotations == {
        Symbol("x-opt-partition-key"): "s",
        Symbol("x-opt-via-partition-key"): "v",
        Symbol("x-opt-scheduled-enqueue-time"): Timestamp(1_795_399_200_000),
    }
    assert message.properties == Properties(
        message_id="m", correlation_id="c", group_id="s", subject="l", reply_to="r", reply_to_group_id="rs", to="t",
        content_type=Symbol("text/plain"),
    )  # fmt: skip
    assert message.application_properties == {"n": 1}
    assert message.body == DataBody((b"\x00body",))


def test_a_message_without_any_is_its_body_alone() -> None:
    assert header_properties(None).message(b"x", {}) == bytes.fromhex("005375a00178")
    assert sent(Unknown=1, State="Active", DeliveryCount=3, ForcePersistence=True, MessageId=None) == Message(
        body=DataBody((b"x",))
    )


def test_names_come_in_any_case() -> None:
    assert sent(messageID="m", TIMETOLIVE=1).properties == Properties(message_id="m")


def test_an_empty_session_id_is_one() -> None:
    message = sent(SessionId="", PartitionKey="")
    assert message.properties == Properties(group_id="")
    assert message.message_annotations == {Symbol("x-opt-partition-key"): ""}


@pytest.mark.parametrize(
    ("said", "ttl_ms"),
    [
        ({"TimeToLive": 10}, 10_000),
        ({"TimeToLive": 0.0001}, 1),
        ({"TimeToLive": 5_000_000_000}, TTL_LIMIT_MS),
        ({"TimeToLive": 922_337_203_685.47754}, None),
        ({"TimeToLiveTimeSpan": "0:00:10"}, 10_000),
        ({"TimeToLiveTimeSpan": "1.00:00:00.5"}, 86_400_500),
        ({"TimeToLiveTimeSpan": "10675199.02:48:05.4775807"}, None),
        ({"TimeToLive": 1, "TimeToLiveTimeSpan": "0:00:10"}, 1_000),
    ],
)
def test_the_time_to_live_is_a_number_of_seconds_or_a_span(said: dict[str, Any], ttl_ms: int | None) -> None:
    assert sent(**said).header == (None if ttl_ms is None else Header(ttl=ttl_ms))


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"{", "line 1"),
        (b"[]", "one JSON object"),
        (b'"a"', "one JSON object"),
        (b'{"MessageId": 5}', "MessageId must be a string"),
        (b'{"messageid": "a", "MessageId": "b"}', "one name twice"),
        (b'{"TimeToLive": 0}', "above 0"),
        (b'{"TimeToLive": -1}', "above 0"),
        (b'{"TimeToLive": true}', "above 0"),
        (b'{"TimeToLive": "10"}', "above 0"),
        (b'{"TimeToLiveTimeSpan": 10}', "TimeToLiveTimeSpan must be a string"),
        (b'{"TimeToLiveTimeSpan": "soon"}', "TimeToLiveTimeSpan: "),
        (b'{"TimeToLiveTimeSpan": "0:00:00"}', "above 0"),
        (b'{"ScheduledEnqueueTimeUtc": "2026-11-23T02:00:00Z"}', "ScheduledEnqueueTimeUtc must be a date"),
        (b'{"ScheduledEnqueueTimeUtc": 5}', "ScheduledEnqueueTimeUtc must be a string"),
        (b'{"PartitionKey": 5}', "PartitionKey must be a string"),
    ],
)
def test_what_has_another_type_is_refused_by_name(header: bytes, why: str) -> None:
    with pytest.raises(ServiceError, match=f"^BrokerProperties is not what it must be: .*{why}") as refusal:
        header_properties(header)
    assert refusal.value.condition is ARGUMENT_ERROR
