"""The quota of connections as clients meet it, over AMQP, over TLS and inside WebSockets: all count together."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from hubweir.amqp.transport.performatives import Close
from hubweir.namespace.tiers import HOUR_MS
from hubweir.testing.frames import frame
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.conftest import Serve
from tests.conformance.raw_client import RawClient
from tests.conformance.websocket_stream import WebSocketStream

pytestmark = pytest.mark.conformance
QUOTA = 10  # of the profile official-emulator
SHARED_S = 2.0  # broker processes know of each other's connections, as they were 100 ms ago; a busy machine is later


@pytest.fixture
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(profile="official-emulator") as namespace:
        namespace.create_event_hub("events", retention_ms=HOUR_MS)
        yield namespace


def doors(namespace: RunningNamespace) -> dict[str, Callable[[], RawClient]]:
    address = (namespace.host, namespace.port)
    tls = ssl.create_default_context(cafile=str(namespace.ca_file))
    url = f"ws://{namespace.host}:{namespace.port}/$servicebus/websocket"
    return {
        "AMQP": lambda: RawClient.connect(address),
        "AMQP over TLS": lambda: RawClient.connect(address, tls=tls),
        "AMQP in a WebSocket": lambda: RawClient(WebSocketStream(url)),
    }


@pytest.mark.parametrize("door", ["AMQP", "AMQP over TLS", "AMQP in a WebSocket"])
def test_one_connection_too_many_is_closed_after_open_at_every_door(
    namespace: RunningNamespace, broker_count: int, door: str
) -> None:
    ways = doors(namespace)
    with ExitStack() as open_clients:
        clients = []
        for number in range(QUOTA):  # through all doors in turn
            connect = list(ways.values())[number % len(ways)]
            clients.append(open_clients.enter_context(connect()).trusted())
        pause_s = 0.0 if broker_count == 1 else SHARED_S
        time.sleep(pause_s)
        with ways[door]() as refused:
            refused.start()
            close = refused.expect(Close)
            assert close.error.condition == "amqp:resource-limit-exceeded"
            assert f"{QUOTA} connections, which is its quota" in close.error.description
        for client in clients:
            client.sender("events")
        clients[0].write(frame(Close()))
        assert clients[0].is_closed_by_server()
        time.sleep(pause_s)
        with ways[door]() as taken:
            taken.trusted().sender("events")
