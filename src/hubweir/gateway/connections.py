"""Lists who is connected to a namespace, over all processes of the service, a part of a long list at a time.

The list is that of the first process, the oldest connection first, then that of the second, and so on: as long as
nobody comes or goes, whichever process is asked shows the same. Nothing of it is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubweir.broker.commands.broker_process import AskConnections, ConnectionsTold, ConnectionTold
from hubweir.gateway.gateway import SharedProcess


@dataclass(frozen=True, slots=True)
class ListedConnection:
    """process: the index of the one that it leads to."""

    process: int
    connection: ConnectionTold


def own_connections(process: SharedProcess, asked: AskConnections) -> ConnectionsTold:
    """This process's answer; of a namespace that it does not serve there are none."""
    for gateway in process.gateways:
        if gateway.settings.namespace == asked.namespace:
            return ConnectionsTold(gateway.told_connections(asked.skipped, asked.count), gateway.own_connection_count)
    return ConnectionsTold((), 0)


async def count_connections(process: SharedProcess, namespace: str) -> Mapping[int, int | None]:
    """How many each process has, by its index; None: it does not answer in time."""
    indexes = range(process.processes)
    answers = await asyncio.gather(*(_ask(process, index, AskConnections(namespace, 0, 0)) for index in indexes))
    return {index: None if told is None else told.total for index, told in zip(indexes, answers, strict=True)}


async def list_connections(
    process: SharedProcess, namespace: str, counts: Mapping[int, int | None], skipped: int, count: int
) -> Sequence[ListedConnection]:
    """`count` of them behind the first `skipped`. counts: as count_connections told them just now."""
    wanted: list[tuple[int, AskConnections]] = []
    for index, total in counts.items():
        some = min(count, max(0, (total or 0) - skipped))
        if some:
            wanted.append((index, AskConnections(namespace, skipped, some)))
        skipped, count = max(0, skipped - (total or 0)), count - some
    answers = await asyncio.gather(*(_ask(process, index, asked) for index, asked in wanted))
    return [
        ListedConnection(index, each)
        for (index, _), told in zip(wanted, answers, strict=True)
        for each in (() if told is None else told.connections)
    ]


async def _ask(process: SharedProcess, index: int, asked: AskConnections) -> ConnectionsTold | None:
    if index == process.index:
        return own_connections(process, asked)
    told = await process.ask_other(index, asked)
    return told if isinstance(told, ConnectionsTold) else None
