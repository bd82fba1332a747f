"""The page says holds only of what passed: planted failures, absences and part runs show in it."""

from __future__ import annotations

import pytest

from tests.conformance.checklist import CHECKS
from tests.conformance.table import CLIENTS, Result, page

JAVASCRIPT = "@azure/event-hubs, JavaScript"


def row(results: list[Result], start: str) -> str:
    return next(line for line in page(results).splitlines() if line.startswith(f"| {start} |"))


def result(outcome: str, *, client: str = "", numbers: tuple[int, ...] = (1,), feature: str = "properties") -> Result:
    return Result("test", numbers, client, feature, outcome)


def test_one_failure_makes_the_check_and_the_cell_fail() -> None:
    results = [result("passed", client=JAVASCRIPT), result("failed", client=JAVASCRIPT)]
    assert "**fails**" in row(results, "EH-01")
    assert "**fails**" in row(results, JAVASCRIPT)


def test_what_was_skipped_is_not_run() -> None:
    results = [result("skipped", client=JAVASCRIPT)]
    assert "| not run |" in row(results, "EH-01")
    assert row(results, JAVASCRIPT).startswith(f"| {JAVASCRIPT} | not run | – |")


def test_a_half_that_only_javascript_shows_is_named_when_it_did_not_run() -> None:
    python = result("passed", client="azure-eventhub, blocking, plain")
    assert "JavaScript: not run" in row([python, result("skipped", client=JAVASCRIPT)], "EH-01")
    assert "JavaScript: not run" not in row([python, result("passed", client=JAVASCRIPT)], "EH-01")
    assert "Python, JavaScript" in row([python, result("passed", client=JAVASCRIPT)], "EH-01")


def test_an_empty_run_holds_nothing_and_names_every_client_and_check() -> None:
    text = page([])
    assert "| holds |" not in text
    assert all(f"| {client} | not run |" in text for client in CLIENTS)
    assert text.count("\n| EH-") == len(CHECKS) == 85
    assert "| Azure.Messaging.EventHubs, .NET | not proven |" in text


def test_a_client_without_a_row_is_not_lost() -> None:
    with pytest.raises(ValueError, match="somebody"):
        page([result("passed", client="somebody")])
