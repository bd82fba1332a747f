"""Functions of templates: their values are Azure's, or they are refused."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.config.arm_functions import FUNCTIONS, BadExpression, truth

REFUSALS = (TypeError, ValueError, KeyError, IndexError, AttributeError, ZeroDivisionError, BadExpression)


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("mod", (-7, 3), -1), ("mod", (7, -3), 1), ("div", (-7, 2), -3), ("div", (10**18 + 1, 1), 10**18 + 1),
        ("equals", (1, True), False), ("equals", (False, 0), False), ("equals", (["a"], ["a"]), True),
        ("and", (True, "false"), False), ("or", ("False", "true"), True), ("not", ("false",), True),
        ("bool", (1,), True), ("bool", ("False",), False),
        ("contains", ({"Name": 1}, "name"), True), ("contains", (["a"], "A"), False), ("contains", ("abc", "bc"), True),
        ("string", ([1, {"a": "b"}],), '[1,{"a":"b"}]'), ("string", (None,), ""), ("concat", ("a", 1, True), "a1True"),
        ("concat", ([1], [2, 3]), [1, 2, 3]), ("format", ("{{{0}}} {1}", "a", 2), "{a} 2"),
        ("range", (3, 2), [3, 4]), ("skip", ([1, 2, 3], 1), [2, 3]), ("skip", ("abc", -1), "abc"),
        ("take", ([1, 2], -1), []), ("take", ("abc", 2), "ab"), ("substring", ("hubweir", 0, 3), "hub"),
        ("startswith", ("Hub", "hu"), True), ("endswith", ("Hub", "H"), False), ("indexof", ("abC", "c"), 2),
        ("union", ([1, 2], [2, 3]), [1, 2, 3]),
        ("union", ({"A": {"b": 1, "c": 2}}, {"a": {"c": 3}}), {"A": {"b": 1, "c": 3}}),
        ("resourceid", ("sub", "group", "P/t", "n"), "P/t/n"), ("resourceid", ("P/t/u", "a", "b/c"), "P/t/u/a/b/c"),
        (".", ({"Inner": 1}, "inner"), 1), (".", ([4, 5], 1), 5),
    ],
)  # fmt: skip
def test_a_function_has_azures_value(name: str, arguments: tuple[Any, ...], value: Any) -> None:
    found = FUNCTIONS[name](*arguments)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mul", ("a", 10**9)), ("add", ("a", "b")), ("sub", (True, 1)), ("range", (0, 10_001)), ("range", (0, -1)),
        ("not", ("maybe",)), ("and", (1, True)), ("bool", ("yes",)), ("format", ("{0:N2}", 1)), ("format", ("{1}", 1)),
        (".", ([1, 2], -1)), (".", ("abc", 0)), (".", ({}, "a")), ("substring", ("abc", 2, 5)),
        ("substring", ("abc", -1)), ("div", (1, 0)), ("createobject", ("a",)), ("take", ("abc", "1")),
    ],
)  # fmt: skip
def test_what_would_mean_something_else_is_refused(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(REFUSALS):
        FUNCTIONS[name](*arguments)


@pytest.mark.parametrize("value", [None, 0, 1, "", "yes", [], [True]])
def test_truth_is_true_or_false_alone(value: Any) -> None:
    with pytest.raises(BadExpression, match="neither true nor false"):
        truth(value)


def test_a_unique_text_is_the_same_for_the_same_parts() -> None:
    unique = FUNCTIONS["uniquestring"]
    assert unique("a", "b") == unique("a", "b") != unique("a", "c") and len(unique("a")) == 13
