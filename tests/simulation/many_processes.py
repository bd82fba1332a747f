"""Several processes on one loop in virtual time: each may be stopped for a while, or end between any two steps.

Whatever belongs to a process runs in its context, which tasks and callbacks inherit. So the loop knows whose a callback
is: one of a process that ended never runs, one of a process that is stopped waits until it goes on. Each process has a
SimulatedEnv of its own beside the loop; all of them show the same time.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from hubweir.testing.memory_faults import Ended, PowerCut
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import START_MS, SimulatedEnv
from tests.simulation.virtual_time import TimedLoop

_PROCESS: contextvars.ContextVar[SimulatedProcess | None] = contextvars.ContextVar("process", default=None)


def current_process() -> SimulatedProcess | None:
    """Whose code runs now; None: a client's, or the test's."""
    return _PROCESS.get()


class SimulatedProcess:
    """One life of a process on a disk. Made by `Processes.begin`. name: what it is, in every life."""

    def __init__(self, processes: Processes, name: str, env: SimulatedEnv) -> None:
        self.name = name
        self.env = env
        self.is_alive = True
        self.stopped_until_ms: int | None = None
        self.context = contextvars.copy_context()
        self.context.run(_PROCESS.set, self)
        self._processes = processes
        self._held: list[tuple[asyncio.Handle, Callable[..., Any], tuple[Any, ...], contextvars.Context | None]] = []

    @property
    def runs(self) -> bool:
        """Whether it is there, and is not stopped."""
        return self.is_alive and self.stopped_until_ms is None

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[Any]:
        """Have it do something of its own."""
        return self._processes.loop.create_task(work, context=self.context.copy())

    def call(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Do a step as this process does it, where its disk may end it."""
        try:
            return step(*arguments)
        except Ended as end:
            self._processes.end(self, power_cut=isinstance(end, PowerCut))

    def play(self, until_ms: int) -> None:
        """What is due in its env."""
        self.context.run(self.call, self.env.run, until_ms)

    def hold(
        self, handle: asyncio.Handle, callback: Callable[..., Any], arguments: tuple[Any, ...], context: Any
    ) -> None:
        """Keep a callback for the time when it goes on."""
        self._held.append((handle, callback, arguments, context))

    def stop(self, until_ms: int) -> None:
        """Stop it, as SIGSTOP does."""
        self.stopped_until_ms = until_ms

    def go_on(self, now_ms: int) -> None:
        """End a stop."""
        self.stopped_until_ms = None
        self.env.pass_over(now_ms)
        held, self._held = self._held, []
        for handle, callback, arguments, context in held:
            if not handle.cancelled():
                self._processes.loop.call_soon(callback, *arguments, context=context)

    def died(self, *, power_cut: bool) -> None:
        """See Processes.end."""
        self.is_alive = False
        self.env.crash(power_cut=power_cut)
        self._held = []


class Processes:
    """All of them; a VirtualTime. on_end: called with each that ended, and whether its machine did."""

    def __init__(self) -> None:
        self.loop: ProcessLoop
        self.now_ms = 0
        self.alive: list[SimulatedProcess] = []
        self.ended: list[SimulatedProcess] = []
        self.tasks: dict[asyncio.Task[Any], None] = {}  # that are not done, of processes that ended, too
        self.on_end: Callable[[SimulatedProcess], None] = lambda process: None

    def begin(self, name: str, files: MemoryFiles, seed: str, **how: Any) -> SimulatedProcess:
        """A new life. how: see SimulatedEnv; jumped_ms: how far its wall clock is off."""
        start_ms = START_MS + self.now_ms + how.pop("jumped_ms", 0)
        env = SimulatedEnv(seed, files=files, start_ms=start_ms, monotonic_ms=self.now_ms, **how)
        process = SimulatedProcess(self, name, env)
        self.alive.append(process)
        return process

    def end(self, process: SimulatedProcess, *, power_cut: bool = False) -> None:
        """A process ends between two steps, with its machine or without."""
        if process.is_alive:
            process.died(power_cut=power_cut)
            self.alive.remove(process)
            self.ended.append(process)
            self.on_end(process)

    # The time of the loop

    def monotonic_ms(self) -> int:
        return self.now_ms

    def turn(self) -> None:
        for process in tuple(self.alive):
            if process.runs:
                next_ms = process.env.next_ms()
                if next_ms is not None and next_ms <= self.now_ms:
                    process.play(self.now_ms)

    def next_ms(self) -> int | None:
        times = [process.env.next_ms() for process in self.alive if process.runs]
        return min((each for each in times if each is not None), default=None)

    def run(self, until_ms: int) -> None:
        self.now_ms = until_ms
        for process in self.alive:
            process.env.pass_over(until_ms)
        self.turn()

    def close(self) -> None:
        """Nothing of any process is left to run, nor is missed."""
        for process in tuple(self.alive):
            self.end(process)
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with suppress(RuntimeError):  # of one that waits for something more when it is closed
                task.get_coro().close()  # type: ignore[union-attr]


class ProcessLoop(TimedLoop):
    """See the module's text."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        processes.loop = self
        super().__init__(processes)

    def create_task(self, coroutine: Any, *, name: Any = None, context: contextvars.Context | None = None) -> Any:
        task = super().create_task(coroutine, name=name, context=context)
        self._processes.tasks[task] = None
        task.add_done_callback(self._processes.tasks.pop, context=contextvars.Context())
        return task

    def call_soon(self, callback: Any, *arguments: Any, context: contextvars.Context | None = None) -> Any:
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is None:
            return super().call_soon(callback, *arguments, context=context)
        step = _Step(process, callback, arguments, context)
        step.handle = super().call_soon(step, context=step.context)
        return step.handle

    def call_at(self, when: float, callback: Any, *arguments: Any, context: contextvars.Context | None = None) -> Any:
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is None:
            return super().call_at(when, callback, *arguments, context=context)
        step = _Step(process, callback, arguments, context)
        step.handle = handle = super().call_at(when, step, context=step.context)
        return handle


class _Step:
    """A callback of a process."""

    __slots__ = ("arguments", "callback", "context", "handle", "process")

    def __init__(
        self, process: SimulatedProcess, callback: Any, arguments: tuple[Any, ...], context: contextvars.Context | None
    ) -> None:
        self.process, self.callback, self.arguments = process, callback, arguments
        self.context = contextvars.copy_context() if context is None else context
        self.handle: Any = None

    def __call__(self) -> None:
        process = self.process
        if process.runs:
            process.call(self.callback, *self.arguments)
        elif process.is_alive:
            process.hold(self.handle, self.callback, self.arguments, self.context)
