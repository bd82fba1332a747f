"""Broker processes and their supervisor are killed and stopped, over and over, under events and messages (T7).

Four broker processes and six partitions with a writer each, and clients of partitioned queues of every kind, who go on
through all of it (spread_load.py, spread_messages.py). Nothing that was accepted is lost, nothing is stored twice, and
all clients go on. How long who was kept waiting is printed: docs/brokers.md has the figures.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hubweir.testing.broker_processes import broker_pids
from hubweir.testing.history_values import Violation
from hubweir.testing.server_process import ServerProcess
from tests.crash.spread_load import SpreadLoad
from tests.crash.spread_messages import KEYED, KEYLESS, RECEIVERS, SpreadMessages

FAULTS, FAULTS_OF_CONTROL = 60, 30  # a planted defect shows behind the first faults, and ends the control
FOUND = "lost|twice|and is there|has number|not whole|another batch|comes before"  # by one history or the other
BROKERS, PARTITIONS = 4, 8
# A machine that runs other tests at the same time starts a process slowly; the goal is 3 s on an idle one.
BACK_S = 90.0
STALL_S = 10.0  # after which a process that does not answer is killed
# What happens, and how often of so many: and how long writers of events go on behind it.
WAYS = {
    "broker killed": 16,
    "broker stopped": 2,
    "broker stopped for a moment": 1,
    "supervisor killed": 1,
    "supervisor stopped for a moment": 1,
}
AFTER_S = {
    "broker stopped": STALL_S + 5.0,
    "broker stopped for a moment": 3.0,
    "supervisor killed": 1.0,
    "supervisor stopped for a moment": 5.0,
}

pytestmark = [
    pytest.mark.crash,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="several broker processes are served on Linux alone"),
]


def seed_of_this_run() -> int:
    """Fresh in every run, or HUBWEIR_FIRST_SEED to play one again (as far as a kill can be played again)."""
    given = os.environ.get("HUBWEIR_FIRST_SEED")
    return int(given) if given else int.from_bytes(os.urandom(4), "big")


@contextmanager
def served(data: Path, brokers: int = BROKERS, **how: Any) -> Iterator[ServerProcess]:
    with ServerProcess(data, arguments=["--brokers", str(brokers)], **how) as server:
        yield server


class Faults:
    """What is done to one server, and when. told: a fault's way, time (monotonic) and broker; None: no broker.

    on_fault: called just before, with the store whose locks end; None: with connections at most.
    """

    def __init__(
        self, server: ServerProcess, data: Path, chance: random.Random, on_fault: Callable[[int | None], None]
    ) -> None:
        self.told: list[tuple[str, float, int | None]] = []
        self._server = server
        self._data = data
        self._chance = chance
        self._on_fault = on_fault
        self._count = len(broker_pids(data))

    def draw(self) -> tuple[str, Callable[[], None]]:
        """The way of the next fault, and the call that does it."""
        way = self._chance.choices(list(WAYS), list(WAYS.values()))[0]
        return way, partial(self._do, way, self._chance.randrange(self._count))

    def mend(self, way: str) -> None:
        """Start what does not start by itself, and wait until all processes are there again. Blocks."""
        if way == "supervisor killed":
            self._server.start()
        limit = time.monotonic() + BACK_S
        while len(broker_pids(self._data)) < self._count:
            assert time.monotonic() < limit, "a broker process did not come back"
            time.sleep(0.05)

    def _do(self, way: str, victim: int) -> None:
        if way == "supervisor killed":
            self.told.append((way, time.monotonic(), None))
            self._on_fault(None)
            self._server.kill_supervisor()
            return
        if way == "supervisor stopped for a moment":
            pid = self._server.pid
            assert pid is not None
            self.told.append((way, time.monotonic(), None))
            self._on_fault(None)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(3.0)
            os.kill(pid, signal.SIGCONT)
            return
        pid = broker_pids(self._data)[victim]
        self.told.append((way, time.monotonic(), victim))
        self._on_fault(None if way == "broker stopped for a moment" else victim)  # its locks outlive a moment
        os.kill(pid, signal.SIGKILL if way == "broker killed" else signal.SIGSTOP)
        if way == "broker stopped for a moment":
            time.sleep(1.5)
            os.kill(pid, signal.SIGCONT)


class World:
    """One server, its clients, and what is done to it.

    away_s: by the way of a fault, how long nobody could write to one of the partitions.
    """

    def __init__(self, server: ServerProcess, data: Path) -> None:
        self.seed = seed_of_this_run()
        self._chance = random.Random(self.seed)
        self._server = server
        self.load = SpreadLoad(server.connection_string(), PARTITIONS, self.seed)
        self.messages = SpreadMessages(server.connection_string(), self.seed)
        self.faults = Faults(server, data, self._chance, self.messages.fault)
        self.away_s: dict[str, list[float]] = {}
        self.messages.create()

    def live(self, count: int) -> None:
        """All clients, through so many faults; what there is of events behind each of them, and everything behind the
        last one, is held against what they saw.

        A note of what is raised says which faults these were.
        """
        try:
            asyncio.run(self._live(count))
        except BaseException as error:
            error.add_note(f"seed {self.seed}, {self.faults.told}\n{self._server.output[-2_000:]}")
            raise

    async def _live(self, count: int) -> None:
        load, messages, faults = self.load, self.messages, self.faults
        await load.create_hub("durable")
        messages.start()
        await messages.all_went_on()
        for _ in range(count):
            way, do = faults.draw()
            await load.write_on(self._chance.uniform(0.5, 1.0), do, AFTER_S.get(way, 4.0))
            self.away_s.setdefault(way, []).append(max(load.gaps_s.values()))
            await asyncio.to_thread(faults.mend, way)
            await messages.all_went_on()
            wrong = await load.read_new()
            assert not wrong, wrong[:5]
        await messages.stop()
        await messages.check()
        wrong = await load.read_all_again()
        assert not wrong, wrong[:5]


def test_nothing_accepted_is_lost_over_many_faults_of_processes(tmp_path: Path, measure: Callable[[int], int]) -> None:
    count = measure(FAULTS)
    with served(tmp_path / "data") as server:
        world = World(server, tmp_path / "data")
        world.live(count)
        messages, faults = world.messages, world.faults
        assert server.stop() == 0
    print(f"\nseed {world.seed}: {[way for way, _, _ in faults.told]}\n{messages.counts}")
    report(messages, faults)
    for way, away_s in world.away_s.items():
        print(f"{way}: a partition took no batch for {quantiles(away_s)}")
    sends = {kind: len(messages.sends[kind]) for kind in (KEYLESS, KEYED)}
    assert not messages.late, f"{messages.late} of {sends}"
    # A run that tested nothing must not be green. Each client went on behind each fault: World.live waits for it.
    assert min(sends.values()) >= count and messages.counts["settled"] >= count
    assert sum(len(history.accepted) for history in world.load.histories) >= count


# The control arm: the same at processes with a planted defect.


@pytest.mark.parametrize("planted", ["again", "stored"])
def test_a_planted_defect_of_gateways_is_found(tmp_path: Path, planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WAYS, "broker killed", 10_000)
    program = (str(Path(__file__).with_name("rash_brokers.py")),)
    found = pytest.raises((Violation, AssertionError), match=FOUND)
    with served(tmp_path / "data", program=program, environment={"PLANTED": planted}) as server, found:
        World(server, tmp_path / "data").live(FAULTS_OF_CONTROL)


def report(messages: SpreadMessages, faults: Faults) -> None:
    """Print how long sends took around each kind of fault, and how long receivers paused, for whom others send on."""
    for way in WAYS:
        times = [(at, store) for each, at, store in faults.told if each == way]
        if times:
            took = sends_around(messages, times, AFTER_S.get(way, 4.0))
            print(f"{len(times)} × {way}: " + "; ".join(f"{name} {quantiles(some)}" for name, some in took.items()))
            print(f"    longest pause of a receiver: {quantiles([pause(messages, at) for at, _ in times])}")


def sends_around(
    messages: SpreadMessages, times: list[tuple[float, int | None]], after_s: float
) -> dict[str, list[float]]:
    """Seconds that sends took: shortly before a fault; and behind it without a key, with one of its broker or not."""
    took: dict[str, list[float]] = {"before": [], "keyless": [], "keyed, its own": [], "keyed, others": []}
    for at, store in times:
        for kind, sends in messages.sends.items():
            for sent in sends:
                if at - 3.0 < sent.began < at - 0.5:
                    took["before"].append(sent.took_s)
                elif at < sent.began + sent.took_s and sent.began < at + after_s:
                    its = "its own" if sent.store == store else "others"
                    took["keyless" if kind == KEYLESS else f"keyed, {its}"].append(sent.took_s)
    return took


def pause(messages: SpreadMessages, at: float) -> float:
    """The longest that a receiver of the queue without keys got nothing around a time; 0 is less than a moment."""
    around = [s for name, began, s in messages.pauses if name in RECEIVERS and began < at + 1.0 and at < began + s]
    return max(around, default=0.0)


def quantiles(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    some = sorted(seconds)
    return f"p50 {some[len(some) // 2]:.3f} p99 {some[len(some) * 99 // 100]:.3f} most {some[-1]:.2f} s of {len(some)}"
