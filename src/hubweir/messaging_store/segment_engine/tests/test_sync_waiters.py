from __future__ import annotations

from typing import Any

import pytest

from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.sync_waiters import SyncWaiters


@pytest.fixture
def relaxed(make_bench: Any) -> Any:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.env.run_for(2_000)
    bench.append(b"b", wait_ms=0)
    bench.env.turn()  # written, not synced
    return bench


def test_what_is_visible_and_not_synced_is_waited_for(relaxed: Any) -> None:
    waiters, answers = SyncWaiters(relaxed.log._state), []
    assert waiters.add(answers.append)
    waiters.release()
    relaxed.env.turn()
    assert answers == []
    relaxed.env.run_for(500)
    waiters.release()
    relaxed.env.turn()
    assert answers == [True]
    assert not waiters.add(answers.append)
    assert answers == [True]
    relaxed.env.turn()
    assert answers == [True, True]


def test_a_log_that_goes_offline_tells_those_who_wait(relaxed: Any) -> None:
    waiters, answers = SyncWaiters(relaxed.log._state), []
    waiters.add(answers.append)
    relaxed.log._state.offline = "planted"
    waiters.release()
    assert not waiters.add(answers.append)
    relaxed.env.turn()
    assert answers == [False, False]
