"""The log of a service that official clients use and misuse: what happened is there, and no key, token or body is.

The service runs in a process of its own, with every line that it can write (`--log-level debug`), as JSON.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import EventHubError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from hubweir.auth.shared_access_signature import make_token
from hubweir.client.authorization_rules import AuthorizationRules
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.server_process import READY_LINE

pytestmark = [pytest.mark.conformance, pytest.mark.one_process]

KEY, RULE_KEY = "the-root-key-4711-that-nobody-sees==", "a-rules-own-key-0815-that-nobody-sees=="
WRONG_KEY = "a-wrong-key-1234-that-nobody-sees=="
BODY, PROPERTY = "a body that is nobody's business", "a property that is nobody's business"
ROOT = "RootManageSharedAccessKey"
START_S, STOP_S, HOUR_MS = 60.0, 30.0, 3_600_000
TRACKING_ID = re.compile(r"TrackingId:(\S+?)_G0")


@contextmanager
def logging_service(folder: Path, log: Path) -> Iterator[int]:
    """The port of a service that writes its log, all of it, into a file; it is stopped in order."""
    held = HeldPorts()
    [port] = held.numbers
    command = [sys.executable, "-m", "hubweir", "serve", "--data", str(folder), "--port", str(port), "--key", KEY]
    command += ["--log-format", "json", "--log-level", "debug", "--capture-folder", str(folder / "captured")]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == READY_LINE:
                break
        yield port
        process.terminate()
        process.communicate(timeout=STOP_S)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate(timeout=STOP_S)


def connection_string(port: int, *, rule: str = ROOT, key: str = KEY) -> str:
    where = f"Endpoint=sb://127.0.0.1:{port};UseDevelopmentEmulator=true"
    return f"{where};SharedAccessKeyName={rule};SharedAccessKey={key}"


async def manage(port: int) -> None:
    """Entities and a rule are made, changed and deleted."""
    connection = await Connection.open(ConnectionString.parse(connection_string(port)))
    try:
        management = Management(connection)
        await management.create_hub("orders", partition_count=2, retention_ms=HOUR_MS, durability="durable")
        await management.create_hub("short-lived", partition_count=1, retention_ms=HOUR_MS, durability="durable")
        await management.delete_hub("short-lived")
        await AuthorizationRules(connection).create_rule("reader", ("Listen",), "orders", primary=RULE_KEY)
    finally:
        await connection.close()


def queue_over_http(port: int) -> None:
    """A queue is made with a token in a header."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    token = make_token(f"http://127.0.0.1:{port}/", ROOT, KEY, int(time.time()) + 3_600)
    entry = (
        '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription '
        'xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>'
    )
    headers = {"authorization": token, "content-type": "application/atom+xml"}
    client.request("PUT", "/kitchen?api-version=2021-05", entry, headers)
    answer = client.getresponse()
    assert answer.status == 201, answer.read()
    client.close()


def publish_and_read(port: int) -> None:
    text = connection_string(port)
    with EventHubProducerClient.from_connection_string(text, eventhub_name="orders") as producer:
        event = EventData(BODY)
        event.properties = {"p": PROPERTY}
        producer.send_batch([event] * 20, partition_id="1")
    seen: list[Any] = []
    with EventHubConsumerClient.from_connection_string(text, "$Default", eventhub_name="orders") as consumer:

        def take(context: Any, event: Any) -> None:
            seen.append(event)
            if len(seen) == 20:
                consumer.close()

        consumer.receive(take, starting_position="-1", max_wait_time=5)
    with ServiceBusClient.from_connection_string(text) as client:
        with client.get_queue_sender("kitchen") as sender:
            sender.send_messages(ServiceBusMessage(BODY))
        with client.get_queue_receiver("kitchen", max_wait_time=5) as receiver:
            for message in receiver:
                receiver.dead_letter_message(message, reason=PROPERTY)
                break


def misuse(port: int) -> list[str]:
    """What is refused, and what the clients were told."""
    told = []
    for rule, key, hub in ((ROOT, WRONG_KEY, "orders"), (ROOT, KEY, "missing"), ("reader", RULE_KEY, "orders")):
        text = connection_string(port, rule=rule, key=key)
        client = EventHubProducerClient.from_connection_string(text, eventhub_name=hub, retry_total=0)
        with client, pytest.raises(EventHubError) as refused:
            client.send_batch([EventData(BODY)], partition_id="0")
        told.append(str(refused.value))
    queues = ServiceBusClient.from_connection_string(connection_string(port, key=WRONG_KEY), retry_total=0)
    with queues, pytest.raises(ServiceBusError) as unheard, queues.get_queue_sender("kitchen") as sender:
        sender.send_messages(ServiceBusMessage(BODY))
    told.append(str(unheard.value))
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    client.request("POST", "/orders/messages", BODY, {"authorization": make_token("http://x/", ROOT, WRONG_KEY, 1)})
    told.append(client.getresponse().read().decode())
    client.close()
    return told


def test_a_session_of_clients_is_in_the_log_and_no_key_no_token_and_no_body_is(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    with logging_service(tmp_path / "data", log) as port:
        asyncio.run(manage(port))
        queue_over_http(port)
        publish_and_read(port)
        told = misuse(port)
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    check_story(lines)
    ids = [found[1] for each in told for found in TRACKING_ID.finditer(each)]
    assert len(ids) >= 3, told
    assert all(tracking_id in text for tracking_id in ids)
    assert not secrets_in(text)


def check_story(lines: list[dict[str, Any]]) -> None:
    kinds = {line["kind"] for line in lines}
    wanted = {"start", "ready", "connection-opened", "connection-closed", "entity-created", "entity-changed",
              "entity-deleted", "token-refused", "no-such-entity", "attach-refused", "http-refused", "stopping",
              "stopped"}  # fmt: skip
    assert wanted <= kinds, wanted - kinds
    assert "key=(secret)" in lines[0]["fields"]["settings"] and "log_format=json" in lines[0]["fields"]["settings"]
    created = [line["fields"]["entity"] for line in lines if line["kind"] == "entity-created"]
    assert created == ["Event hub 'orders'", "Event hub 'short-lived'", "Queue 'kitchen'"]
    closed = [line["fields"] for line in lines if line["kind"] == "connection-closed"]
    opened = [line["fields"]["connection"] for line in lines if line["kind"] == "connection-opened"]
    assert set(opened) <= {each["connection"] for each in closed}
    readers = [each for each in closed if each["sent"] >= 20]
    assert readers and all("orders" in each["entities"] for each in readers)
    # What the peer sent on its own link beside the tokens: one delivery with all twenty events.
    assert any(each["received"] >= 2 and each["why"] == "the peer closed it" for each in closed)


def secrets_in(text: str) -> list[str]:
    """What of a session must not be in a log, and is. Signatures are in tokens alone, as sig=… or URL-quoted."""
    found = [secret for secret in (KEY, RULE_KEY, WRONG_KEY, BODY, PROPERTY) if secret in text]
    return found + re.findall(r"sig=[A-Za-z0-9%+/]{8,}", text) + re.findall(r"SharedAccessSignature sr=\S+", text)


@pytest.mark.parametrize("leak", [KEY, f"x {BODY} y", make_token("sb://h/e", ROOT, KEY, 1)])
def test_a_leak_would_be_found(leak: str) -> None:
    assert secrets_in(json.dumps({"message": leak}))
