"""A messaging store that is away for a while, whatever serves it: a broker in this process, or a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hubweir.broker.commands.broker_process import BrokerFault
from hubweir.service.completions import done
from hubweir.service.supervisor import Supervisor
from hubweir.testing.running_namespace import RunningNamespace

WAIT_S = 30.0
STORE = 1  # of three stores, process 1 of two or three has this one alone


@contextmanager
def lost_store(namespace: RunningNamespace) -> Iterator[None]:
    """The store with the index STORE is away inside. Connections of a process that had it are gone."""
    parts = namespace.parts
    if isinstance(parts, Supervisor):
        process = parts.processes[STORE]

        def order(fault: BrokerFault) -> None:
            namespace.run(_soon(lambda: process.order(fault)))

        order(BrokerFault.STOP)
        until(lambda: process.told().state == "stopped")
        yield
        order(BrokerFault.START)
        until(lambda: process.is_serving)
    else:
        store = namespace.service.stores[STORE]
        namespace.run(done(store.take_away))
        yield
        namespace.run(_soon(store.bring_back))
        until(lambda: store.is_up)


async def _soon(call: Callable[[], object]) -> None:
    """Have it called on the loop of the service."""
    call()


def until(holds: Callable[[], bool]) -> None:
    """Wait until it is so, for WAIT_S at most."""
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
