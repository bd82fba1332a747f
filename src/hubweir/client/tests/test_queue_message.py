import pytest

from hubweir.amqp.messaging.message import DataBody, decode_message
from hubweir.client.queue_message import SCHEDULED_TIME, TTL_LIMIT_MS, QueueMessage, encoded
from hubweir.errors import ARGUMENT_ERROR, ServiceError


def test_a_body_alone_is_a_data_section_alone() -> None:
    assert encoded(b"x") == QueueMessage(b"x").encode() == b"\x00\x53\x75\xa0\x01x"


def test_every_field_has_its_place_in_the_message() -> None:
    message = decode_message(
        QueueMessage(
            b"x", {"a": 1}, "id", "", "subject", "correlation", "type", "to", "reply", "other", "key", 5_000, 7
        ).encode()
    )
    header, properties = message.header, message.properties
    assert header is not None and properties is not None
    assert header.ttl == 5_000
    assert message.message_annotations == {SCHEDULED_TIME: 7, "x-opt-partition-key": "key"}
    assert (properties.message_id, properties.group_id, properties.subject) == ("id", "", "subject")
    assert (properties.correlation_id, properties.content_type, properties.to) == ("correlation", "type", "to")
    assert (properties.reply_to, properties.reply_to_group_id) == ("reply", "other")
    assert message.application_properties == {"a": 1}
    assert message.body == DataBody((b"x",))


@pytest.mark.parametrize(("asked", "sent"), [(2**40, TTL_LIMIT_MS), (-5, 0)])
def test_a_time_to_live_that_the_header_cannot_hold_is_the_nearest(asked: int, sent: int) -> None:
    header = decode_message(QueueMessage(time_to_live_ms=asked).encode()).header
    assert header is not None and header.ttl == sent


def test_a_value_without_a_form_in_amqp_is_refused() -> None:
    with pytest.raises(ServiceError) as refused:
        QueueMessage(properties={"x": {1, 2}}).encode()
    assert refused.value.condition is ARGUMENT_ERROR
