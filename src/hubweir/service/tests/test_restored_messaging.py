"""All that messaging keeps comes back with a namespace: states, sessions, schedules, rules, windows, every fragment."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.cli.tests.test_chosen_namespace import KEYS, string_of
from hubweir.client.administration import Administration
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiverOptions
from hubweir.namespace.connection_string import ConnectionString
from hubweir.queue.sub_queue import SubQueue
from hubweir.service.tests.test_running_restores import administration, back_up, restored
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

SPREAD, DAY_MS = 40, 86_400_000
TEAS = "news/Subscriptions/teas"
DEAD = QueueReceiverOptions(sub_queue=SubQueue.DEAD_LETTERS)


def make(running: RunningNamespace) -> None:
    """Queues with a window of duplicates, with sessions, in 16 fragments; a topic whose subscription has a rule."""
    for words in (
        ["queue", "create", "kitchen", "--no-partitioning", "--enable-duplicate-detection", "true"],
        ["queue", "create", "tables", "--no-partitioning", "--enable-session", "true"],
        ["queue", "create", "spread"],
        ["topic", "create", "news", "--no-partitioning"],
        ["subscription", "create", "teas", "--topic-name", "news"],
        ["rule", "create", "tea", "--topic-name", "news", "--subscription-name", "teas",
         "--filter-sql-expression", "kind = 'tea'", "--action-sql-expression", "SET seen = 'yes'"],
        ["rule", "delete", "$Default", "--topic-name", "news", "--subscription-name", "teas", "--yes"],
    ):  # fmt: skip
        done = CliRunner().invoke(hubweir, [*words, "--connection-string", string_of(running, "two")])
        assert done.exit_code == 0, (words, done.output, done.exception)


def fill(client: BlockingQueueClient) -> dict[str, int]:
    """Have messages in every state; the sequence numbers of those that are found by them."""
    kitchen, receiver = client.sender("kitchen"), client.receiver("kitchen")
    for name in ("deferred", "dead", "active"):
        kitchen.send(QueueMessage(name.encode(), message_id=name))
    [deferred] = receiver.receive(max_wait_s=30)
    receiver.defer(deferred)
    [dead] = receiver.receive(max_wait_s=30)
    receiver.dead_letter(dead, "cold", "it stood too long")
    at_ms = int(time.time() * 1_000) + DAY_MS
    [cancelled, later] = kitchen.schedule([b"cancelled", b"later"], at_ms)
    tables = client.sender("tables")
    tables.send(QueueMessage(b"first", session_id="seven"), QueueMessage(b"second", session_id="seven"))
    with session_of(client) as session:
        session.complete(session.receive(max_wait_s=30))
        session.set_state(b"eating")
    client.sender("spread").send_all([b"message %d" % number for number in range(SPREAD)])
    client.sender("news").send(QueueMessage(b"green", {"kind": "tea"}), QueueMessage(b"black", {"kind": "coffee"}))
    [told] = client.receiver(TEAS).receive(max_wait_s=30)
    client.receiver(TEAS).abandon(told)
    return {"deferred": deferred.sequence_number, "cancelled": cancelled, "later": later}


@contextmanager
def session_of(client: BlockingQueueClient) -> Iterator[object]:
    session = client.accept_session("tables", "seven")
    try:
        yield session
    finally:
        session.close()


def holds_everything(client: BlockingQueueClient, numbers: dict[str, int]) -> None:
    kitchen, receiver = client.sender("kitchen"), client.receiver("kitchen")
    kitchen.send(QueueMessage(b"again", message_id="active"), QueueMessage(b"new", message_id="new"))
    assert {(bytes(each.body or b""), each.state) for each in receiver.peek(100)} == {
        (b"deferred", "deferred"), (b"active", "active"), (b"new", "active"),
        (b"cancelled", "scheduled"), (b"later", "scheduled"),
    }  # fmt: skip
    [deferred] = receiver.receive_deferred(numbers["deferred"])
    assert deferred.body == b"deferred"
    receiver.complete(deferred)
    kitchen.cancel(numbers["cancelled"])
    assert b"cancelled" not in [each.body for each in receiver.peek(100, from_sequence_number=0)]
    [dead] = client.receiver("kitchen", DEAD).receive(max_wait_s=30)
    told = (dead.body, dead.dead_letter_reason, dead.dead_letter_description)
    assert told == (b"dead", "cold", "it stood too long")
    with session_of(client) as session:
        [second] = session.receive(max_wait_s=30)
        assert (second.body, session.state()) == (b"second", b"eating")
        session.complete(second)
    found, spread = list[bytes](), client.receiver("spread")
    while len(found) < SPREAD:
        messages = spread.receive(SPREAD, max_wait_s=30)
        assert messages, f"{len(found)} is all that came"
        found += [bytes(each.body or b"") for each in messages]
        spread.complete(messages)
    assert sorted(found) == sorted(b"message %d" % number for number in range(SPREAD))
    client.sender("news").send(QueueMessage(b"brown", {"kind": "coffee"}), QueueMessage(b"white", {"kind": "tea"}))
    teas = client.receiver(TEAS)
    for body in (b"green", b"white"):
        [tea] = teas.receive(max_wait_s=30)
        assert (tea.body, tea.properties) == (body, {"kind": "tea", "seen": "yes", "RuleName": "tea"})
        teas.complete(tea)


@pytest.mark.parametrize("brokers", [1, 2])
def test_everything_that_messaging_keeps_comes_back(tmp_path: Path, brokers: int) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    with running_namespace(data=str(data), brokers=brokers) as running:
        administration(running).create_namespace("two", key=KEYS["two"])
        make(running)
        with BlockingQueueClient.from_connection_string(string_of(running, "two")) as client:
            numbers = fill(client)
        back_up(data, copy, "--namespace", "two")
        administration(running).delete_namespace("two")
        assert restored(running, copy) == ""
        assert len(Administration(ConnectionString.parse(string_of(running, "two"))).fragments("spread")) == 16
        with BlockingQueueClient.from_connection_string(string_of(running, "two")) as client:
            holds_everything(client, numbers)
        status = administration(running).status()
        assert (status["alarms"], status["alarms_of_others"]) == ([], 0)
