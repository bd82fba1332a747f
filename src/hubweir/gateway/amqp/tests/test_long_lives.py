"""Connections that last for hours, in virtual time, of peers with the habits of the official clients.

Every timer of a connection goes off here, most of them many times: heartbeats both ways, the sweep of idle links,
claims that end one after the other, the wait of an idle reader, the broker's sweep. None may hurt a client that does
what the official ones do.
"""

from __future__ import annotations

import pytest

from hubweir.gateway.amqp.tests.client_habits import HABITS, HOUR, MINUTE, SECOND, STEP_MS, HabitualPeer
from hubweir.gateway.amqp.tests.world import World

# Two renewals of the client whose tokens hold longest but one, one of the other's.
LIFE_MS = 2 * HOUR


@pytest.fixture(scope="module")
def lived() -> dict[tuple[str, bool], HabitualPeer]:
    """One peer of each client that is busy, and one that is idle, two hours later and used again at the end."""
    lives = [(name, busy) for name in HABITS for busy in (True, False)]
    world = World(hubs={f"hub-{number}": 1 for number in range(len(lives))})
    peers = {
        (name, busy): HabitualPeer(world, HABITS[name], f"hub-{number}", is_busy=busy)
        for number, (name, busy) in enumerate(lives)
    }
    world.run_for(LIFE_MS)
    for peer in peers.values():
        peer.is_busy = True
    world.run_for(MINUTE)
    return peers


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
@pytest.mark.parametrize("name", HABITS)
def test_a_client_lives_for_hours(lived: dict[tuple[str, bool], HabitualPeer], name: str, busy: bool) -> None:
    peer = lived[name, busy]
    life, habits = peer.life, peer.habits
    assert life.troubles == []
    assert not peer.is_cut and peer.endpoint.is_open
    assert life.accepted == life.sent >= (LIFE_MS // (25 * SECOND) if busy else 3)
    assert life.received >= life.sent
    assert life.looks >= (LIFE_MS // (20 * MINUTE) if busy else 2)
    if habits.token_ms:
        assert life.renewals >= (1 + LIFE_MS // (habits.renew_ms + MINUTE)) * len(habits.audiences)
    if habits.idle_timeout_ms:
        assert life.silence_ms <= habits.idle_timeout_ms // 2 + STEP_MS
    assert (life.idle_detaches == 1) == (not busy)
