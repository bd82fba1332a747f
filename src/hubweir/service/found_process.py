"""Broker processes that a supervisor which died has left: asked who they are, kept or ended by the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from hubweir.broker.commands.broker_process import AskProcess, ProcessState
from hubweir.broker.commands.testcontrol import AskOrders, OrdersTold, StandingOrders
from hubweir.drivers.unix_socket import listener_pid
from hubweir.drivers.watched_process import WatchedProcess
from hubweir.env import Env
from hubweir.service.asked_process import ask_once
from hubweir.service.process_end import ProcessEnd
from hubweir.service.runtime_folder import RuntimeFolder

logger = logging.getLogger(__name__)

ANSWER_S = 3.0  # a process that lives answers within milliseconds


@dataclass(frozen=True, slots=True)
class Found:
    """One that serves on. life: the process, watched."""

    state: ProcessState
    life: WatchedProcess


@dataclass(frozen=True, slots=True)
class Left:
    """One that an earlier supervisor left. state None: it says nothing. orders: of tests, by which it goes."""

    index: int
    life: WatchedProcess
    state: ProcessState | None
    orders: StandingOrders


async def find_left(folder: RuntimeFolder, env: Env) -> list[Left]:
    """All that an earlier supervisor left, asked at the same time: one that is stopped takes all of ANSWER_S."""
    asked = []
    for index in folder.processes():
        path = folder.process(index)
        life = who_listens(path)
        if life is not None:
            asked.append(_ask(index, life, path, env))
    return await asyncio.gather(*asked)


async def _ask(index: int, life: WatchedProcess, path: Path, env: Env) -> Left:
    state = await ask_process(path, env)
    told = None if state is None else await ask_once(path, AskOrders(), env, within_s=ANSWER_S)
    return Left(index, life, state, told.orders if isinstance(told, OrdersTold) else StandingOrders())


def newest_orders(left: Iterable[Left]) -> StandingOrders:
    """What the last supervisor had its processes go by, as far as one of them heard of it."""
    return max((each.orders for each in left), key=attrgetter("version"), default=StandingOrders())


def who_listens(path: Path) -> WatchedProcess | None:
    """The process that listens on a path, also one that is stopped; None: nobody does."""
    pid = listener_pid(path)
    life = None if pid is None else WatchedProcess.found(pid)
    if life is not None and listener_pid(path) != pid:
        # It ended in between, and another process may have its number by now: that one is not ours to end.
        life.forget()
        return None
    return life


async def ask_process(path: Path, env: Env) -> ProcessState | None:
    """What the process that listens on a path says of itself; None when it says nothing in time."""
    answer = await ask_once(path, AskProcess(), env, within_s=ANSWER_S)
    return answer if isinstance(answer, ProcessState) else None


async def end_found(left: Iterable[Left], env: Env, *, clients_s: float) -> None:
    """End those that are not of use, at the same time, and wait until they are gone: their stores are free then.

    clients_s: what clients may take of an end.
    """
    await asyncio.gather(*(_end(each, env, clients_s) for each in left))


async def _end(one: Left, env: Env, clients_s: float) -> None:
    logger.warning("broker process %d of an earlier supervisor is ended (pid %d)", one.index, one.life.pid)
    if one.state is None:
        await one.life.kill()
    else:
        await ProcessEnd(one.index, env, clients_s).of(one.life)


async def end_left(data: str, env: Env, *, clients_s: float) -> None:
    """End all broker processes that serve on for a supervisor of a data folder that is gone: a start without any. The
    folder of their sockets goes, too. clients_s: as of end_found.
    """
    folder = RuntimeFolder.left(data)
    if folder is not None:
        await end_found(await find_left(folder, env), env, clients_s=clients_s)
        folder.leave()
