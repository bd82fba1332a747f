"""Values as TOML has them and as text: the same, or an error."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.fields import Field, split_list


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("text", "x", "x"),
        ("count", "17", 17),
        ("count", 0, 0),
        ("flag", "TRUE", True),
        ("flag", False, False),
        ("seconds", "10m", 600.0),
        ("seconds", "PT2S", 2.0),
        ("list", "a, max(b, c)", ("a", "max(b, c)")),
        ("list", ["a, b"], ("a, b",)),
    ],
)
def test_values_are_read(kind: str, given: Any, value: Any) -> None:
    assert Field("f", kind, None, "").read(given, "here") == value


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("text", ""), ("text", 5), ("count", "-1"), ("count", True), ("count", "²"), ("flag", 1), ("seconds", "10"),
        ("seconds", 10), ("seconds", "0s"), ("list", [1]), ("list", 7),
    ],
)  # fmt: skip
def test_what_is_no_value_is_named_with_what_is_allowed(kind: str, given: Any) -> None:
    field = Field("f", kind, None, "")
    with pytest.raises(IllegalDescription) as refused:
        field.read(given, "a.toml: f")
    assert str(refused.value) == f"a.toml: f is {str(given)!r}; allowed: {field.allowed}"


def test_a_choice_is_one_of_them() -> None:
    field = Field("f", "text", None, "", ("parquet", "delta"))
    assert field.read("delta", "f") == "delta"
    with pytest.raises(IllegalDescription, match="allowed: parquet, delta"):
        field.read("Delta", "f")


def test_commas_in_brackets_part_nothing() -> None:
    assert split_list(" count(*) AS n , round(avg(x), 2) AS m,") == ["count(*) AS n", "round(avg(x), 2) AS m"]
