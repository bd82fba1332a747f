"""trimming.py beside a close: nothing of a log is removed any more when it is closed."""

from __future__ import annotations

import pytest

from hubweir.env import Result
from hubweir.messaging_store.tests.conftest import LOG_ID
from hubweir.testing.simulated_env import SimulatedEnv


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_log_is_closed_when_the_removal_that_is_under_way_has_ended(make_bench, is_deleted: bool, seed: int) -> None:
    """Else the next owner of the folder loses files while it reads them, and two threads remove the same ones."""
    bench = make_bench(env=SimulatedEnv(seed, interleaved=0.5))
    for number in range(40):
        bench.append(b"%d" % number * 100, wait_ms=2_000)
    firsts = [segment.first_index for segment in bench.log._state.segments.kept]
    bench.log.trim(firsts[2])
    bench.log.trim(firsts[3])  # its files go behind those of the first, unless the log is closed by then
    closed: list[list[str]] = []
    deleted: list[Result[None]] = []

    def has_closed() -> None:
        closed.append(bench.segments())
        if is_deleted:
            bench.store.delete_log(LOG_ID, deleted.append)

    bench.store.close_log(LOG_ID, has_closed)
    bench.env.run_for(5_000)
    (left,) = closed
    assert is_deleted or bench.segments() == left
    assert [int(name[:20]) for name in left] in (firsts[2:], firsts[3:])
    for result in deleted:
        result.value()
    assert len(deleted) == is_deleted
