"""kill -9 under transactions over two queues and a topic, over and over: every token is in one place (T6, P12)."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.testing.history_values import Violation
from tests.crash.killable_server import killable_server
from tests.crash.transaction_load import TransactionLoad

KILLS = 100
LIVES_BETWEEN_CHECKS = 3
LIVES_OF_CONTROL = 30

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]


def test_a_transaction_moves_a_token_or_leaves_it_whenever_the_server_is_killed(
    tmp_path: Path, measure: Callable[[int], int], first_seed: int
) -> None:
    kills, chance = measure(KILLS), random.Random(first_seed)
    with killable_server(tmp_path / "data", first_seed) as server:
        load = TransactionLoad(server.connection_string(), first_seed)
        asyncio.run(load.create())
        for kill in range(kills):
            asyncio.run(load.live(chance.uniform(0.2, 1.0), server.kill9))
            server.start()
            if kill % LIVES_BETWEEN_CHECKS == LIVES_BETWEEN_CHECKS - 1 or kill == kills - 1:
                asyncio.run(load.check())
    print(f"\nseed {first_seed}: {kills} kills; {load.counts}")
    # A run that tested nothing must not be green.
    assert load.counts["committed"] >= kills and (load.counts["rolled back"] > 0 or load.counts["committed"] < 100)
    assert load.counts["unknown"] > 0


# The control arm: the same load at servers with a planted defect.


@pytest.mark.parametrize("planted", ["prepared", "ended", "decided", "fate"])
def test_a_planted_defect_of_transactions_is_found(tmp_path: Path, planted: str, first_seed: int) -> None:
    with killable_server(tmp_path / "data", first_seed, planted=planted) as server:
        load = TransactionLoad(server.connection_string(), first_seed)
        asyncio.run(load.create())
        with pytest.raises(Violation):
            for _ in range(LIVES_OF_CONTROL):
                asyncio.run(load.live(0.5, server.kill9))
                server.start()
                asyncio.run(load.check())
