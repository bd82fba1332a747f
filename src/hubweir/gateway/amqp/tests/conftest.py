"""What most tests of this folder begin with: a world, a peer that may do everything in it, its transactions."""

from __future__ import annotations

import pytest

from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.gateway.amqp.tests.controller import Controller
from hubweir.gateway.amqp.tests.world import Peer, World


@pytest.fixture
def world() -> World:
    """A world as it comes; a file that needs another has a fixture of this name."""
    return World()


@pytest.fixture
def peer(world: World) -> Peer:
    return world.trusted_peer()


@pytest.fixture
def controller(peer: Peer) -> Controller:
    return Controller(peer)


@pytest.fixture
def sender(peer: Peer) -> SenderLink:
    """A link to the queue of a world with one."""
    return peer.sender("orders")
