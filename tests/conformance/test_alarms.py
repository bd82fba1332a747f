"""Alarms of a running service, each brought about for real: within seconds it stands in the log, in the status and in
the counters, and when its cause has gone it ends by itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubweir.auth.shared_access_signature import make_token
from hubweir.client.administration import Administration
from hubweir.client.connection import Connection
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.management import Management
from hubweir.client.retry import RetryPolicy
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE
from hubweir.drivers.system_env import SystemEnv
from hubweir.errors import ServiceError
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.damaged_namespace import HUB, damaged_namespace
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.troubled_disk import troubled
from tests.crash.loop_disk import MIB, mounted_tmpfs, skip_without_disks

pytestmark = pytest.mark.conformance

# Of a machine that is idle the page promises 5 s; one that is busy with other tests has more.
SHOWN_S, OVER_S = 15.0, 60.0
DAY_MS = 86_400_000


class Seen:
    """What an operator sees of a service that runs in this process."""

    def __init__(self, namespace: RunningNamespace, caplog: pytest.LogCaptureFixture) -> None:
        self._namespace = namespace
        self._caplog = caplog
        # Good for years: the clock may jump.
        token = make_token("sb://127.0.0.1/", ROOT_RULE, DEVELOPMENT_KEY, int(time.time()) + 300 * DAY_MS // 1_000)
        text = f"Endpoint=sb://{namespace.host}:{namespace.port};SharedAccessSignature={token}"
        self._administration = Administration(ConnectionString.parse(text))

    def status(self) -> dict[str, Any]:
        return self._administration.status()

    def kinds(self) -> set[str]:
        return {alarm["kind"] for alarm in self.status()["alarms"]}

    def begins(self, kind: str) -> dict[str, Any]:
        """Wait until the alarm is in log, status and counters; the status then."""
        until(lambda: kind in self.kinds(), SHOWN_S)
        assert any(line.startswith(f"alarm ({kind}): ") for line in self._caplog.messages)
        assert self._namespace.parts.counters["alarms.standing"] >= 1
        return self.status()

    def ends(self, kind: str) -> None:
        until(lambda: kind not in self.kinds(), OVER_S)
        assert any(line.startswith("alarm over") and f"({kind})" in line for line in self._caplog.messages)


def until(holds: Callable[[], bool], seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.05)


@contextmanager
def watched(caplog: pytest.LogCaptureFixture, **settings: Any) -> Iterator[tuple[RunningNamespace, Seen]]:
    caplog.set_level(logging.INFO)
    with running_namespace(**settings) as namespace:
        seen = Seen(namespace, caplog)
        assert seen.status()["status"] == "healthy" and not seen.kinds()
        yield namespace, seen


def send(namespace: RunningNamespace, hub: str, body: bytes = b"x", count: int = 1) -> None:
    async def once() -> None:
        retry = RetryPolicy(attempts=1)
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub, retry=retry) as client:
            sender = client.sender(partition_id="0")
            for _ in range(count):
                await sender.send([body])

    asyncio.run(once())


def log_of(status: dict[str, Any], name: str, number: int = 0) -> dict[str, Any]:
    [entity] = [each for each in status["entities"] if each["name"] == name]
    found = entity["logs"][number]
    assert isinstance(found, dict)
    return found


def test_an_offline_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(caplog) as (namespace, seen), troubled(monkeypatch) as disk:
        namespace.create_event_hub("orders", partition_count=2)
        disk.is_broken.set()
        with pytest.raises(ServiceError):
            send(namespace, "orders")
        status = seen.begins("log-offline")
        assert status["status"] == "unhealthy" and log_of(status, "orders")["state"] == "log-offline"
        assert log_of(status, "orders", 1)["state"] == "serves"
        disk.heal()
        seen.ends("log-offline")
        send(namespace, "orders")
        status = seen.status()
        assert status["status"] == "healthy" and log_of(status, "orders")["state"] == "serves"
        assert log_of(status, "orders")["next"] == 1


def test_a_full_disk(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    skip_without_disks(tmp_path, "alarms of a full disk")
    small = mounted_tmpfs(tmp_path / "small", 64 * MIB)
    with small as disk, watched(caplog, data=str(disk / "data")) as (namespace, seen):
        namespace.create_event_hub("orders", partition_count=1)
        ballast = disk / "ballast"
        fill(ballast)
        with pytest.raises(ServiceError):
            send(namespace, "orders", b"x" * 500_000, count=40)
        status = seen.begins("disk-full")
        assert status["status"] == "unhealthy" and "disk-full" in status["stores"][0]["alarms"]
        ballast.unlink()
        seen.ends("disk-full")
        send(namespace, "orders")


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(64 * 1024))
        except OSError:
            return


def test_damaged_events(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.INFO)
    with damaged_namespace(tmp_path / "data", events=20, damaged=7) as namespace:
        seen = Seen(namespace, caplog)
        status = seen.begins("damage")
        # Everything else is served, and readers step over it.
        assert status["status"] == "degraded"
        assert log_of(status, HUB)["state"] == "serves" and log_of(status, HUB)["alarms"] == ["damage"]
        [alarm] = [each for each in status["alarms"] if each["kind"] == "damage"]
        assert "records 7 to 7 " in alarm["text"] and not alarm["blocks"]
        namespace.delete_event_hub(HUB)
        seen.ends("damage")


def test_a_capture_whose_destination_is_away(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    place = tmp_path / "captured"
    with watched(caplog, capture_folder=str(place)) as (namespace, seen):
        capture = CaptureDescription(enabled=True, interval_s=900, size_limit_bytes=10 * MIB)
        namespace.create_event_hub("orders", partition_count=1, capture=capture)
        place.rmdir() if place.exists() else None
        place.write_text("a file where a folder is to be")
        send(namespace, "orders", b"x" * 900_000, count=13)
        status = seen.begins("capture-failing")
        assert status["status"] == "degraded"
        log = log_of(status, "orders")
        assert log["state"] == "serves" and log["capture"]["failure"] and log["capture"]["behind_events"] == 13
        place.unlink()
        seen.ends("capture-failing")
        assert not log_of(seen.status(), "orders")["capture"]["failure"]


def test_a_clock_that_jumps(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(caplog) as (namespace, seen):
        namespace.create_event_hub("orders", partition_count=1)
        plain = SystemEnv.now_ms
        with monkeypatch.context() as patch:
            patch.setattr(SystemEnv, "now_ms", lambda env: plain(env) + 30 * DAY_MS)
            assert seen.begins("clock-away")["status"] == "degraded"
        seen.ends("clock-away")


def test_a_store_that_is_away_is_told_by_every_one_of_several_processes(caplog: pytest.LogCaptureFixture) -> None:
    """Any process may be asked: which one answers is chance, and the answer is the same."""
    caplog.set_level(logging.INFO)
    with running_namespace(brokers=2) as namespace:
        namespace.create_event_hub("orders", partition_count=2)
        seen = Seen(namespace, caplog)
        # A process of a busy machine may miss a heartbeat, and is told as silent until the next; nothing is wrong then.
        until(lambda: seen.status()["status"] == "healthy" and processes_of(seen) == ["serves", "serves"], OVER_S)
        mark(namespace, 1, away=True)
        until(lambda: "store-away" in seen.kinds(), SHOWN_S)
        for _ in range(8):
            status = seen.status()
            assert status["status"] == "unhealthy"
            assert [each["state"] for each in status["stores"]] == ["serves", "away"]
            assert sorted(each["state"] for each in status["entities"][0]["logs"]) == ["away", "serves"]
        mark(namespace, 1, away=False)
        until(lambda: seen.status()["status"] == "healthy", OVER_S)
        assert {each["state"] for each in seen.status()["entities"][0]["logs"]} == {"serves"}


def processes_of(seen: Seen) -> list[str]:
    return [each["state"] for each in seen.status()["processes"]]


def mark(namespace: RunningNamespace, store: int, *, away: bool) -> None:
    async def once() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        try:
            await Management(connection).mark_store(store, away=away)
        finally:
            await connection.close()

    asyncio.run(once())
