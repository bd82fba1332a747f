"""The page says holds only of what passed: planted failures, absences and part runs show in it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conformance.foreign.checks import CHECKS
from tests.conformance.foreign.queue_checks import CHECKS as QUEUE_CHECKS
from tests.conformance.foreign.topic_checks import TOPIC_CHECKS
from tests.conformance.servicebus_checklist import LATER
from tests.conformance.table import SERVICES, Result, page

JAVASCRIPT = "@azure/event-hubs, JavaScript"
FOLDER = Path(__file__).resolve().parent


def row(results: list[Result], start: str) -> str:
    return next(line for line in page(results).splitlines() if line.startswith(f"| {start} |"))


def result(outcome: str, *, client: str = "", mark: str = "eh", feature: str = "properties") -> Result:
    return Result("test", client, feature, outcome, {mark: (1,)})


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
    for service, count in zip(SERVICES, (85, 175), strict=True):
        assert all(f"| {client} | not run |" in text for client in service.clients)
        assert text.count(f"\n| {service.mark.upper()}-") == count
        assert list(service.checks) == list(range(1, count + 1))
        assert f"| {service.not_proven} | not proven |" in text


def test_each_check_has_a_test_unless_it_waits_for_a_part() -> None:
    """By the numbers in the marks of all tests of this folder, and in the tables of programs in other languages."""
    numbered: dict[str, set[int]] = {service.mark: set() for service in SERVICES}
    for path in FOLDER.rglob("test_*.py"):
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in numbered:
                numbered[each.func.attr] |= {number.value for number in each.args if isinstance(number, ast.Constant)}
    for check in (*CHECKS.values(), *QUEUE_CHECKS.values(), *TOPIC_CHECKS.values()):
        numbered[check.mark] |= set(check.numbers)
    for service in SERVICES:
        assert numbered[service.mark] <= set(service.checks)
        assert set(service.checks) - numbered[service.mark] <= set(service.later)


def test_what_is_not_shown_of_a_check_stands_beside_it() -> None:
    [service] = [service for service in SERVICES if service.explained]
    for number, why in service.explained.items():
        shown = Result("test", "", "", "passed", {service.mark: (number,)})
        assert row([shown], f"SB-{number}").endswith(f"{why} |")
        assert number not in service.later


def test_a_client_without_a_row_is_not_lost() -> None:
    with pytest.raises(ValueError, match="somebody"):
        page([result("passed", client="somebody")])
    with pytest.raises(ValueError, match=JAVASCRIPT):
        page([result("passed", client=JAVASCRIPT, mark="sb")])


def test_a_test_without_a_check_counts_for_its_client_where_that_is_of_one_service() -> None:
    unmarked = Result("test", "azure-eventhub, blocking, plain", "properties", "passed")
    assert "| azure-eventhub, blocking, plain | holds |" in page([unmarked])
    with pytest.raises(ValueError, match="Proton|proton"):
        page([Result("test", "python-qpid-proton, plain", "properties", "passed")])


def test_a_feature_without_a_column_is_not_lost() -> None:
    with pytest.raises(ValueError, match="dancing"):
        page([result("passed", client=JAVASCRIPT, feature="dancing")])


def test_a_result_counts_in_the_tables_of_its_marks_alone() -> None:
    proton = result("passed", client="python-qpid-proton, plain", mark="sb")
    halves = page([proton]).split("## Queues and topics: clients")
    assert ["| python-qpid-proton, plain | not run |" in half for half in halves] == [True, False]
    assert "| holds | Proton |" in row([proton], "SB-01")
    assert "| not run |" in row([proton], "EH-01")


def test_what_is_not_built_is_not_yet_until_a_test_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LATER, 130, "transactions of several brokers")
    later = Result("test", "", "", "passed", {"sb": (130,)})
    assert "| not yet |  | transactions of several brokers |" in row([], "SB-130")
    assert "| holds | scripted |  |" in row([later], "SB-130")
