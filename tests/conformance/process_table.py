"""The sections of docs/compatibility.md about broker processes: one for each number of them that was tried.

`./run conformance --brokers N` writes the section of N alone; a run without it writes all else, and keeps sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.conformance.table import SCRIPTED, SERVICES, Result, Service, check_cell, status_of

_HEADING = re.compile(r"^## On (\d+) broker processes$", re.MULTILINE)


def sections_of(page: str) -> str:
    """Those that a page has, from the first heading on; empty when it has none."""
    first = _HEADING.search(page)
    return "" if first is None else page[first.start() :]


def with_section(page: str, brokers: int, results: list[Result]) -> str:
    """The page with the section of so many broker processes made anew, in the order of their numbers."""
    kept = sections_of(page)
    _, *parts = _HEADING.split(kept)  # of each section its number, then its text
    texts = {int(count): text for count, text in zip(parts[::2], parts[1::2], strict=True)}
    texts[brokers] = _text(brokers, results)
    sections = [f"## On {count} broker processes\n\n{texts[count].strip()}" for count in sorted(texts)]
    return "\n\n".join([page.removesuffix(kept).strip(), *sections]) + "\n"


def _text(brokers: int, results: list[Result]) -> str:
    for result in results:
        check_cell(result)
    lines = [
        f"Written by `./run conformance --brokers {brokers}`: the same tests against `hubweir serve` with as many, "
        "where each connection may come to another process. Tests that look into the service, or break it from inside, "
        "have it in their own process, and are not among them.",
        "",
        "| checks | hold | fail | have no test here |",
        "|---|---|---|---|",
        *(_row(service, results) for service in SERVICES),
        "",
        "| client | tests that passed | failed | not run |",
        "|---|---|---|---|",
    ]
    clients = [SCRIPTED, *dict.fromkeys(client for service in SERVICES for client in service.clients)]
    return "\n".join(lines + [_client(client, results) for client in clients])


def _row(service: Service, results: list[Result]) -> str:
    found: dict[str, list[int]] = {}
    for number in service.checks:
        outcomes = [result.outcome for result in results if number in result.numbers.get(service.mark, ())]
        if outcomes or number not in service.later:
            found.setdefault(status_of(outcomes), []).append(number)
    prefix = f"{service.mark.upper()}-"
    cells = [_spans(found.get(status, []), prefix) for status in ("holds", "**fails**", "not run")]
    return f"| {service.title} | " + " | ".join(cells) + " |"


def _client(client: str, results: list[Result]) -> str:
    outcomes = [result.outcome for result in results if (result.client or SCRIPTED) == client]
    counts = [outcomes.count(outcome) or "–" for outcome in ("passed", "failed", "skipped")]
    return f"| {client} | " + " | ".join(map(str, counts)) + " |"


def _spans(numbers: Iterable[int], prefix: str) -> str:
    """Numbers in order, those that follow each other as one span."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return ", ".join("–".join(f"{prefix}{number:02}" for number in span) for span in spans) or "–"
