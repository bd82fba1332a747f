"""One scrape: what this process measures, and what the other processes of the service answer to the same question.

Counters of several processes are not added up here: each begins at 0 when its process does, and a sum that falls by a
part looks to Prometheus like a counter that began again. Whoever reads adds up rates. What stands is taken as it is, a
few residents in each turn of the loop.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from hubweir import __version__
from hubweir.alarms import KINDS, Alarms
from hubweir.broker.broker import Broker
from hubweir.broker.commands.broker_process import AskMeasures, MeasuresTaken
from hubweir.counters import Counters, Latency
from hubweir.env import Env
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.open_metrics import ProcessSamples
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.metrics import (
    ALARMS,
    BUILD_INFO,
    BY_NAME,
    PROCESS_CPU,
    PROCESS_MEMORY,
    PROCESS_START,
    PROCESS_UP,
    THROUGHPUT_UNITS,
    Samples,
)
from hubweir.service.asked_process import ask_once

# A process that lives answers within milliseconds; one that is stalled must not keep the figures of the others.
ANSWER_S = 1.0
_BEGAN_S = time.time()


# Samples that are written or read in one turn of the loop, metric by metric: 2 us each.
TRAVEL_AT_ONCE = 1_000


class _Measured(msgspec.Struct, array_like=True):
    """Samples as they travel. series: by the metric's name, the document of its rows, which is made and read alone."""

    series: dict[str, msgspec.Raw]
    latencies: dict[str, tuple[list[int], float]]


class Scrape:
    """See the module's text. brokers: those of this process that are up, asked at each scrape.

    process: of whose gateways; asked too, since it is there later than this.
    """

    def __init__(
        self,
        counters: Counters,
        alarms: Alarms,
        *,
        process: Callable[[], GatewayProcess],
        brokers: Callable[[], Iterable[Broker]],
    ) -> None:
        self._counters = counters
        self._alarms = alarms
        self._process = process
        self._brokers = brokers

    async def own(self) -> Samples:
        """What this process says."""
        samples = Samples()
        for broker in self._brokers():
            for _ in broker.measure(samples):
                await asyncio.sleep(0)
        for gateway in self._process().gateways:
            for _ in gateway.measure(samples):
                await asyncio.sleep(0)
            if isinstance(gateway.units, NamespaceUnits):  # whoever keeps the catalog says it, once
                samples[THROUGHPUT_UNITS][gateway.settings.namespace,] += gateway.units.admission.units or 0
        samples.count(self._counters)
        standing = self._alarms.counts()
        for kind in KINDS:
            samples[ALARMS][kind.name,] += standing.get(kind.name, 0)
        samples[BUILD_INFO][__version__,] = 1
        samples[PROCESS_UP][()] = 1
        samples[PROCESS_CPU][()] = round(time.process_time(), 3)
        samples[PROCESS_START][()] = round(_BEGAN_S, 3)
        memory = _resident_bytes()
        if memory is not None:
            samples[PROCESS_MEMORY][()] = memory
        return samples

    async def alone(self) -> list[ProcessSamples]:
        """Of a service that is one process."""
        return [ProcessSamples("", await self.own())]

    async def encoded(self) -> bytes:
        """As `own`, for another process."""
        return await encode(await self.own())


async def scrape_all(own_name: str, own: Scrape, others: Mapping[str, Path], env: Env) -> list[ProcessSamples]:
    """What all processes say, this one first. others: the sockets of the others, by their names."""

    async def one(name: str, path: Path) -> ProcessSamples:
        samples = await _ask(path, env)
        if samples is None:
            samples = Samples()
            samples[PROCESS_UP][()] = 0
        return ProcessSamples(name, samples)

    told = asyncio.gather(*(one(name, path) for name, path in others.items()))
    return [ProcessSamples(own_name, await own.own()), *await told]


async def _ask(path: Path, env: Env) -> Samples | None:
    """What the process that listens on a path says; None when it says nothing in time."""
    answer = await ask_once(path, AskMeasures(), env, within_s=ANSWER_S)
    return await decode(answer.document) if isinstance(answer, MeasuresTaken) else None


async def encode(samples: Samples) -> bytes:
    """Samples as bytes, for a process of the same version. The loop has its turns meanwhile."""
    series, done = {}, 0
    for metric, its in samples.items():
        series[metric.name] = msgspec.Raw(msgspec.msgpack.encode(list(its.items())))
        done = await _give_turn(done + len(its))
    latencies = {metric.name: (latency.buckets, latency.sum_s) for metric, latency in samples.latencies.items()}
    return msgspec.msgpack.encode(_Measured(series, latencies))


async def decode(document: bytes | memoryview) -> Samples:
    """What `encode` wrote. The loop has its turns meanwhile."""
    measured, samples, done = msgspec.msgpack.decode(document, type=_Measured), Samples(), 0
    for name, rows in measured.series.items():
        its = msgspec.msgpack.decode(rows, type=list[tuple[tuple[str, ...], int | float]])
        samples[BY_NAME[name]].update(its)
        done = await _give_turn(done + len(its))
    for name, (buckets, sum_s) in measured.latencies.items():
        latency = samples.latencies[BY_NAME[name]] = Latency()
        latency.buckets, latency.sum_s = buckets, sum_s
    return samples


async def _give_turn(done: int) -> int:
    """How many samples were done since the loop had its turn: now, when they are many."""
    if done < TRAVEL_AT_ONCE:
        return done
    await asyncio.sleep(0)
    return 0


def _resident_bytes() -> int | None:
    """Memory of this process that is in use; None where the system does not say."""
    if sys.platform != "linux":
        return None
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
