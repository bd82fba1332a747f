"""openings.py, of a log that is opened and then not hosted: what lives on it is ended before its log is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.fragment import CreateFragment, DeleteFragment, EnqueueMessages, OpenFragment
from hubweir.broker.commands.partition import DeletePartition, OpenPartition
from hubweir.broker.commands.process import Done, Refusal
from hubweir.counters import Counters
from hubweir.env import Lane
from hubweir.errors import LogOffline
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.tests.conftest import message, run_of
from hubweir.testing.simulated_env import SimulatedEnv

LOG = "a" * 32
HOUR_MS = 3_600_000


class Slow:
    """A resident that settles, and is idle after its end, when the test says so. told: which end it had."""

    def __init__(self) -> None:
        self.resident_id = "b"
        self.told: list[str] = []
        self.settled: Callable[[Refused | None], None] = lambda refused: None
        self.idle: Callable[[], None] = lambda: None

    def settle(self, on_done: Callable[[Refused | None], None]) -> None:
        self.settled = on_done

    def begin(self) -> None:
        self.told.append("begin")

    def end(self, on_idle: Callable[[], None]) -> None:
        self.told.append("end")
        self.idle = on_idle

    def stop(self, on_idle: Callable[[], None]) -> None:
        self.told.append("stop")
        self.idle = on_idle


@pytest.mark.parametrize(
    ("why", "told", "said"),
    [("deleted", "end", "is being deleted"), ("stopped", "stop", "stops"), ("refused", "stop", "planted")],
)
def test_what_is_not_hosted_is_ended_and_its_log_is_closed_when_it_is_idle(
    bench: Any, why: str, told: str, said: str
) -> None:
    slow, ended = Slow(), list[bool]()
    bench.broker._openings._make_resident = lambda command, log: slow
    answers = bench.ask(OpenPartition("b", "orders", "1", Durability.DURABLE, HOUR_MS))
    if why == "deleted":
        bench.broker.submit(DeletePartition("b"), lambda answer: ended.append(answer == Done()))
        bench.env.turn()
    elif why == "stopped":
        bench.broker.stop(lambda: ended.append(True))
    assert slow.told == [] and answers == [] and bench.store.closings == []
    slow.settled(Refused(LogOffline("planted")) if why == "refused" else None)
    assert slow.told == [told] and answers == [] and bench.store.closings == [], "it uses its log until it is idle"
    slow.idle()
    (refused,) = answers
    assert isinstance(refused, Refusal) and said in refused.text
    assert bench.store.closings[:1] == ["b"] and ended == ([] if why == "refused" else [True])


class Queue:
    """A broker whose store has a queue with one message, which is scheduled; the broker was started anew."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(5)
        self._begin()
        self.ask(CreateFragment(LOG, "orders", FragmentSettings()))
        later = message("later", scheduled_ms=self.env.now_ms() + HOUR_MS)
        self.ask(EnqueueMessages(LOG, run_of(later), 1, len(later)))
        self.broker.stop(lambda: None)
        self.env.run_for(1_000)
        self._begin()

    def _begin(self) -> None:
        self.broker = Broker(self.env, MessagingStore.open(self.env, "store-0"), Counters())
        self.broker.start()

    def ask(self, command: Command) -> list[Answer]:
        answers: list[Answer] = []
        self.broker.submit(command, answers.append)
        self.env.run_for(500)
        return answers


@pytest.mark.parametrize(("how", "armed"), [("deleted", 1), ("stopped", 0)])
def test_a_fragment_whose_opening_is_over_has_no_turn_on_its_closed_log(how: str, armed: int) -> None:
    """Other settings than before go into the log before it is hosted; meanwhile it is to be removed, or all ends."""
    queue = Queue()
    queue.env.stall(Lane.WRITES)
    opened = queue.ask(OpenFragment(LOG, "orders", FragmentSettings(duplicate_window_ms=60_000)))
    assert opened == [] and queue.env.stalled_calls(Lane.WRITES) == 1
    ended = list[bool]()
    if how == "deleted":
        queue.broker.submit(DeleteFragment(LOG), lambda answer: ended.append(answer == Done()))
    else:
        queue.broker.stop(lambda: ended.append(True))
    queue.env.run_for(10)
    queue.env.go_on(Lane.WRITES)
    queue.env.run_for(1_000)
    [refused] = opened
    assert ended == [True] and isinstance(refused, Refusal)
    assert len(queue.broker._deadlines) == armed, "nothing is left but the sweep's"
