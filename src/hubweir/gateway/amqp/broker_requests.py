"""Requests about broker processes and their stores: which there are, and faults to order for a test
(management_node.py).

Only a namespace of the development profile takes orders: what they do concerns every namespace of the service. Whoever
asks is answered within ANSWER_MS: a supervisor may stall itself, or go before it answers, and nobody knows then what it
did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hubweir.broker.commands.broker_process import (
    AskProcesses,
    BrokerFault,
    MarkStore,
    OrderFault,
    ProcessesTold,
)
from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.process import Done, Refusal
from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, NOT_IMPLEMENTED, STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.keeper.answer_limit import answered_within
from hubweir.namespace.tiers import DEVELOPMENT

BROKER, STORE = "com.microsoft:broker", "com.microsoft:messaging-store"
_MARKS = {"away": True, "back": False}
OnBody = Callable[[object], None]
OnRefusal = Callable[[ServiceError], None]
_DIGITS = 3
# The supervisor waits for a process that stalls, until it is killed for it after 10 s or so.
ANSWER_MS = 30_000

AWAY = "The supervisor is away: nothing was ordered. Try again."
UNKNOWN = (
    "The supervisor went away before it answered, or does not answer: whether the order was carried out is not known. "
    "Look at `hubweir broker list`, then order again."
)


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
                        "away": list(each.away),
                    }
                    for each in answer.processes
                ]
            )
        else:
            on_refusal(_why_not(answer))

    _ask(gateway, AskProcesses(), told)


def order_fault(gateway: Gateway, name: str, fault: str | None, on_body: OnBody, on_refusal: OnRefusal) -> None:
    """Have a process end, stall or begin. name: its index. ServiceError when this namespace may not, or it makes no
    sense.
    """
    number = _number(gateway, name, fault, [each.value for each in BrokerFault])
    body = {"broker": number, "fault": fault}
    _ask(gateway, OrderFault(number, BrokerFault(fault)), _then(body, on_body, on_refusal))


def mark_store(gateway: Gateway, name: str, fault: str | None, on_body: OnBody, on_refusal: OnRefusal) -> None:
    """Have a messaging store taken away, or brought back. name: its number. As order_fault."""
    number = _number(gateway, name, fault, list(_MARKS))
    body = {"store": number, "fault": fault}
    _ask(gateway, MarkStore(number, _MARKS[fault or ""]), _then(body, on_body, on_refusal))


def _number(gateway: Gateway, name: str, fault: str | None, faults: Sequence[str]) -> int:
    """The number that a name is; ServiceError when there is nothing to order here, or not this."""
    _supervisor(gateway)
    if gateway.settings.profile is not DEVELOPMENT:
        text = "Faults are ordered by namespaces of the development profile alone: they concern the whole service."
        raise ServiceError(NOT_ALLOWED, text)
    if fault not in faults:
        raise ServiceError(ARGUMENT_ERROR, f"The fault is one of {', '.join(faults)}.")
    if not (name.isascii() and name.isdigit() and len(name) <= _DIGITS):
        raise ServiceError(ARGUMENT_ERROR, "The name of a broker, or of a messaging store, is its number: 0, 1, ...")
    return int(name)


def _then(body: object, on_body: OnBody, on_refusal: OnRefusal) -> Callable[[Answer], None]:
    def answered(answer: Answer) -> None:
        if isinstance(answer, Done):
            on_body(body)
        else:
            on_refusal(_why_not(answer))

    return answered


def _ask(gateway: Gateway, command: Command, on_answer: OnAnswer) -> None:
    """on_answer is called once, within ANSWER_MS."""
    supervisor = _supervisor(gateway)
    if supervisor.is_up:
        supervisor.submit(command, answered_within(ANSWER_MS, gateway.env, on_answer))
    else:
        on_answer(Refusal(STORE_OFFLINE, AWAY))


def _why_not(answer: Answer) -> ServiceError:
    is_unknown = isinstance(answer, Refusal) and not answer.known
    return ServiceError(TIMED_OUT, UNKNOWN) if is_unknown else error_of(answer)


def _supervisor(gateway: Gateway) -> BrokerClient:
    if gateway.process.supervisor is None:
        text = "This service is one process with one store: `hubweir serve --brokers N` or `--stores N` has several."
        raise ServiceError(NOT_IMPLEMENTED, text)
    return gateway.process.supervisor
