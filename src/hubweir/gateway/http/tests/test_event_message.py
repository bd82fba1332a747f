"""Events of a request as the bytes of one AMQP transfer."""

from hubweir.amqp.messaging.annotations import PARTITION_KEY
from hubweir.amqp.messaging.batch import BATCH_FORMAT, MESSAGE_FORMAT
from hubweir.amqp.messaging.message import DataBody, decode_message
from hubweir.event_hub.open_run import AddStatus, OpenRun
from hubweir.gateway.http.event_message import CONTENT_TYPE_LIMIT, PostedEvent, publication


def test_one_event_is_one_message_with_its_key_inside() -> None:
    made = publication([PostedEvent(b"raw", {"a": 1}, "text/plain")], key="k", is_batch=False)
    message = decode_message(made.data)
    assert made.format == MESSAGE_FORMAT
    assert message.message_annotations == {PARTITION_KEY: "k"}
    assert message.application_properties == {"a": 1}
    assert message.body == DataBody((b"raw",))
    assert message.properties is not None and message.properties.content_type == "text/plain"


def test_an_event_without_anything_is_its_body_alone() -> None:
    assert publication([PostedEvent(b"x", {})], key=None, is_batch=False).data == bytes.fromhex("005375a00178")


def test_a_batch_is_an_envelope_even_of_one_and_its_key_stands_outside() -> None:
    made = publication([PostedEvent(b"x", {})], key="k", is_batch=True)
    assert made.format == BATCH_FORMAT
    assert decode_message(made.data).message_annotations == {PARTITION_KEY: "k"}
    assert decode_message(made.data).body == DataBody((bytes.fromhex("005375a00178"),))


def test_a_content_type_that_is_no_symbol_is_left_out() -> None:
    for media in ("\u00e9", "x" * (CONTENT_TYPE_LIMIT + 1), "a\tb"):
        assert (
            decode_message(publication([PostedEvent(b"", {}, media)], key=None, is_batch=False).data).properties is None
        )


def test_the_ingest_kernel_takes_what_is_made_here() -> None:
    run = OpenRun()
    for is_batch in (False, True):
        made = publication([PostedEvent(b"x", {"a": None})], key="k", is_batch=is_batch)
        added = run.add_deliveries(made.data, made.rows(), 0, 1)
        assert (added.status, added.events) == (AddStatus.DONE, 1)
