"""The world itself: a connection lives as it does when no tick of it is left out."""

from __future__ import annotations

import pytest

from hubweir.amqp.endpoint import EndpointSettings
from hubweir.gateway.amqp.tests.world import HOST, KEY, ROOT, Peer, World, event
from hubweir.limits import ConnectionLimits


class NotedPeer(Peer):
    """Notes when bytes go over."""

    def __init__(self, world: World, settings: EndpointSettings) -> None:
        self.noted: list[tuple[int, int, int, bool]] = []
        super().__init__(world, settings)

    def _flush(self) -> None:
        before = len(self.came), len(self.side.written), self.is_cut
        super()._flush()
        after = len(self.came), len(self.side.written), self.is_cut
        if after != before:
            self.noted.append((self.env.monotonic_ms(), *after))


def life() -> list[tuple[int, int, int, bool]]:
    """Of a client that both ends hear of by heartbeats, behind a transport and a service that take nothing at times."""
    proof = {"sasl_mechanism": "PLAIN", "sasl_response": f"\0{ROOT}\0{KEY}".encode()}
    limits = ConnectionLimits(idle_timeout_ms=4_321)
    peer = NotedPeer(World(hubs={"hub": 1}), EndpointSettings("peer", HOST, limits=limits, **proof))  # type: ignore[arg-type]
    peer.endpoint.open()
    peer.run()
    link = peer.sender("hub/Partitions/0")
    peer.run(150_000)
    peer.reading_paused = True
    link.send(event(b"kept"), settled=False)
    peer.run(500)
    peer.reading_paused = False
    peer.run(500)
    peer.transport_full = True
    link.send(event(b"answered late"), settled=False)
    peer.run(500)
    peer.transport_full = False
    peer.run(500)
    link.detach()
    peer.run(90_000)
    peer.endpoint.close()
    peer.run(10)
    return peer.noted


def test_a_connection_lives_as_if_no_tick_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = life()
    monkeypatch.setattr(Peer, "idle_until_ms", lambda peer: peer.env.monotonic_ms())
    assert noted == life()
    assert len(noted) > 50 and noted[-1][-1]
