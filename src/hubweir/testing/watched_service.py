"""A service in a process of its own that tells how late its loop is, how long collections take and what they find.

    async with WatchedService(folder) as service:
        await service.ask("create", "hub", 32)
        ...
        seen = await service.ask("take")

What a thread waited for a processor because the machine was busy is taken off, where the system tells it (Linux):
so a stall is what the process did, also on a machine that others use. Collections are measured in processor time.
The process is this module, run as a program; it answers one line of JSON for each line it gets.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from hubweir.config.settings import Settings
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.service.service import Service
from hubweir.testing.event_loops import LOOPS

BEAT_S = 0.01
STALL_MS = 20
LONG_COLLECTION_MS = 5
ANSWER_S = 600.0
_FOLDER = str(Path(__file__).parent)


def waited_ms() -> float:
    """How long this thread has waited for a processor that others used."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e6
    return 0.0


def memory_mb() -> float:
    """Memory of this process."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0


class Watch:
    """Beats of the loop, and collections, since the last `take`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._begun_s = 0.0
        self._late_ms: list[float] = []
        self._collections: list[tuple[int, float, int]] = []  # generation, ms, objects found
        self._since = time.perf_counter()
        gc.callbacks.append(self._collected)
        self._plan()

    def _plan(self) -> None:
        self._waited_ms = waited_ms()
        self._due = time.perf_counter() + BEAT_S
        self._loop.call_later(BEAT_S, self._beat)

    def _beat(self) -> None:
        late_ms = (time.perf_counter() - self._due) * 1000 - (waited_ms() - self._waited_ms)
        self._late_ms.append(max(0.0, late_ms))
        self._plan()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._begun_s = time.thread_time()
        else:
            took_ms = (time.thread_time() - self._begun_s) * 1000
            self._collections.append((info["generation"], took_ms, info["collected"]))

    def take(self) -> dict[str, Any]:
        """What was seen; the next one begins now."""
        collections, self._collections = self._collections, []
        late_ms, self._late_ms = self._late_ms, []
        seconds, self._since = time.perf_counter() - self._since, time.perf_counter()
        took_ms = [took for _, took, _ in collections]
        return {
            "seconds": seconds,
            "longest_stall_ms": max(late_ms, default=0.0),
            "stalls": sum(late > STALL_MS for late in late_ms),
            "longest_collection_ms": max(took_ms, default=0.0),
            "long_collections": sum(took > LONG_COLLECTION_MS for took in took_ms),
            "collecting_percent": sum(took_ms) / seconds / 10,
            "older_collections": sum(generation > 0 for generation, _, _ in collections),
            "memory_mb": memory_mb(),
        }


class Calls:
    """Python calls and callbacks of the loop's thread, by file, from `start` to `stop`. Those of this folder do not
    count: they are the watch's own. The rest of the interpreter counts, C functions do not."""

    def __init__(self) -> None:
        self._by_file: Counter[str] = Counter()
        self._callbacks = self._depth = 0
        self._is_counting = False

    def start(self) -> None:
        self._by_file.clear()
        self._callbacks = self._depth = 0
        sys.setprofile(self._seen)

    def stop(self) -> dict[str, Any]:
        sys.setprofile(None)
        return {"callbacks": self._callbacks, "calls": dict(self._by_file)}

    def _seen(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            if not self._depth:  # the loop begins a callback
                self._is_counting = not frame.f_code.co_filename.startswith(_FOLDER)
                self._callbacks += self._is_counting
            self._depth += 1
            self._by_file[frame.f_code.co_filename] += self._is_counting
        elif event == "return" and self._depth:
            self._depth -= 1


class _Commands:
    """What the parent may ask for: one method each, given the words of the line."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ballast: list[list[object]] = []
        self._calls = Calls()

    async def create(self, hub: str, partition_count: str) -> str:
        """Make a hub."""
        wanted = EventHubDescription(hub, int(partition_count), retention_ms=3_600_000)
        return await self._keep(lambda done: self._service.gateway.keeper.create(wanted, done))

    async def delete(self, hub: str) -> str:
        """Remove a hub."""
        return await self._keep(lambda done: self._service.gateway.keeper.delete(hub, EventHubDescription, done))

    async def take(self) -> str:
        """Only what the watch has seen."""
        return ""

    async def stop_collecting(self) -> str:
        """From now on nothing is freed but what nobody knows."""
        gc.collect()
        gc.disable()
        return ""

    async def find(self) -> dict[str, int]:
        """What a collection of everything finds, by type; it is freed."""
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.unfreeze()
        gc.collect()
        gc.set_debug(0)
        found: dict[str, int] = {}
        for each in gc.garbage:
            name = f"{type(each).__module__}.{type(each).__qualname__}"
            found[name] = found.get(name, 0) + 1
        gc.garbage.clear()
        gc.collect()
        return found

    async def ballast(self, count: str) -> str:
        """Make objects that stay, in pieces, as hubs and their events would."""
        for _ in range(0, int(count), 1000):
            self._ballast.append([[number] for number in range(1000)])
            await asyncio.sleep(0)
        return ""

    async def leave_the_collector(self) -> str:
        """The control arm: what the interpreter does by itself."""
        self._service.watch.stop()
        return ""

    async def block(self, milliseconds: str) -> str:
        """The control arm: keep the loop now, and every half a second from now on."""
        loop = asyncio.get_running_loop()

        def keep() -> None:
            time.sleep(int(milliseconds) / 1000)
            loop.call_later(0.5, keep)

        keep()
        return ""

    async def count_calls(self) -> str:
        """Count Python calls from now on."""
        self._calls.start()
        return ""

    async def counted_calls(self) -> dict[str, Any]:
        """Calls by file, and callbacks, since count_calls."""
        return self._calls.stop()

    async def counters(self) -> dict[str, int]:
        """Those of the service."""
        return self._service.counters.snapshot()

    async def _keep(self, start: Any) -> str:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        start(answered.set_result)
        return str(await answered)


async def serve(data: str) -> None:
    """The process: a service, and an answer to each line until there are no more."""
    loop = asyncio.get_running_loop()
    gc.unfreeze()  # a process that was forked has frozen what the other one had lost, and `find` would find it here
    gc.collect()
    service = await Service.start(Settings(data=data, port=(0,), allow_more_partitions=True))
    watch, commands = Watch(loop), _Commands(service)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print(json.dumps(service.connection_string()), flush=True)
    while words := (await lines.readline()).decode().split():
        result = await getattr(commands, words[0])(*words[1:])
        print(json.dumps({**watch.take(), "result": result}), flush=True)
    await service.stop()


class WatchedService:
    """The parent's side; a context manager that ends the process."""

    def __init__(self, data: Path | str) -> None:
        self._data = str(data)
        self._process: asyncio.subprocess.Process | None = None
        self.target: ConnectionString | None = None

    async def __aenter__(self) -> WatchedService:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, self._data,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        self.target = ConnectionString.parse(await self._line())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None and process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 30)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def ask(self, *words: object) -> dict[str, Any]:
        """Have a command of `_Commands` done; what was seen since the last one, and its result."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        answer: dict[str, Any] = await self._line()
        return answer

    async def _line(self) -> Any:
        assert self._process is not None and self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), ANSWER_S)
        assert line, "the service ended; its error output says why"
        return json.loads(line)


if __name__ == "__main__":
    # uvloop where it is installed, as the service chooses
    with asyncio.Runner(loop_factory=LOOPS[max(LOOPS)]) as runner:
        runner.run(serve(sys.argv[1]))
