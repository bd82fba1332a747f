"""Transactions on partitioned queues and topics, frame by frame: one key in each, and no rules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from hubweir.amqp.messaging.message import Message, Properties, ValueBody
from hubweir.amqp.messaging.outcome import Accepted, Rejected, TransactionalState
from hubweir.amqp.transactions.requests import Discharge
from hubweir.amqp.types.values import Symbol
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.conftest import Serve
from tests.conformance.raw_client import RawClient
from tests.conformance.test_raw_queues import message
from tests.conformance.test_raw_transactions import ask, bodies, control, declare

pytestmark = pytest.mark.conformance
KEY = Symbol("x-opt-partition-key")
NOT_ALLOWED, ROLLED_BACK = "amqp:not-allowed", "amqp:transaction:rollback"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(stores=3) as namespace:
        yield namespace


@pytest.fixture
def client(namespace: RunningNamespace) -> Iterator[RawClient]:
    with RawClient.connect((namespace.host, namespace.port)) as client:
        yield client.trusted()


def partitioned(namespace: RunningNamespace, **settings: Any) -> str:
    name = f"partitioned-{next(_numbers)}"
    namespace.create_queue(name, is_partitioned=True, **settings)
    return name


def told(client: RawClient, sender: int, payload: bytes, txn_id: bytes) -> str:
    """What is said of a send in a transaction: "accepted", or the condition of its refusal."""
    state: Any = client.publish(sender, payload, state=TransactionalState(txn_id=txn_id)).state
    outcome = state.outcome if isinstance(state, TransactionalState) else state
    return str(outcome.error.condition) if isinstance(outcome, Rejected) else type(outcome).__name__.lower()


def keyed(body: bytes, key: str) -> bytes:
    return message(body, message_annotations={KEY: key})


def in_session(body: bytes, session: str) -> bytes:
    return message(body, properties=Properties(group_id=session))


@pytest.mark.sb(130)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (None, message(b"b")), (keyed(b"a", "k"), message(b"b")), (keyed(b"a", "k"), keyed(b"b", "other")),
        (in_session(b"a", "s"), in_session(b"b", "other")), (in_session(b"a", "s"), keyed(b"b", "other")),
        (None, message(b"b", properties=Properties(message_id="id"))),
    ],
)  # fmt: skip
def test_a_transaction_keeps_to_one_key(
    client: RawClient, namespace: RunningNamespace, first: bytes | None, second: bytes
) -> None:
    queue = partitioned(namespace)
    handle, sender = control(client), client.sender(queue)
    txn_id = declare(client, handle)
    if first is not None:
        assert told(client, sender, first, txn_id) == "accepted"
    assert told(client, sender, second, txn_id) == NOT_ALLOWED
    state = ask(client, handle, Discharge(txn_id=txn_id))
    assert isinstance(state, Rejected) and state.error is not None and state.error.condition == ROLLED_BACK
    assert bodies(client, queue) == []


@pytest.mark.sb(130)
def test_a_transaction_of_one_key_is_committed(client: RawClient, namespace: RunningNamespace) -> None:
    queue, once = partitioned(namespace), partitioned(namespace, duplicate_window_ms=60_000)
    handle = control(client)
    txn_id = declare(client, handle)
    sender = client.sender(queue)
    for payload in (keyed(b"a", "k"), in_session(b"b", "k"), keyed(b"c", "k")):
        assert told(client, sender, payload, txn_id) == "accepted"
    with_id = message(b"d", properties=Properties(message_id="another key, as it is another entity"))
    assert told(client, client.sender(once), with_id, txn_id) == "accepted"
    assert ask(client, handle, Discharge(txn_id=txn_id)) == Accepted()
    assert (bodies(client, queue), bodies(client, once)) == ([b"a", b"b", b"c"], [b"d"])


@pytest.mark.sb(130)
def test_a_transaction_needs_a_session_id_where_sessions_are_required(
    client: RawClient, namespace: RunningNamespace
) -> None:
    queue = partitioned(namespace, requires_session=True)
    handle, sender = control(client), client.sender(queue)
    txn_id = declare(client, handle)
    assert told(client, sender, keyed(b"a", "k"), txn_id) == NOT_ALLOWED


@pytest.mark.sb(131)
def test_rules_of_a_partitioned_topic_are_not_changed_in_a_transaction(
    client: RawClient, namespace: RunningNamespace
) -> None:
    name = f"topic-{next(_numbers)}"
    administration = Administration(ConnectionString.parse(namespace.connection_string()))
    administration.create(EntityType.TOPIC, name, {"EnablePartitioning": "true"})
    administration.create(EntityType.SUBSCRIPTION, f"{name}/Subscriptions/all", {})
    node, handle = f"{name}/Subscriptions/all/$management", control(client)
    new = {"rule-name": "red", "rule-description": {"sql-filter": {"expression": "color = 'red'"}}}
    for operation, body in (("add-rule", new), ("remove-rule", {"rule-name": "$Default"})):
        request = Message(
            properties=Properties(message_id="1"),
            application_properties={"operation": f"com.microsoft:{operation}"},
            body=ValueBody(body),
        )
        txn_id = declare(client, handle)
        answer = client.request(node, request, state=TransactionalState(txn_id=txn_id))
        found = answer.application_properties or {}
        assert (found["statusCode"], found["errorCondition"]) == (400, NOT_ALLOWED)
        assert ask(client, handle, Discharge(txn_id=txn_id, fail=True)) == Accepted()
        answer = client.request(node, request)
        assert (answer.application_properties or {})["statusCode"] == 200, "outside of one they are"
