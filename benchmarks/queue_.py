"""Queues at speed: messages/s in, out and through, the server's processor time, latency, memory, start after a kill.

    ./run bench queue [--messages N] [--rounds N] [--waiting N] [--only rates|latency|waiting] [--outcome WHICH]

Messages have 200 B, are received under peek-lock, and each is settled by a disposition of its own that the service
answers: completed, or as --outcome says (what is abandoned comes again until its deliveries are used up). Rows: batches
of 100 with many on their way, and one message a send with many on their way; durable (synced before the answer) and
express (written). The server runs alone on the first core where there are two. One round sends N messages, receives and
settles N, then does both at once. Latency is an open loop (see lone.py): from when a message was due until it was
received. Memory and start: N messages that wait, one process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from struct import Struct

from rich.console import Console
from rich.table import Table

from hubweir import kernels
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.amqp.messaging.outcome import Accepted, Modified, Outcome, Rejected
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import Answered, DeliveriesReceived, LinkAttached
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.values import Symbol
from hubweir.auth.shared_access_signature import make_token
from hubweir.client.connection import Connection
from hubweir.client.event_batch import data_section
from hubweir.client.link_user import LinkUser
from hubweir.client.sender import Sender
from hubweir.kernels.contract import D_DELIVERY_ID, DELIVERY_WIDTH
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import LOOPS
from hubweir.testing.server_process import ServerProcess
from lone import PATIENCE_S, Round, measure
from lone import Figures as LatencyFigures
from spine import pid_of, pin, processor_seconds, shown

BODY_BYTES = 200
BATCH_MESSAGES = 100
BATCHES_IN_FLIGHT, SINGLES_IN_FLIGHT = 32, 900
CREDIT = 4_000
ROUND_LIMIT_S = 120
LATENCY_RATE, LATENCY_S = 2_000, 4
# RabbitMQ 4.0.5, a quorum queue over AMQP 1.0, settled one by one, synced, 200 B, the broker on one core of a machine
# of two virtual cores at 2.5 GHz (AMD EPYC): the median of several runs.
QUORUM_QUEUE_PER_S = 16_400
MESSAGE = data_section(bytes(BODY_BYTES))

# The head of a frame with a disposition of one delivery: role receiver, first, last, not settled; the state follows.
_DISPOSITION = Struct(">IBBH3s 3B B BI BI B")
_INFO = {Symbol("DeadLetterReason"): "bench", Symbol("DeadLetterErrorDescription"): "settled by a benchmark"}
_DEAD_LETTER = AmqpError(condition=Symbol("com.microsoft:dead-letter"), description="bench", info=_INFO)
OUTCOMES: dict[str, Outcome] = {
    "complete": Accepted(),
    "abandon": Modified(delivery_failed=True),
    "defer": Modified(delivery_failed=True, undeliverable_here=True),
    "dead-letter": Rejected(error=_DEAD_LETTER),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    is_express: bool
    batch: int

    @property
    def queue(self) -> str:
        return f"bench-{'express' if self.is_express else 'durable'}-{self.batch}"

    @property
    def mode(self) -> str:
        return "express" if self.is_express else "durable"


@dataclass(slots=True)
class Figures:
    """Rates in messages/s, server processor time in microseconds a message, a value a round."""

    rate_in: list[float] = field(default_factory=list)
    rate_out: list[float] = field(default_factory=list)
    rate_both: list[float] = field(default_factory=list)
    cpu_in: list[float] = field(default_factory=list)
    cpu_out: list[float] = field(default_factory=list)
    cpu_both: list[float] = field(default_factory=list)


CASES = [Case(express, batch) for batch in (BATCH_MESSAGES, 1) for express in (False, True)]


class Settler(LinkUser):
    """A receiver that settles each message by a disposition of its own, in the turn in which it comes.

    It writes these frames itself: an engine's bookkeeping for each would be the generator's cost, not the server's.
    """

    def __init__(
        self,
        connection: Connection,
        queue: str,
        came: Callable[[int], None] | None = None,
        *,
        outcome: Outcome = OUTCOMES["complete"],
    ) -> None:
        super().__init__(queue)
        self._answer, self._state = type(outcome), encode_composite(outcome)
        self._connection = connection
        self._came = came
        self.wanted = 0
        self.settled = asyncio.Event()
        name = connection.name_link("settler")
        self._link: ReceiverLink = connection.session.attach_receiver(
            name, source=Source(address=queue), target=Target(address=name), snd_settle_mode=0, rcv_settle_mode=1
        )
        connection.register(self._link, self)

    def on_attached(self, event: LinkAttached) -> None:
        super().on_attached(event)
        self._link.grant(CREDIT)

    async def settle(self, count: int) -> None:
        """Wait until so many more messages were received, settled, and answered as settled."""
        self.wanted += count
        self.settled.clear()
        if self.wanted > 0:
            await self.settled.wait()

    def close(self) -> None:
        self._connection.detach(self._link)

    def on_deliveries(self, event: DeliveriesReceived) -> None:
        if self._came is not None:
            self._came(event.count)
        channel, state = self._link.session.channel, self._state
        size = _DISPOSITION.size + len(state)
        fields = size - 8 - 5  # behind the header, the descriptor, the constructor of the list and its size
        self._link.session.connection.out += b"".join(
            [
                _DISPOSITION.pack(
                    size, 2, 0, channel, b"\x00\x53\x15", 0xC0, fields, 5, 0x41, 0x70, delivery_id,
                    0x70, delivery_id, 0x42,
                )
                + state
                for delivery_id in event.rows[D_DELIVERY_ID::DELIVERY_WIDTH]
            ]
        )  # fmt: skip
        self._top_up()

    def on_answered(self, event: Answered) -> None:
        assert type(event.outcome) is self._answer, event.outcome
        self.wanted -= event.last_id - event.first_id + 1
        if self.wanted <= 0:
            self.settled.set()
        self._top_up()

    def _top_up(self) -> None:
        # Both ends take 5,000 unsettled deliveries a link.
        room = min(CREDIT, 5_000 - self._link.unsettled_count)
        if self._link.credit * 2 <= room:
            self._link.grant(room)
        self._connection.wake()


class Load:
    """The generator: one connection that sends, one that receives."""

    def __init__(
        self, server: ServerProcess, case: Case, messages: int, *, outcome: Outcome = OUTCOMES["complete"]
    ) -> None:
        self._server = server
        self._target = ConnectionString.parse(server.connection_string())
        self._pid = pid_of(server)
        self._case = case
        self._outcome = outcome
        self._in_flight = BATCHES_IN_FLIGHT if case.batch > 1 else SINGLES_IN_FLIGHT
        self._sends = -(-messages // case.batch)
        self._sent = self._sends * case.batch
        self._payload = data_section(MESSAGE) * case.batch if case.batch > 1 else MESSAGE
        self._format = BATCH_FORMAT if case.batch > 1 else 0

    async def rounds(self, count: int) -> Figures:
        """Create the queue, then measure."""
        create_queue(self._target, self._case.queue, is_express=self._case.is_express)
        figures = Figures()
        publisher, reader = await Connection.open(self._target), await Connection.open(self._target)
        try:
            sender = await Sender.open(publisher, self._case.queue)
            for _ in range(count):
                await self._round(figures, sender, reader)
        finally:
            await publisher.close()
            await reader.close()
        return figures

    async def _round(self, figures: Figures, sender: Sender, reader: Connection) -> None:
        await self._measure(figures.rate_in, figures.cpu_in, lambda: self.send(sender))
        await reader.authorization.authorize(self._case.queue)
        settler = Settler(reader, self._case.queue, outcome=self._outcome)
        await self._measure(figures.rate_out, figures.cpu_out, lambda: settler.settle(self._sent))
        await self._measure(figures.rate_both, figures.cpu_both, lambda: self._both(sender, settler))
        settler.close()

    async def send(self, sender: Sender) -> None:
        under_way: deque[asyncio.Future[None]] = deque()
        for _ in range(self._sends):
            if len(under_way) == self._in_flight:
                await under_way.popleft()
            under_way.append(sender.submit_payload(self._payload, message_format=self._format))
        for outcome in under_way:
            await outcome

    async def _both(self, sender: Sender, settler: Settler) -> None:
        await asyncio.gather(self.send(sender), settler.settle(self._sent))

    async def _measure(self, rates: list[float], cpu: list[float], job: Callable[[], Awaitable[None]]) -> None:
        cpu_before, begun = processor_seconds(self._pid), time.perf_counter()
        await asyncio.wait_for(job(), ROUND_LIMIT_S)
        rates.append(self._sent / (time.perf_counter() - begun))
        cpu.append((processor_seconds(self._pid) - cpu_before) / self._sent * 1e6)


async def latency(target: ConnectionString, pid: int, figures: LatencyFigures, *, is_express: bool) -> None:
    """One round of single messages at LATENCY_RATE, each settled when it comes."""
    queue, count = f"latency-{'express' if is_express else 'durable'}", LATENCY_RATE * LATENCY_S
    if not figures.cpu_us:
        create_queue(target, queue, is_express=is_express)
    publisher, reader = await Connection.open(target), await Connection.open(target)
    try:
        sender = await Sender.open(publisher, queue)
        await reader.authorization.authorize(queue)
        round_, outcomes = Round(LATENCY_RATE, count), list[asyncio.Future[None]]()
        settler = Settler(reader, queue, round_.came)
        await settler.wait_attached(PATIENCE_S)
        await measure(
            pid, figures, round_, lambda: outcomes.append(sender.submit_payload(MESSAGE, message_format=0)),
            settler.settle(count),
        )  # fmt: skip
        await asyncio.gather(*outcomes)
        await asyncio.wait_for(settler.settle(0), PATIENCE_S)
    finally:
        await publisher.close()
        await reader.close()


@dataclass(frozen=True, slots=True)
class Waiting:
    """What messages cost while they wait, and a start after a kill with them there."""

    messages: int
    bytes_a_message: float
    bytes_after_start: float
    start_s: float
    empty_start_s: float
    first_message_s: float


async def waiting(folder: Path, count: int) -> Waiting:
    """Fill a queue in a process of its own, kill it, and start it again."""
    case = Case(is_express=False, batch=BATCH_MESSAGES)
    with ServerProcess(data=folder) as server:
        target = ConnectionString.parse(server.connection_string())
        create_queue(target, case.queue, is_express=False)
        load = Load(server, case, 10_000)
        await filled(target, case, load)  # what is allocated once is there now
        empty = resident_bytes(pid_of(server))
        load = Load(server, case, count)
        await filled(target, case, load)
        await asyncio.sleep(2)
        full = resident_bytes(pid_of(server))
        server.kill9()
        start_s = server.start(seconds=300)
        after = resident_bytes(pid_of(server))
        begun = time.perf_counter()
        reader = await Connection.open(ConnectionString.parse(server.connection_string()))
        await reader.authorization.authorize(case.queue)
        settler = Settler(reader, case.queue)
        await asyncio.wait_for(settler.settle(1), 60)
        first_message_s = time.perf_counter() - begun
        await reader.close()
    with tempfile.TemporaryDirectory(prefix="hubweir-bench-") as other, ServerProcess(data=Path(other)) as server:
        create_queue(ConnectionString.parse(server.connection_string()), case.queue, is_express=False)
        fresh = resident_bytes(pid_of(server))
        server.kill9()
        empty_start_s = server.start()
    return Waiting(count, (full - empty) / count, (after - fresh) / count, start_s, empty_start_s, first_message_s)


async def filled(target: ConnectionString, case: Case, load: Load) -> None:
    connection = await Connection.open(target)
    await load.send(await Sender.open(connection, case.queue))
    await connection.close()


def create_queue(target: ConnectionString, name: str, *, is_express: bool) -> None:
    """Make a queue as the official administration clients do."""
    assert target.key_name is not None and target.key is not None
    uri = f"http://{target.host}/{name}"
    inside = "<MaxSizeInMegabytes>5120</MaxSizeInMegabytes>"
    if is_express:
        inside += "<EnableExpress>true</EnableExpress>"
    body = (
        '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription xmlns='
        f'"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">{inside}</QueueDescription></content>'
        "</entry>"
    )
    token = make_token(uri, target.key_name, target.key, int(time.time()) + 3_600)
    http = HTTPConnection(target.host, target.tcp_port, timeout=30)
    http.request("PUT", f"/{name}?api-version=2021-05", body, {"Authorization": token})
    answer = http.getresponse()
    said = answer.read()
    http.close()
    assert answer.status == 201, (answer.status, said)


def resident_bytes(pid: int) -> int:
    """What a process has in memory now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rate_table(
    server: ServerProcess, messages: int, rounds: int, outcome: Outcome, runner: asyncio.Runner, console: Console
) -> Table:
    table = Table("a send", "mode", "in, messages/s", "out, messages/s", "in + out, messages/s")
    for heading in ("CPU in, us", "CPU out, us", "CPU in + out, us", "in + out, of a quorum queue"):
        table.add_column(heading)
    for case in CASES:
        console.print(f"{case.queue} …")
        count = messages if case.batch > 1 else messages // 4
        figures = runner.run(Load(server, case, count, outcome=outcome).rounds(rounds))
        table.add_row(
            f"{case.batch} message{'s' if case.batch > 1 else ''}",
            case.mode,
            shown(figures.rate_in, ",.0f"),
            shown(figures.rate_out, ",.0f"),
            shown(figures.rate_both, ",.0f"),
            shown(figures.cpu_in, ".2f"),
            shown(figures.cpu_out, ".2f"),
            shown(figures.cpu_both, ".2f"),
            f"{median(figures.rate_both) / QUORUM_QUEUE_PER_S:.1f}",
        )
    return table


