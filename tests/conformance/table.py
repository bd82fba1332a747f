"""docs/compatibility.md, made from the results of a conformance run."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.checklist import CHECKS, JAVASCRIPT_TOO, LATER

FEATURES = (
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

# Every client has a row, also in a run that could not have it. Word by which the column "shown by" names it, by row.
CLIENTS = {
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
NOT_PROVEN = "Azure.Messaging.EventHubs, .NET"
SCRIPTED = "scripted"


@dataclass(frozen=True)
class Result:
    """One test that ran: the checks it belongs to, the cell it counts in, and passed, failed or skipped."""

    name: str
    numbers: tuple[int, ...]
    client: str
    feature: str
    outcome: str


def status_of(outcomes: list[str]) -> str:
    """What a set of outcomes says: holds when something passed and nothing failed."""
    if "failed" in outcomes:
        return "**fails**"
    return "holds" if "passed" in outcomes else "not run"


def page(results: list[Result]) -> str:
    """The whole page, the same for the same results."""
    unknown = {result.client for result in results} - {"", *CLIENTS}
    if unknown:
        raise ValueError(f"no row for {', '.join(sorted(unknown))}: add it to CLIENTS")
    lines = [
        "# Compatibility",
        "",
        "Written by `./run conformance`: unmodified clients, and a scripted one, against a live namespace, over plain "
        "TCP, TLS and WebSocket. Tests that send every command run twice: with commands as calls, and as bytes over a "
        "socket pair.",
        "",
        "## Clients",
        "",
        "| client | " + " | ".join(FEATURES) + " |",
        "|---" * (len(FEATURES) + 1) + "|",
    ]
    for client in CLIENTS:
        cells = [_cell(results, client, feature) for feature in FEATURES]
        lines.append(f"| {client} | " + " | ".join(cells) + " |")
    lines.append(f"| {NOT_PROVEN} |" + " not proven |" * len(FEATURES))
    lines += [
        "",
        "`–`: no test of this pair, often because the client does not offer it. *not run*: there are tests, and this "
        "run could not have the client, for want of its toolchain or its packages. *not proven*: there are no tests "
        "with this client.",
        "",
        "## Checks",
        "",
        "*holds*: the tests of this check passed. *not yet*: it needs a part that is not built. *not run*: built, and "
        f"no test of this run shows it. *{SCRIPTED}*: a client of this repository that writes every frame by itself, "
        "or no client at all.",
        "",
        "| check | what it says | status | shown by | note |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(number, results) for number in CHECKS]
    return "\n".join(lines) + "\n"


def _cell(results: list[Result], client: str, feature: str) -> str:
    of_client = [result for result in results if result.client == client]
    outcomes = [result.outcome for result in of_client if result.feature == feature]
    if not outcomes:
        return "–" if of_client else "not run"
    return status_of(outcomes)


def _row(number: int, results: list[Result]) -> str:
    mine = [result for result in results if number in result.numbers]
    status = status_of([result.outcome for result in mine]) if mine else "not yet" if number in LATER else "not run"
    shown = {CLIENTS.get(result.client, SCRIPTED) for result in mine if result.outcome == "passed"}
    notes = [LATER[number]] if number in LATER else []
    if number in JAVASCRIPT_TOO and "JavaScript" not in shown:
        notes.append("the half with JavaScript: not run")
    by = ", ".join(name for name in (SCRIPTED, *dict.fromkeys(CLIENTS.values())) if name in shown)
    return f"| EH-{number:02} | {CHECKS[number]} | {status} | {by} | {'; '.join(notes)} |"
