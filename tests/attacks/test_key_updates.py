"""Attack 86: a flood of TLS key updates, from a client that has proved nothing.

OpenSSL sets no limit to them, and none is wanted: one costs the service some microseconds, at most one answer waits
however many were asked for, and a client that says nothing else is dropped when its time for the first bytes is over.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hubweir.testing.server_process import ServerProcess
from tests.attacks.key_updates import KeyUpdatingClient

PATIENCE_S = 60.0
SHORT_MS, LONG_MS = 1_000, 600_000  # for the first bytes
UPDATES, AT_ONCE = 100_000, 500
# 4 to 11 were measured; a handshake, which anybody may ask for, takes some 1,000.
PROCESSOR_US, MEMORY_BYTES = 100, 8 * 2**20
REQUEST = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"

pytestmark = pytest.mark.timeout(600)
LINUX_ALONE = pytest.mark.skipif(sys.platform != "linux", reason="what another process uses is read as Linux tells it")


@contextmanager
def served(folder: Path, first_bytes_ms: int) -> Iterator[tuple[ServerProcess, KeyUpdatingClient]]:
    """A server, and a client that has shaken hands with it."""
    arguments = ("--first-bytes-ms", str(first_bytes_ms))
    with (
        ServerProcess(folder / "data", arguments=arguments) as server,
        KeyUpdatingClient(server.host, server.port, folder / "keys.txt", patience_s=PATIENCE_S) as client,
    ):
        yield server, client


def status(client: KeyUpdatingClient) -> int:
    """Of a request behind whatever was sent before."""
    client.send(REQUEST)
    return int(client.receive().split(b" ", 2)[1])


def processor_us(server: ServerProcess) -> float:
    """What the service has used of a processor."""
    return int(Path(f"/proc/{server.pid}/schedstat").read_text().split()[0]) / 1_000


def memory_bytes(server: ServerProcess) -> int:
    text = Path(f"/proc/{server.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1_024


@LINUX_ALONE
@pytest.mark.parametrize("is_answered", [False, True])
def test_86_a_flood_of_key_updates_costs_little_and_harms_nobody(
    tmp_path: Path, is_answered: bool, measure: Callable[[int], int]
) -> None:
    with served(tmp_path, LONG_MS) as (server, client), closing(HTTPConnection(server.host, server.port)) as neighbour:
        client.update_keys(AT_ONCE, is_answered=is_answered)
        memory, processor = memory_bytes(server), processor_us(server)
        rounds = measure(UPDATES) // AT_ONCE
        for _ in range(rounds):
            client.update_keys(AT_ONCE, is_answered=is_answered)
            neighbour.request("GET", "/health")
            answer = neighbour.getresponse()
            assert answer.status == 200 and answer.read()
        one_us = (processor_us(server) - processor) / (rounds * AT_ONCE)
        grown = memory_bytes(server) - memory
        print(f"{rounds * AT_ONCE:,} key updates: {one_us:.1f} us of a processor each, {grown:,} bytes of memory")
        assert one_us < PROCESSOR_US and grown < MEMORY_BYTES
        assert status(client) == 200, "the positive control: a client may change its keys, and is served"


def test_86_key_updates_are_no_first_bytes(tmp_path: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    with served(tmp_path, SHORT_MS) as (_, client), pytest.raises(ConnectionError):
        while time.monotonic() < until:
            client.update_keys(AT_ONCE, is_answered=False)
