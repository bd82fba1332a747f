"""The end of the links to a hub that was removed: all of them, few in each turn of the loop."""

from __future__ import annotations

from collections import deque

import pytest

from hubweir.errors import ServiceError
from hubweir.gateway import gateway
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.gateway import EndLink, Gateway
from hubweir.namespace.event_hub_description import EventHubDescription


def test_links_to_a_removed_hub_end_few_a_turn_and_one_that_has_ended_is_let_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gateway, "ENDED_AT_ONCE", 2)
    world, left, end_links = World(hubs={"hub": 4, "other": 1}), [], Gateway._end_links
    peers = [world.trusted_peer(), world.trusted_peer()]
    links = [peer.sender(f"hub/Partitions/{number}") for peer in peers for number in range(3)]
    others = [peer.sender("other") for peer in peers]

    def counted(self: Gateway, ends: deque[EndLink], error: ServiceError) -> None:
        if not left:
            peers[1].host.detach(peers[1].host.nodes[-2], error)  # the last one before the link to the other hub
        end_links(self, ends, error)
        left.append(sum(len(peer.host.nodes) for peer in peers))

    monkeypatch.setattr(Gateway, "_end_links", counted)
    standing = sum(len(peer.host.nodes) for peer in peers) - 1
    world.wait(lambda done: world.gateway.keeper.delete("hub", EventHubDescription, done))
    for peer in peers:
        peer.run()
    assert left == [standing - 2, standing - 4, standing - 5]
    assert [peers[number // 3].refusal(link).condition for number, link in enumerate(links)] == ["amqp:not-found"] * 6
    assert all(peer.is_attached(other) for peer, other in zip(peers, others, strict=True))
