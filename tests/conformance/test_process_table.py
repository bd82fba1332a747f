"""Sections about broker processes stand beside the tables: each is written by a run of its own, and kept by others."""

from __future__ import annotations

import pytest

from tests.conformance.process_table import sections_of, with_section
from tests.conformance.table import Result, page

JAVA = "azure-messaging-servicebus, Java"


def result(outcome: str, *numbers: int, client: str = "", mark: str = "sb") -> Result:
    return Result("test", client, "settle", outcome, {mark: numbers})


def line(text: str, start: str) -> str:
    return next(each for each in sections_of(text).splitlines() if each.startswith(f"| {start} |"))


def test_checks_stand_by_what_their_tests_said() -> None:
    results = [result("passed", 1, 2, 3, 5), result("failed", 3), result("skipped", 7), result("passed", 9, mark="eh")]
    text = with_section(page([]), 3, results)
    assert line(text, "Queues and topics") == "| Queues and topics | SB-01–SB-02, SB-05 | SB-03 | SB-04, SB-06–SB-175 |"
    assert line(text, "Event hubs").startswith("| Event hubs | EH-09 | – | EH-01–EH-08, EH-10–")


def test_each_client_has_its_counts() -> None:
    java = [result(outcome, 1, client=JAVA) for outcome in ("passed", "passed", "failed", "skipped")]
    text = with_section(page([]), 3, [*java, result("passed", 1)])
    assert line(text, JAVA) == f"| {JAVA} | 2 | 1 | 1 |"
    assert line(text, "scripted") == "| scripted | 1 | – | – |"
    assert line(text, "azservicebus, Go") == "| azservicebus, Go | – | – | – |"


def test_a_run_writes_its_own_section_alone_and_in_order() -> None:
    tables = page([result("passed", 1)])
    three = with_section(tables, 3, [result("passed", 2)])
    both = with_section(three, 2, [])
    assert both.startswith(tables) and sections_of(both).count("\n## On ") == 1
    assert sections_of(both).startswith("## On 2 broker") and sections_of(both).endswith(sections_of(three))
    assert with_section(both, 2, []) == both
    assert with_section(both, 3, []) != both
    assert with_section(with_section(both, 3, []), 3, [result("passed", 2)]) == both


def test_a_page_without_sections_has_none() -> None:
    assert sections_of(page([])) == ""


def test_a_client_without_a_row_is_not_lost() -> None:
    with pytest.raises(ValueError, match="somebody"):
        with_section(page([]), 3, [result("passed", 1, client="somebody")])
