"""Links to partitioned queues while a messaging store is away, frame by frame: which go on, and which end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from hubweir.alarms import STORE_AWAY
from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.transport.performatives import Detach, Transfer
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.namespace.queue_description import QueueDescription
from hubweir.testing.frames import frame
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.lost_store import STORE, lost_store, until
from tests.conformance.raw_client import RawClient
from tests.conformance.test_raw_partitioned import KEY
from tests.conformance.test_raw_queues import LOCK, annotations, delivery, message, send
from tests.conformance.test_raw_sessions import SESSION_FILTER

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.one_process("a broker process takes its connections with it; here all stay"),
]
STORES, FRAGMENTS = 3, 16
# An id for each fragment, by number: of a session, or else a partition key.
KEYS = {partition_of_key(f"k{number}".encode(), FRAGMENTS): f"k{number}" for number in range(400)}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace(stores=STORES) as namespace:
        yield namespace


@pytest.fixture
def client(namespace: RunningNamespace) -> Iterator[RawClient]:
    with RawClient.connect((namespace.host, namespace.port)) as client:
        yield client.trusted()


@pytest.fixture
def entity(namespace: RunningNamespace, request: pytest.FixtureRequest) -> QueueDescription:
    """A partitioned queue. param: its settings."""
    name = f"lost-{next(_numbers)}"
    namespace.create_queue(name, is_partitioned=True, **getattr(request, "param", {}))
    return namespace.service.gateway.namespace.get(name, QueueDescription)


def lost_and_others(entity: QueueDescription) -> tuple[list[int], list[int]]:
    """The fragments of the store that is lost, and those that stay."""
    stores = [placement.store_index for placement in entity.placements]
    lost = [fragment for fragment, store in enumerate(stores) if store == STORE]
    assert lost
    return lost, [fragment for fragment in range(FRAGMENTS) if fragment not in lost]


def send_to(client: RawClient, queue: str, fragments: list[int]) -> None:
    payloads = [message(b"tea", message_annotations={KEY: KEYS[each]}) for each in fragments]
    assert send(client, queue, *payloads) == [Accepted()] * len(payloads)


def until_all_is_served(namespace: RunningNamespace) -> None:
    """A store that is back opens its logs one after the other."""
    until(lambda: STORE_AWAY not in [alarm.kind for alarm in namespace.service.alarms.current()])


def fragments_of(client: RawClient, count: int) -> list[int]:
    """Where the next deliveries are from."""
    return sorted(annotations(delivery(client))["x-opt-partition-id"] for _ in range(count))


@pytest.mark.parametrize("credit", [0, 100])
def test_a_receiver_goes_on_with_the_others_and_has_those_of_the_store_on_the_same_link(
    namespace: RunningNamespace, client: RawClient, entity: QueueDescription, credit: int
) -> None:
    queue, (lost, others) = entity.name, lost_and_others(entity)
    if not credit:
        send_to(client, queue, lost)
    link = client.receiver(queue, credit=credit, **LOCK)
    with lost_store(namespace):
        send_to(client, queue, others)
        if not credit:
            client.grant(link, 100)
        assert fragments_of(client, len(others)) == others
        assert client.none_of(Transfer)
    until_all_is_served(namespace)
    if credit:
        send_to(client, queue, lost)
    assert fragments_of(client, len(lost)) == lost
    assert client.none_of(Detach)


@pytest.mark.parametrize("credit", [0, 10])
@pytest.mark.parametrize("entity", [{"requires_session": True}], indirect=True)
def test_a_session_of_the_store_ends_its_link_and_is_busy_until_the_store_is_back(
    namespace: RunningNamespace, client: RawClient, entity: QueueDescription, credit: int
) -> None:
    queue, (lost, others) = entity.name, lost_and_others(entity)
    gone, kept = KEYS[lost[0]], KEYS[others[0]]

    def of(session: str) -> dict[str, Any]:
        return {"source": Source(address=queue, filter={SESSION_FILTER: session}), **LOCK}

    def send_in(session: str) -> None:
        assert send(client, queue, message(b"tea", properties=Properties(group_id=session))) == [Accepted()]

    for session in (gone, kept):
        send_in(session)
    link, other = (client.receiver(queue, credit=credit, **of(session)) for session in (gone, kept))
    if credit:
        assert fragments_of(client, 2) == sorted([lost[0], others[0]])
        send_in(kept)
    with lost_store(namespace):
        end = client.expect(Detach)
        assert end.closed and end.error is not None
        client.write(frame(Detach(handle=link, closed=True)))
        assert client.refused(queue, sends=False, **of(gone)).condition == "com.microsoft:server-busy"
        if not credit:
            client.grant(other, 1)
        assert fragments_of(client, 1) == [others[0]]
    until_all_is_served(namespace)
    client.receiver(queue, credit=10, **of(gone))
    assert fragments_of(client, 1) == [lost[0]]
