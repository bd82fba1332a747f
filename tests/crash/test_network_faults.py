"""Clients and a service of three broker processes, with a bad network between: nothing is lost, and all go on (T14).

Both are in network namespaces of their own, joined by a cable that does what we say (cable.py). While events and
messages go both ways, the network is cut, or cut one way, loses packets, delays and reorders them, resets connections,
becomes slow, goes down; then it heals. Checkers hold all that was accepted against all that is there; hubweir's own
clients and the official ones go on, and end. Between broker processes there is no network: they talk over Unix sockets,
so that none of this can make two owners of a store.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubweir.testing.history_values import Violation
from hubweir.testing.log_history import PartitionHistory
from hubweir.testing.server_process import ServerProcess
from tests.crash.cable import Cable, entered, why_not
from tests.crash.official_load import OfficialClients
from tests.crash.packet_faults import CUT, NONE, Faults
from tests.crash.spread_load import SpreadLoad
from tests.crash.spread_messages import SpreadMessages, now_ms
from tests.workers.notices import notice

RUNS = 11
TRIES = 3  # of the control arm
BROKERS, PARTITIONS = 3, 6
PORT = 5672
BEFORE_S, ACTS_S = 1.0, 4.0

LOSS = Faults(loss=0.05)
LATE = Faults(delay_ms=40.0)
REORDERED = Faults(delay_ms=5.0, jitter_ms=30.0, doubled=0.02)
SLOW = Faults(rate_bytes_s=60_000)
RESET = Faults(resets=True, tells_sender=True)
# The server knows no connection any more, and its clients learn of it when they have something to send.
HALF_OPEN = "reset at the server alone"
# What packets to the server meet, and those back, one stage after the other; None: the client's link goes down.
WAYS: dict[str, tuple[tuple[Faults, Faults] | None, ...]] = {
    "cut": ((CUT, CUT),),
    "cut to the server": ((CUT, NONE),),
    "cut to the clients": ((NONE, CUT),),
    "5 % lost": ((LOSS, LOSS),),
    "delayed": ((LATE, LATE),),
    "reordered and doubled": ((REORDERED, REORDERED),),
    "reset": ((RESET, RESET),),
    HALF_OPEN: ((Faults(resets=True), NONE),),
    "cut, then reset": ((CUT, CUT), (RESET, RESET)),
    "slow": ((SLOW, SLOW),),
    "link down": (None,),
}
MET = {"5 % lost": "lost", "delayed": "late", "reordered and doubled": "overtaken", "reset": "reset", "slow": "late"}

pytestmark = [
    pytest.mark.crash,
    # Azure's clients leave sockets open whose connections were lost.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(1800),
]


@pytest.fixture
def cable(request: pytest.FixtureRequest, first_seed: int) -> Iterator[Cable]:
    reason = why_not()
    if reason is not None:
        notice(request.config, "network faults NOT TESTED", reason)
        pytest.skip(f"network faults NOT TESTED: {reason}")
    with Cable(first_seed) as joined:
        yield joined


@contextmanager
def served(cable: Cable, data: Path, *arguments: str, planted: str = "") -> Iterator[ServerProcess]:
    """planted: a defect of rash_brokers.py."""
    how: dict[str, Any] = {"program": (str(Path(__file__).with_name("rash_brokers.py")),)} if planted else {}
    server = ServerProcess(
        data, host=cable.host, ports=[PORT], arguments=["--allow-development-key", "--plain-without-tls", *arguments],
        environment={"PLANTED": planted}, **how,
    )  # fmt: skip
    try:
        with entered(cable.server):
            server.start()
        yield server
    finally:
        server.kill9()


async def live(
    cable: Cable, load: SpreadLoad, messages: SpreadMessages, official: OfficialClients | None, ways: list[str]
) -> dict[str, float]:
    """All clients through these faults; how many seconds behind the end of each of them all had gone on."""
    await load.create_hub("durable")
    messages.start()
    await messages.all_went_on()
    went_on: dict[str, float] = {}
    for way in ways:
        before = cable.be()["there"]
        acting = asyncio.ensure_future(act(cable, messages, way))
        await load.write_on(BEFORE_S, lambda: None, ACTS_S + 1.0)
        await acting
        began = time.monotonic()
        await messages.all_went_on()
        if official is not None:
            await asyncio.to_thread(official.all_went_on)
        went_on[way] = round(time.monotonic() - began, 2)
        met = MET.get(way, "passed")
        assert cable.be()["there"][met] > before[met], f"no packet was {met}"
    await messages.stop()
    await messages.check()
    if official is not None:
        await asyncio.to_thread(official.stop)
    wrong = await load.read_new() or await load.read_all_again()
    assert not wrong, wrong[:5]
    return went_on


async def act(cable: Cable, messages: SpreadMessages, way: str) -> None:
    """Do this to the network in a moment, for a while, and heal it."""
    await asyncio.sleep(BEFORE_S)
    for stage in WAYS[way]:
        messages.fault()
        if stage is None:
            cable.pull(out=True)
        else:
            cable.be(there=stage[0], back=stage[1])
        await asyncio.sleep(ACTS_S / len(WAYS[way]))
    if None in WAYS[way]:
        cable.pull(out=False)
    cable.be()
    messages.fault()


def test_nothing_accepted_is_lost_and_all_go_on_over_a_bad_network(
    tmp_path: Path, cable: Cable, first_seed: int, measure: Callable[[int], int]
) -> None:
    ways = random.Random(first_seed).sample(list(WAYS), RUNS)[-measure(RUNS) :]
    if len(ways) == 1 and ways == [HALF_OPEN]:
        ways = ["reset"]  # clients who wait for an answer learn of the other one after a minute
    with served(cable, tmp_path / "data", "--brokers", str(BROKERS)) as server, entered(cable.client):
        load = SpreadLoad(server.connection_string(), PARTITIONS, first_seed)
        messages = SpreadMessages(server.connection_string(), first_seed)
        messages.create()
        official = OfficialClients(server.connection_string())
        official.create()
        try:
            with official:
                went_on = asyncio.run(live(cable, load, messages, official, ways))
        except BaseException as error:
            error.add_note(f"seed {first_seed}, {ways}\n{server.output[-2_000:]}")
            raise
        accepted = sum(len(history.accepted) for history in load.histories)
    print(f"\nseed {first_seed}: all went on, s behind the end of each fault: {went_on}")
    print(f"{accepted} batches accepted, {load.unknown} unknown; {messages.counts}; {official.counts}")
    assert not messages.late
    # A run that tested nothing must not be green.
    assert accepted >= len(ways) and messages.counts["settled"] >= len(ways)


# The control arms. Clients who take for accepted what they sent: a network that did no harm would not show it.


class HastyLoad(SpreadLoad):
    def _note(self, history: PartitionHistory, number: int, count: int, done: asyncio.Future[None]) -> None:
        super()._note(history, number, count, done)
        history.accepted[number] = count


class HastyMessages(SpreadMessages):
    def _ended_unknown(self, path: str, group: int) -> None:
        super()._ended_unknown(path, group)
        self.histories[path].accepted(group, now_ms())


@pytest.mark.parametrize("hasty", [pytest.param("events", marks=pytest.mark.slow), "messages"])
def test_a_client_that_takes_what_it_sent_for_accepted_is_found(
    tmp_path: Path, cable: Cable, first_seed: int, hasty: str
) -> None:
    """On a machine that is busy now and then nothing is under way when the network is cut: it is cut again then."""
    assert any(is_found(tmp_path / f"data-{number}", cable, first_seed + number, hasty) for number in range(TRIES))


def is_found(data: Path, cable: Cable, seed: int, hasty: str) -> bool:
    with served(cable, data, "--brokers", "2") as server, entered(cable.client):
        text = server.connection_string()
        load = (HastyLoad if hasty == "events" else SpreadLoad)(text, PARTITIONS, seed)
        messages = (HastyMessages if hasty == "messages" else SpreadMessages)(text, seed)
        messages.create()
        try:
            asyncio.run(live(cable, load, messages, None, ["cut, then reset"]))
        except (Violation, AssertionError) as found:
            assert re.search("lost|comes before", str(found)), found
            return True
    return False


# And a server that takes for settled what it sent: it needs a connection that is lost before the client has it.


@pytest.mark.slow
def test_a_server_that_takes_what_it_sent_for_settled_is_found(tmp_path: Path, cable: Cable, first_seed: int) -> None:
    with (
        served(cable, tmp_path / "data", "--brokers", "2", planted="settled") as server,
        entered(cable.client),
        pytest.raises((Violation, AssertionError), match="lost|LOST|gone|comes before"),
    ):
        load = SpreadLoad(server.connection_string(), PARTITIONS, first_seed)
        messages = SpreadMessages(server.connection_string(), first_seed)
        messages.create()
        asyncio.run(live(cable, load, messages, None, ["cut, then reset", "reset", "cut, then reset"]))
