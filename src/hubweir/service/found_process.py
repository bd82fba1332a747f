"""Broker processes that a supervisor which died has left: asked who they are, kept or ended by the next one."""

from __future__ import annotations

import asyncio
import logging
import signal
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
from hubweir.service.runtime_folder import RuntimeFolder

logger = logging.getLogger(__name__)

ANSWER_S = 3.0  # a process that lives answers within milliseconds
END_S = 20.0


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
    """All that an earlier supervisor left."""
    left = []
    for index in folder.processes():
        path = folder.process(index)
        life = who_listens(path)
        if life is not None:
            state = await ask_process(path, env)
            told = None if state is None else await ask_once(path, AskOrders(), env, within_s=ANSWER_S)
            orders = told.orders if isinstance(told, OrdersTold) else StandingOrders()
            left.append(Left(index, life, state, orders))
    return left


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


async def end_found(index: int, life: WatchedProcess, *, answers: bool) -> None:
    """End one that is not of use, and wait until it is gone: its stores are free then."""
    logger.warning("broker process %d of an earlier supervisor is ended (pid %d)", index, life.pid)
    if answers:
        life.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(END_S):
                await life.ended()
        except TimeoutError:
            logger.error("it did not end within %.0f s: it is killed", END_S)
    await life.kill()


async def end_left(data: str, env: Env) -> None:
    """End all broker processes that serve on for a supervisor of a data folder that is gone: a start without any. The
    folder of their sockets goes, too.
    """
    folder = RuntimeFolder.left(data)
    if folder is None:
        return
    for index in folder.processes():
        path = folder.process(index)
        life = who_listens(path)
        if life is not None:
            await end_found(index, life, answers=await ask_process(path, env) is not None)
    folder.leave()
