"""What a running service tells of its alarms: lines of its log, /ready, `hubweir health`, its greeting."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from hubweir.alarms import LOG_OFFLINE, PARTITION_NOT_OPEN
from hubweir.cli.main import hubweir
from hubweir.cli.serve import greeting
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.retry import RetryPolicy
from hubweir.env import SyncFailed
from hubweir.errors import ServiceError
from hubweir.messaging_store.disk import files
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


def page(namespace: RunningNamespace, name: str) -> tuple[int, dict[str, object]]:
    try:
        with urlopen(f"http://{namespace.host}:{namespace.port}/{name}", timeout=30) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        return refused.code, json.load(refused)


def send(namespace: RunningNamespace, hub: str) -> None:
    async def once() -> None:
        retry = RetryPolicy(attempts=1)
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub, retry=retry) as client:
            await client.sender().send([b"x"])

    asyncio.run(once())


def wait_until(holds: Callable[[], bool], seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_a_log_that_goes_offline_is_told_at_once_and_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with running_namespace() as namespace:
        namespace.create_event_hub("orders")
        send(namespace, "orders")
        time.sleep(1.5)  # the mark: nothing but the send writes from here on
        assert page(namespace, "ready") == (200, {**page(namespace, "health")[1], "alarms": {}})

        def broken(*_: object) -> None:
            raise SyncFailed(errno.EIO, "broken disk")

        with monkeypatch.context() as patch:
            patch.setattr(files.SystemFile, "write_and_sync", broken)
            patch.setattr(files.SystemFile, "sync", broken)
            with pytest.raises(ServiceError):
                send(namespace, "orders")
            wait_until(lambda: page(namespace, "ready")[0] == 503)
            assert page(namespace, "ready")[1]["alarms"] == {"log-offline": 1}
            assert page(namespace, "health")[0] == 200
            asked = CliRunner().invoke(hubweir, ["health", "--host", namespace.host, "--port", str(namespace.port)])
            assert asked.exit_code == 1 and "1 log-offline" in asked.output
        wait_until(lambda: page(namespace, "ready")[0] == 200)
        send(namespace, "orders")
        asked = CliRunner().invoke(hubweir, ["health", "--host", namespace.host, "--port", str(namespace.port)])
        assert asked.exit_code == 0 and "Alarms" not in asked.output
        about = "partition 0 of orders in namespace"
        told = [line for line in caplog.messages if about in line]
        begun, repaired, over = told
        assert begun.startswith("alarm (log-offline)") and over.startswith("alarm over after")
        assert "it goes on behind a failure in a new segment" in repaired


def test_a_partition_that_cannot_be_opened_is_told_until_its_hub_is_deleted(tmp_path: Path) -> None:
    with running_namespace(data=str(tmp_path)) as namespace:
        namespace.create_event_hub("orders")
        namespace.create_event_hub("sound")
        send(namespace, "orders")
    [segment] = [path for path in tmp_path.glob("store-0/logs/*/*.log") if len(list(path.parent.glob("*.log"))) == 1]
    data = bytearray(segment.read_bytes())
    data[:4096] = b"\xff" * min(4096, len(data))
    segment.write_bytes(data)
    with running_namespace(data=str(tmp_path)) as namespace:
        status, document = page(namespace, "ready")
        assert (status, document["alarms"]) == (503, {"partition-not-open": 1})
        [alarm] = namespace.service.alarms.current()
        assert alarm.kind is PARTITION_NOT_OPEN and alarm.about.startswith("partition 0 of orders in namespace")
        assert any(line == f"alarm: {alarm}" for line in greeting(namespace.service))
        send(namespace, "sound")
        namespace.delete_event_hub("orders")
        assert page(namespace, "ready")[0] == 200


def test_what_ends_because_the_service_stops_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with running_namespace() as namespace:
        namespace._loop.call_soon_threadsafe(namespace.service.alarms.begin, LOG_OFFLINE, "a log", "bad")
        wait_until(lambda: page(namespace, "ready")[0] == 503)
        assert "a log" not in json.dumps(page(namespace, "ready")[1])
    assert [line for line in caplog.messages if "a log" in line] == ["alarm (log-offline): a log: bad"]
