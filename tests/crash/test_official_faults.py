"""Official clients in Python and JavaScript live through what kills and stops broker processes (T26, in T7's world).

None hangs, every retry ends, all go on with the client that they have, and all that was said to be sent is received.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conformance.foreign.toolchain import NotRun
from tests.crash.official_load import OfficialClients, create_hub, create_queue
from tests.crash.official_program import EVENTS, MESSAGES, OfficialProgram
from tests.crash.test_broker_faults import Faults, served
from tests.workers.notices import notice

FAULTS, BROKERS = 20, 3

pytestmark = [
    pytest.mark.crash,
    # Azure's clients leave sockets open whose connections were lost.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(1800),
    pytest.mark.skipif(sys.platform != "linux", reason="several broker processes are served on Linux alone"),
]


def test_official_clients_live_through_faults_of_processes(
    tmp_path: Path, request: pytest.FixtureRequest, measure: Callable[[int], int], first_seed: int
) -> None:
    """With --all the JavaScript clients wait a minute for an answer that was lost, as they do by default, else 10 s."""
    timeout_s = 60 if measure(FAULTS) == FAULTS else 10
    seed, data, chance = first_seed, tmp_path / "data", random.Random(first_seed)
    with served(data, BROKERS) as server, ExitStack() as stack:
        python = OfficialClients(server.connection_string())
        python.create()
        clients: list[OfficialClients | OfficialProgram] = [stack.enter_context(python)]
        for program, create, entity in ((EVENTS, create_hub, "hub-js"), (MESSAGES, create_queue, "queue-js")):
            create(server.connection_string(), entity)
            try:
                javascript = OfficialProgram(program, server.connection_string(), entity, timeout_s=timeout_s)
                clients.append(stack.enter_context(javascript))
            except NotRun as error:
                notice(request.config, "official clients through faults NOT TESTED", f"{program.name}: {error}")
        faults = Faults(server, data, chance, lambda store: None)
        try:
            for client in clients:
                client.all_went_on()
            for _ in range(measure(FAULTS)):
                way, do = faults.draw()
                do()
                time.sleep(chance.uniform(0.5, 2.0))
                faults.mend(way)
                for client in clients:
                    client.all_went_on()
            for client in clients:
                client.stop()
        except BaseException as error:
            error.add_note(f"seed {seed}, {faults.told}\n{server.output[-2_000:]}")
            raise
        assert server.stop() == 0
    print(f"\nseed {seed}: {[way for way, _, _ in faults.told]}; {[client.counts for client in clients]}")
