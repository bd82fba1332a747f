"""A service of several broker processes that a test breaks while a load writes a hub over all of them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.testing.broker_processes import broker_pids
from hubweir.testing.server_process import ServerProcess
from tests.crash.spread_load import SpreadLoad

BROKERS = 3
PARTITIONS = 6
# A machine that runs other tests at the same time starts a process slowly; the goal is 3 s on an idle one.
BACK_S = 90.0
LINUX_ALONE = pytest.mark.skipif(sys.platform != "linux", reason="several broker processes are served on Linux alone")


@contextmanager
def several_processes(data: Path, brokers: int = BROKERS) -> Iterator[ServerProcess]:
    """The service, on a data folder; none of its processes is left at the end."""
    with ServerProcess(data, arguments=["--brokers", str(brokers)]) as made:
        yield made


def typed(server: ServerProcess, *words: str) -> str:
    """What `hubweir broker` prints with these words."""
    arguments = ["broker", *words, "--connection-string", server.connection_string()]
    result = CliRunner().invoke(hubweir, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def loaded(server: ServerProcess, seed: int) -> SpreadLoad:
    load = SpreadLoad(server.connection_string(), PARTITIONS, seed)
    asyncio.run(load.create_hub("durable"))
    return load


def kept(load: SpreadLoad, server: ServerProcess) -> None:
    """All that was accepted is there, once, as it was, and writing goes on everywhere."""
    wrong = asyncio.run(load.read_new()) or asyncio.run(load.read_all_again())
    assert not wrong, f"{wrong[:5]}\n{server.output}"


def health(server: ServerProcess) -> str:
    """What `hubweir health` prints, whichever process answers."""
    return CliRunner().invoke(hubweir, ["health", "--host", server.host, "--port", str(server.port)]).output


def is_another(data: Path, index: int, pid: int) -> bool:
    """Whether a broker process of this index listens that is not this one."""
    return broker_pids(data).get(index, pid) != pid


def until(holds: Callable[[], bool], seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "it did not come to be"
        time.sleep(0.02)
