"""The examples of docs/throughput_unit.md do what the page says, and its numbers are the code's."""

import doctest
from pathlib import Path

from hubweir.limits import RAISED_UNITS_LIMIT, SINGLE_UNITS, UNITS_BLOCK, UNITS_LIMIT
from hubweir.throughput_unit.throughput_unit import UNIT, Rate
from hubweir.throughput_unit.usage import HOURS_KEPT

PAGE = (Path(__file__).resolve().parents[4] / "docs/throughput_unit.md").read_text()


def failures(page: str) -> int:
    """Run the page's examples, in order, with one set of names; return how many went wrong. There are some to run."""
    # The end of a code block ends the example's output, too.
    test = doctest.DocTestParser().get_doctest(page.replace("```", ""), {}, "docs/throughput_unit.md", None, 0)
    assert test.examples
    return doctest.DocTestRunner(verbose=False).run(test, out=lambda text: None).failed


def test_the_examples_answer_as_shown() -> None:
    assert failures(PAGE) == 0


def test_an_example_with_a_wrong_answer_is_found() -> None:
    assert failures(PAGE.replace("retry_after_ms=50", "retry_after_ms=51")) == 1


def test_the_numbers_are_the_codes() -> None:
    def row(direction: str, rate: Rate, megabytes: int) -> str:
        return f"| {direction} | {rate.bytes_per_second:,} ({megabytes} MB) | {rate.events_per_second:,} |"

    assert row("in", UNIT.ingress, 1) in PAGE
    assert row("out", UNIT.egress, 2) in PAGE
    blocks = range(SINGLE_UNITS + UNITS_BLOCK, UNITS_LIMIT, UNITS_BLOCK)
    assert f"1 to {SINGLE_UNITS} units, or {', '.join(map(str, blocks))} or {UNITS_LIMIT}" in PAGE
    assert f"up to {RAISED_UNITS_LIMIT:,} need `--max-throughput-units`" in " ".join(PAGE.split())
    assert f"for {HOURS_KEPT // 24} days" in PAGE
