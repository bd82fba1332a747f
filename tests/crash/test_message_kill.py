"""kill -9 under queues, sessions and a topic, over and over: their histories hold through all lives (T6, T15).

A server runs as its users run it; clients of every kind work until it is killed at a random moment, sometimes in the
middle of its start. What clients saw is told to histories, and every few lives all that is left is held against them.
"""

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.testing.history_values import Violation
from tests.crash.killable_server import killable_server
from tests.crash.message_load import MessageLoad

KILLS = 200
LIVES_BETWEEN_CHECKS = 5
LIVES_OF_CONTROL = 6

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]


def test_no_message_is_lost_doubled_or_out_of_order_over_many_kills(
    tmp_path: Path, measure: Callable[[int], int], first_seed: int
) -> None:
    kills, chance = measure(KILLS), random.Random(first_seed)
    with killable_server(tmp_path / "data", first_seed) as server:
        load = MessageLoad(server.connection_string(), first_seed)
        load.create()
        for kill in range(kills):
            asyncio.run(load.live(chance.uniform(0.2, 1.0), server.kill9))
            if chance.random() < 0.1:
                server.begin()
                time.sleep(chance.uniform(0.1, 0.6))
                server.kill9()
            server.start()
            if kill % LIVES_BETWEEN_CHECKS == LIVES_BETWEEN_CHECKS - 1 or kill == kills - 1:
                asyncio.run(load.check())
    print(f"\nseed {first_seed}: {kills} kills; {load.counts}")
    # A run that tested nothing must not be green.
    assert load.counts["accepted"] >= kills and load.counts["settled"] >= kills
    assert load.counts["unknown"] > 0 and load.counts["holds"] > 0


# The control arm: the same load at servers with a planted defect.


@pytest.mark.parametrize("planted", ["settlements", "states", "ids", "holders", "order"])
def test_a_planted_defect_of_a_server_is_found(tmp_path: Path, planted: str, first_seed: int) -> None:
    with killable_server(tmp_path / "data", first_seed, planted=planted) as server:
        load = MessageLoad(server.connection_string(), first_seed)
        load.create()
        with pytest.raises(Violation):
            for _ in range(LIVES_OF_CONTROL):
                asyncio.run(load.live(1.0, server.kill9))
                server.start()
            asyncio.run(load.check())
