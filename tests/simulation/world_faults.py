"""What goes wrong in the whole world, drawn by its seed: one thing after the other, with a while in between."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hubweir.testing.memory_faults import Fault
from tests.simulation.many_processes import SimulatedProcess
from tests.simulation.simulated_service import BROKERS

if TYPE_CHECKING:
    from tests.simulation.whole_world import WholeWorld

LATEST_MS = 9_000  # a partition or a stop; twice that, and what goes on before and behind, is less than LATE_MS
KILLED_MS = 13_000  # a stop that the supervisor does not wait for
# Less than the hour that a token of a client lives: behind a jump ahead of more all are refused.
JUMPS_MS = (-86_400_000, -600_000, 600_000, 1_200_000)
AHEAD_LIMIT_MS = 1_800_000
# A call that the fault fits fails within so many from then on, where there are as many.
DISK_FAULTS = {
    Fault.SYNC_EIO: 6,
    Fault.EIO: 30,
    Fault.ENOSPC: 10,
    Fault.SHORT: 6,
    Fault.EMFILE: 20,
    Fault.KILL: 12,
    Fault.POWER_CUT: 12,
}
PLANNED_AT_ONCE = 3
# What goes wrong, and how often; clocks in half of the worlds alone. LATE is left out in a third of the worlds, where
# the checks are sharper.
KINDS = {"kill": 3, "power cut": 4, "cut": 3, "disk": 6, "clock": 4, "keeper": 2}
LATE = {"stop": 4, "killed stop": 4, "keeper stop": 4, "block": 4, "block one way": 4}
CLIENTS = (
    *("publisher", "reader 0", "reader 1", "reader 2", "o", "orders 1", "orders 2", "t", "turns 1", "turns 2"),
    *("f", "feed 1", "feed 2", "mover 1", "mover 2"),
)
SUPERVISOR = "supervisor"


def broker_name(index: int) -> str:
    """The name of a broker process, in every life."""
    return f"broker {index}"


class Faults:
    """Of one world. jumped_ms: how far the wall clock of each machine is off, the supervisor's last."""

    def __init__(self, world: WholeWorld) -> None:
        self._world = world
        self.jumped_ms = [0] * (BROKERS + 1)
        # By the name of a process: when it went on, or its way to the supervisor was open again.
        self._reached_since_ms: dict[str, int] = {}

    def may_reach_the_supervisor(self, process: SimulatedProcess, for_ms: int) -> bool:
        """Whether a process runs, and its way to the supervisor is open, for so long by now. That may be away."""
        world = self._world
        is_open = process.runs and not world.network.is_blocked(process.name, SUPERVISOR)
        return is_open and self._reached_since_ms.get(process.name, -for_ms) + for_ms <= world.now_ms

    async def run(self) -> None:
        """All of them."""
        world, random = self._world, self._world.random
        kinds = {**KINDS, **LATE} if world.is_late else {**KINDS}
        if world.is_scheduling:
            del kinds["clock"]
        await asyncio.sleep(random.uniform(0.2, 1.5))
        for _ in range(random.randrange(3, 8)):
            await self._do(random.choices(list(kinds), list(kinds.values()))[0])
            await asyncio.sleep(random.uniform(0.1, 2.5))

    async def _do(self, kind: str) -> None:
        world, random = self._world, self._world.random
        world.note(kind)
        index = random.randrange(BROKERS)
        life = world.lives.get(index)
        process = None if life is None else life[1].process
        if kind in ("kill", "power cut", "stop", "killed stop", "clock") and process is None:
            return
        world.met[kind] += 1
        match kind:
            case "kill" | "power cut":
                assert process is not None
                world.processes.end(process, power_cut=kind == "power cut")
            case "cut":
                world.network.cut(random.choice(CLIENTS))
            case "disk":
                for _ in range(PLANNED_AT_ONCE):
                    fault = random.choice(list(DISK_FAULTS))
                    world.disks[random.randrange(BROKERS + 1)].plan(fault, random.randrange(1, DISK_FAULTS[fault]))
            case "clock":
                self._jump(index, process)
            case "keeper":
                if world.supervisor_process is not None:
                    world.processes.end(world.supervisor_process, power_cut=random.random() < 0.5)
            case "keeper stop":
                if world.supervisor_process is not None:
                    await self._stop(world.supervisor_process, random.randrange(300, LATEST_MS))
            case "stop" | "killed stop":
                assert process is not None
                await self._stop(process, random.randrange(300, LATEST_MS) if kind == "stop" else KILLED_MS)
            case _:
                await self._block(both_ways=kind == "block")

    def _jump(self, index: int, process: SimulatedProcess | None) -> None:
        by_ms = self._world.random.choice(JUMPS_MS)
        if self.jumped_ms[index] + by_ms < AHEAD_LIMIT_MS:
            self.jumped_ms[index] += by_ms
            if process is not None:
                process.env.jump(by_ms)

    async def _stop(self, process: SimulatedProcess, for_ms: int) -> None:
        world = self._world
        process.stop(world.now_ms + for_ms)
        await asyncio.sleep(for_ms / 1_000)
        if process.is_alive:
            process.go_on(world.now_ms)
        self._reached_since_ms[process.name] = world.now_ms

    async def _block(self, *, both_ways: bool) -> None:
        """Hold what goes from one process to another, to the supervisor or to a client, or comes from there.

        In the end it comes late, or never.
        """
        world, random = self._world, self._world.random
        names = [*map(broker_name, range(BROKERS)), SUPERVISOR]
        one = random.choice(names[:BROKERS])
        other = random.choice([name for name in names if name != one] + [random.choice(CLIENTS)])
        ends = [one, other] if random.random() < 0.5 else [other, one]
        world.network.block(*ends, both_ways=both_ways)
        await asyncio.sleep(random.randrange(300, LATEST_MS) / 1_000)
        if random.random() < 0.5:
            world.network.cut(*ends)
        world.network.heal()
        if SUPERVISOR in ends:
            self._reached_since_ms[one] = world.now_ms
