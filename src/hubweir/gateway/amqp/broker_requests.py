"""Requests about broker processes: which there are, and faults to order for a test (management_node.py).

Only a namespace of the development profile takes orders: what they do concerns every namespace of the service.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.commands.broker_process import AskProcesses, BrokerFault, OrderFault, ProcessesTold
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.process import Done
from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.gateway import Gateway
from hubweir.namespace.tiers import DEVELOPMENT

BROKER = "com.microsoft:broker"
OnBody = Callable[[object], None]
OnRefusal = Callable[[ServiceError], None]
_DIGITS = 3


def list_processes(gateway: Gateway, on_body: OnBody, on_refusal: OnRefusal) -> None:
    """Tell of each process what ProcessTold says, as maps. ServiceError where there is one process alone."""

    def told(answer: Answer) -> None:
        if isinstance(answer, ProcessesTold):
            on_body(
                [
                    {
                        "broker": each.index,
                        "pid": each.pid,
                        "stores": list(each.stores),
                        "state": each.state,
                        "connections": each.connections,
                        "starts": each.starts,
                    }
                    for each in answer.processes
                ]
            )
        else:
            on_refusal(error_of(answer))

    _supervisor(gateway).submit(AskProcesses(), told)


def order_fault(gateway: Gateway, name: str, fault: str | None, on_body: OnBody, on_refusal: OnRefusal) -> None:
    """Have a process end, stall or begin. name: its index. ServiceError when this namespace may not, or it makes no
    sense.
    """
    supervisor = _supervisor(gateway)
    if gateway.settings.profile is not DEVELOPMENT:
        text = "Faults are ordered by namespaces of the development profile alone: they concern the whole service."
        raise ServiceError(NOT_ALLOWED, text)
    if fault not in {each.value for each in BrokerFault}:
        raise ServiceError(ARGUMENT_ERROR, f"The fault is one of {', '.join(each.value for each in BrokerFault)}.")
    if not (name.isascii() and name.isdigit() and len(name) <= _DIGITS):
        raise ServiceError(ARGUMENT_ERROR, "The name of a broker is its number: 0, 1, ...")

    def done(answer: Answer) -> None:
        if isinstance(answer, Done):
            on_body({"broker": int(name), "fault": fault})
        else:
            on_refusal(error_of(answer))

    supervisor.submit(OrderFault(int(name), BrokerFault(fault)), done)


def _supervisor(gateway: Gateway) -> BrokerClient:
    if gateway.process.supervisor is None:
        text = "This service is one process: `hubweir serve --brokers N` has several."
        raise ServiceError(NOT_IMPLEMENTED, text)
    return gateway.process.supervisor
