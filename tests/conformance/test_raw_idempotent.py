"""Idempotent publishing, as a scripted client sees it: numbers count events, from 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hubweir.amqp.messaging.annotations import (
    IDEMPOTENT_PRODUCER,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    PRODUCER_SEQUENCE_NUMBER,
)
from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.transport.performatives import Attach, Disposition
from hubweir.amqp.types.values import Int, Long, Short
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import RawClient
from tests.conformance.test_raw_connection import READER

pytestmark = [pytest.mark.eh(54), pytest.mark.both_ways]
OUT_OF_ORDER, EPOCH_STOLEN = "com.microsoft:out-of-order-sequence", "com.microsoft:producer-epoch-stolen"


class Producer:
    """A link that publishes idempotently, and what its attach was answered."""

    def __init__(
        self,
        client: RawClient,
        hub: str,
        *,
        producer_id: int | None = None,
        epoch: int | None = None,
        number: int | None = None,
    ) -> None:
        asked = {
            PRODUCER_ID: None if producer_id is None else Long(producer_id),
            PRODUCER_EPOCH: None if epoch is None else Short(epoch),
            PRODUCER_SEQUENCE_NUMBER: None if number is None else Int(number),
        }
        self._client = client
        self._handle = client.attach(
            f"{hub}/Partitions/0", sends=True, desired_capabilities=(IDEMPOTENT_PRODUCER,), properties=asked
        )
        answer = client.expect(Attach)
        assert answer.target is not None
        assert IDEMPOTENT_PRODUCER in (answer.offered_capabilities or ())
        self.told: dict[Any, Any] = dict(answer.properties or {})
        self.producer_id = int(self.told[PRODUCER_ID])
        self.epoch = int(self.told[PRODUCER_EPOCH])
        self.number = int(self.told[PRODUCER_SEQUENCE_NUMBER])

    def send(self, first: int, *bodies: str) -> Disposition:
        """One event, or a batch of several, whose first has this number."""
        numbered = Message(
            message_annotations={
                PRODUCER_ID: Long(self.producer_id),
                PRODUCER_EPOCH: Short(self.epoch),
                PRODUCER_SEQUENCE_NUMBER: Int(first),
            }
        )
        events = [encode_message(Message(body=DataBody((body.encode(),)))) for body in bodies]
        if len(events) == 1:
            return self._client.publish(self._handle, encode_message(numbered) + events[0])
        return self._client.publish(
            self._handle, encode_message(numbered) + pack_batch(events), message_format=BATCH_FORMAT
        )


@pytest.fixture
def client(doors: Doors) -> Iterator[RawClient]:
    with doors.raw() as client:
        yield client.trusted()


def stored(client: RawClient, hub: str, count: int) -> list[str]:
    """The partition from its beginning; more than count events there are an error."""
    client.receiver(READER.format(hub), credit=count + 1)
    found = []
    for message in client.messages(count):
        assert isinstance(message.body, DataBody)
        found.append(b"".join(message.body.parts).decode())
    return found


def refusal(outcome: Disposition) -> str:
    assert outcome.settled
    assert isinstance(outcome.state, Rejected)
    assert outcome.state.error is not None
    return str(outcome.state.error.condition)


def test_the_answer_carries_an_id_an_epoch_and_the_last_number(client: RawClient, hub: str) -> None:
    told = Producer(client, hub).told
    assert [type(told[name]) for name in (PRODUCER_ID, PRODUCER_EPOCH, PRODUCER_SEQUENCE_NUMBER)] == [int, Short, Int]
    assert told[PRODUCER_SEQUENCE_NUMBER] == 0


def test_numbers_count_events_and_what_is_there_is_not_stored_again(client: RawClient, hub: str) -> None:
    producer = Producer(client, hub)
    for first, bodies in [(1, ("a",)), (2, ("b", "c", "d")), (2, ("b", "c", "d")), (1, ("a",)), (5, ("e",))]:
        assert isinstance(producer.send(first, *bodies).state, Accepted)
    assert stored(client, hub, 5) == ["a", "b", "c", "d", "e"]
    again = Producer(client, hub, producer_id=producer.producer_id)
    assert again.number == 5


def test_a_gap_and_an_overlap_are_refused_and_the_link_goes_on(client: RawClient, hub: str) -> None:
    producer = Producer(client, hub)
    assert isinstance(producer.send(1, "a").state, Accepted)
    assert refusal(producer.send(3, "c")) == OUT_OF_ORDER
    assert refusal(producer.send(1, "a", "b")) == OUT_OF_ORDER
    assert isinstance(producer.send(2, "b").state, Accepted)
    assert stored(client, hub, 2) == ["a", "b"]


def test_the_answer_repeats_what_the_attach_names(client: RawClient, hub: str) -> None:
    first = Producer(client, hub, producer_id=4711, epoch=3, number=17)
    assert (first.producer_id, first.epoch, first.number) == (4711, 3, 17)
    assert isinstance(first.send(18, "next").state, Accepted)


def test_a_higher_epoch_takes_over_and_fences_the_older_link(client: RawClient, hub: str) -> None:
    old = Producer(client, hub)
    assert isinstance(old.send(1, "a", "b").state, Accepted)
    new = Producer(client, hub, producer_id=old.producer_id, epoch=old.epoch + 1)
    assert new.number == 2
    assert refusal(old.send(3, "late")) == EPOCH_STOLEN
    assert isinstance(new.send(3, "c").state, Accepted)
    assert stored(client, hub, 3) == ["a", "b", "c"]
