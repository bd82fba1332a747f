"""A hub that is switched off, as the official client sees it: an error that says so, nothing lost, nothing taken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import ConnectError
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from tests.conformance.conftest import Serve

pytestmark = pytest.mark.conformance
WAIT_S = 30.0


def wait_for(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_a_disabled_hub_refuses_the_official_client_by_name_and_goes_on_where_it_was(serve: Serve) -> None:
    with serve() as namespace:
        namespace.create_event_hub("hub")
        text = namespace.connection_string()

        def switch(status: str) -> None:
            command = ["eventhub", "update", "hub", "--status", status]
            done = CliRunner().invoke(hubweir, command, env={"HUBWEIR_CONNECTION_STRING": text})
            assert done.exit_code == 0, done.output

        seen: list[str] = []

        def on_event(context: Any, event: EventData) -> None:
            seen.append(event.body_as_str())

        consumer = EventHubConsumerClient.from_connection_string(text, "$Default", eventhub_name="hub")
        reading = threading.Thread(target=consumer.receive, args=(on_event,), kwargs={"starting_position": "-1"})
        with EventHubProducerClient.from_connection_string(text, eventhub_name="hub", retry_total=0) as producer:
            reading.start()
            try:
                producer.send_batch([EventData("before")])
                wait_for(lambda: seen == ["before"])
                switch("Disabled")
                with pytest.raises(ConnectError, match="takes no events: its status is Disabled"):
                    producer.send_batch([EventData("refused")])
                switch("Active")
                producer.send_batch([EventData("after")])
                wait_for(lambda: len(seen) > 1)
                assert seen == ["before", "after"]
            finally:
                consumer.close()
                reading.join(WAIT_S)
