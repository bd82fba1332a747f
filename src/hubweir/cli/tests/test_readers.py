"""hubweir readers against live services: of one process and of several, what people see, the JSON, who may ask."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hubweir.cli.main import hubweir
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.receiver import ReceiverOptions
from hubweir.event_hub.event_position import LATEST
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

WAIT_S = 20.0


def readers(namespace: RunningNamespace, *arguments: str) -> Result:
    target = ["--connection-string", namespace.connection_string()]
    return CliRunner().invoke(hubweir, ["readers", *arguments, *target], catch_exceptions=False)


def found(namespace: RunningNamespace, *arguments: str) -> list[dict[str, Any]]:
    result = readers(namespace, *arguments, "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["stores_without_answer"] == []
    return document["readers"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("brokers", [1, 2])
def test_readers_are_shown_with_place_group_level_and_lag_until_they_are_gone(brokers: int) -> None:
    with running_namespace(brokers=brokers) as namespace:
        namespace.create_event_hub("orders", partition_count=2, consumer_groups=("Billing",))
        namespace.create_event_hub("quiet")
        assert readers(namespace).stdout == "nobody reads now\n"
        with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "orders") as client:
            client.sender(partition_id="1").send([b"event"] * 10)
            behind = client.receiver("1", ReceiverOptions(position=LATEST, epoch=7), group="Billing")
            behind.receive(max_wait_s=0.1)
            client.sender(partition_id="1").send([b"event"] * 3)
            ahead = client.receiver("0")
            ahead.receive(max_wait_s=0.1)
            deadline_s = time.monotonic() + WAIT_S
            while len(found(namespace)) < 2 and time.monotonic() < deadline_s:
                time.sleep(0.05)
            first, second = found(namespace)
            assert (first["event_hub"], first["partition"], first["consumer_group"]) == ("orders", "0", "$Default")
            assert (first["owner_level"], first["next_sequence_number"], first["behind_events"]) == (None, 0, 0)
            assert (second["partition"], second["consumer_group"], second["owner_level"]) == ("1", "Billing", 7)
            assert second["next_sequence_number"] + second["behind_events"] == 13
            assert second["peer"].startswith("127.0.0.1:") and second["client"]
            assert [each["partition"] for each in found(namespace, "ORDERS", "--group", "billing")] == ["1"]
            assert found(namespace, "quiet") == found(namespace, "--group", "nobody") == []
            lines = readers(namespace, "orders").stdout.splitlines()
            assert "behind" in lines[0] and any("Billing" in line and "127.0.0.1:" in line for line in lines)
        deadline_s = time.monotonic() + WAIT_S
        while found(namespace) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        assert found(namespace) == []
