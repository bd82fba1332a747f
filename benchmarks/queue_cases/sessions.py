"""The rate of a queue whose messages are in many sessions, all held at once, against one whose are in one session.

The same batches go in but for the session ids; every session has a link of its own with a little credit. Messages come
in the worst order, where each is of another session than the one before, and twenty of a session one after the other.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from itertools import cycle, islice

from rich.console import Console
from rich.table import Table

from goals.figure import Figure, ratios
from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import DataBody, Message, Properties, encode_message
from hubweir.client.connection import Connection
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from queue_cases.queues import BATCH_MESSAGES, BATCHES_IN_FLIGHT, BODY_BYTES, ROUND_LIMIT_S, create_queue, send_all
from queue_cases.settler import CREDIT, Answers, Settler
from spine import pid_of, processor_seconds, shown

LINKS_A_CONNECTION = 250
IN_A_ROW = 20
GOAL, MOONSHOT = 0.5, 0.9
# One lock has to last for a round of all sections: the longest there is.
LOCK_DURATION = "PT5M"
ATTACH_LIMIT_S = 120


@dataclass(slots=True)
class Route:
    """A queue and its sessions; a value a round."""

    queue: str
    sessions: int
    in_a_row: int  # messages of one session that follow each other
    rate: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    hold_us: list[float] = field(default_factory=list)  # processor time of the server to hold one session

    def batches(self, count: int) -> list[bytes]:
        """So many payloads, sessions in turn."""
        body = DataBody((bytes(BODY_BYTES),))
        ids = (f"s{number}" for number in cycle(range(self.sessions)) for _ in range(self.in_a_row))
        return [
            pack_batch(
                [
                    encode_message(Message(properties=Properties(group_id=session_id), body=body))
                    for session_id in islice(ids, BATCH_MESSAGES)
                ]
            )
            for _ in range(count)
        ]


async def _round(target: ConnectionString, pid: int, route: Route, batches: list[bytes]) -> None:
    """Hold all sessions, then send and settle all messages at once."""
    answers, connections = Answers(), list[Connection]()
    publisher = await Connection.open(target)
    try:
        sender = await Sender.open(publisher, route.queue)
        cpu_before = processor_seconds(pid)
        credit = CREDIT if route.sessions == 1 else max(10, CREDIT // route.sessions)
        for first in range(0, route.sessions, LINKS_A_CONNECTION):
            connection = await Connection.open(target)
            connections.append(connection)
            await connection.authorization.authorize(route.queue)
            last = min(first + LINKS_A_CONNECTION, route.sessions)
            held = [
                Settler(connection, route.queue, session=f"s{number}", credit=credit, answers=answers)
                for number in range(first, last)
            ]
            await asyncio.gather(*(each.wait_attached(ATTACH_LIMIT_S) for each in held))
        route.hold_us.append((processor_seconds(pid) - cpu_before) / route.sessions * 1e6)
        count = len(batches) * BATCH_MESSAGES
        cpu_before, begun = processor_seconds(pid), time.perf_counter()
        sending = send_all(sender, batches, message_format=BATCH_FORMAT, in_flight=BATCHES_IN_FLIGHT)
        await asyncio.wait_for(asyncio.gather(sending, answers.wait(count)), ROUND_LIMIT_S)
        route.rate.append(count / (time.perf_counter() - begun))
        route.cpu_us.append((processor_seconds(pid) - cpu_before) / count * 1e6)
    finally:
        for connection in (publisher, *connections):
            await connection.close()


def measure_sessions(
    server: ServerProcess, messages: int, sessions: int, rounds: int, runner: asyncio.Runner, console: Console
) -> list[Figure]:
    """Print the table; the figures of many sessions against one."""
    target, pid = ConnectionString.parse(server.connection_string()), pid_of(server)
    one = Route("one-session", 1, 1)
    rows = [Route("sessions-in-rows", sessions, IN_A_ROW), Route("sessions-in-turn", sessions, 1)]
    count = -(-messages // BATCH_MESSAGES)
    payloads = {}
    for route in (one, *rows):
        create_queue(target, route.queue, RequiresSession="true", LockDuration=LOCK_DURATION)
        payloads[route.queue] = route.batches(count)
    for number in range(rounds):
        console.print(f"sessions, round {number + 1} …")
        for route in (one, *rows):
            runner.run(_round(target, pid, route, payloads[route.queue]))
    table = Table("sessions held", "in a row", "in + out, messages/s", "CPU of the service, us", "CPU to hold one, us")
    figures = []
    for route in (one, *rows):
        cells = (shown(route.rate, ",.0f"), shown(route.cpu_us, ".2f"), shown(route.hold_us, ".0f"))
        table.add_row(f"{route.sessions:,}", "all" if route is one else f"{route.in_a_row}", *cells)
        if route is not one:
            name = f"{sessions:,} sessions, {route.in_a_row} in a row, against one"
            figures.append(Figure(f"{name}: rate", ratios(route.rate, one.rate), "x", GOAL, MOONSHOT))
            figures.append(Figure(f"{name}: by processor time", ratios(one.cpu_us, route.cpu_us), "x"))
    console.print(table)
    return figures