def latency_table(server: ServerProcess, rounds: int, runner: asyncio.Runner) -> Table:
    table = Table("mode", "CPU of the service, us", "p50, ms", "p99, ms", "longest, ms")
    target, found = ConnectionString.parse(server.connection_string()), (LatencyFigures(), LatencyFigures())
    for _ in range(rounds):
        for is_express, figures in enumerate(found):
            runner.run(latency(target, pid_of(server), figures, is_express=bool(is_express)))
    for mode, figures in zip(("durable", "express"), found, strict=True):
        table.add_row(
            mode, shown(figures.cpu_us, ".0f"), shown(figures.p50_ms, ".3f"), shown(figures.p99_ms, ".2f"),
            shown(figures.longest_ms, ".1f"),
        )  # fmt: skip
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench queue", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--messages", type=int, default=200_000, help="messages a round (default 200000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds a row (default 3)")
    parser.add_argument("--waiting", type=int, default=1_000_000, help="messages that wait (default 1000000)")
    parser.add_argument("--only", choices=("rates", "latency", "waiting"), help="one part alone")
    parser.add_argument("--outcome", choices=OUTCOMES, default="complete", help="of what is received for the rates")
    chosen = parser.parse_args()
    outcome = OUTCOMES[chosen.outcome]
    console = Console(width=None if sys.stdout.isatty() else 220)
    wanted = (chosen.only,) if chosen.only else ("rates", "latency", "waiting")
    loop = LOOPS[max(LOOPS)]  # uvloop where it is installed, as the service chooses
    with tempfile.TemporaryDirectory(prefix="hubweir-bench-") as folder, asyncio.Runner(loop_factory=loop) as runner:
        with ServerProcess(data=Path(folder) / "rates") as server:
            placed = pin(pid_of(server))
            if "rates" in wanted:
                console.print(rate_table(server, chosen.messages, chosen.rounds, outcome, runner, console))
                console.print(
                    f"{BODY_BYTES} B; {chosen.rounds} rounds of {chosen.messages:,} messages, or a quarter; "
                    f"median (range). A quorum queue: RabbitMQ 4.0.5 over AMQP 1.0, {QUORUM_QUEUE_PER_S:,}/s, measured "
                    "apart, on two virtual cores at 2.5 GHz (AMD EPYC), the broker on one"
                )
            if "latency" in wanted:
                console.print(latency_table(server, chosen.rounds, runner))
                console.print(f"{LATENCY_RATE:,} single messages a second, open loop; send to receive, from when due")
        if "waiting" in wanted:
            found = runner.run(waiting(Path(folder) / "waiting", chosen.waiting))
            console.print(
                f"{found.messages:,} messages of {BODY_BYTES} B that wait: {found.bytes_a_message:.0f} B each in "
                f"memory, {found.bytes_after_start:.0f} B after a start; start after a kill {found.start_s:.2f} s "
                f"(without messages {found.empty_start_s:.2f} s), the first message {found.first_message_s:.2f} s later"
            )
    console.print(f"kernels: {kernels.which()}; {placed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
