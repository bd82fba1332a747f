"""Many messages that wait for their times: each comes within 50 ms of its own, scheduled ones in the order of times.

Time is virtual, so what is seen is when the fragment asks for a turn and what it does in it, not how long that takes;
`./run bench queue --only deadlines` holds a service against the clock.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import QueueBench, message, opened
from hubweir.testing.simulated_env import SimulatedEnv

EXACT_MS = 50
STEP = 7_919  # a prime: number k is sent in place k * STEP
LEAD_MS, SPREAD_MS = 60_000, 20_000
# Records are read from memory, and a call of the disk begins and takes a few ms at most: this is not about disks.
SLOWEST_CALL_MS = 5
# Turns ring late, as on a busy loop: many messages come due in one.
LATE_MS = 20
IN_MEMORY = LogSettings(segment_bytes=256 * 1024 * 1024, tail_bytes=256 * 1024 * 1024)


class Arrivals:
    """Who receives all the time: body and time of what came, in its order."""

    def __init__(self, bench: QueueBench, sub_queue: SubQueue) -> None:
        self._bench = bench
        self._receiver = bench.receiver(sub_queue)
        self.came: list[tuple[int, int]] = []
        self._receive()

    def _receive(self) -> None:
        self._bench.fragment.receive(self._receiver, max_count=1_000, max_bytes=1 << 20, on_done=self._received)

    def _received(self, answer: object) -> None:
        self.came += [(int(each.body), self._bench.now_ms()) for each in opened(answer)]  # type: ignore[arg-type]
        self._receive()


@pytest.fixture(params=["scheduled", "expiring"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_waits_for_its_time_is_exact_to_50_ms_and_in_order(kind: str, measure: Callable[[int], int]) -> None:
    count = measure(100_000)
    settings = FragmentSettings(dead_letters_on_expiry=True)
    bench = QueueBench(settings, SimulatedEnv(7, slowest_ms=SLOWEST_CALL_MS), segments=IN_MEMORY, late_ms=LATE_MS)
    base_ms = bench.now_ms()
    dues = [base_ms + LEAD_MS + number * STEP % count * SPREAD_MS // count for number in range(count)]
    is_scheduled = kind == "scheduled"
    for first in range(0, count, 1_000):
        some, now_ms = dues[first : first + 1_000], bench.now_ms()
        if is_scheduled:
            bench.enqueue(*(message(str(due_ms), scheduled_ms=due_ms) for due_ms in some))
        else:
            bench.enqueue(*(message(str(due_ms), ttl_ms=due_ms - now_ms) for due_ms in some))
    assert bench.now_ms() < base_ms + LEAD_MS
    assert (bench.fragment.counts().scheduled if is_scheduled else bench.fragment.counts().active) == count
    arrivals = Arrivals(bench, SubQueue.MAIN if is_scheduled else SubQueue.DEAD_LETTERS)
    bench.run_for(base_ms + LEAD_MS + SPREAD_MS + 1_000 - bench.now_ms())
    assert sorted(due_ms for due_ms, _ in arrivals.came) == sorted(dues)
    late = [at_ms - due_ms for due_ms, at_ms in arrivals.came]
    assert min(late) >= 0 and max(late) <= EXACT_MS
    if is_scheduled:  # dead letters that are there together have the order of their numbers
        assert [due_ms for due_ms, _ in arrivals.came] == sorted(dues)
