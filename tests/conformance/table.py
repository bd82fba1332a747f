"""docs/compatibility.md, made from the results of a conformance run."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.checklist import CHECKS, LATER

FEATURES = (
    "properties",
    "send single",
    "send batch",
    "send keyed",
    "send to partition",
    "receive from any position",
    "checkpoints",
    "errors",
)


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
    lines = [
        "# Compatibility",
        "",
        "Written by `./run conformance`: unmodified clients, and a scripted one, against a live namespace, over plain "
        "TCP and over TLS, with commands as calls and as frames over a socket pair.",
        "",
        "## Clients",
        "",
        "| client | " + " | ".join(FEATURES) + " |",
        "|---" * (len(FEATURES) + 1) + "|",
    ]
    for client in sorted({result.client for result in results if result.client}):
        cells = [_cell(results, client, feature) for feature in FEATURES]
        lines.append(f"| {client} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "`–`: no test of this pair.",
        "",
        "## Checks",
        "",
        "*holds*: the tests of this check passed. *not yet*: it needs a part that is not built. *not run*: built, and "
        "no test of this run shows it.",
        "",
        "| check | what it says | status | note |",
        "|---|---|---|---|",
    ]
    for number, text in CHECKS.items():
        outcomes = [result.outcome for result in results if number in result.numbers]
        note = LATER.get(number, "")
        status = status_of(outcomes) if outcomes else "not yet" if note else "not run"
        lines.append(f"| EH-{number:02} | {text} | {status} | {note} |")
    return "\n".join(lines) + "\n"


def _cell(results: list[Result], client: str, feature: str) -> str:
    outcomes = [result.outcome for result in results if (result.client, result.feature) == (client, feature)]
    return status_of(outcomes) if outcomes else "–"
