"""Problems: their texts, their paths, and how many are kept."""

import pytest

from hubweir.config.problems import (
    PROBLEMS_LIMIT,
    EmulatorFileError,
    Kind,
    Location,
    Problem,
    Problems,
    Severity,
    path_text,
    quoted,
)


def problem(severity: Severity, line: int = 3) -> Problem:
    return Problem(severity, Kind.BAD_VALUE, Location("a.json", line, 7, "$.x"), "x is wrong", "1", "2")


def test_a_problem_says_where_what_found_and_allowed() -> None:
    assert str(problem(Severity.ERROR)) == "a.json:3:7: $.x: error: x is wrong; found 1; allowed: 2"
    bare = Problem(Severity.WARNING, Kind.NOT_SERVED, Location("a.json", 1, 1, "$"), "not served", "", "")
    assert str(bare) == "a.json:1:1: $: warning: not served"


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        ((), "$"),
        (("UserConfig", "NamespaceConfig", 0, "Name"), "$.UserConfig.NamespaceConfig[0].Name"),
        (("a.b", 12, 'c"d', "é", ""), '$["a.b"][12]["c\\"d"]["é"][""]'),
        (("x" * 65,), '$["' + "x" * 64 + '…"]'),
        (("a\nb",), '$["a\\nb"]'),
    ],
)
def test_a_path_is_one_line_and_bounded(steps: tuple[str | int, ...], path: str) -> None:
    assert path_text(steps) == path


def test_a_quoted_text_is_clipped() -> None:
    assert quoted("a" * 64) == '"' + "a" * 64 + '"'
    assert quoted("a" * 1_000) == '"' + "a" * 64 + '…"'


def test_warnings_alone_raise_nothing_and_are_kept() -> None:
    problems = Problems()
    problems.add(problem(Severity.WARNING))
    problems.raise_errors()
    assert not problems.failed
    assert problems.warnings == (problem(Severity.WARNING),)


def test_all_errors_are_raised_together_before_the_warnings() -> None:
    problems = Problems()
    for line, severity in enumerate((Severity.WARNING, Severity.ERROR, Severity.ERROR), 1):
        problems.add(problem(severity, line))
    with pytest.raises(EmulatorFileError) as caught:
        problems.raise_errors()
    assert [kept.location.line for kept in caught.value.problems] == [2, 3, 1]
    assert [kept.location.line for kept in caught.value.errors] == [2, 3]
    assert str(caught.value).splitlines() == [str(kept) for kept in caught.value.problems]


def test_too_many_problems_are_counted_not_kept() -> None:
    problems = Problems()
    for line in range(PROBLEMS_LIMIT + 5):
        problems.add(problem(Severity.WARNING, line))
        problems.add(problem(Severity.ERROR, line))
    with pytest.raises(EmulatorFileError, match=f"and {PROBLEMS_LIMIT + 10} more problems") as caught:
        problems.raise_errors()
    assert len(caught.value.problems) == len(caught.value.errors) == PROBLEMS_LIMIT
    assert caught.value.left_out == PROBLEMS_LIMIT + 10
