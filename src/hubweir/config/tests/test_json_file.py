"""json_file.py: what cannot be read is one problem with its place; warnings are errors where the reader is strict."""

from __future__ import annotations

import pytest

from hubweir.config.json_file import ConfigFile
from hubweir.config.problems import Kind, Problems


@pytest.mark.parametrize(
    ("data", "line", "column", "path", "kind"),
    [
        (b"", 1, 1, "$", Kind.SYNTAX),
        (b'{\n"a": [1 2]}', 2, 9, "$.a", Kind.SYNTAX),
        (b"\n\n \xff", 3, 2, "$", Kind.UNREADABLE),
        (b" " * 1_048_577, 1, 1, "$", Kind.UNREADABLE),
    ],
)
def test_a_file_that_cannot_be_read_is_one_problem(data: bytes, line: int, column: int, path: str, kind: Kind) -> None:
    problems = Problems()
    assert ConfigFile(data, file="f.json", problems=problems, strict=False).root is None
    [problem] = problems._errors
    place = problem.location
    assert (place.line, place.column, place.path, problem.kind) == (line, column, path, kind)


def test_a_member_given_twice_is_noted_with_the_line_of_the_first_which_counts() -> None:
    problems = Problems()
    file = ConfigFile(b'{"a": 1,\n "a": 2}', file="f.json", problems=problems, strict=False)
    assert [str(problem) for problem in problems._errors] == [
        "f.json:2:2: $.a: error: a member is given twice; found the name again; it stands on line 1 already;"
        " allowed: each name once"
    ]
    assert file.root is not None and isinstance(file.root.value, dict)
    assert file.root.value["a"].node.value == 1


@pytest.mark.parametrize(
    ("strict", "kind", "is_error"),
    [
        (False, Kind.UNKNOWN_MEMBER, False),
        (True, Kind.UNKNOWN_MEMBER, True),
        (True, Kind.NOT_SERVED, False),  # legal, and said so: no reader is too strict for it
    ],
)
def test_only_an_unknown_member_is_an_error_to_a_strict_reader(strict: bool, kind: Kind, is_error: bool) -> None:
    problems = Problems()
    file = ConfigFile(b"{}", file="f.json", problems=problems, strict=strict)
    file.warn(kind, 0, ("a", 1), "this is odd", found="x", allowed="y")
    [noted] = problems._errors if is_error else problems._warnings
    assert (noted.kind, noted.location.path, noted.found) == (kind, "$.a[1]", "x")
    assert len(problems._errors) + len(problems._warnings) == 1
