"""Queues, topics, subscriptions and rules managed by hubweir's own client, against a running service."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType, entity_of, error_of
from hubweir.errors import (
    ARGUMENT_ERROR,
    AUTH_FAILED,
    ENTITY_EXISTS,
    INTERNAL_ERROR,
    NOT_FOUND,
    TIMED_OUT,
    ServiceError,
)
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as namespace:
        yield namespace


@pytest.fixture
def administration(namespace: RunningNamespace) -> Iterator[Administration]:
    found = Administration(ConnectionString.parse(namespace.connection_string()))
    yield found
    for kind in (EntityType.QUEUE, EntityType.TOPIC):
        for entity in list(found.list(kind)):
            found.delete(entity.name)


def test_a_queue_s_life(administration: Administration) -> None:
    made = administration.create(EntityType.QUEUE, "Orders", {"LockDuration": "PT30S", "UserMetadata": "<a & b>"})
    assert (made.name, made.members["LockDuration"], made.members["UserMetadata"]) == ("Orders", "PT30S", "<a & b>")
    with pytest.raises(ServiceError) as refused:
        administration.create(EntityType.QUEUE, "orders", {})
    assert refused.value.condition is ENTITY_EXISTS
    changed = administration.update(EntityType.QUEUE, "orders", {"MaxDeliveryCount": "4"})
    assert (changed.members["MaxDeliveryCount"], changed.members["LockDuration"]) == ("4", "PT30S")
    assert changed.counts == {
        "ActiveMessageCount": 0, "DeadLetterMessageCount": 0, "ScheduledMessageCount": 0, "TransferMessageCount": 0,
        "TransferDeadLetterMessageCount": 0,
    }  # fmt: skip
    administration.delete("orders")
    with pytest.raises(ServiceError) as gone:
        administration.get("orders")
    assert gone.value.condition is NOT_FOUND


@pytest.mark.parametrize("brokers", [1, 3])
def test_of_changes_of_different_settings_at_once_none_undoes_another(brokers: int) -> None:
    with running_namespace(brokers=brokers) as namespace, ThreadPoolExecutor(3) as senders:
        administration = Administration(ConnectionString.parse(namespace.connection_string()))
        administration.create(EntityType.QUEUE, "orders", {})
        for number in range(1, 21):
            asked = {"LockDuration": f"PT{number + 4}S", "MaxDeliveryCount": str(number), "UserMetadata": f"m{number}"}
            changes = [{name: text} for name, text in asked.items()]
            list(senders.map(lambda change: administration.update(EntityType.QUEUE, "orders", change), changes))
            members = administration.get("orders").members
            assert {name: members[name] for name in asked} == asked


def test_lists_are_asked_for_page_by_page(administration: Administration) -> None:
    names = [f"q{number:03}" for number in range(101)]
    for name in names:
        administration.create(EntityType.QUEUE, name, {})
    assert [queue.name for queue in administration.list(EntityType.QUEUE)] == names


def test_rules_of_a_subscription(administration: Administration) -> None:
    administration.create(EntityType.TOPIC, "t", {})
    administration.create(EntityType.SUBSCRIPTION, "t/Subscriptions/s", {"RequiresSession": "true"})
    (subscription,) = administration.list(EntityType.SUBSCRIPTION, "t")
    assert (subscription.name, subscription.members["RequiresSession"]) == ("s", "true")
    inside = '<Filter i:type="CorrelationFilter"><Label>x</Label></Filter>'
    administration.create(EntityType.RULE, "t/Subscriptions/s/Rules/r", {}, inside)
    first, second = administration.list(EntityType.RULE, "t/Subscriptions/s")
    assert first.filter is not None and (first.name, first.filter.kind) == ("$Default", "TrueFilter")
    assert second.filter is not None and second.filter.members == {"Label": "x"} and second.action is None


def test_over_tls_and_the_namespace_itself(namespace: RunningNamespace) -> None:
    tls = ssl.create_default_context(cafile=str(namespace.ca_file))
    target = ConnectionString.parse(namespace.connection_string())
    assert Administration(target, tls=tls).namespace().members["MessagingSKU"] == "Standard"


def test_refusals_and_silence_are_told(namespace: RunningNamespace) -> None:
    text = namespace.connection_string()
    with pytest.raises(ServiceError) as wrong:
        Administration(ConnectionString.parse(text.replace("SAS_KEY_VALUE", "wrong"))).namespace()
    assert wrong.value.condition is AUTH_FAILED and "InvalidSignature" in wrong.value.text
    with pytest.raises(ServiceError) as nobody:
        Administration(ConnectionString.parse("Endpoint=sb://127.0.0.1:1;UseDevelopmentEmulator=true")).namespace()
    assert nobody.value.condition is ARGUMENT_ERROR
    nowhere = "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
    with pytest.raises(ServiceError) as silent:
        Administration(ConnectionString.parse(nowhere)).namespace()
    assert silent.value.condition is TIMED_OUT and "127.0.0.1:1" in silent.value.text


def test_answers_that_are_none_are_faults_of_the_service() -> None:
    assert error_of(418, b"no xml").condition is INTERNAL_ERROR
    for answer in (b"no xml", b"<entry/>"):
        with pytest.raises(ServiceError) as refused:
            entity_of(answer)
        assert refused.value.condition is INTERNAL_ERROR
