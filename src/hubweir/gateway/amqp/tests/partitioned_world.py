"""A world with a partitioned queue: 16 fragments at three brokers, what is sent to it, and where that went."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.types.values import Symbol
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.gateway.amqp.tests.queue_world import create_queue
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.namespace.storage_settings import StorageSettings

KEY = Symbol("x-opt-partition-key")
STORES, FRAGMENTS = 3, 16
PARTITIONED = StorageSettings(is_partitioned=True)


def partitioned_world(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> World:
    """A world with the partitioned queue `orders`."""
    world = World(stores=STORES, **settings)
    create_queue(world, "orders", storage=PARTITIONED)
    return world


def fragment_of(key: str) -> int:
    return partition_of_key(key.encode(), FRAGMENTS)


def in_turn(stored: list[list[bytes]], first: bytes) -> list[list[bytes]]:
    """What fragments have, in turn from the one on that has this message: a lot says where the first goes."""
    begin = next(number for number, bodies in enumerate(stored) if first in bodies)
    return stored[begin:] + stored[:begin]


def in_session(body: bytes, session: str, **properties: Any) -> bytes:
    return event(body, properties=Properties(group_id=session, **properties))


def outcomes(peer: Peer, link: Any, *payloads: bytes, message_format: int = 0) -> list[str]:
    """Send all in one turn; how each was answered, in their order."""
    begun = len(peer.outcomes(link))
    ids = [link.send(each, message_format=message_format, settled=False) for each in payloads]
    peer.run()
    told = {at: how for first, last, how in peer.outcomes(link)[begun:] for at in range(first, last + 1)}
    return [told[each] for each in ids]
