"""docs/compatibility.md, made from the results of a conformance run: two tables for each of the two services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.conformance import checklist, servicebus_checklist

SCRIPTED = "scripted"


@dataclass(frozen=True)
class Service:
    """One half of the page.

    mark: of tests, by which its checks are numbered; also what their names begin with, in capitals.
    clients: every client has a row, also in a run that could not have it; the word by which the column "shown by"
    names it, by row. not_proven: the client that no test has. asked_of: clients that a check asks for, by such words.
    explained: what of a check is not shown, or not so, and why.
    """

    mark: str
    title: str
    features: tuple[str, ...]
    clients: Mapping[str, str]
    not_proven: str
    checks: Mapping[int, str]
    later: Mapping[int, str]
    asked_of: Mapping[int, tuple[str, ...]]
    explained: Mapping[int, str]


EVENT_HUBS_FEATURES = (
    "properties",
    "send single",
    "send batch",
    "send keyed",
    "send to partition",
    "buffered producer",
    "receive from any position",
    "checkpoints",
    "errors",
    "SAS",
    "SASL",
    "WebSocket",
    "owner level",
    "runtime metrics",
    "idempotent producer",
    "management",
)

EVENT_HUBS_CLIENTS = {
    "azure-eventhub, blocking, plain": "Python",
    "azure-eventhub, blocking, TLS": "Python",
    "azure-eventhub, blocking, WebSocket": "Python",
    "azure-eventhub, asyncio, plain": "Python",
    "azure-eventhub, asyncio, TLS": "Python",
    "azure-eventhub, asyncio, WebSocket": "Python",
    "@azure/event-hubs, JavaScript": "JavaScript",
    "azure-messaging-eventhubs, Java": "Java",
    "azeventhubs, Go": "Go",
    "python-qpid-proton, plain": "Proton",
    "python-qpid-proton, TLS": "Proton",
    "rhea, JavaScript": "rhea",
    "curl, HTTPS": "curl",
}

SERVICE_BUS_FEATURES = (
    "connect",
    "send single",
    "send batch",
    "properties",
    "receive",
    "receive and delete",
    "settle",
    "dead letters",
    "locks",
    "deferred",
    "peek",
    "schedule",
    "time to live",
    "duplicates",
    "sessions",
    "session state",
    "transactions",
    "topics",
    "rules",
    "forwarding",
    "errors",
    "SAS",
    "SASL",
    "WebSocket",
    "administration",
)
SERVICE_BUS_CLIENTS = {
    "azure-servicebus, blocking, plain": "Python",
    "azure-servicebus, blocking, TLS": "Python",
    "azure-servicebus, blocking, WebSocket": "Python",
    "azure-servicebus, asyncio, plain": "Python",
    "azure-servicebus, asyncio, TLS": "Python",
    "@azure/service-bus, JavaScript": "JavaScript",
    "azure-messaging-servicebus, Java": "Java",
    "azservicebus, Go": "Go",
    "python-qpid-proton, plain": "Proton",
    "python-qpid-proton, TLS": "Proton",
    "rhea, JavaScript": "rhea",
    "azure-servicebus, administration": "Python",
    "curl, HTTPS": "curl",
}

SERVICES = (
    Service(
        mark="eh",
        title="Event hubs",
        features=EVENT_HUBS_FEATURES,
        clients=EVENT_HUBS_CLIENTS,
        not_proven="Azure.Messaging.EventHubs, .NET",
        checks=checklist.CHECKS,
        later=checklist.LATER,
        asked_of=dict.fromkeys(checklist.JAVASCRIPT_TOO, ("JavaScript",)),
        explained={},
    ),
    Service(
        mark="sb",
        title="Queues and topics",
        features=SERVICE_BUS_FEATURES,
        clients=SERVICE_BUS_CLIENTS,
        not_proven="Azure.Messaging.ServiceBus, .NET",
        checks=servicebus_checklist.CHECKS,
        later=servicebus_checklist.LATER,
        asked_of=servicebus_checklist.ASKED_OF,
        explained=servicebus_checklist.EXPLAINED,
    ),
)


@dataclass(frozen=True)
class Result:
    """One test that ran: the checks it belongs to, the cell it counts in, and passed, failed or skipped.

    numbers: of the checks of each service whose mark the test has; its cell is in the tables of these services. Without
    any mark it is in that of the service whose client it has, if it is of one alone.
    """

    name: str
    client: str
    feature: str
    outcome: str
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def status_of(outcomes: list[str]) -> str:
    """What a set of outcomes says: holds when something passed and nothing failed."""
    if "failed" in outcomes:
        return "**fails**"
    return "holds" if "passed" in outcomes else "not run"


def page(results: list[Result]) -> str:
    """The whole page, the same for the same results."""
    for result in results:
        check_cell(result)
    lines = [
        "# Compatibility",
        "",
        "Written by `./run conformance`: unmodified clients, and a scripted one, against a live namespace, over plain "
        "TCP, TLS and WebSocket. Tests that send every command run twice: with commands as calls, and as bytes over a "
        "socket pair; those of partitioned queues and topics also on three broker processes.",
        "",
        "In the tables of clients `–` is no test of this pair, often because the client does not offer it. *not run*: "
        "there are tests, and this run could not have the client, for want of its toolchain or its packages. *not "
        "proven*: there are no tests with this client.",
        "",
        "In the tables of checks *holds* is: the tests of this check passed. *not yet*: it needs a part that is not "
        "built, which the note names. *not run*: built, and no test of this run shows it. "
        f"*{SCRIPTED}*: a client of this repository that writes every frame by itself, or no client at all.",
        "",
        "A test says which checks it is of: `@pytest.mark.sb(27)` is of SB-27. So `grep -rnE 'sb\\(.*\\b27\\b' "
        "tests/conformance` names the tests of one; what programs in other languages check has its numbers in the "
        "tables of `tests/conformance/foreign/`.",
    ]
    for service in SERVICES:
        lines += _half(service, [result for result in results if service in _services_of(result)])
    return "\n".join(lines) + "\n"


def check_cell(result: Result) -> None:
    """Raise ValueError for a test with a client whose cell is in no table."""
    if not result.client:
        return
    of_result = _services_of(result)
    if not any(result.client in service.clients for service in of_result):
        raise ValueError(f"no row for {result.client}: add it to the clients of the service that {result.name} marks")
    if not any(result.feature in service.features for service in of_result):
        raise ValueError(f"no column for {result.feature!r} of {result.name}: add it to the features of the service")


def _services_of(result: Result) -> list[Service]:
    """In the tables of which services a result counts."""
    marked = [service for service in SERVICES if service.mark in result.numbers]
    of_client = [service for service in SERVICES if result.client in service.clients]
    return marked or (of_client if len(of_client) == 1 else [])


def _half(service: Service, results: list[Result]) -> list[str]:
    lines = [
        "",
        f"## {service.title}: clients",
        "",
        "| client | " + " | ".join(service.features) + " |",
        "|---" * (len(service.features) + 1) + "|",
    ]
    for client in service.clients:
        cells = [_cell(results, client, feature) for feature in service.features]
        lines.append(f"| {client} | " + " | ".join(cells) + " |")
    lines.append(f"| {service.not_proven} |" + " not proven |" * len(service.features))
    lines += [
        "",
        f"## {service.title}: checks",
        "",
        "| check | what it says | status | shown by | note |",
        "|---|---|---|---|---|",
    ]
    return lines + [_row(service, number, results) for number in service.checks]


def _cell(results: list[Result], client: str, feature: str) -> str:
    of_client = [result for result in results if result.client == client]
    outcomes = [result.outcome for result in of_client if result.feature == feature]
    if not outcomes:
        return "–" if of_client else "not run"
    return status_of(outcomes)


def _row(service: Service, number: int, results: list[Result]) -> str:
    mine = [result for result in results if number in result.numbers.get(service.mark, ())]
    is_later = not mine and number in service.later
    status = status_of([result.outcome for result in mine]) if mine else "not yet" if is_later else "not run"
    shown = {service.clients.get(result.client, SCRIPTED) for result in mine if result.outcome == "passed"}
    notes = [service.later[number]] if is_later else []
    if not is_later:
        notes += [f"the part with {word}: not run" for word in service.asked_of.get(number, ()) if word not in shown]
        notes += [service.explained[number]] if number in service.explained else []
    by = ", ".join(name for name in (SCRIPTED, *dict.fromkeys(service.clients.values())) if name in shown)
    name = f"{service.mark.upper()}-{number:02}"
    return f"| {name} | {service.checks[number]} | {status} | {by} | {'; '.join(notes)} |"
